#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "dsl/parse.h"
#include <check.h>
#include <stdio.h>
#include <string.h>

static arena a;
static intern names;
static diag_list diags;
static unit_ast *unit;

static void setup(void)
{
    arena_init(&a);
    intern_init(&names, &a);
}

static void teardown(void)
{
    arena_release(&a);
    ck_assert_int_eq(mem_live(), 0);
}

static tw_status parse_body(void *text)
{
    const char *s = text;

    diag_init(&diags, &a);
    unit = parse_text(&a, &names, source_new(&a, "t.tw", s, strlen(s)), &diags);
    return TW_OK;
}

static void parse_source(const char *text)
{
    ck_assert_int_eq(guard_run(parse_body, (void *)(uintptr_t)text), TW_OK);
}

/* The printed value of `const X = text;`. */
static const char *tree_of(const char *text)
{
    static char whole[400];

    snprintf(whole, sizeof whole, "const X = %s; kernel k() {}", text);
    parse_source(whole);
    if (diags.errors)
        return diag_name(diags.all.at[0]->id);
    char *printed = arena_strdup(&a, ast_print_kernel(unit->top.at[1]->kernel, unit, &a));
    *strchr(printed, '\n') = '\0';
    return printed + strlen("const X = ");
}

static const struct {
    const char *text, *tree;
} precedence[] = {
    {"1 + 2 * 3", "(+ 1 (* 2 3))"},
    {"1 - 2 - 3", "(- (- 1 2) 3)"},
    {"(1 + 2) * 3", "(* (+ 1 2) 3)"},
    {"-a * b", "(* (- a) b)"},
    {"!a && ~b == c", "(&& (! a) (== (~ b) c))"},
    {"a & b == c", "(& a (== b c))"},
    {"a | b ^ c & d", "(| a (^ b (& c d)))"},
    {"a << 1 + 2", "(<< a (+ 1 2))"},
    {"a < b == c < d", "(== (< a b) (< c d))"},
    {"a || b && c", "(|| a (&& b c))"},
    {"a ? b : c ? d : e", "(?: a b (?: c d e))"},
    {"a ? b ? c : d : e", "(?: a (?: b c d) e)"},
    {"f(x, y + 1)[:, None]", "f(x, (+ y 1))[:, None]"},
    {"q[b, m0 :+ BM, :]", "q[b, (:+ m0 BM), :]"},
    {"q[a ? b : c]", "q[(?: a b c)]"},
    {"f(x)(y)[z]", "f(x)(y)[z]"},
    {"- - a", "(- (- a))"},
    {"1 << 30 >> 2", "(>> (<< 1 30) 2)"},
    {"a < b < c", "chained-comparison"},
    {"a == b != c", "chained-comparison"},
    {"(a < b) < c", "(< (< a b) c)"},
    {"a +", "syntax"},
    {"f(x", "syntax"},
    {"x[]", "syntax"},
    {"x[1:2]", "syntax"},
    {":", "syntax"},
    {"x.y", "syntax"},
    {"a b", "syntax"},
    {"++a", "syntax"},
};

START_TEST(operators_bind_as_in_c)
{
    ck_assert_str_eq(tree_of(precedence[_i].text), precedence[_i].tree);
}
END_TEST

static const char whole_kernel[] =
    "const TWO = 2;\n"
    "fn twice(x) { return x * TWO; }\n"
    "kernel scale[T: float, D: int, FAST: bool = false](x: T[N, D], out y: T[N, D], s: f32 = 1.0)\n"
    "require D % 8 == 0, s > 0.0\n"
    "tune BLOCK in {64, 32} with BLOCK * D <= 8192\n"
    "tune on \"cpu\" BLOCK in {128}\n"
    "grid (cdiv(N, BLOCK))\n"
    "{\n"
    "    let n0 = program_id(0) * BLOCK, z = 1;\n"
    "    var acc: f32 = 0.0;\n"
    "    fn step(i: i32, const E: bool) { acc = acc + 1.0; }\n"
    "    for i in range(0, N, 2) step(i, true);\n"
    "    while (acc < 3.0) { acc *= 2.0; }\n"
    "    if (FAST) { a, b = b, a; } else if (z) ; else { return; }\n"
    "    store(y[n0 :+ BLOCK, :], twice(load(x[n0 :+ BLOCK, :])));\n"
    "}\n";
