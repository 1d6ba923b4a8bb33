/* Functions and enumerations as compile-time values: by name, by text, from many threads. */
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "compiler/ir/irtext.h"
#include "dsl/dsl.h"
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text[] = "const TWO = 2;\n"
                           "enum Mode { PLAIN, TURNED }\n"
                           "fn same(v) { return v; }\n"
                           "fn twice(v) { return v * TWO; }\n"
                           "fn add(v, w) { return v + w; }\n"
                           "kernel k[f: fn(v) = same, g: fn(v, w), M: Mode = TURNED](out y: i32[N])"
                           " grid (1) { store(y[0], f(g(3, 4))); }\n"
                           "kernel other[f: fn(v)](out y: i32[N]) grid (1) { store(y[0], f(1)); }";

static arena a;
static diag_list diags;
static dsl_unit *unit;
static const kernel_source *given;

static void setup(void)
{
    arena_init(&a);
    diag_init(&diags, &a);
    ck_assert_int_eq(dsl_load("k.tw", text, strlen(text), &diags, &unit), TW_OK);
    given = dsl_kernel(unit, 0);
}

static void teardown(void)
{
    dsl_unit_destroy(unit);
    arena_release(&a);
    ck_assert_int_eq(mem_live(), 0);
}

static int64_t value(uint32_t i, const char *from)
{
    int64_t v = -1;

    ck_assert_msg(given->fn_value(given, i, from, &diags, &v) == TW_OK, "%s", from);
    return v;
}

static tw_status refused(const char *from, const char *why)
{
    uint32_t before = diags.errors;
    int64_t v = -1;
    tw_status st = given->fn_value(given, 0, from, &diags, &v);

    if (why)
        ck_assert_uint_gt(diags.errors, before);
    if (why && !strstr(diags.all.at[diags.all.n - 1]->text, why))
        ck_abort_msg("%s: %s", from, diags.all.at[diags.all.n - 1]->text);
    return st;
}

START_TEST(the_signature_says_what_they_are)
{
    const sig_const *c = given->sig.cons;

    ck_assert(c[0].kind == BIND_FN && c[0].has_default && c[0].default_value == value(0, "same"));
    ck_assert_str_eq(c[0].type, "fn(v)");
    ck_assert(c[1].kind == BIND_FN && !c[1].has_default);
    ck_assert_str_eq(c[1].type, "fn(v, w)");
    ck_assert(c[2].kind == BIND_ENUM && c[2].nmembers == 2 && c[2].default_value == 1);
    ck_assert_str_eq(c[2].type, "Mode");
    ck_assert_str_eq(c[2].member[0], "PLAIN");
}
END_TEST

START_TEST(a_text_has_one_value)
{
    int64_t v = value(0, "v + TWO");

    ck_assert_int_eq(value(0, "v + TWO"), v);
    ck_assert_int_ne(value(0, "v+TWO"), v);
    ck_assert_int_ne(value(0, "{ let w = v; return w; }"), v);
    ck_assert_str_eq(given->fn_text(given, v), "v + TWO");
    ck_assert_str_eq(given->fn_text(given, value(0, "twice")), "twice");
    ck_assert_int_ne(value(0, "twice(v)"), value(0, "twice"));
    const kernel_source *other = dsl_kernel(unit, 1);
    int64_t w = -1;
    ck_assert_int_eq(other->fn_value(other, 0, "v + TWO", &diags, &w), TW_OK);
    ck_assert_int_ne(v, w);
    ck_assert_uint_eq(diags.errors, 0);
}
END_TEST

START_TEST(what_is_refused)
{
    char *longest = malloc(20000);

    ck_assert_int_eq(refused("add", "'f' is fn(v), but 'add' is fn(v, w)"), TW_E_ARG);
    ck_assert_int_eq(refused("w", "nothing here is called 'w'"), TW_E_SOURCE);
    ck_assert_int_eq(refused("v +", "expected"), TW_E_SOURCE);
    ck_assert_int_eq(refused("", "expected"), TW_E_SOURCE);
    ck_assert_int_eq(refused("{ return v; } fn g() { }", "one expression"), TW_E_SOURCE);
    ck_assert_int_eq(refused("f(v)", "nothing here is called 'f'"), TW_E_SOURCE);
    ck_assert_int_eq(refused("k", "it can only be launched"), TW_E_SOURCE);
    memset(longest, ' ', 19999);
    longest[19999] = '\0';
    ck_assert_int_eq(refused(longest, NULL), TW_E_LIMIT);
    free(longest);
}
END_TEST

