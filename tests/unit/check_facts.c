/* Single claims of facts.h. tests/pass/prove_bounds has those about slices and masks, and
 * check_facts_random compares whatever is claimed of random programs with what they compute. */
#include "compiler/base/guard.h"
#include "compiler/ir/irtext.h"
#include "compiler/passes/facts.h"
#include <check.h>
#include <string.h>

static arena a;
static const ir_fn *fn;
static facts *f;

typedef struct kernel_text {
    const char *body, *launch;
} kernel_text;

static tw_status parse_text(void *arg)
{
    const kernel_text *k = arg;
    static intern names;
    diag_list diags;
    strbuf text;

    intern_init(&names, &a);
    diag_init(&diags, &a);
    sb_init(&text, &a);
    sb_fmt(&text,
           "kernel @k<M, N>(out %%y : view<i32, 2>[M, N], %%s : i32, %%t : i32,\n"
           "    dim %%m : i32 = M, dim %%n : i32 = N) {\n%s\nreturn\n}\n"
           "launch () {\n%s\n%%one = const.i 1 : i64\nreturn %%one, %%one, %%one, %%s, %%t\n}\n",
           k->body, k->launch);
    ir_module *m = ir_parse(&a, &names, source_new(&a, "text", text.s, text.n), &diags);
    diag_render(&diags, &text, 0);
    ck_assert_msg(m != NULL, "%s", text.s);
    fn = m->kernel;
    f = facts_compute(&a, fn);
    return TW_OK;
}

/* body: ops that store or assert something, for nothing here drops what is unused. */
static void analyse(const char *body, const char *launch)
{
    ck_assert_int_eq(guard_run(parse_text, &(kernel_text){body, launch}), TW_OK);
}

static ir_val named(const char *name)
{
    for (ir_val v = 1; v < fn->values.n; v++) {
        if (fn->values.at[v].name && !strcmp(fn->values.at[v].name, name))
            return v;
    }
    ck_abort_msg("no value %s", name);
    return 0;
}

static void check_range(const char *name, int64_t want_lo, int64_t want_hi)
{
    int64_t lo, hi;

    facts_range(f, named(name), &lo, &hi);
    ck_assert_msg(lo == want_lo && hi == want_hi, "%s: [%lld, %lld]", name, (long long)lo,
                  (long long)hi);
}

static bool le(const char *x, const char *y)
{
    const ir_op *at = ir_def(fn, named(y));

    return facts_le(f, named(x), named(y), at ? at : fn->body->last);
}

static void setup(void)
{
    arena_init(&a);
}

static void teardown(void)
{
    arena_release(&a);
}

START_TEST(ranges_of_arithmetic)
{
    analyse("%c7 = const.i 7 : i32\n%c0 = const.i 0 : i32\n%r = rem %m, %c7 : i32\n"
            "%neg = sub %c0, %r : i32\n%sq = mul %r, %neg : i32\n%q = div %m, %c7 : i32\n"
            "%any = rem %s, %c7 : i32\n%abs = abs %any : i32\n%mask = and %s, %c7 : i32\n"
            "%wraps = add %m, %c7 : i32\n%wide = cast %wraps : i64\n%byte = cast %r : u8\n"
            "%cut = cast %m : i8\n%shift = shr %m, %c7 : i32\n%left = shl %r, %c7 : i32\n"
            "%or = or %r, %mask : i32\n%bad = abs %s : i32",
            "");
    check_range("m", 0, INT32_MAX);
    check_range("s", INT32_MIN, INT32_MAX);
    check_range("r", 0, 6);
    check_range("neg", -6, 0);
    check_range("sq", -36, 0);
    check_range("q", 0, INT32_MAX / 7);
    check_range("any", -6, 6);
    check_range("abs", 0, 6);
    check_range("mask", 0, 7);
    check_range("wraps", INT32_MIN, INT32_MAX);
    check_range("wide", INT32_MIN, INT32_MAX);
    check_range("byte", 0, 6);
    check_range("cut", -128, 127);
    check_range("shift", 0, INT32_MAX >> 7);
    check_range("left", 0, 6 << 7);
    check_range("or", 0, 7);
    check_range("bad", INT32_MIN, INT32_MAX); /* |-2^31| wraps */
}
END_TEST

