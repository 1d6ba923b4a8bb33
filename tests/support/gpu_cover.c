/* A row is the best of some random completions of a pair that is not covered yet: the one that
 * covers most. Those that do not fit the GPU are replaced by frugal ones: fewer registers, less
 * shared memory. */
#include "tests/support/gpu_cover.h"
#include "compiler/base/check.h"
#include "runtime/resolve.h"
#include "tuner/session.h"
#include <stdio.h>
#include <string.h>

enum { MAX_VALUES = 16, TRIES = 24 };

/* Each factor's values, the most frugal first. Blocks, stages, warps and operands are the default
 * space of attention_fwd on GPUs (unit/check_gpu_cover compares them). */
static const struct factor {
    int n;
    int64_t value[MAX_VALUES];
} factors[COVER_FACTORS] = {
    [COVER_HEAD_DIM] = {16,
                        {16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256}},
    [COVER_MASK] = {COVER_MASKS, {0, 1, 2}},
    [COVER_DTYPE] = {3, {DT_BF16, DT_F16, DT_F32}},
    [COVER_BLOCK_M] = {4, {32, 64, 128, 256}},
    [COVER_BLOCK_N] = {3, {32, 64, 128}},
    [COVER_STAGES] = {3, {1, 2, 3}},
    [COVER_WARPS] = {2, {8, 4}},
    [COVER_OPERANDS] = {3, {0, 1, 2}},
    [COVER_GPU] = {COVER_GPUS, {80, 89, 120}},
};
static const struct mask {
    const char *file, *causal;
} masks[COVER_MASKS] = {
    {"kernels/attention_fwd.tw", "false"},
    {"kernels/attention_fwd.tw", "true"},
    {"kernels/variants/attention_window.tw", "true"},
};

int gpu_cover_count(enum gpu_factor f)
{
    return factors[f].n;
}

int64_t gpu_cover_value(enum gpu_factor f, const gpu_cover_row *row)
{
    return factors[f].value[row->at[f]];
}

const char *gpu_cover_kernel(const gpu_cover_row *row)
{
    return masks[row->at[COVER_MASK]].file;
}

const char *gpu_cover_target(const gpu_cover_row *row)
{
    static const char *const name[] = {"sm_80", "sm_89", "sm_120"};

    return name[row->at[COVER_GPU]];
}

static int number_of(enum gpu_factor f, const gpu_cover_row *row)
{
    return (int)gpu_cover_value(f, row);
}

static void config_values(const gpu_cover_row *row, char out[COVER_TEXT])
{
    snprintf(
        out, COVER_TEXT, "BLOCK_M=%d,BLOCK_N=%d,num_warps=%d,num_stages=%d,operand_registers=%d",
        number_of(COVER_BLOCK_M, row), number_of(COVER_BLOCK_N, row), number_of(COVER_WARPS, row),
        number_of(COVER_STAGES, row), number_of(COVER_OPERANDS, row));
}

void gpu_cover_values(const gpu_cover_row *row, char out[COVER_TEXT])
{
    char pins[COVER_TEXT];
    int d = number_of(COVER_HEAD_DIM, row);

    config_values(row, pins);
    snprintf(out, COVER_TEXT, "T=%s,D=%d,DV=%d,CAUSAL=%s,%.120s",
             dtype_name((enum dtype)gpu_cover_value(COVER_DTYPE, row)), d, d,
             masks[row->at[COVER_MASK]].causal, pins);
}

/* A factor's value, as it would stand in KERNEL, TARGET or VALUES. */
static void value_text(enum gpu_factor f, const gpu_cover_row *row, char out[COVER_TEXT])
{
    if (f == COVER_MASK)
        snprintf(out, COVER_TEXT, "%s %s", gpu_cover_kernel(row),
                 masks[row->at[COVER_MASK]].causal);
    else if (f == COVER_DTYPE)
        snprintf(out, COVER_TEXT, "%s", dtype_name((enum dtype)gpu_cover_value(f, row)));
    else if (f == COVER_GPU)
        snprintf(out, COVER_TEXT, "%s", gpu_cover_target(row));
    else
        snprintf(out, COVER_TEXT, "%d", number_of(f, row));
}

