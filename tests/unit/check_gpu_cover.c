/* The covering set of attention on GPUs (tests/support/gpu_cover.h): it is one, and each of its
 * schedules gives on the interpreter, under its race detector, what level 1 gives. Sanitized builds
 * run a few that are drawn at random: the set alone takes them half a minute. */
#include "compiler/base/error.h"
#include "tests/support/gpu_cover.h"
#include "tests/support/ir_fixture.h"
#include "tests/support/schedule_fixture.h"
#include "tests/support/schedule_run.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif
enum { SEED = 1, FEW = 9, FEW_STEP = 2003 /* a prime: they differ in all factors */ };

static gpu_cover_row row[COVER_MAX_ROWS];
static int nrows, impossible;
static gpu_cover maker;

/* Not in a test yet: an empty set is what tests see of an error. */
static int make_set(gpu_cover_row *out, int *missing)
{
    int n = 0;

    if (gpu_cover_open(&maker) == TW_OK)
        n = gpu_cover_set(&maker, SEED, out, missing);
    gpu_cover_close(&maker);
    error_clear();
    return n;
}

static int draw_few(gpu_cover_row *out)
{
    static gpu_cover c;
    gpu_cover_row r;
    int n = 0;

    if (gpu_cover_open(&c) == TW_OK)
        for (int64_t at = 0; n < FEW && gpu_cover_nth(at, &r); at += FEW_STEP)
            if (gpu_cover_fits(&c, &r))
                out[n++] = r;
    gpu_cover_close(&c);
    error_clear();
    return n;
}

/* ---- the set --------------------------------------------------------------------------------- */

static bool has_pair(int f, int x, int g, int y)
{
    for (int i = 0; i < nrows; i++)
        if (row[i].at[f] == x && row[i].at[g] == y)
            return true;
    return false;
}

static int count_missing(void)
{
    int n = 0;

    for (int f = 0; f < COVER_FACTORS; f++)
        for (int g = f + 1; g < COVER_FACTORS; g++)
            for (int x = 0; x < gpu_cover_count((enum gpu_factor)f); x++)
                for (int y = 0; y < gpu_cover_count((enum gpu_factor)g); y++)
                    n += !has_pair(f, x, g, y);
    return n;
}

START_TEST(each_pair_comes)
{
    static gpu_cover_row again[COVER_MAX_ROWS];
    static gpu_cover c;
    int missing;

    ck_assert_int_gt(nrows, 64); /* head dims times BLOCK_M */
    ck_assert_int_le(nrows, COVER_MAX_ROWS);
    ck_assert_int_eq(count_missing(), impossible);
    ck_assert_int_eq(gpu_cover_open(&c), TW_OK);
    memcpy(c.known, maker.known, sizeof c.known); /* what fits need not be found again */
    ck_assert_int_eq(gpu_cover_set(&c, SEED, again, &missing), nrows);
    ck_assert_mem_eq(again, row, (size_t)nrows * sizeof *row);
    ck_assert_int_eq(missing, impossible);
    for (int i = 0; i < nrows; i++)
        ck_assert_msg(gpu_cover_fits(&c, &row[i]), "row %d: %s", i, c.reason);
    gpu_cover_close(&c);
}
END_TEST

/* Of all configurations with one stage, on the GPU with most shared memory. */
static bool fits_somewhere(gpu_cover *c, int f, int x, int g, int y)
{
    gpu_cover_row r;

    for (int64_t n = 0; gpu_cover_nth(n, &r); n++)
        if (r.at[f] == x && r.at[g] == y && r.at[COVER_GPU] == 0 && r.at[COVER_STAGES] == 0 &&
            gpu_cover_fits(c, &r))
            return true;
    return false;
}

/* What is missing is rows of 176 and more columns, 32 a warp: 8 warps lack the registers. */
START_TEST(pairs_that_are_missing_fit_nowhere)
{
    static gpu_cover c;
    int n = 0;

    ck_assert_int_eq(gpu_cover_open(&c), TW_OK);
    for (int x = 0; x < gpu_cover_count(COVER_HEAD_DIM); x++)
        for (int y = 0; y < gpu_cover_count(COVER_BLOCK_M); y++)
            if (!has_pair(COVER_HEAD_DIM, x, COVER_BLOCK_M, y)) {
                ck_assert(!fits_somewhere(&c, COVER_HEAD_DIM, x, COVER_BLOCK_M, y));
                n++;
            }
    gpu_cover_close(&c);
    ck_assert_int_eq(n, impossible);
}
END_TEST

static bool among(enum gpu_factor f, int64_t value)
{
    gpu_cover_row r = {{0}};

    for (int i = 0; i < gpu_cover_count(f); i++) {
        r.at[f] = (uint8_t)i;
        if (gpu_cover_value(f, &r) == value)
            return true;
    }
    return false;
}