START_TEST(ranges_of_tiles)
{
    analyse("%c3 = const.i 3 : i32\n%a = arange -2 : i32[8]\n%k = splat %c3 : i32[8]\n"
            "%b = mul %a, %k : i32[8]\n%e = expand_dims %b axis=0 : i32[1, 8]\n"
            "%w = broadcast %e : i32[4, 8]\n%top = reduce_max %w axis=1 : i32[4]\n"
            "%sum = reduce_sum %w axis=0 : i32[8]\n%in = lt %a, %k : i1[8]\n"
            "%hits = reduce_sum %in axis=0 : i32",
            "");
    check_range("a", -2, 5);
    check_range("b", -6, 15);
    check_range("w", -6, 15);
    check_range("top", -6, 15);
    check_range("sum", -24, 60);
    check_range("hits", 0, 8);
}
END_TEST

START_TEST(ranges_of_loops)
{
    analyse("%c0 = const.i 0 : i32\n%c8 = const.i 8 : i32\n%c100 = const.i 100 : i32\n"
            "%c96 = const.i 96 : i32\n%minus = const.i -8 : i32\n"
            "for %i = %c0 to %c100 step %c8 {\nyield\n}\n"
            "for %j = %c0 to %c96 step %c8 {\nyield\n}\n"
            "for %k = %c96 to %c0 step %minus {\nyield\n}\n"
            "for %l = %c0 to %m step %s {\nyield\n}",
            "");
    check_range("i", 0, 99);
    check_range("j", 0, 88);
    check_range("k", 1, 96);
    check_range("l", 0, INT32_MAX - 1);
    ck_assert_int_eq(facts_divisor(f, named("i")), 8);
    ck_assert_int_eq(facts_divisor(f, named("l")), 1);
}
END_TEST

START_TEST(divisors)
{
    analyse("%c12 = const.i 12 : i32\n%c3 = const.i 3 : i32\n%c40 = const.i 40 : i32\n"
            "%a = mul %s, %c12 : i32\n%b = add %a, %c40 : i32\n%c = sub %b, %c3 : i32\n"
            "%d = shl %s, %c3 : i32\n%e = and %s, %c40 : i32\n%f = minimum %a, %c40 : i32\n"
            "%r = arange 16 : i32[4]\n%ds = splat %d : i32[4]\n%g = add %r, %ds : i32[4]\n"
            "%zero = sub %s, %s : i32",
            "");
    ck_assert_int_eq(facts_divisor(f, named("s")), 1);
    ck_assert_int_eq(facts_divisor(f, named("a")), 4);
    ck_assert_int_eq(facts_divisor(f, named("b")), 4);
    ck_assert_int_eq(facts_divisor(f, named("c")), 1);
    ck_assert_int_eq(facts_divisor(f, named("d")), 8);
    ck_assert_int_eq(facts_divisor(f, named("e")), 8);
    ck_assert_int_eq(facts_divisor(f, named("f")), 4);
    ck_assert_int_eq(facts_divisor(f, named("g")), 8); /* of the first element */
    ck_assert_int_ge(facts_divisor(f, named("zero")), 1 << 30);
}
END_TEST

START_TEST(order_of_clamped_values)
{
    analyse("%c0 = const.i 0 : i32\n%c64 = const.i 64 : i32\n%sum = add %m, %s : i32\n"
            "%low = maximum %sum, %c0 : i32\n%clamped = minimum %low, %n : i32\n"
            "%blocks = div %clamped, %c64 : i32\n%whole = mul %blocks, %c64 : i32\n"
            "%rest = sub %clamped, %whole : i32\n%c63 = const.i 63 : i32\n%c62 = const.i 62 : i32",
            "");
    ck_assert(le("clamped", "n"));
    ck_assert(le("c0", "clamped"));
    ck_assert(le("clamped", "low"));
    ck_assert(le("sum", "low"));
    ck_assert(le("whole", "clamped"));
    ck_assert(le("whole", "n"));
    ck_assert(le("c0", "whole"));
    ck_assert(le("c0", "rest"));
    ck_assert(le("rest", "c63"));
    ck_assert(!le("rest", "c62"));
    ck_assert(!le("clamped", "whole"));
    ck_assert(!le("n", "clamped"));
    ck_assert(!le("low", "clamped"));
    ck_assert(!le("low", "sum"));
    ck_assert(!le("clamped", "m"));
}
END_TEST