START_TEST(only_so_many_texts)
{
    tw_status st = TW_OK;
    char one[32];
    int n = 0;

    for (; st == TW_OK && n < 2000; n++) {
        int64_t v = -1;
        snprintf(one, sizeof one, "v + %d", n);
        st = given->fn_value(given, 0, one, &diags, &v);
    }
    ck_assert_int_eq(st, TW_E_LIMIT);
    ck_assert_int_eq(n, 1001);
    value(0, "v + 999");
}
END_TEST

typedef struct job {
    arena a;
    diag_list diags;
    int64_t f, g, mode;
    char *printed;
} job;

static tw_status lower_body(void *arg)
{
    job *j = arg;
    const ir_binding b[] = {{"f", BIND_FN, j->f}, {"g", BIND_FN, j->g}, {"M", BIND_ENUM, j->mode}};
    intern names;
    ir_module *m = NULL;
    strbuf out;

    diag_init(&j->diags, &j->a);
    intern_init(&names, &j->a);
    tw_status st = given->lower(given, &j->a, &names, b, 3, "cpu", &j->diags, &m);
    if (st != TW_OK)
        return st;
    sb_init(&out, &j->a);
    ir_print(&out, m, 0);
    j->printed = out.s;
    return TW_OK;
}

static void lowers_to(int64_t f, int64_t g, int64_t mode, tw_status want, const char *part)
{
    job j = {.f = f, .g = g, .mode = mode};

    arena_init(&j.a);
    ck_assert_int_eq(guard_run(lower_body, &j), want);
    if (part && !strstr(j.printed, part))
        ck_abort_msg("%s", j.printed);
    arena_release(&j.a);
}

START_TEST(values_lower)
{
    int64_t g = value(1, "add");

    lowers_to(value(0, "same"), g, 0, TW_OK, "const.i 7 : i32");
    lowers_to(value(0, "twice"), value(1, "v * w"), 1, TW_OK, "const.i 24 : i32");
    lowers_to(value(0, "v + TWO"), value(1, "{ let d = w - v; return d; }"), 1, TW_OK,
              "const.i 3 : i32");
    lowers_to(g, g, 0, TW_E_ARG, NULL);
    lowers_to(1000000, g, 0, TW_E_ARG, NULL);
    lowers_to(-1, g, 0, TW_E_ARG, NULL);
    lowers_to(value(0, "same"), g, 2, TW_E_ARG, NULL);
    lowers_to(value(0, "v + 0.5"), g, 0, TW_E_SOURCE, NULL); /* f32 into i32 */
}
END_TEST

/* Texts are added while others lower. */
static void *add_and_lower(void *arg)
{
    for (int i = 0; i < 40; i++) {
        diag_list mine;
        arena own;
        char one[32], part[32];
        int64_t f = -1, g = -1;

        arena_init(&own);
        diag_init(&mine, &own);
        snprintf(one, sizeof one, "v * 100 + %d", i);
        snprintf(part, sizeof part, "const.i %d : i32", 700 + i);
        if (given->fn_value(given, 0, one, &mine, &f) ||
            given->fn_value(given, 1, "add", &mine, &g))
            return "a text was refused";
        job j = {.f = f, .g = g};
        arena_init(&j.a);
        if (guard_run(lower_body, &j) != TW_OK || !strstr(j.printed, part))
            arg = "wrong code";
        arena_release(&j.a);
        arena_release(&own);
        if (arg)
            return arg;
    }
    return NULL;
}

START_TEST(threads_add_texts)
{
    pthread_t thread[4];

    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, add_and_lower, NULL), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong = NULL;
        pthread_join(thread[i], &wrong);
        ck_assert_msg(!wrong, "%s", (char *)wrong);
    }
}
END_TEST

/* Each allocation fails in turn: a status, nothing leaked, and the next try works. */
START_TEST(out_of_memory_is_a_status)
{
    tw_status st = TW_E_NOMEM;
    int64_t v = -1;

    for (int n = 1; st == TW_E_NOMEM && n < 1000; n++) {
        mem_fail_after(n);
        st = given->fn_value(given, 0, "v + 12345", &diags, &v);
        mem_fail_after(0);
    }
    ck_assert_int_eq(st, TW_OK);
    lowers_to(v, value(1, "add"), 0, TW_OK, "const.i 12352 : i32");
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("fn text");
    TCase *c = tcase_create("fn text");

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, the_signature_says_what_they_are);
    tcase_add_test(c, a_text_has_one_value);
    tcase_add_test(c, what_is_refused);
    tcase_add_test(c, only_so_many_texts);
    tcase_add_test(c, values_lower);
    tcase_add_test(c, threads_add_texts);
    tcase_add_test(c, out_of_memory_is_a_status);
    suite_add_tcase(s, c);
    return s;
}