/* What stands behind "NAME=" in values, or nothing. */
static void find_value(const char *values, const char *name, char out[COVER_TEXT])
{
    size_t n = strlen(name);

    out[0] = '\0';
    for (const char *at = values; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (!strncmp(at, name, n) && at[n] == '=')
            snprintf(out, COVER_TEXT, "%.*s", (int)strcspn(at + n + 1, ","), at + n + 1);
    }
}

static void wanted_text(enum gpu_factor f, const char *kernel, const char *path, const char *values,
                        char out[COVER_TEXT])
{
    static const char *const name[COVER_FACTORS] = {
        "D", "CAUSAL", "T", "BLOCK_M", "BLOCK_N", "num_stages", "num_warps", "operand_registers",
        ""};
    char text[COVER_TEXT];

    find_value(values, name[f], text);
    if (f == COVER_MASK)
        snprintf(out, COVER_TEXT, "%.100s %.90s", kernel, text);
    else
        snprintf(out, COVER_TEXT, "%s", f == COVER_GPU ? path : text);
}

bool gpu_cover_parse(const char *kernel, const char *path, const char *values, gpu_cover_row *row)
{
    char wanted[COVER_TEXT], text[COVER_TEXT];

    for (enum gpu_factor f = 0; f < COVER_FACTORS; f++) {
        bool found = false;
        wanted_text(f, kernel, path, values, wanted);
        for (int i = 0; i < factors[f].n && !found; i++) {
            row->at[f] = (uint8_t)i;
            value_text(f, row, text);
            found = !strcmp(wanted, text);
        }
        if (!found)
            return false;
    }
    return true;
}

bool gpu_cover_nth(int64_t n, gpu_cover_row *row)
{
    for (int f = COVER_FACTORS - 1; f >= 0; f--) {
        row->at[f] = (uint8_t)(n % factors[f].n);
        n /= factors[f].n;
    }
    return n == 0;
}

static int64_t number(const gpu_cover_row *row)
{
    int64_t n = 0;

    for (int f = 0; f < COVER_FACTORS; f++)
        n = n * factors[f].n + row->at[f];
    return n;
}

/* ---- what fits ------------------------------------------------------------------------------- */

tw_status gpu_cover_open(gpu_cover *c)
{
    memset(c, 0, sizeof *c);
    TRY(tw_context_create(NULL, &c->cx));
    for (int i = 0; i < COVER_MASKS; i++)
        TRY(tw_kernel_load(c->cx, masks[i].file, NULL, &c->kernel[i]));
    for (uint8_t i = 0; i < COVER_GPUS; i++) {
        gpu_cover_row row = {.at = {[COVER_GPU] = i}};
        c->gpu[i].cx = c->cx;
        c->gpu[i].target = target_find(gpu_cover_target(&row));
        c->gpu[i].gpu.limits = gpu_limits_of(number_of(COVER_GPU, &row));
    }
    return TW_OK;
}

void gpu_cover_close(gpu_cover *c)
{
    for (int i = 0; i < COVER_MASKS; i++)
        tw_kernel_destroy(c->kernel[i]);
    tw_context_destroy(c->cx);
}

static int64_t constant(const sig_const *s, const gpu_cover_row *row)
{
    if (!strcmp(s->name, "T"))
        return gpu_cover_value(COVER_DTYPE, row);
    if (!strcmp(s->name, "D") || !strcmp(s->name, "DV"))
        return gpu_cover_value(COVER_HEAD_DIM, row);
    if (!strcmp(s->name, "CAUSAL"))
        return masks[row->at[COVER_MASK]].causal[0] == 't';
    return s->default_value;
}

static void problem_of(const tw_kernel *k, const gpu_cover_row *row, problem *p)
{
    const kernel_sig *sig = &k->source->sig;

    memset(p, 0, sizeof *p);
    p->nconsts = sig->nconsts;
    for (uint32_t i = 0; i < sig->nconsts; i++)
        p->cons[i] =
            (ir_binding){sig->cons[i].name, sig->cons[i].kind, constant(&sig->cons[i], row)};
    for (uint32_t i = 0; i < sig->nparams; i++)
        p->facts[i] = (tensor_facts){true, 16};
}

bool gpu_cover_fits(gpu_cover *c, const gpu_cover_row *row)
{
    const tw_kernel *k = c->kernel[row->at[COVER_MASK]];
    const tw_device *dev = &c->gpu[row->at[COVER_GPU]];
    char pins[COVER_TEXT];
    target_needs needs;
    problem p;
    config cfg;

    problem_of(k, row, &p);
    config_values(row, pins);
    if (config_pin(k, dev->target, dev, &p, pins, &cfg, NULL) != TW_OK) {
        copy_reason(c->reason, sizeof c->reason);
        return false;
    }
    if (prune(k, dev, &p, &cfg, &needs, c->reason, sizeof c->reason))
        return false;
    c->code = needs.code;
    return true;
}

