/* Atomics: many programs on one cell, what they give back, indices of tiles, and elements outside
 * of a tensor that lies between pages that cannot be touched. */
#include "tests/support/numeric_case.h"
#include "tests/support/numeric_dtype.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *spec, *target;
} device[] = {
    {"interp", NULL},      {"cpu:8", NULL},          {"cpu:3", "cpu-avx512"},
    {"cpu:3", "cpu-avx2"}, {"cpu:3", "cpu-generic"},
};
enum { DEVICES = sizeof device / sizeof *device, PROGRAMS = 3000 };
static const char *const types[] = {"i32", "u32", "i64", "u64", "f32", "f64"};
enum { TYPES = sizeof types / sizeof *types };

static num_value number(const num_dtype *t, int v)
{
    return t->is_float ? (num_value){.f = v} : (num_value){.i = num_wrap(t, v)};
}

static double as_double(const num_dtype *t, num_value v)
{
    return t->is_float ? v.f : (double)v.i;
}

typedef struct cells {
    const num_dtype *type;
    uint64_t y[8], old[PROGRAMS]; /* elements of type */
} cells;

/* Runs a kernel of y (8 elements, each `first`), old and PROGRAMS programs. */
static void run(num_device *d, cells *c, const char *type, int first, const char *body)
{
    char source[900];
    int64_t eight = 8, many = PROGRAMS;

    c->type = num_dtype_named(type);
    for (int i = 0; i < 8; i++)
        num_put(c->type, c->y, i, number(c->type, first));
    memset(c->old, 0x55, sizeof c->old);
    snprintf(source, sizeof source,
             "kernel a(inout y: %s[M], out old: %s[N]) grid (N) {\n"
             "    let p = program_id(0), v = cast(p, %s);\n    %s\n}\n",
             type, type, type, body);
    DLTensor y = num_vector(c->type, c->y, &eight), old = num_vector(c->type, c->old, &many);
    ck_assert(num_run_text(d, source, (tw_arg[]){TW_TENSOR("y", &y), TW_TENSOR("old", &old)}, 2));
}

static double cell(const cells *c, int i)
{
    return as_double(c->type, num_get(c->type, c->y, i));
}

static double old(const cells *c, int i)
{
    return as_double(c->type, num_get(c->type, c->old, i));
}

static int ascending(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;

    return a < b ? -1 : a > b;
}

/* Each count from 0 on is given to one program, so no addition was lost and none was torn. */
static void expect_counts(const cells *c, const char *label)
{
    static double seen[PROGRAMS];

    for (int i = 0; i < PROGRAMS; i++)
        seen[i] = old(c, i);
    qsort(seen, PROGRAMS, sizeof *seen, ascending);
    for (int i = 0; i < PROGRAMS; i++)
        ck_assert_msg(seen[i] == i, "%s, %s: count %d is %g", label, c->type->name, i, seen[i]);
}

START_TEST(many_add_to_one_cell)
{
    static cells c;
    num_device d;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (int t = 0; t < TYPES; t++) {
        run(&d, &c, types[t], 0, "store(old[p], atomic_add(y[3], 1));");
        ck_assert_double_eq(cell(&c, 3), PROGRAMS);
        ck_assert_double_eq(cell(&c, 2), 0);
        expect_counts(&c, d.label);
        run(&d, &c, types[t], 0, "atomic_add(y[0 :+ 8], broadcast(v, 8));");
        for (int i = 0; i < 8; i++)
            ck_assert_double_eq(cell(&c, i), PROGRAMS * (PROGRAMS - 1) / 2);
    }
    num_close(&d);
}
END_TEST

START_TEST(extremes)
{
    static cells c;
    num_device d;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (int t = 0; t < TYPES; t++) {
        bool is_unsigned = types[t][0] == 'u';
        run(&d, &c, types[t], 100,
            "atomic_max(y[0], v); atomic_min(y[1], v + 7);"
            " atomic_max(y[2 :+ 2], broadcast(v - 1500, 2));");
        ck_assert_double_eq(cell(&c, 0), PROGRAMS - 1);
        ck_assert_double_eq(cell(&c, 1), 7);
        ck_assert(is_unsigned || cell(&c, 3) == PROGRAMS - 1501);
        ck_assert(!is_unsigned || cell(&c, 3) > 4e9);
    }
    run(&d, &c, "f32", -3, "atomic_max(y[0], p == 77 ? nan : v); atomic_min(y[1], -v);");
    ck_assert(isnan(cell(&c, 0)));
    ck_assert_double_eq(cell(&c, 1), 1 - PROGRAMS);
    num_close(&d);
}
END_TEST

START_TEST(one_wins)
{
    static cells c;
    num_device d;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (int t = 0; t < TYPES; t++) {
        int winners = 0, last = 0;
        run(&d, &c, types[t], 0, "store(old[p], atomic_cas(y[5], 0, v + 1));");
        for (int i = 0; i < PROGRAMS; i++) {
            winners += old(&c, i) == 0;
            ck_assert(old(&c, i) == 0 || old(&c, i) == cell(&c, 5));
        }
        ck_assert_int_eq(winners, 1);
        ck_assert(cell(&c, 5) >= 1);
        /* everyone gives what was left before: all but the last are found again */
        run(&d, &c, types[t], 0, "store(old[p], atomic_xchg(y[1], v + 1));");
        double sum = cell(&c, 1);
        for (int i = 0; i < PROGRAMS; i++) {
            sum += old(&c, i);
            last += old(&c, i) == 0;
        }
        ck_assert_double_eq(sum, (double)PROGRAMS * (PROGRAMS + 1) / 2);
        ck_assert_int_eq(last, 1);
    }
    num_close(&d);
}
END_TEST

