#include "tuner/compare.h"
#include <check.h>
#include <math.h>
#include <string.h>

static mismatch compare_f32(const float *got, const float *want, const float *initial, int64_t n,
                            int64_t *compared)
{
    int64_t extent[] = {n}, stride[] = {1};
    compare_view v = {DT_F32, 1, extent, stride};
    mismatch m;

    compare_views(&v, got, want, initial, &m, compared);
    return m;
}

START_TEST(rounding_is_no_mismatch)
{
    const float want[] = {1.0f, 1000.0f, -3.0f, 0.0f}, got[] = {1.00001f, 1000.02f, -3.0f, 1e-3f};

    ck_assert(!compare_f32(got, want, NULL, 4, NULL).found);
}
END_TEST

/* Rows of causal attention: the first are a hundred times as large as the last. */
START_TEST(each_row_has_its_scale)
{
    enum { ROWS = 64, WIDE = 600 };
    static float want[ROWS][WIDE], got[ROWS][WIDE];
    int64_t extent[] = {ROWS, WIDE}, stride[] = {WIDE, 1};
    compare_view v = {DT_F32, 2, extent, stride};
    mismatch m;

    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < WIDE; k++)
            want[i][k] = (i ? 0.01f : 1.0f) * (float)(k % 3 - 1);
    memcpy(got, want, sizeof want);
    got[0][541] = want[0][541] + 1e-4f; /* 0 and 1e-4 in a row of ones */
    compare_views(&v, got, want, NULL, &m, NULL);
    ck_assert(!m.found);
    got[63][541] = want[63][541] + 1e-4f;
    compare_views(&v, got, want, NULL, &m, NULL);
    ck_assert(m.found);
    ck_assert_int_eq(m.index[0], 63);
    ck_assert_int_eq(m.index[1], 541);
}
END_TEST

START_TEST(a_real_difference_is_one)
{
    const float want[] = {1.0f, 2.0f, 3.0f}, got[] = {1.0f, 2.01f, 4.0f};
    mismatch m = compare_f32(got, want, NULL, 3, NULL);

    ck_assert(m.found);
    ck_assert_int_eq(m.index[0], 1);
    ck_assert_double_eq_tol(m.got, 2.01, 1e-6);
    ck_assert_double_eq(m.want, 2.0);
}
END_TEST

START_TEST(special_values_must_agree)
{
    const float nan2 = nanf("2");
    const struct {
        float got, want;
        bool same;
    } row[] = {{NAN, nan2, true},        {INFINITY, INFINITY, true}, {-INFINITY, INFINITY, false},
               {NAN, 1.0f, false},       {1.0f, NAN, false},         {INFINITY, 3e38f, false},
               {3e38f, INFINITY, false}, {0.0f, -0.0f, true}};

    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        mismatch m = compare_f32(&row[i].got, &row[i].want, NULL, 1, NULL);
        ck_assert_msg(m.found != row[i].same, "row %zu", i);
    }
}
END_TEST

START_TEST(only_what_was_written_is_compared)
{
    const float initial[] = {7.0f, 7.0f, 7.0f}, want[] = {1.0f, 7.0f, 7.0f},
                got[] = {1.0f, 99.0f, 7.0f};
    int64_t n;

    ck_assert(!compare_f32(got, want, initial, 3, &n).found);
    ck_assert_int_eq(n, 1);
    ck_assert(compare_f32(got, want, NULL, 3, &n).found);
}
END_TEST

START_TEST(integers_are_exact)
{
    int64_t extent[] = {2}, stride[] = {1};
    const int32_t want[] = {100000, 2000000}, got[] = {100000, 2000001};
    const int64_t want8[] = {1, INT64_C(9007199254740993)}, got8[] = {1, INT64_C(9007199254740992)};
    mismatch m;

    compare_views(&(compare_view){DT_I32, 1, extent, stride}, got, want, NULL, &m, NULL);
    ck_assert(m.found && m.index[0] == 1);
    compare_views(&(compare_view){DT_I64, 1, extent, stride}, got8, want8, NULL, &m, NULL);
    ck_assert(m.found && m.index[0] == 1);
}
END_TEST