/* ---- the set --------------------------------------------------------------------------------- */

enum { OPEN, COVERED, IMPOSSIBLE };
enum { UNKNOWN, FITS, FITS_NOT };

typedef struct covering {
    gpu_cover *c;
    uint64_t random;
    uint8_t pair[COVER_FACTORS][MAX_VALUES][COVER_FACTORS][MAX_VALUES]; /* of f < g */
} covering;

/* Asked of most rows more than once, and again for the same set. */
static bool fits(gpu_cover *c, const gpu_cover_row *row)
{
    int64_t n = number(row);

    ICHECK(n < COVER_ALL, "a factor has more values");
    if (c->known[n] == UNKNOWN)
        c->known[n] = gpu_cover_fits(c, row) ? FITS : FITS_NOT;
    return c->known[n] == FITS;
}

static uint32_t below(covering *v, int n)
{
    v->random = v->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(v->random >> 33) % (uint32_t)n;
}

static int gain(covering *v, const gpu_cover_row *row)
{
    int n = 0;

    for (int f = 0; f < COVER_FACTORS; f++)
        for (int g = f + 1; g < COVER_FACTORS; g++)
            n += v->pair[f][row->at[f]][g][row->at[g]] == OPEN;
    return n;
}

static void take(covering *v, const gpu_cover_row *row)
{
    for (int f = 0; f < COVER_FACTORS; f++)
        for (int g = f + 1; g < COVER_FACTORS; g++)
            v->pair[f][row->at[f]][g][row->at[g]] = COVERED;
}

/* Values of the other factors at random, of the first `of` parts in 8 of each. */
static gpu_cover_row completed(covering *v, int f, int x, int g, int y, int of)
{
    gpu_cover_row row;

    for (int h = 0; h < COVER_FACTORS; h++)
        row.at[h] = (uint8_t)below(v, 1 + (factors[h].n - 1) * of / 8);
    row.at[f] = (uint8_t)x;
    row.at[g] = (uint8_t)y;
    return row;
}

/* False: nothing that was tried fits, from any values at all to the most frugal. */
static bool complete(covering *v, int f, int x, int g, int y, gpu_cover_row *out)
{
    for (int of = 8; of >= 0; of--) {
        int best = 0;
        for (int i = 0; i < TRIES; i++) {
            gpu_cover_row row = completed(v, f, x, g, y, of);
            int n = gain(v, &row);
            if (n > best && fits(v->c, &row)) {
                best = n;
                *out = row;
            }
        }
        if (best > 0)
            return true;
    }
    return false;
}

static int cover_pair(covering *v, int f, int x, int g, int y, gpu_cover_row *row)
{
    if (v->pair[f][x][g][y] != OPEN)
        return 0;
    if (complete(v, f, x, g, y, row)) {
        take(v, row);
        return 1;
    }
    v->pair[f][x][g][y] = IMPOSSIBLE;
    return 0;
}

static int count_impossible(const covering *v)
{
    int n = 0;

    for (int f = 0; f < COVER_FACTORS; f++)
        for (int x = 0; x < factors[f].n; x++)
            for (int g = f + 1; g < COVER_FACTORS; g++)
                for (int y = 0; y < factors[g].n; y++)
                    n += v->pair[f][x][g][y] == IMPOSSIBLE;
    return n;
}

int gpu_cover_set(gpu_cover *c, uint64_t seed, gpu_cover_row row[COVER_MAX_ROWS], int *impossible)
{
    static covering v;
    int n = 0;

    memset(&v, 0, sizeof v);
    v.c = c;
    v.random = seed;
    for (int f = 0; f < COVER_FACTORS; f++)
        for (int g = f + 1; g < COVER_FACTORS; g++)
            for (int x = 0; x < factors[f].n; x++)
                for (int y = 0; y < factors[g].n; y++) {
                    if (n == COVER_MAX_ROWS)
                        return 0;
                    n += cover_pair(&v, f, x, g, y, &row[n]);
                }
    if (impossible)
        *impossible = count_impossible(&v);
    return n;
}
