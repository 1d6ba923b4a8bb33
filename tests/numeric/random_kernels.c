/* Random kernels on every code path of the CPU against the interpreter, bit by bit. TW_SEED and
 * TW_COUNT in the environment choose which and how many. */
#include "tests/support/random_kernel.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_SEED = 1, COUNT = 40, ROWS = 37, COLUMNS = 45 };
enum { CELLS = RANDOM_PROGRAMS * RANDOM_PLANES * RANDOM_EXTENT * RANDOM_EXTENT };

static const char *const paths[] = {NULL, "cpu-avx512", "cpu-avx2", "cpu-generic"};

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 0) : otherwise;
}

typedef struct tensors {
    float x[ROWS * COLUMNS], yf[CELLS];
    int32_t w[ROWS * COLUMNS], yi[CELLS];
} tensors;

static void prepare(tensors *t, uint64_t seed)
{
    num_random r = {seed ^ 0x5eed};

    for (int i = 0; i < ROWS * COLUMNS; i++) {
        t->x[i] = (float)(num_below(&r, 17) - 8);
        t->w[i] = (int32_t)(num_below(&r, 17) - 8);
    }
    memset(t->yf, 0xee, sizeof t->yf);
    memset(t->yi, 0xee, sizeof t->yi);
}

static DLTensor tensor_of(void *at, int rank, int64_t *shape, uint8_t code)
{
    return (DLTensor){at, {kDLCPU, 0}, rank, {code, 32, 1}, shape, NULL, 0};
}

/* True when the launch gave a result; false when the library says that it is too large. */
static bool run(num_device *d, const char *text, tensors *t)
{
    int64_t in[2] = {ROWS, COLUMNS};
    int64_t out[3] = {RANDOM_PROGRAMS * RANDOM_PLANES, RANDOM_EXTENT, RANDOM_EXTENT};
    DLTensor x = tensor_of(t->x, 2, in, kDLFloat), w = tensor_of(t->w, 2, in, kDLInt);
    DLTensor yf = tensor_of(t->yf, 3, out, kDLFloat), yi = tensor_of(t->yi, 3, out, kDLInt);
    tw_arg args[] = {TW_TENSOR("x", &x), TW_TENSOR("w", &w), TW_TENSOR("yf", &yf),
                     TW_TENSOR("yi", &yi), TW_INT("n", 0)};
    tw_kernel *k = NULL;
    tw_status st = tw_kernel_load_text(d->cx, "random.tw", text, strlen(text), NULL, &k);

    if (st == TW_OK)
        st = tw_launch(k, d->dev, NULL, args, 5);
    if (st != TW_OK && st != TW_E_LIMIT) {
        num_say("%s", text);
        num_must(st, d->label);
    }
    tw_kernel_destroy(k);
    return st == TW_OK;
}

static bool agree(const tensors *a, const tensors *b, const char *label, uint64_t seed,
                  const char *text)
{
    for (int i = 0; i < CELLS; i++) {
        bool same_float = a->yf[i] == b->yf[i] || !memcmp(&a->yf[i], &b->yf[i], sizeof(float));

        if (same_float && a->yi[i] == b->yi[i])
            continue;
        num_say("%s\nseed %llu, %s: cell %d of plane %d is %g, %d on the interpreter and %g, %d\n",
                text, (unsigned long long)seed, label, i % (RANDOM_EXTENT * RANDOM_EXTENT),
                i / (RANDOM_EXTENT * RANDOM_EXTENT), (double)a->yf[i], a->yi[i], (double)b->yf[i],
                b->yi[i]);
        return false;
    }
    return true;
}

START_TEST(as_the_interpreter)
{
    static tensors want, got;
    static char text[RANDOM_TEXT];
    uint64_t first = setting("TW_SEED", FIRST_SEED + (uint64_t)_i * COUNT);
    uint64_t n = setting("TW_COUNT", COUNT);
    num_device oracle, d;
    int ran = 0, wrong = 0;

    if (!num_open(&d, "cpu:1", paths[_i]))
        return;
    ck_assert(num_open(&oracle, "interp", NULL));
    for (uint64_t seed = first; seed < first + n && wrong < 3; seed++) {
        random_kernel(seed, text);
        prepare(&want, seed);
        prepare(&got, seed);
        if (!run(&oracle, text, &want) || !run(&d, text, &got))
            continue;
        ran++;
        wrong += !agree(&want, &got, d.label, seed, text);
    }
    num_say("%s: %d kernels from seed %llu, %d wrong\n", d.label, ran, (unsigned long long)first,
            wrong);
    num_close(&oracle);
    num_close(&d);
    ck_assert_int_eq(wrong, 0);
    ck_assert_int_gt(ran, (int)n / 2);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("random kernels");
    TCase *t = tcase_create("bit by bit");

    tcase_add_loop_test(t, as_the_interpreter, 0, sizeof paths / sizeof *paths);
    suite_add_tcase(s, t);
    return s;
}
