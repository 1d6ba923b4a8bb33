#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "compiler/base/strbuf.h"
#include <check.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static arena a;
static strbuf b;

static void setup(void)
{
    arena_init(&a);
    sb_init(&b, &a);
}

static void teardown(void)
{
    arena_release(&a);
    ck_assert_int_eq(mem_live(), 0);
}

START_TEST(an_empty_buffer_is_text)
{
    ck_assert_str_eq(b.s, "");
    sb_mem(&b, NULL, 0);
    sb_str(&b, "");
    sb_fmt(&b, "%s", "");
    sb_pad(&b, ' ', -3);
    ck_assert_str_eq(b.s, "");
}
END_TEST

START_TEST(pieces_add_up)
{
    sb_char(&b, 'a');
    sb_str(&b, "bc");
    sb_mem(&b, "def", 2);
    sb_fmt(&b, "%d%s", 42, "!");
    sb_pad(&b, '.', 3);
    ck_assert_str_eq(b.s, "abcde42!...");
    ck_assert_uint_eq(b.n, strlen(b.s));
}
END_TEST

START_TEST(nothing_is_cut)
{
    for (int i = 0; i < 5000; i++)
        sb_fmt(&b, "%d,", i % 10);
    sb_fmt(&b, "%*s", 70000, "end");
    ck_assert_uint_eq(b.n, 80000);
    ck_assert_uint_eq(strlen(b.s), 80000);
    ck_assert_str_eq(b.s + 80000 - 3, "end");
}
END_TEST

static const char *float_text(double x, int is_f32)
{
    sb_init(&b, &a);
    sb_float(&b, x, is_f32);
    return b.s;
}

START_TEST(floats_are_short_and_look_like_floats)
{
    static const struct {
        double x;
        int is_f32;
        const char *text;
    } want[] = {
        {0.0, 1, "0.0"},
        {-0.0, 1, "-0.0"},
        {1.0, 1, "1.0"},
        {100.0, 0, "100.0"},
        {0.1, 1, "0.1"},
        {0.1, 0, "0.1"},
        {(double)0.1f, 0, "0.10000000149011612"},
        {1.4426950408889634, 1, "1.442695"},
        {1.4426950408889634, 0, "1.4426950408889634"},
        {1.0 / 3, 1, "0.33333334"},
        {1.0 / 3, 0, "0.3333333333333333"},
        {-12345.678, 0, "-12345.678"},
        {16777216.0, 1, "16777216.0"},
        {1e15, 0, "1000000000000000.0"},
        {1e16, 0, "1e16"},
        {1.25e22, 0, "1.25e22"},
        {0.00001, 0, "0.00001"},
        {0.000001, 0, "1e-6"},
        {-1.5e-7, 0, "-1.5e-7"},
        {(double)FLT_MAX, 1, "3.4028235e38"},
        {(double)FLT_MIN, 1, "1.1754944e-38"},
        {0x1p-149, 1, "1e-45"},
        {0x1p-1074, 0, "5e-324"},
        {DBL_MAX, 0, "1.7976931348623157e308"},
        {INFINITY, 1, "inf"},
        {-INFINITY, 0, "-inf"},
        {DBL_MAX, 1, "inf"},
        {NAN, 1, "nan"},
    };

    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        ck_assert_str_eq(float_text(want[i].x, want[i].is_f32), want[i].text);
}
END_TEST

static uint64_t next_random(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void check_f32(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    if (isnan(x))
        return;
    const char *text = float_text((double)x, 1);
    ck_assert_msg(strtof(text, NULL) == x, "%a printed as %s", (double)x, text);
    ck_assert_msg((float)strtod(text, NULL) == x, "%a printed as %s", (double)x, text);
    ck_assert(signbit(strtof(text, NULL)) == signbit(x));
    ck_assert_msg(strpbrk(text, ".ei") != NULL, "%s looks like an integer", text);
    ck_assert_uint_le(strlen(text), 19);
}

static void check_f64(uint64_t bits)
{
    double x;

    memcpy(&x, &bits, sizeof x);
    if (isnan(x))
        return;
    const char *text = float_text(x, 0);
    ck_assert_msg(strtod(text, NULL) == x, "%a printed as %s", x, text);
    ck_assert_msg(strpbrk(text, ".ei") != NULL, "%s looks like an integer", text);
}

START_TEST(floats_read_back)
{
    uint64_t state = 1;

    for (uint32_t exponent = 0; exponent < 256; exponent++) {
        for (uint32_t mantissa = 0; mantissa < 3; mantissa++) {
            check_f32(exponent << 23 | mantissa);
            check_f32(exponent << 23 | (0x7FFFFF - mantissa));
        }
    }
    for (int i = 0; i < 20000; i++) {
        arena_release(&a);
        check_f32((uint32_t)next_random(&state));
        check_f64(next_random(&state));
    }
}
END_TEST

/* The application's locale must not change what a kernel's constants look like. */
START_TEST(floats_ignore_the_locale)
{
    static const char *const commas[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "ru_RU.UTF-8", "de_DE"};
    size_t i = 0;

    while (i < 4 && !setlocale(LC_NUMERIC, commas[i]))
        i++;
    ck_assert_str_eq(float_text(0.1, 1), "0.1");
    ck_assert_str_eq(float_text(1.25e22, 0), "1.25e22");
    ck_assert_str_eq(float_text(1.0 / 3, 0), "0.3333333333333333");
    setlocale(LC_NUMERIC, "C");
}
END_TEST

static tw_status long_text(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20000; i++)
        sb_str(&b, "0123456789");
    return TW_OK;
}

START_TEST(out_of_memory_throws)
{
    mem_fail_after(3);
    ck_assert_int_eq(guard_run(long_text, NULL), TW_E_NOMEM);
    mem_fail_after(0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("strbuf");
    TCase *t = tcase_create("strbuf");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, an_empty_buffer_is_text);
    tcase_add_test(t, pieces_add_up);
    tcase_add_test(t, nothing_is_cut);
    tcase_add_test(t, floats_are_short_and_look_like_floats);
    tcase_add_test(t, floats_read_back);
    tcase_add_test(t, floats_ignore_the_locale);
    tcase_add_test(t, out_of_memory_throws);
    suite_add_tcase(s, t);
    return s;
}