static void same_values(enum gpu_factor f, const int64_t *value, uint32_t n)
{
    ck_assert_uint_eq(n, (unsigned)gpu_cover_count(f));
    for (uint32_t i = 0; i < n; i++)
        ck_assert_msg(among(f, value[i]), "factor %d lacks %d", (int)f, (int)value[i]);
}

static void same_tune(const kernel_sig *sig, const char *name, enum gpu_factor f)
{
    for (uint32_t i = 0; i < sig->ntunes; i++)
        for (uint32_t k = 0; k < sig->tune[i].nsets; k++)
            if (!strcmp(sig->tune[i].name, name) && !strcmp(sig->tune[i].set[k].target, "sm_"))
                same_values(f, sig->tune[i].set[k].value, sig->tune[i].set[k].n);
}

static void same_parameter(const target *t, const char *name, enum gpu_factor f)
{
    const sched_param *p = target_sched(t, name);

    ck_assert_ptr_nonnull(p);
    same_values(f, p->value, p->n);
}

START_TEST(factors_are_the_space)
{
    static gpu_cover c;

    ck_assert_int_eq(gpu_cover_open(&c), TW_OK);
    const kernel_sig *sig = &c.kernel[0]->source->sig;
    same_tune(sig, "BLOCK_M", COVER_BLOCK_M);
    same_tune(sig, "BLOCK_N", COVER_BLOCK_N);
    same_parameter(c.gpu[0].target, "num_stages", COVER_STAGES);
    same_parameter(c.gpu[0].target, "num_warps", COVER_WARPS);
    same_parameter(c.gpu[0].target, "operand_registers", COVER_OPERANDS);
    gpu_cover_close(&c);
}
END_TEST

/* ---- what schedules give --------------------------------------------------------------------- */

static double tolerance(enum dtype t)
{
    return t == DT_F32 ? 0x1p-18 : t == DT_F16 ? 0x1p-9 : 0x1p-6;
}

static void take(run_tensor *t, uint64_t seed)
{
    t->data = arena_alloc(&schedule_memory, run_elements(t) * (size_t)dtype_bytes(t->dtype) + 16);
    if (seed)
        run_fill(t, seed, 1.0);
    else
        run_poison(t);
}

/* One block of rows and one more row; columns for a round of the buffers, two blocks more, and a
 * ragged end. The window is a block and a half. */
static void make_case(const gpu_cover_row *r, run_case *c)
{
    enum dtype t = (enum dtype)gpu_cover_value(COVER_DTYPE, r);
    int64_t d = gpu_cover_value(COVER_HEAD_DIM, r), block_n = gpu_cover_value(COVER_BLOCK_N, r);
    int64_t m = gpu_cover_value(COVER_BLOCK_M, r) + 1;
    int64_t n = (gpu_cover_value(COVER_STAGES, r) + 2) * block_n + 5;
    run_case made = {.n = 5,
                     .t = {{"q", t, 4, {1, 1, m, d}, NULL},
                           {"k", t, 4, {1, 1, n, d}, NULL},
                           {"v", t, 4, {1, 1, n, d}, NULL},
                           {"o", t, 4, {1, 1, m, d}, NULL},
                           {"lse", DT_F32, 3, {1, 1, m}, NULL}},
                     .scalar = "window",
                     .value = block_n * 3 / 2};

    for (int i = 0; i < made.n; i++)
        take(&made.t[i], i < 3 ? (uint64_t)i + 1 : 0);
    *c = made;
}

static schedule_params params_of(const gpu_cover_row *r)
{
    schedule_params p = schedule_defaults();

    p.num_warps = (int)gpu_cover_value(COVER_WARPS, r);
    p.num_stages = (int)gpu_cover_value(COVER_STAGES, r);
    p.operand_registers = (int)gpu_cover_value(COVER_OPERANDS, r);
    return p;
}

static void compare(const run_case *want, const run_case *got, double allowed, const char *label)
{
    for (int k = 3; k < want->n; k++)
        for (size_t i = 0; i < run_elements(&want->t[k]); i++) {
            double x = run_element(&want->t[k], i), y = run_element(&got->t[k], i);
            if (!(x == y || fabs(x - y) <= allowed * (1 + fabs(x))))
                ck_abort_msg("%s: %s[%zu] is %g, not %g", label, want->t[k].name, i, y, x);
        }
}