START_TEST(strides_are_followed)
{
    float want[20], got[20];
    int64_t extent[] = {2, 3}, stride[] = {-10, 2};
    compare_view v = {DT_F32, 2, extent, stride};
    mismatch m;

    for (int i = 0; i < 20; i++)
        want[i] = got[i] = (float)i + 1.0f;
    got[11] = 55.0f; /* between the elements */
    compare_views(&v, got + 10, want + 10, NULL, &m, NULL);
    ck_assert(!m.found);
    got[4] = 55.0f; /* [1, 2] */
    compare_views(&v, got + 10, want + 10, NULL, &m, NULL);
    ck_assert(m.found);
    ck_assert_int_eq(m.index[0], 1);
    ck_assert_int_eq(m.index[1], 2);
}
END_TEST

START_TEST(empty_and_scalar_views)
{
    int64_t extent[] = {3, 0}, stride[] = {1, 1}, n = -1;
    float one = 1.0f, two = 2.0f;
    mismatch m;

    compare_views(&(compare_view){DT_F32, 2, extent, stride}, &one, &two, NULL, &m, &n);
    ck_assert(!m.found);
    ck_assert_int_eq(n, 0);
    compare_views(&(compare_view){DT_F32, 0, extent, stride}, &one, &two, NULL, &m, &n);
    ck_assert(m.found);
    ck_assert_int_eq(n, 1);
}
END_TEST

/* ---- against the definition ----------------------------------------------------------------- */

enum { MOST = 2000 };
static uint64_t random_state;

static uint64_t any(uint64_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 24) % below;
}

typedef struct example {
    compare_view v;
    int64_t extent[3], stride[3], span;
    char want[MOST * 8], got[MOST * 8], initial[MOST * 8];
} example;

/* Dense, or with gaps in some dimension. */
static void make_shape(example *e)
{
    static const enum dtype dtypes[] = {DT_BF16, DT_F16, DT_F32, DT_F64, DT_I32};

    e->v = (compare_view){dtypes[any(5)], (int)any(4), e->extent, e->stride};
    e->span = 1;
    for (int d = e->v.rank - 1; d >= 0; d--) {
        e->extent[d] = 1 + (int64_t)any(d == e->v.rank - 1 ? 70 : 3);
        e->stride[d] = e->span + (any(4) == 0);
        e->span = e->stride[d] * e->extent[d];
    }
}

/* Bits of all kinds; got is the same, a few steps away, or something else. */
static void make_values(example *e, uint64_t rarely)
{
    size_t bytes = (size_t)dtype_bytes(e->v.dtype);

    for (int64_t i = 0; i < e->span; i++) {
        uint64_t x = any(UINT64_MAX >> 24) << 24 ^ any(UINT64_MAX >> 24);
        uint64_t y = any(4) ? x : any(rarely) ? x + any(9) - 4 : ~x, z = any(2) ? x : ~x;
        memcpy(e->want + (size_t)i * bytes, &x, bytes);
        memcpy(e->got + (size_t)i * bytes, &y, bytes);
        memcpy(e->initial + (size_t)i * bytes, &z, bytes);
    }
}

/* The offset of element number i in row-major order, and its index. */
static int64_t place(const example *e, int64_t i, int64_t *index)
{
    int64_t at = 0;

    for (int d = e->v.rank - 1; d >= 0; d--) {
        index[d] = i % e->extent[d];
        at += index[d] * e->stride[d];
        i /= e->extent[d];
    }
    return at * dtype_bytes(e->v.dtype);
}

static bool is_right(double got, double want, double relative, double absolute)
{
    if (isnan(want) || isnan(got) || isinf(want) || isinf(got))
        return (isnan(want) && isnan(got)) || got == want;
    return fabs(got - want) <= fmax(relative * fabs(want), absolute);
}

/* The root mean square of what counts among elements first .. first + n. */
static double rms(const example *e, const char *initial, int64_t first, int64_t n)
{
    size_t bytes = (size_t)dtype_bytes(e->v.dtype);
    int64_t index[3], finite = 0;
    double sum = 0.0;

    for (int64_t i = first; i < first + n; i++) {
        int64_t at = place(e, i, index);
        double x = element_value(e->v.dtype, e->want + at);
        if (isfinite(x) && !(initial && !memcmp(e->want + at, initial + at, bytes))) {
            sum += x * x;
            finite++;
        }
    }
    return finite ? sqrt(sum / (double)finite) : 0.0;
}