/* Equal indices in one tile count each; those outside do nothing, and give 0. */
START_TEST(histogram)
{
    enum { N = 1000, BINS = 11 };
    static const char text[] =
        "kernel histogram(x: i32[N], inout bins: i32[K], out before: i32[N])\n"
        "grid (cdiv(N, 48)) {\n"
        "    let at = program_id(0) * 48 + arange(48);\n"
        "    let here = where(at < N, load(x[program_id(0) * 48 :+ 48]), -1);\n"
        "    store(before[at], atomic_add(bins[here], 1));\n"
        "}\n";
    static int32_t x[N], bins[BINS], before[N], want[BINS];
    int64_t n = N, k = BINS;
    const num_dtype *i32 = num_dtype_named("i32");
    num_random random = {5};
    num_device d;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (int i = 0; i < N; i++) {
        x[i] = (int32_t)num_below(&random, 14) - 1;
        if (x[i] >= 0 && x[i] < BINS)
            want[x[i]]++;
    }
    DLTensor tx = num_vector(i32, x, &n), tb = num_vector(i32, bins, &k);
    DLTensor to = num_vector(i32, before, &n);
    num_run_text(&d, text,
                 (tw_arg[]){TW_TENSOR("x", &tx), TW_TENSOR("bins", &tb), TW_TENSOR("before", &to)},
                 3);
    for (int i = 0; i < BINS; i++)
        ck_assert_msg(bins[i] == want[i], "%s: bin %d has %d of %d", d.label, i, bins[i], want[i]);
    for (int i = 0; i < N; i++) {
        bool inside = x[i] >= 0 && x[i] < BINS;
        ck_assert(inside ? before[i] >= 0 && before[i] < want[x[i]] : before[i] == 0);
    }
    num_close(&d);
}
END_TEST

/* A ragged block of any layout; what was there is read, and used in the same nest. */
static int check_block(num_device *d, enum num_layout layout, enum num_place place)
{
    enum { M = 21, N = 37 };
    static const char text[] = "kernel block(x: f32[M, N], inout y: f32[M, N], out z: f32[M, N])\n"
                               "grid (2, 2) {\n"
                               "    let i = program_id(0) * 18 - 3, j = program_id(1) * 24 - 5;\n"
                               "    let t = load(x[i :+ 18, j :+ 24]);\n"
                               "    let was = atomic_add(y[i :+ 18, j :+ 24], t * 2);\n"
                               "    store(z[i :+ 18, j :+ 24], was + t);\n"
                               "}\n";
    num_random random = {11};
    num_tensor x, y, z;
    int bad = 0;
    static double first[M * N];

    num_alloc(&x, "x", 2, (int64_t[]){M, N}, layout, place);
    num_alloc(&y, "y", 2, (int64_t[]){M, N}, layout == NUM_BROADCAST ? NUM_DENSE : layout, place);
    num_alloc(&z, "z", 2, (int64_t[]){M, N}, NUM_PADDED, place);
    num_fill(&x, &random, 3.0);
    num_fill(&y, &random, 3.0);
    num_protect(&x);
    for (int i = 0; i < M * N; i++)
        first[i] = num_value_at(&y, i);
    num_run_text(d, text,
                 (tw_arg[]){TW_TENSOR("x", &x.dl), TW_TENSOR("y", &y.dl), TW_TENSOR("z", &z.dl)},
                 3);
    for (int i = 0; i < M * N; i++) {
        float v = (float)num_value_at(&x, i), was = (float)first[i];
        bad += i / N < 33 && num_value_at(&y, i) != (double)(was + v * 2);
        bad += num_value_at(&z, i) != (double)(was + v);
    }
    bad += !num_padding_intact(&y) + !num_padding_intact(&z);
    num_free(&x);
    num_free(&y);
    num_free(&z);
    if (bad)
        num_say("%s: %d elements are wrong, layout %d\n", d->label, bad, (int)layout);
    return bad;
}

START_TEST(blocks)
{
    num_device d;
    int bad = 0;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (int layout = 0; layout < NUM_LAYOUTS; layout++)
        bad += check_block(&d, (enum num_layout)layout, layout % 2 ? NUM_AT_START : NUM_AT_END);
    num_close(&d);
    ck_assert_int_eq(bad, 0);
}
END_TEST

/* Within a program they keep their place among loads and stores of the tensor. */
START_TEST(order)
{
    static cells c;
    num_device d;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    run(&d, &c, "f32", 4,
        "if (p == 0) {\n"
        "    store(y[0 :+ 8], load(y[0 :+ 8]) * 3);\n"          /* 12 */
        "    let a = atomic_add(y[0 :+ 8], full(f32[8], 2));\n" /* 12; 14 are there */
        "    let b = load(y[0 :+ 8]);\n"
        "    store(y[0 :+ 8], a * 100 + b);\n" /* 1214 */
        "    store(old[0], atomic_max(y[2], 2000) + load(y[2]));\n"
        "}\n");
    ck_assert_double_eq(cell(&c, 1), 1214);
    ck_assert_double_eq(cell(&c, 2), 2000);
    ck_assert_double_eq(old(&c, 0), 3214);
    num_close(&d);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("atomics");
    TCase *t = tcase_create("cells");

    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, many_add_to_one_cell, 0, DEVICES);
    tcase_add_loop_test(t, extremes, 0, DEVICES);
    tcase_add_loop_test(t, one_wins, 0, DEVICES);
    tcase_add_loop_test(t, histogram, 0, DEVICES);
    tcase_add_loop_test(t, blocks, 0, DEVICES);
    tcase_add_loop_test(t, order, 0, DEVICES);
    suite_add_tcase(s, t);
    return s;
}
