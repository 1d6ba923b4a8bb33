#include "compiler/base/diag.h"
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include <check.h>
#include <stdio.h>
#include <string.h>

static arena a;
static diag_list l;
static strbuf out;

static void setup(void)
{
    arena_init(&a);
    diag_init(&l, &a);
    sb_init(&out, &a);
}

static void teardown(void)
{
    arena_release(&a);
    ck_assert_int_eq(mem_live(), 0);
}

static source *text_of(const char *text)
{
    return source_new(&a, "k.tw", text, strlen(text));
}

static span span_of(const source *s, const char *part)
{
    uint32_t lo = (uint32_t)(strstr(s->text, part) - s->text);

    return (span){s, lo, lo + (uint32_t)strlen(part)};
}

START_TEST(names_are_kebab_case_and_unique)
{
    for (int i = 0; i < DIAG_COUNT; i++) {
        const char *name = diag_name((enum diag_id)i);
        ck_assert_uint_eq(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-"), strlen(name));
        for (int j = 0; j < i; j++)
            ck_assert_str_ne(name, diag_name((enum diag_id)j));
    }
}
END_TEST

START_TEST(shows_line_caret_hint_and_note)
{
    source *s = text_of("let b = arange(64);\nlet x = a + b;\n");
    diag *d = diag_add(&l, DIAG_TYPE_MISMATCH, span_of(s, "a + b"),
                       "'+' needs equal types: %s and %s", "f32[64]", "i32[64]");

    diag_note(&l, d, span_of(s, "b = "), "'b' is declared here");
    diag_hint(&l, d, "write cast(b, %s)", "f32");
    diag_render(&l, &out, 0);
    ck_assert_str_eq(out.s,
                     "k.tw:2:9: error: '+' needs equal types: f32[64] and i32[64] [type-mismatch]\n"
                     "    2 | let x = a + b;\n"
                     "      |         ^~~~~\n"
                     "      = hint: write cast(b, f32)\n"
                     "k.tw:1:5: note: 'b' is declared here\n"
                     "    1 | let b = arange(64);\n"
                     "      |     ^~~~\n");
    ck_assert_uint_eq(l.errors, 1);
    ck_assert_uint_eq(l.warnings, 0);
}
END_TEST

START_TEST(no_position_no_quote)
{
    diag_add(&l, DIAG_BAD_ARGUMENT, (span){0}, "'q' has rank 3, the parameter 4");
    diag_render(&l, &out, 0);
    ck_assert_str_eq(out.s, "error: 'q' has rank 3, the parameter 4 [bad-argument]\n");
}
END_TEST

START_TEST(source_order_whatever_the_order_of_adding)
{
    source *s = text_of("one two three");

    diag_add(&l, DIAG_SYNTAX, span_of(s, "three"), "c");
    diag_add(&l, DIAG_SHADOWED_NAME, span_of(s, "one"), "a");
    diag_add(&l, DIAG_SYNTAX, span_of(s, "two"), "b");
    diag_render(&l, &out, 0);
    ck_assert_str_eq(l.all.at[0]->text, "a");
    ck_assert_str_eq(l.all.at[1]->text, "b");
    ck_assert_str_eq(l.all.at[2]->text, "c");
    ck_assert_uint_eq(l.errors, 2);
    ck_assert_uint_eq(l.warnings, 1);
    ck_assert(strstr(out.s, "k.tw:1:1: warning: a [shadowed-name]") == out.s);
}
END_TEST

START_TEST(carets_under_tabs_utf8_and_at_the_end)
{
    source *s = text_of("\tä = x;\r\nlast");

    diag_add(&l, DIAG_SYNTAX, span_of(s, "x"), "here");
    diag_add(&l, DIAG_SYNTAX, (span){s, s->len, s->len}, "end");
    diag_render(&l, &out, 0);
    ck_assert_str_eq(out.s, "k.tw:1:7: error: here [syntax]\n"
                            "    1 | \tä = x;\n"
                            "      | \t    ^\n"
                            "k.tw:2:5: error: end [syntax]\n"
                            "    2 | last\n"
                            "      |     ^\n");
}
END_TEST

START_TEST(a_span_over_lines_marks_the_first)
{
    source *s = text_of("for x {\n}\n");

    diag_add(&l, DIAG_SYNTAX, (span){s, 4, s->len}, "m");
    diag_render(&l, &out, 0);
    ck_assert_str_eq(out.s, "k.tw:1:5: error: m [syntax]\n"
                            "    1 | for x {\n"
                            "      |     ^~~\n");
}
END_TEST

/* A hostile file must not reach the terminal as escape sequences, nor as a megabyte. */
START_TEST(quotes_are_clean_and_short)
{
    char text[5000];

    memset(text, 'y', sizeof text);
    memcpy(text + 3000, "\033[2J", 4);
    source *s = source_new(&a, "k.tw", text, sizeof text);
    diag_add(&l, DIAG_SYNTAX, (span){s, 3000, 3004}, "bad \001");
    diag_render(&l, &out, 0);
    ck_assert_uint_lt(out.n, 500);
    ck_assert_ptr_null(strchr(out.s, '\033'));
    ck_assert_ptr_null(strchr(out.s, '\001'));
    const char *quoted = strstr(out.s, "?[2J"), *caret = strchr(out.s, '^');
    ck_assert(quoted && caret);
    const char *line = strstr(out.s, "    1 | "), *below = strstr(out.s, "      | ");
    ck_assert_int_eq(quoted - line, caret - below);
    ck_assert_ptr_nonnull(strstr(out.s, "yyy...\n"));
}
END_TEST

/* U+009B is what ESC [ is in one character; U+202E shows what follows from right to left. */
START_TEST(quotes_steer_no_terminal)
{
    const char *text = "let x = \"\xc2\x9b[31m \u202e \u2067 \u00e9\"; bad";
    const size_t at = strlen(text) - 3;
    source *s = source_new(&a, "k.tw", text, strlen(text));

    diag_add(&l, DIAG_SYNTAX, (span){s, (uint32_t)at, (uint32_t)at + 3}, "bad \u202e");
    diag_render(&l, &out, 0);
    ck_assert_ptr_null(strstr(out.s, "\xc2\x9b"));
    ck_assert_ptr_null(strstr(out.s, "\u202e"));
    ck_assert_ptr_nonnull(strstr(out.s, "let x = \"?[31m ? ? \u00e9\"; bad\n"));
    ck_assert_ptr_nonnull(strstr(out.s, "      |                        ^~~\n"));
}
END_TEST

START_TEST(capped_and_said_once)
{
    source *s = text_of("some text that is long enough for thirty places");

    for (uint32_t i = 0; i < 30; i++) {
        diag *d = diag_add(&l, DIAG_SYNTAX, (span){s, i, i + 1}, "wrong");
        ck_assert((d != NULL) == (i < DIAG_CAP));
        ck_assert_ptr_null(diag_add(&l, DIAG_SYNTAX, (span){s, i, i + 1}, "wrong"));
        diag_note(&l, NULL, (span){0}, "nothing");
        diag_hint(&l, NULL, "nothing");
    }
    ck_assert_ptr_nonnull(
        diag_add(&l, DIAG_SHADOWED_NAME, (span){s, 0, 1}, "warnings count apart"));
    diag_render(&l, &out, 0);
    ck_assert_uint_eq(l.all.n, DIAG_CAP + 1);
    ck_assert_ptr_nonnull(strstr(out.s, "more not shown)\n"));
}
END_TEST

START_TEST(colours_only_when_asked)
{
    diag_add(&l, DIAG_SYNTAX, span_of(text_of("x"), "x"), "m");
    diag_render(&l, &out, 1);
    ck_assert_ptr_nonnull(strstr(out.s, "\033[1;31merror:\033[0m m"));
}
END_TEST

START_TEST(nearest_word)
{
    static const char *const names[] = {"load", "store", "arange", "running_max", "maximum", "q"};
    const size_t n = sizeof names / sizeof *names;

    ck_assert_str_eq(diag_nearest("laod", names, n), "load"); /* a swap is one edit */
    ck_assert_str_eq(diag_nearest("aranged", names, n), "arange");
    ck_assert_str_eq(diag_nearest("runing_maxx", names, n), "running_max");
    ck_assert_str_eq(diag_nearest("max", names + 5, 0) ? "?" : "", "");
    ck_assert_ptr_null(diag_nearest("p", names, n)); /* a third of one letter is none */
    ck_assert_ptr_null(diag_nearest("zebra", names, n));
    ck_assert_ptr_null(diag_nearest("", names, n));
    char endless[300];
    memset(endless, 'l', sizeof endless);
    endless[299] = '\0';
    ck_assert_ptr_null(diag_nearest(endless, names, n));
}
END_TEST

static tw_status add_and_render(void *arg)
{
    source *s = text_of("one two three");

    diag_init(&l, &a);
    sb_init(&out, &a);
    (void)arg;
    for (uint32_t i = 0; i < 10; i++)
        diag_note(&l, diag_add(&l, DIAG_SYNTAX, (span){s, i, i + 1}, "%*s", 500, "m"),
                  (span){s, 0, 3}, "n");
    diag_render(&l, &out, 1);
    return TW_OK;
}

START_TEST(survives_out_of_memory)
{
    tw_status st = TW_E_NOMEM;

    for (long n = 1; st == TW_E_NOMEM && n < 100; n++) {
        mem_fail_after(n);
        st = guard_run(add_and_render, NULL);
        mem_fail_after(0);
        arena_release(&a);
        ck_assert_int_eq(mem_live(), 0);
    }
    ck_assert_int_eq(st, TW_OK);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("diag");
    TCase *t = tcase_create("diag");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, names_are_kebab_case_and_unique);
    tcase_add_test(t, shows_line_caret_hint_and_note);
    tcase_add_test(t, no_position_no_quote);
    tcase_add_test(t, source_order_whatever_the_order_of_adding);
    tcase_add_test(t, carets_under_tabs_utf8_and_at_the_end);
    tcase_add_test(t, a_span_over_lines_marks_the_first);
    tcase_add_test(t, quotes_are_clean_and_short);
    tcase_add_test(t, quotes_steer_no_terminal);
    tcase_add_test(t, capped_and_said_once);
    tcase_add_test(t, colours_only_when_asked);
    tcase_add_test(t, nearest_word);
    tcase_add_test(t, survives_out_of_memory);
    suite_add_tcase(s, t);
    return s;
}