START_TEST(schedules_give_what_level_1_gives)
{
    const gpu_cover_row *r = &row[_i];
    char values[COVER_TEXT];
    interp_fault fault = {0};
    run_case want, got;

    gpu_cover_values(r, values);
    ir_module *m = schedule_lower(gpu_cover_kernel(r), values, 16);
    make_case(r, &want);
    ck_assert_int_eq(run_module(m, &want, NULL), TW_OK);
    make_case(r, &got);
    got.seed = (uint64_t)_i;
    tw_status st = schedule_make(m, (int)gpu_cover_value(COVER_GPU, r), params_of(r), NULL);
    ck_assert_msg(st == TW_OK, "%s: %s", values, error_get()->text);
    st = run_module(m, &got, &fault);
    ck_assert_msg(st == TW_OK, "%s: %s: %s", values, tw_status_name(st), fault.text);
    compare(&want, &got, tolerance((enum dtype)gpu_cover_value(COVER_DTYPE, r)), values);
}
END_TEST

/* ---- an RTX 4080 ----------------------------------------------------------------------------- */

/* Configurations of attention with the registers and spills that ptxas gave for them; which is
 * asked again where there is one (nvptx/cover_rtx4080). */
#define RECORDED "tests/data/rtx4080_configurations.tsv"
enum { LEAST_OF_A_HEAD_DIM = 8, MOST_SPILLED = 64 };

typedef struct recorded {
    gpu_cover_row row;
    int registers, spilled;
} recorded;

static bool read_recorded(FILE *f, recorded *out)
{
    char kernel[COVER_TEXT], path[COVER_TEXT], values[COVER_TEXT];
    int n = fscanf(f, "%199s %199s %199s %d %d", kernel, path, values, &out->registers,
                   &out->spilled);

    if (n == EOF)
        return false;
    ck_assert_int_eq(n, 5);
    ck_assert_msg(gpu_cover_parse(kernel, path, values, &out->row), "%s %s %s", kernel, path,
                  values);
    return true;
}

/* What a block asks for is known from its schedule; registers and spills are ptxas' numbers. */
static void must_run(gpu_cover *c, const gpu_limits *gpu, const recorded *r)
{
    int threads = (int)gpu_cover_value(COVER_WARPS, &r->row) * 32;

    ck_assert_msg(gpu_cover_fits(c, &r->row), "%s", c->reason); /* shared memory too */
    ck_assert_int_ge(gpu_blocks_per_sm(gpu, threads, r->registers, 0), 1);
    ck_assert_int_le(r->spilled, MOST_SPILLED);
}

START_TEST(each_head_dim_has_choices)
{
    static gpu_cover c;
    static recorded seen[COVER_MAX_ROWS];
    int n = 0, of_dim[16] = {0};
    gpu_profile profile;
    FILE *f = fopen(RECORDED, "r");

    ck_assert_msg(f != NULL, RECORDED);
    ck_assert_int_eq(gpu_cover_open(&c), TW_OK);
    ck_assert_int_eq(profile_find("rtx4080", &profile), TW_OK);
    ck_assert_int_eq(profile.limits.shared_per_block, 101376);
    while (n < COVER_MAX_ROWS && read_recorded(f, &seen[n])) {
        c.gpu[seen[n].row.at[COVER_GPU]].gpu.limits = profile.limits;
        must_run(&c, &profile.limits, &seen[n]);
        for (int i = 0; i < n; i++)
            ck_assert_mem_ne(&seen[i].row, &seen[n].row, sizeof seen[n].row);
        of_dim[seen[n++].row.at[COVER_HEAD_DIM]]++;
    }
    fclose(f);
    gpu_cover_close(&c);
    ck_assert_int_eq(gpu_cover_count(COVER_HEAD_DIM), 16);
    for (int i = 0; i < 16; i++)
        ck_assert_int_ge(of_dim[i], LEAST_OF_A_HEAD_DIM);
}
END_TEST

static void setup(void)
{
    ir_fixture_setup();
    schedule_setup();
}

static void teardown(void)
{
    arena_release(&ir_arena);
    schedule_teardown();
}

Suite *test_suite(void)
{
    Suite *s = suite_create("gpu_cover");
    TCase *set = tcase_create("set"), *run = tcase_create("schedules");

    nrows = SANITIZED ? draw_few(row) : make_set(row, &impossible);
    tcase_set_timeout(set, 120);
    if (!SANITIZED) {
        tcase_add_test(set, each_pair_comes);
        tcase_add_test(set, pairs_that_are_missing_fit_nowhere);
    }
    tcase_add_test(set, factors_are_the_space);
    tcase_add_test(set, each_head_dim_has_choices);
    suite_add_tcase(s, set);
    tcase_set_timeout(run, 120);
    tcase_add_checked_fixture(run, setup, teardown);
    tcase_add_loop_test(run, schedules_give_what_level_1_gives, 0, nrows);
    suite_add_tcase(s, run);
    return s;
}
