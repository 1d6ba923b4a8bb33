/* covertool: configurations of attention for GPUs, one a line, for what assembles them.
 *   covertool set SEED           the covering set of tests/support/gpu_cover.h
 *   covertool all PART PARTS     every configuration whose group is PART of PARTS
 *   covertool every N            each N-th configuration
 *   covertool of TARGET          of causal attention in bf16, on one GPU
 *   covertool ptx                answers lines of stdin: makes PTX of configurations
 * A line is KERNEL TARGET VALUES, of those that fit, in columns with tabs; the last line is
 * "# FIT of TRIED, N with code of their own", and only those N are printed. A group is what
 * shares kernel, dtype, head dim and blocks: those of different groups never share code.
 * An answer is "ptx SIZE" or "error SIZE" on a line of its own, then so many bytes. */
#include "tests/support/gpu_cover.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- lists ----------------------------------------------------------------------------------- */

enum { SEEN = 1 << 18 };

typedef struct listing {
    gpu_cover cover;
    int tried, fit, own;
    hash128 seen[SEEN]; /* open addressing; zero is free */
} listing;

static bool is_free(const hash128 *h)
{
    return h->lo == 0 && h->hi == 0;
}

/* The same schedule for another GPU is other code: registers differ, as ptxas shows. */
static bool is_new(listing *l, const gpu_cover_row *row)
{
    hash128 code = hash_mix(l->cover.code, hash_str(gpu_cover_target(row)));
    hash128 *at = &l->seen[code.lo % SEEN];

    while (!is_free(at) && !hash_equal(*at, code))
        at = at + 1 < l->seen + SEEN ? at + 1 : l->seen;
    if (!is_free(at))
        return false;
    *at = code;
    return true;
}

static void list(listing *l, const gpu_cover_row *row)
{
    char values[COVER_TEXT];

    l->tried++;
    if (!gpu_cover_fits(&l->cover, row))
        return;
    l->fit++;
    if (!is_new(l, row))
        return;
    l->own++;
    gpu_cover_values(row, values);
    printf("%s\t%s\t%s\n", gpu_cover_kernel(row), gpu_cover_target(row), values);
}

static void list_set(listing *l, uint64_t seed)
{
    static gpu_cover_row row[COVER_MAX_ROWS];
    int n = gpu_cover_set(&l->cover, seed, row, NULL);

    for (int i = 0; i < n; i++)
        list(l, &row[i]);
}

/* The factors of a schedule are the last. */
static void list_all(listing *l, int64_t part, int64_t parts)
{
    gpu_cover_row row;
    int64_t group = 1;

    for (int f = COVER_STAGES; f < COVER_FACTORS; f++)
        group *= gpu_cover_count((enum gpu_factor)f);
    for (int64_t n = 0; gpu_cover_nth(n, &row); n++)
        if (n / group % parts == part)
            list(l, &row);
}

static void list_every(listing *l, int64_t step)
{
    gpu_cover_row row;

    for (int64_t n = 0; gpu_cover_nth(n, &row); n += step)
        list(l, &row);
}

static void list_of(listing *l, const char *path)
{
    gpu_cover_row row;

    for (int64_t n = 0; gpu_cover_nth(n, &row); n++)
        if (!strcmp(gpu_cover_target(&row), path) && row.at[COVER_MASK] == 1 &&
            gpu_cover_value(COVER_DTYPE, &row) == DT_BF16)
            list(l, &row);
}

/* ---- PTX ------------------------------------------------------------------------------------- */

static void answer(const char *what, const char *data, size_t size)
{
    printf("%s %zu\n", what, size);
    fwrite(data, 1, size, stdout);
    fflush(stdout);
}

static void make_ptx(tw_context *cx, const char *path, const char *gpu, const char *values)
{
    tw_compile_options options = TW_COMPILE_OPTIONS_INIT;
    tw_kernel *kernel = NULL;
    char *data = NULL;
    size_t size;

    options.target = gpu;
    options.set = values;
    options.emit = "ptx";
    if (tw_kernel_load(cx, path, NULL, &kernel) ||
        tw_kernel_compile(kernel, &options, &data, &size))
        answer("error", tw_last_error()->text, strlen(tw_last_error()->text));
    else
        answer("ptx", data, size);
    tw_free(data);
    tw_kernel_destroy(kernel);
}

static int serve(tw_context *cx)
{
    char line[3 * COVER_TEXT];

    while (fgets(line, sizeof line, stdin)) {
        char *rest = line, *part[3];
        for (int i = 0; i < 3; i++)
            part[i] = strsep(&rest, i < 2 ? "\t" : "\n");
        if (!part[2] || !rest)
            return fprintf(stderr, "covertool: not KERNEL TARGET VALUES\n"), 2;
        make_ptx(cx, part[0], part[1], part[2]);
    }
    return 0;
}

int main(int argc, char **argv)
{
    static listing l;
    const char *what = argc > 1 ? argv[1] : "";
    bool set = argc == 3 && !strcmp(what, "set"), of = argc == 3 && !strcmp(what, "of");
    bool all = argc == 4 && !strcmp(what, "all") && atoll(argv[3]) > 0;
    bool every = argc == 3 && !strcmp(what, "every") && atoll(argv[2]) > 0;
    bool ptx = argc == 2 && !strcmp(what, "ptx");

    if (!set && !all && !every && !of && !ptx)
        return fprintf(stderr, "usage: covertool set SEED | all PART PARTS | every N | of TARGET | "
                               "ptx\n"),
               2;
    if (gpu_cover_open(&l.cover) != TW_OK)
        return fprintf(stderr, "%s\n", tw_last_error()->text), 1;
    if (ptx)
        return serve(l.cover.cx);
    if (set)
        list_set(&l, strtoull(argv[2], NULL, 0));
    else if (of)
        list_of(&l, argv[2]);
    else if (every)
        list_every(&l, atoll(argv[2]));
    else
        list_all(&l, atoll(argv[2]), atoll(argv[3]));
    gpu_cover_close(&l.cover);
    printf("# %d of %d, %d with code of their own\n", l.fit, l.tried, l.own);
    return l.fit > 0 ? 0 : 1;
}
