/* philox and uniform on every target, against the published answer for zeros and a generator
 * written here from the paper. */
#include "tests/support/numeric_case.h"
#include "tests/support/numeric_dtype.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *spec, *target;
} device[] = {
    {"interp", NULL},         {"cpu", NULL}, {"cpu:1", "cpu-avx512"}, {"cpu:1", "cpu-avx2"},
    {"cpu:1", "cpu-generic"},
};
enum { DEVICES = sizeof device / sizeof *device, COUNT = 203 };

/* Word w of Philox4x32-10. */
static uint32_t philox(uint64_t seed, uint64_t counter, int w)
{
    uint32_t x[4] = {(uint32_t)counter, (uint32_t)(counter >> 32)};
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);

    for (int round = 0; round < 10; round++) {
        uint64_t p = 0xD2511F53ull * x[0], q = 0xCD9E8D57ull * x[2];
        uint32_t next[4] = {(uint32_t)(q >> 32) ^ x[1] ^ k0, (uint32_t)q,
                            (uint32_t)(p >> 32) ^ x[3] ^ k1, (uint32_t)p};
        memcpy(x, next, sizeof x);
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    return x[w];
}

static const char text[] =
    "kernel draw(seed: i64, first: i64, out y: u32[4, 203], out z: u32[4], out u: f32[203]) grid "
    "(1)"
    " {\n"
    "    let at = arange(203), wide = cast(at, i64) + first;\n"
    "    store(y[0, :], philox(seed, wide));\n"
    "    store(y[1, :], philox(seed, wide, 1));\n"
    "    store(y[2, :], philox(seed, at - 100, 2));\n"
    "    store(y[3, :], philox(cast(seed, u32), cast(at, u16), 3));\n"
    "    store(z[0], philox(0, 0)); store(z[1], philox(0, 0, 1));\n"
    "    store(z[2], philox(-1, 1 << 40, 2)); store(z[3], philox(seed, first, 3));\n"
    "    store(u[:], uniform(seed, at));\n"
    "}\n";

typedef struct drawn {
    uint32_t y[4 * COUNT], z[4];
    float u[COUNT];
} drawn;

static bool draw(num_device *d, int64_t seed, int64_t first, drawn *got)
{
    DLTensor y = num_vector(num_dtype_named("u32"), got->y, (int64_t[]){4});
    DLTensor z = y, u = num_vector(num_dtype_named("f32"), got->u, (int64_t[]){COUNT});
    int64_t shape[] = {4, COUNT};

    y.ndim = 2;
    y.shape = shape;
    z.data = got->z;
    return num_run_text(d, text,
                        (tw_arg[]){TW_INT("seed", seed), TW_INT("first", first),
                                   TW_TENSOR("y", &y), TW_TENSOR("z", &z), TW_TENSOR("u", &u)},
                        5);
}

static void check_drawn(const drawn *got, int64_t seed, int64_t first)
{
    uint64_t s = (uint64_t)seed;

    ck_assert_uint_eq(got->z[0], 0x6627e8d5); /* published: Random123, kat_vectors */
    ck_assert_uint_eq(got->z[1], 0xe169c58d);
    ck_assert_uint_eq(got->z[2], philox(UINT64_MAX, 1ull << 40, 2));
    ck_assert_uint_eq(got->z[3], philox(s, (uint64_t)first, 3));
    for (int i = 0; i < COUNT; i++) {
        const uint32_t *y = &got->y[i];
        uint64_t at = (uint64_t)i, wide = at + (uint64_t)first;
        ck_assert_uint_eq(y[0], philox(s, wide, 0));
        ck_assert_uint_eq(y[COUNT], philox(s, wide, 1));
        ck_assert_uint_eq(y[2 * COUNT], philox(s, at - 100, 2));
        ck_assert_uint_eq(y[3 * COUNT], philox((uint32_t)s, at, 3));
        ck_assert(got->u[i] == (float)(philox(s, at, 0) >> 8) * 0x1p-24f);
    }
}

START_TEST(words)
{
    static const int64_t seed[] = {0, 1, -5, INT64_MAX, 0x123456789abcdef};
    static const int64_t first[] = {0, UINT32_MAX - 100, -100, INT64_MIN, 77};
    num_device d;
    drawn got;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (size_t i = 0; i < sizeof seed / sizeof *seed; i++) {
        if (!draw(&d, seed[i], first[i], &got))
            break;
        check_drawn(&got, seed[i], first[i]);
    }
    num_close(&d);
}
END_TEST

/* Mean, variance and neighbours' correlation of 2^16 numbers, within five standard errors. */
START_TEST(numbers_are_even)
{
    enum { N = 1 << 16 };
    static float u[N];
    static const char source[] =
        "kernel many(out u: f32[N]) grid (N / 1024) {\n"
        "    let at = program_id(0) * 1024 + arange(1024);\n"
        "    store(u[program_id(0) * 1024 :+ 1024], uniform(11, at));\n}\n";
    int64_t n = N;
    double mean = 0.0, variance = 0.0, pairs = 0.0;
    num_device d;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    DLTensor tensor = num_vector(num_dtype_named("f32"), u, &n);
    ck_assert(num_run_text(&d, source, (tw_arg[]){TW_TENSOR("u", &tensor)}, 1));
    num_close(&d);
    for (int i = 0; i < N; i++) {
        double v = (double)u[i] - 0.5;
        ck_assert(v >= -0.5 && v < 0.5);
        mean += v / N;
        variance += v * v / N;
        pairs += v * ((double)u[(i + 1) % N] - 0.5) / N;
    }
    ck_assert_double_lt(fabs(mean), 5 * sqrt(1.0 / 12 / N));
    ck_assert_double_lt(fabs(variance - 1.0 / 12), 5 * sqrt(1.0 / 180 / N));
    ck_assert_double_lt(fabs(pairs), 5 * sqrt(1.0 / 144 / N));
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("random numbers");
    TCase *t = tcase_create("philox");

    tcase_add_loop_test(t, words, 0, DEVICES);
    tcase_add_loop_test(t, numbers_are_even, 0, DEVICES);
    suite_add_tcase(s, t);
    return s;
}