static void must_agree(const example *e, const char *initial)
{
    size_t bytes = (size_t)dtype_bytes(e->v.dtype);
    int64_t total = 1, index[3] = {0}, n = 0, compared = 0;
    double relative = compare_tolerance(e->v.dtype);
    bool found = false;
    mismatch m;

    for (int d = 0; d < e->v.rank; d++)
        total *= e->extent[d];
    double all = rms(e, initial, 0, total);
    int64_t row = e->v.rank ? e->extent[e->v.rank - 1] : 1;
    for (int64_t i = 0; i < total && !found; i++) {
        int64_t at = place(e, i, index);
        if (initial && !memcmp(e->want + at, initial + at, bytes))
            continue;
        n++;
        double absolute = e->v.rank ? rms(e, initial, i - i % row, row) : 0.0;
        absolute = relative * fmax(all, absolute);
        found = memcmp(e->want + at, e->got + at, bytes) != 0 &&
                (relative <= 0.0 ||
                 !is_right(element_value(e->v.dtype, e->got + at),
                           element_value(e->v.dtype, e->want + at), relative, absolute));
    }
    compare_views(&e->v, e->got, e->want, initial, &m, &compared);
    ck_assert_int_eq(m.found, found);
    ck_assert_int_eq(compared, n);
    for (int d = 0; found && d < e->v.rank; d++)
        ck_assert_int_eq(m.index[d], index[d]);
}

START_TEST(views_of_all_kinds)
{
    static example e;

    for (int i = 0; i < 4000; i++) {
        random_state = (uint64_t)i * 7919 + 1;
        make_shape(&e);
        ck_assert_int_le(e.span, MOST);
        make_values(&e, i % 2 ? 10 : 1000);
        must_agree(&e, NULL);
        must_agree(&e, e.initial);
    }
}
END_TEST

START_TEST(every_dtype_is_read)
{
    const struct {
        enum dtype t;
        uint64_t bits;
        double value;
    } row[] = {{DT_F32, 0x40490fdb, 3.1415927410125732},
               {DT_F64, 0x3ff8000000000000, 1.5},
               {DT_F16, 0x3c00, 1.0},
               {DT_F16, 0xc500, -5.0},
               {DT_F16, 0x0001, 5.9604644775390625e-8},
               {DT_F16, 0x7bff, 65504.0},
               {DT_F16, 0x7c00, INFINITY},
               {DT_BF16, 0x3fc0, 1.5},
               {DT_BF16, 0xff80, -INFINITY},
               {DT_I1, 1, 1.0},
               {DT_I8, 0xff, -1.0},
               {DT_U8, 0xff, 255.0},
               {DT_I16, 0x8000, -32768.0},
               {DT_U16, 0x8000, 32768.0},
               {DT_I32, 0xffffffff, -1.0},
               {DT_U32, 0xffffffff, 4294967295.0},
               {DT_I64, UINT64_MAX, -1.0},
               {DT_U64, 1u << 20, 1048576.0}};

    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        ck_assert_double_eq(element_value(row[i].t, &row[i].bits), row[i].value);
    uint16_t nan16 = 0x7e00;
    ck_assert(isnan(element_value(DT_F16, &nan16)));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("compare");
    TCase *t = tcase_create("compare");

    tcase_add_test(t, rounding_is_no_mismatch);
    tcase_add_test(t, each_row_has_its_scale);
    tcase_add_test(t, a_real_difference_is_one);
    tcase_add_test(t, special_values_must_agree);
    tcase_add_test(t, only_what_was_written_is_compared);
    tcase_add_test(t, integers_are_exact);
    tcase_add_test(t, strides_are_followed);
    tcase_add_test(t, empty_and_scalar_views);
    tcase_add_test(t, views_of_all_kinds);
    tcase_add_test(t, every_dtype_is_read);
    suite_add_tcase(s, t);
    return s;
}