static const char whole_tree[] =
    "const TWO = 2\n"
    "fn twice(x)\n"
    "  return (* x TWO)\n"
    "kernel scale\n"
    "  const T: float\n"
    "  const D: int\n"
    "  const FAST: bool = false\n"
    "  in x: T[N, D]\n"
    "  out y: T[N, D]\n"
    "  scalar s: f32 = 1.0\n"
    "  require (== (% D 8) 0)\n"
    "  require (> s 0.0)\n"
    "  tune BLOCK in {64, 32} with (<= (* BLOCK D) 8192)\n"
    "  tune on \"cpu\" BLOCK in {128}\n"
    "  grid (cdiv(N, BLOCK))\n"
    "    let n0 = (* program_id(0) BLOCK)\n"
    "    let z = 1\n"
    "    var acc: f32 = 0.0\n"
    "    fn step(i: i32, const E: bool)\n"
    "      acc = (+ acc 1.0)\n"
    "    for i in range(0, N, 2)\n"
    "      step(i, true)\n"
    "    while (< acc 3.0)\n"
    "      acc *= 2.0\n"
    "    if FAST\n"
    "      a, b = b, a\n"
    "    else\n"
    "      if z\n"
    "      else\n"
    "        return \n"
    "    store(y[(:+ n0 BLOCK), :], twice(load(x[(:+ n0 BLOCK), :])))\n";

START_TEST(a_whole_file)
{
    parse_source(whole_kernel);
    ck_assert_uint_eq(diags.errors, 0);
    ck_assert_uint_eq(unit->top.n, 3);
    ck_assert_str_eq(ast_print_kernel(unit->top.at[2]->kernel, unit, &a), whole_tree);
}
END_TEST

/* Each bad line is reported, the good ones between are not. */
START_TEST(one_run_reports_several_errors)
{
    parse_source("kernel k(x: f32[N]) grid (1) {\n"
                 "    let a = ;\n"
                 "    let b = 1;\n"
                 "    let c = (1 + 2;\n"
                 "    if (b { let d = 1; }\n"
                 "    let e = 1\n"
                 "    let f = 2;\n"
                 "    break;\n"
                 "}\n"
                 "kernel (\n"
                 "fn ok() {}\n"
                 "let g = 1;\n");
    static const int lines[] = {2, 4, 5, 6, 8, 10, 12};

    ck_assert_uint_eq(diags.errors, sizeof lines / sizeof *lines);
    for (uint32_t i = 0; i < diags.errors; i++)
        ck_assert_int_eq(source_line(unit->src, diags.all.at[i]->where.lo), lines[i]);
}
END_TEST

static const struct {
    const char *open, *close;
} nested[] = {{"(", ")"}, {"-", ""}, {"f(", ")"}, {"x[", "]"}, {"a ? ", " : b"}, {"a + ", ""}};

START_TEST(deep_nesting_is_a_limit)
{
    strbuf b;

    sb_init(&b, &a);
    sb_str(&b, "const X = ");
    for (int i = 0; i < 5000; i++)
        sb_str(&b, nested[_i].open);
    sb_str(&b, "1");
    for (int i = 0; i < 5000; i++)
        sb_str(&b, nested[_i].close);
    sb_str(&b, ";");
    parse_source(b.s);
    ck_assert_uint_ge(diags.errors, 1);
    ck_assert_int_eq(diags.all.at[0]->id, DIAG_LIMIT);
}
END_TEST

START_TEST(deep_blocks_are_a_limit)
{
    static const char *const open[] = {
        "{", "if (1) ", "if (1) {} else ", "while (1) ", "for i in range(1) ", "fn f() {"};
    strbuf b;

    sb_init(&b, &a);
    sb_str(&b, "kernel k() grid (1) {");
    for (int i = 0; i < 5000; i++)
        sb_str(&b, open[_i]);
    parse_source(b.s);
    ck_assert_uint_ge(diags.errors, 1);
    ck_assert_int_eq(diags.all.at[0]->id, DIAG_LIMIT);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("parse");
    TCase *c = tcase_create("parse");

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, operators_bind_as_in_c, 0, sizeof precedence / sizeof *precedence);
    tcase_add_test(c, a_whole_file);
    tcase_add_test(c, one_run_reports_several_errors);
    tcase_add_loop_test(c, deep_nesting_is_a_limit, 0, sizeof nested / sizeof *nested);
    tcase_add_loop_test(c, deep_blocks_are_a_limit, 0, 6);
    suite_add_tcase(s, c);
    return s;
}
