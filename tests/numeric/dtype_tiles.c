/* Sums, extremes and dots of each dtype, against plain C. */
#include "tests/support/numeric_dtype.h"
#include <check.h>
#include <stdio.h>

static const struct {
    const char *spec, *target;
} device[] = {
    {"interp", NULL},         {"cpu", NULL}, {"cpu:1", "cpu-avx512"}, {"cpu:1", "cpu-avx2"},
    {"cpu:1", "cpu-generic"},
};
enum { DEVICES = sizeof device / sizeof *device };

static bool same(const num_dtype *t, num_value x, num_value y)
{
    return t->is_float ? x.f == y.f : x.i == y.i;
}

enum { ROWS = 13, COLUMNS = 37, INNER = 19 };

/* Small, so that every sum is exact in any order; the largest 3 of 8 bits. */
static num_value small_value(num_random *r, const num_dtype *k)
{
    int64_t v = num_below(r, 7) - (k->is_signed ? 3 : 0);

    return k->is_float ? (num_value){.f = (double)v} : (num_value){.i = v};
}

static const num_dtype *sum_kind(const num_dtype *k)
{
    return k->is_float || k->bits >= 32 ? k : num_dtype_named(k->is_signed ? "i32" : "u32");
}

static DLTensor matrix_of(const num_dtype *k, void *at, int64_t *shape)
{
    return (DLTensor){at, {kDLCPU, 0}, 2, {k->code, (uint8_t)k->bits, 1}, shape, NULL, 0};
}

static num_value plus(const num_dtype *k, num_value a, num_value b)
{
    return k->is_float ? (num_value){.f = a.f + b.f} : (num_value){.i = a.i + b.i};
}

static bool above(const num_dtype *k, num_value a, num_value b)
{
    return k->is_float ? a.f > b.f : a.i > b.i;
}

static int check_reductions(num_device *d, num_random *r, const num_dtype *k)
{
    char x[ROWS * COLUMNS * 8], s[COLUMNS * 8], t[ROWS * 8], m[ROWS * 8], source[512];
    int64_t shape[] = {ROWS, COLUMNS}, rows = ROWS, columns = COLUMNS;
    const num_dtype *to = sum_kind(k);
    int bad = 0;

    for (int i = 0; i < ROWS * COLUMNS; i++)
        num_put(k, x, i, small_value(r, k));
    DLTensor tx = matrix_of(k, x, shape), ts = num_vector(to, s, &columns);
    DLTensor tt = num_vector(to, t, &rows), tm = num_vector(k, m, &rows);
    snprintf(
        source, sizeof source,
        "kernel reduced(x: %s[%d, %d], out s: %s[%d], out t: %s[%d], out m: %s[%d]) grid (1) {\n"
        "    let v = load(x[:, :]); store(s[:], sum(v, 0)); store(t[:], sum(v, 1));\n"
        "    store(m[:], max(v, 1) - min(v, 1)); }\n",
        k->name, ROWS, COLUMNS, to->name, COLUMNS, to->name, ROWS, k->name, ROWS);
    if (!num_run_text(d, source,
                      (tw_arg[]){TW_TENSOR("x", &tx), TW_TENSOR("s", &ts), TW_TENSOR("t", &tt),
                                 TW_TENSOR("m", &tm)},
                      4))
        return 0;
    for (int j = 0; j < COLUMNS; j++) {
        num_value sum = num_get(k, x, j);
        for (int i = 1; i < ROWS; i++)
            sum = plus(k, sum, num_get(k, x, i * COLUMNS + j));
        bad += !same(to, num_get(to, s, j), sum);
    }
    for (int i = 0; i < ROWS; i++) {
        num_value sum = num_get(k, x, i * COLUMNS), most = sum, least = sum;
        for (int j = 1; j < COLUMNS; j++) {
            num_value v = num_get(k, x, i * COLUMNS + j);
            sum = plus(k, sum, v);
            most = above(k, v, most) ? v : most;
            least = above(k, least, v) ? v : least;
        }
        num_value range =
            k->is_float ? (num_value){.f = most.f - least.f} : (num_value){.i = most.i - least.i};
        bad += !same(to, num_get(to, t, i), sum) + !same(k, num_get(k, m, i), range);
    }
    if (bad)
        num_say("%s: %d reductions of %s are wrong\n", d->label, bad, k->name);
    return bad;
}

START_TEST(reductions)
{
    num_random r = {41};
    num_device d;
    int bad = 0;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (int i = 0; i < NUM_DTYPES; i++)
        bad += check_reductions(&d, &r, &num_dtypes[i]);
    num_close(&d);
    ck_assert_int_eq(bad, 0);
}
END_TEST

/* The running sums and products of a tile along both axes, and where its rows and columns are
 * largest. Products of at most 13 factors up to 3, so that f32 holds them all. */
