/* covertool: configurations of attention for GPUs, one a line, for what assembles them.
 *   covertool set SEED           the covering set of tests/support/gpu_cover.h
 *   covertool all PART PARTS     every configuration n with n % PARTS == PART
 *   covertool of TARGET          of causal attention in bf16, on one GPU
 * A line is KERNEL TARGET VALUES, of those that fit, in columns with tabs; the last line is
 * "# FIT of TRIED". */
#include "tests/support/gpu_cover.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print(const gpu_cover_row *row)
{
    char values[COVER_TEXT];

    gpu_cover_values(row, values);
    printf("%s\t%s\t%s\n", gpu_cover_kernel(row), gpu_cover_target(row), values);
}

static int print_set(gpu_cover *c, uint64_t seed)
{
    static gpu_cover_row row[COVER_MAX_ROWS];
    int n = gpu_cover_set(c, seed, row, NULL);

    for (int i = 0; i < n; i++)
        print(&row[i]);
    printf("# %d of %d\n", n, n);
    return n > 0 ? 0 : 1;
}

static int print_all(gpu_cover *c, int64_t part, int64_t parts)
{
    gpu_cover_row row;
    int fit = 0, tried = 0;

    for (int64_t n = part; gpu_cover_nth(n, &row); n += parts, tried++) {
        if (!gpu_cover_fits(c, &row))
            continue;
        print(&row);
        fit++;
    }
    printf("# %d of %d\n", fit, tried);
    return 0;
}

static int print_of(gpu_cover *c, const char *path)
{
    gpu_cover_row row;
    int fit = 0, tried = 0;

    for (int64_t n = 0; gpu_cover_nth(n, &row); n++) {
        if (strcmp(gpu_cover_target(&row), path) || row.at[COVER_MASK] != 1 ||
            gpu_cover_value(COVER_DTYPE, &row) != DT_BF16)
            continue;
        tried++;
        if (!gpu_cover_fits(c, &row))
            continue;
        print(&row);
        fit++;
    }
    printf("# %d of %d\n", fit, tried);
    return 0;
}

int main(int argc, char **argv)
{
    bool set = argc == 3 && !strcmp(argv[1], "set");
    bool of = argc == 3 && !strcmp(argv[1], "of");
    bool all = argc == 4 && !strcmp(argv[1], "all") && atoll(argv[3]) > 0;
    static gpu_cover c;

    if (!set && !all && !of)
        return fprintf(stderr, "usage: covertool set SEED | all PART PARTS | of TARGET\n"), 2;
    if (gpu_cover_open(&c) != TW_OK)
        return fprintf(stderr, "%s\n", tw_last_error()->text), 1;
    int code = set  ? print_set(&c, strtoull(argv[2], NULL, 0))
               : of ? print_of(&c, argv[2])
                    : print_all(&c, atoll(argv[2]), atoll(argv[3]));
    gpu_cover_close(&c);
    return code;
}