START_TEST(order_holds_only_at_its_place)
{
    analyse("%c0 = const.i 0 : i32\n%c1 = const.i 1 : i32\n%c = lt %s, %t : i1\n"
            "if %c {\n%in = add %c0, %c0 : i32\nstore %y, %s, %t, %in extent=[0, 0] inside=0\n"
            "yield\n} else {\n%out = add %c0, %c0 : i32\n"
            "store %y, %s, %t, %out extent=[0, 0] inside=0\nyield\n}",
            "");
    const ir_op *in = ir_def(fn, named("in")), *out = ir_def(fn, named("out"));
    ck_assert(facts_le(f, named("s"), named("t"), in));
    ck_assert(!facts_le(f, named("t"), named("s"), in));
    ck_assert(!facts_le(f, named("s"), named("t"), out));
    ck_assert(facts_le(f, named("t"), named("s"), out));
    ck_assert(!facts_le(f, named("s"), named("t"), in->parent->owner));
    ck_assert(!facts_le(f, named("t"), named("s"), in->parent->owner));
}
END_TEST

START_TEST(requires_narrow_before_they_are_used)
{
    analyse("%c1 = const.i 1 : i32\n%sum = add %m, %s : i32\n%next = add %sum, %c1 : i32",
            "%top = const.i 1000 : i32\n%low = const.i -10 : i32\n%a = le %m, %top : i1\n"
            "assert %a \"M <= 1000\"\n%b = le %s, %top : i1\n%c = lt %low, %s : i1\n"
            "%d = and %b, %c : i1\nassert %d \"-10 < s <= 1000\"");
    check_range("m", 0, 1000);
    check_range("s", -9, 1000);
    check_range("sum", -9, 2000);
    ck_assert(le("sum", "next"));
    ck_assert(!le("next", "sum"));
}
END_TEST

START_TEST(truth_of_comparisons)
{
    analyse("%c0 = const.i 0 : i32\n%yes = le %c0, %m : i1\n%no = lt %m, %c0 : i1\n"
            "%maybe = lt %c0, %m : i1\n%not = not %no : i1\n%and = and %maybe, %no : i1\n"
            "%or = or %maybe, %yes : i1\n%both = and %maybe, %yes : i1\n"
            "%either = where %maybe, %yes, %not : i1\n%ne = ne %m, %m : i1",
            "");
    ck_assert_int_eq(facts_truth(f, named("yes")), 1);
    ck_assert_int_eq(facts_truth(f, named("no")), 0);
    ck_assert_int_eq(facts_truth(f, named("maybe")), -1);
    ck_assert_int_eq(facts_truth(f, named("not")), 1);
    ck_assert_int_eq(facts_truth(f, named("and")), 0);
    ck_assert_int_eq(facts_truth(f, named("or")), 1);
    ck_assert_int_eq(facts_truth(f, named("both")), -1);
    ck_assert_int_eq(facts_truth(f, named("either")), 1);
    ck_assert_int_eq(facts_truth(f, named("ne")), 0);
    ck_assert_int_eq(facts_truth(f, named("m")), -1);
}
END_TEST

START_TEST(nothing_is_known_of_floats)
{
    analyse("%x = cast %m : f32\n%lt = lt %x, %x : i1", "");
    check_range("x", INT64_MIN, INT64_MAX);
    ck_assert_int_eq(facts_divisor(f, named("x")), 1);
    ck_assert(!le("x", "x"));
    ck_assert_int_eq(facts_truth(f, named("lt")), -1);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("facts");
    TCase *t = tcase_create("facts");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, ranges_of_arithmetic);
    tcase_add_test(t, ranges_of_tiles);
    tcase_add_test(t, ranges_of_loops);
    tcase_add_test(t, divisors);
    tcase_add_test(t, order_of_clamped_values);
    tcase_add_test(t, order_holds_only_at_its_place);
    tcase_add_test(t, requires_narrow_before_they_are_used);
    tcase_add_test(t, truth_of_comparisons);
    tcase_add_test(t, nothing_is_known_of_floats);
    suite_add_tcase(s, t);
    return s;
}