enum { SIDE = 13 };

static num_value times(const num_dtype *k, num_value a, num_value b)
{
    return k->is_float ? (num_value){.f = a.f * b.f} : (num_value){.i = a.i * b.i};
}

/* What the result's dtype holds of an exact value. */
static num_value kept(const num_dtype *to, num_value v)
{
    return to->is_float ? (num_value){.f = num_round(to, v.f)}
                        : (num_value){.i = num_wrap(to, v.i)};
}

/* op(axis) of the element in line at place at: 0 sum, 1 product; the index of the largest. */
static int check_line(const num_dtype *k, const char *x, const char *s, const char *p,
                      const char *arg, int line, int axis)
{
    const num_dtype *to = sum_kind(k);
    num_value sum = {0}, product = {0}, most = {0};
    int bad = 0, best = 0;

    for (int i = 0; i < SIDE; i++) {
        int at = axis ? line * SIDE + i : i * SIDE + line;
        num_value v = num_get(k, x, at);
        sum = i ? plus(k, sum, v) : v;
        product = i ? times(k, product, v) : v;
        if (i == 0 || above(k, v, most)) {
            most = v;
            best = i;
        }
        bad += !same(to, num_get(to, s, at), kept(to, sum));
        bad += !same(to, num_get(to, p, at), kept(to, product));
    }
    return bad + (num_get(num_dtype_named("i32"), arg, line).i != best);
}

static int check_scans(num_device *d, num_random *r, const num_dtype *k, int axis)
{
    char x[SIDE * SIDE * 8], s[SIDE * SIDE * 8], p[SIDE * SIDE * 8], arg[SIDE * 4], source[512];
    int64_t shape[] = {SIDE, SIDE}, side = SIDE;
    const num_dtype *to = sum_kind(k);
    int bad = 0;

    for (int i = 0; i < SIDE * SIDE; i++)
        num_put(k, x, i, small_value(r, k));
    DLTensor tx = matrix_of(k, x, shape), ts = matrix_of(to, s, shape);
    DLTensor tp = matrix_of(to, p, shape), ta = num_vector(num_dtype_named("i32"), arg, &side);
    snprintf(source, sizeof source,
             "kernel scans(x: %s[13, 13], out s: %s[13, 13], out p: %s[13, 13], out a: i32[13])"
             " grid (1) {\n    let v = load(x[:, :]); store(s[:, :], cumsum(v, %d));\n"
             "    store(p[:, :], cumprod(v, %d)); store(a[:], argmax(v, %d)); }\n",
             k->name, to->name, to->name, axis, axis, axis);
    if (!num_run_text(d, source,
                      (tw_arg[]){TW_TENSOR("x", &tx), TW_TENSOR("s", &ts), TW_TENSOR("p", &tp),
                                 TW_TENSOR("a", &ta)},
                      4))
        return 0;
    for (int line = 0; line < SIDE; line++)
        bad += check_line(k, x, s, p, arg, line, axis);
    if (bad)
        num_say("%s: %d scans of %s along axis %d are wrong\n", d->label, bad, k->name, axis);
    return bad;
}

START_TEST(scans)
{
    num_random r = {47};
    num_device d;
    int bad = 0;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (int i = 0; i < NUM_DTYPES; i++)
        for (int axis = 0; axis < 2; axis++)
            bad += check_scans(&d, &r, &num_dtypes[i], axis);
    num_close(&d);
    ck_assert_int_eq(bad, 0);
}
END_TEST

/* One dimension, longer than vectors and blocks of them, and no multiple of either. */
START_TEST(long_scans)
{
    enum { LENGTH = 1003 };
    static float x[LENGTH], y[LENGTH];
    static int32_t z[LENGTH];
    static const char text[] =
        "kernel scans(x: f32[1003], out y: f32[1003], out z: i32[1003]) grid (1) {\n"
        "    store(y[:], cumsum(load(x[:]), 0)); store(z[:], cumsum(load(x[:]) > 0.0, 0)); }";
    int64_t n = LENGTH;
    double sum = 0.0;
    int32_t count = 0;
    num_device d;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (int i = 0; i < LENGTH; i++)
        x[i] = (float)(i * 37 % 101 - 50);
    DLTensor tx = num_vector(num_dtype_named("f32"), x, &n), ty = tx;
    DLTensor tz = num_vector(num_dtype_named("i32"), z, &n);
    ty.data = y;
    bool ran = num_run_text(
        &d, text, (tw_arg[]){TW_TENSOR("x", &tx), TW_TENSOR("y", &ty), TW_TENSOR("z", &tz)}, 3);
    for (int i = 0; ran && i < LENGTH; i++) {
        sum += (double)x[i];
        count += x[i] > 0.0f;
        ck_assert_msg((double)y[i] == sum && z[i] == count, "%s: element %d", d.label, i);
    }
    num_close(&d);
}
END_TEST

