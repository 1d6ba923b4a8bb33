/* Random kernels give the same bits as tile IR of level 1 and scheduled, on the interpreter and its
 * race detector. TW_SEED and TW_COUNT in the environment choose which and how many. */
#include "compiler/base/error.h"
#include "tests/support/random_kernel.h"
#include "tests/support/schedule_fixture.h"
#include "tests/support/schedule_run.h"
#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 60, ROWS = 37, COLUMNS = 45, PLANES = RANDOM_PROGRAMS * RANDOM_PLANES };

static long setting(const char *name, long otherwise)
{
    const char *text = getenv(name);

    return text ? strtol(text, NULL, 0) : otherwise;
}

static run_case tensors(void)
{
    run_case c = {.n = 4,
                  .t = {{"x", DT_F32, 2, {ROWS, COLUMNS}, NULL},
                        {"w", DT_I32, 2, {ROWS, COLUMNS}, NULL},
                        {"yf", DT_F32, 3, {PLANES, RANDOM_EXTENT, RANDOM_EXTENT}, NULL},
                        {"yi", DT_I32, 3, {PLANES, RANDOM_EXTENT, RANDOM_EXTENT}, NULL}}};

    for (int i = 0; i < c.n; i++) {
        c.t[i].data = arena_alloc(&schedule_memory, run_elements(&c.t[i]) * 4);
        if (i < 2)
            run_fill_whole(&c.t[i], 8);
        else
            run_poison(&c.t[i]);
    }
    return c;
}

static void must_agree(const run_case *want, const run_case *got, long seed, schedule_params p)
{
    for (int k = 2; k < 4; k++) {
        size_t bytes = run_elements(&want->t[k]) * 4;
        if (memcmp(want->t[k].data, got->t[k].data, bytes) == 0)
            continue;
        for (size_t i = 0; i < bytes / 4; i++) {
            double x = run_element(&want->t[k], i), y = run_element(&got->t[k], i);
            if (!(x == y || (x != x && y != y)))
                ck_abort_msg("seed %ld, %d warps, %d stages: %s[%zu] is %g, not %g", seed,
                             p.num_warps, p.num_stages, want->t[k].name, i, y, x);
        }
    }
}

static bool wrote(const run_case *c)
{
    size_t n = 0;

    for (int k = 2; k < 4; k++) {
        const unsigned char *byte = c->t[k].data;
        for (size_t i = 0; i < run_elements(&c->t[k]) * 4; i++)
            n += byte[i] != 0xee;
    }
    return n > 0;
}

/* True when it gave something; some kernels are empty or too large for the GPU. */
static bool one_kernel(long seed)
{
    static char text[RANDOM_TEXT];
    schedule_params p = {1 << seed % 4, 1 + (int)(seed / 4 % 3), (int)(seed / 12 % 2), 1,
                         (int)(seed / 24 % 2), 1 << seed / 2 % 2};
    run_case want, got;
    interp_fault fault = {0};
    bool done = false;

    schedule_setup();
    random_kernel((uint64_t)seed, text);
    want = tensors();
    ck_assert_int_eq(run_module(schedule_lower_text(text, "", 4), &want, NULL), TW_OK);
    got = tensors();
    ir_module *m = schedule_lower_text(text, "", 4);
    tw_status st = schedule_make(m, 90, p, NULL);
    ck_assert_msg(st == TW_OK || st == TW_E_LIMIT, "seed %ld: %s", seed, error_get()->text);
    got.seed = (uint64_t)seed;
    if (st == TW_OK) {
        st = run_module(m, &got, &fault);
        ck_assert_msg(st == TW_OK, "seed %ld, %d warps: %s\n%s", seed, p.num_warps, fault.text,
                      text);
        must_agree(&want, &got, seed, p);
        done = wrote(&got);
    }
    error_clear();
    schedule_teardown();
    return done;
}

START_TEST(schedules_keep_every_bit)
{
    long first = setting("TW_SEED", 1), n = setting("TW_COUNT", COUNT);

    long done = 0;

    for (long seed = first; seed < first + n; seed++)
        done += one_kernel(seed);
    ck_assert_int_gt(done, n / 2);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("schedule_random");
    TCase *c = tcase_create("random");

    tcase_add_test(c, schedules_keep_every_bit);
    suite_add_tcase(s, c);
    return s;
}