static const num_dtype *dot_kind(const num_dtype *k)
{
    if (k->is_float)
        return num_dtype_named(k->bits == 64 ? "f64" : "f32");
    return k->bits < 32 || strcmp(k->name, "i32") == 0 ? num_dtype_named("i32") : NULL;
}

/* b as it is, and transposed in memory. */
static int check_dot(num_device *d, num_random *r, const num_dtype *k, bool turned)
{
    const num_dtype *to = dot_kind(k);
    char x[ROWS * INNER * 8], y[INNER * COLUMNS * 8], z[ROWS * COLUMNS * 8], source[512];
    int64_t sx[] = {ROWS, INNER}, sy[] = {INNER, COLUMNS}, st[] = {COLUMNS, INNER};
    int64_t sz[] = {ROWS, COLUMNS};
    int bad = 0;

    for (int i = 0; i < ROWS * INNER; i++)
        num_put(k, x, i, small_value(r, k));
    for (int i = 0; i < INNER * COLUMNS; i++)
        num_put(k, y, i, small_value(r, k));
    DLTensor tx = matrix_of(k, x, sx), ty = matrix_of(k, y, turned ? st : sy);
    DLTensor tz = matrix_of(to, z, sz);
    snprintf(source, sizeof source,
             "kernel mm(x: %s[%d, %d], y: %s[%d, %d], out z: %s[%d, %d]) grid (1) {\n"
             "    store(z[:, :], dot(load(x[:, :]), %s(load(y[:, :])), 5)); }\n",
             k->name, ROWS, INNER, k->name, (int)ty.shape[0], (int)ty.shape[1], to->name, ROWS,
             COLUMNS, turned ? "trans" : "");
    if (!num_run_text(d, source,
                      (tw_arg[]){TW_TENSOR("x", &tx), TW_TENSOR("y", &ty), TW_TENSOR("z", &tz)}, 3))
        return 0;
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        num_value sum = k->is_float ? (num_value){.f = 5.0} : (num_value){.i = 5};
        for (int j = 0; j < INNER; j++) {
            int at = turned ? i % COLUMNS * INNER + j : j * COLUMNS + i % COLUMNS;
            num_value a = num_get(k, x, i / COLUMNS * INNER + j), b = num_get(k, y, at);
            sum = plus(k, sum,
                       k->is_float ? (num_value){.f = a.f * b.f} : (num_value){.i = a.i * b.i});
        }
        bad += !same(to, num_get(to, z, i), sum);
    }
    if (bad)
        num_say("%s: %d elements of a dot of %s are wrong\n", d->label, bad, k->name);
    return bad;
}

START_TEST(dots)
{
    num_random r = {43};
    num_device d;
    int bad = 0;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (int i = 0; i < NUM_DTYPES; i++)
        for (int turned = 0; turned < 2 && dot_kind(&num_dtypes[i]); turned++)
            bad += check_dot(&d, &r, &num_dtypes[i], turned);
    num_close(&d);
    ck_assert_int_eq(bad, 0);
}
END_TEST

/* Sums of 16-bit floats are kept in f32: 300 ones are 300, though bf16 counts to 256 alone. */
START_TEST(sums_of_narrow_floats_are_wide)
{
    static char x[2048 * 2], z[2];
    int64_t n = 2048, one = 1;
    num_device d;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (int which = 0; which < 2; which++) {
        const num_dtype *k = num_dtype_named(which ? "bf16" : "f16");
        DLTensor tx = num_vector(k, x, &n), tz = num_vector(k, z, &one);
        char source[256];

        for (int i = 0; i < n; i++)
            num_put(k, x, i, (num_value){.f = i < 300 ? 1.0 : 0.0});
        snprintf(
            source, sizeof source,
            "kernel s(x: %s[2048], out z: %s[1]) grid (1) { store(z[0], sum(load(x[:]), 0)); }",
            k->name, k->name);
        if (num_run_text(&d, source, (tw_arg[]){TW_TENSOR("x", &tx), TW_TENSOR("z", &tz)}, 2))
            ck_assert_double_eq(num_get(k, z, 0).f, 300.0);
    }
    num_close(&d);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("dtypes of tiles");
    TCase *t = tcase_create("whole tiles");

    tcase_add_loop_test(t, reductions, 0, DEVICES);
    tcase_add_loop_test(t, scans, 0, DEVICES);
    tcase_add_loop_test(t, long_scans, 0, DEVICES);
    tcase_add_loop_test(t, dots, 0, DEVICES);
    tcase_add_loop_test(t, sums_of_narrow_floats_are_wide, 0, DEVICES);
    suite_add_tcase(s, t);
    return s;
}
