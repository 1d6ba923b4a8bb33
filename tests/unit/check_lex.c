#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "dsl/lex.h"
#include <check.h>
#include <float.h>
#include <string.h>

static arena a;
static intern names;
static diag_list diags;
static token_list tokens;

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

static tw_status lex_body(void *text)
{
    const char *s = text;

    diag_init(&diags, &a);
    lex_text(&tokens, &a, &names, source_new(&a, "t.tw", s, strlen(s)), &diags);
    return TW_OK;
}

/* The kinds of all tokens but the last, separated by spaces. */
static const char *kinds_of(const char *text)
{
    static char out[400];

    ck_assert_int_eq(guard_run(lex_body, (void *)(uintptr_t)text), TW_OK);
    out[0] = '\0';
    for (uint32_t i = 0; i + 1 < tokens.all.n; i++) {
        if (i > 0)
            strcat(out, " ");
        strcat(out, token_text(tokens.all.at[i].kind));
    }
    ck_assert_int_eq(vec_last(&tokens.all).kind, TOK_EOF);
    return out;
}

static token only_token(const char *text)
{
    kinds_of(text);
    ck_assert_uint_eq(diags.errors, 0);
    ck_assert_uint_eq(tokens.all.n, 2);
    return tokens.all.at[0];
}

START_TEST(operators_match_longest_first)
{
    ck_assert_str_eq(kinds_of("<<= << <= <"), "<<= << <= <");
    ck_assert_str_eq(kinds_of("a<<=b>>c"), "name <<= name >> name");
    ck_assert_str_eq(kinds_of("m0:+64"), "name :+ integer");
    ck_assert_str_eq(kinds_of("x[:,None]"), "name [ : , None ]");
    ck_assert_str_eq(kinds_of("c?a:b"), "name ? name : name");
    ck_assert_str_eq(kinds_of("&&&|||"), "&& & || |");
}
END_TEST

START_TEST(words_are_names_or_reserved)
{
    ck_assert_str_eq(kinds_of("\xef\xbb\xbf" "fn a"), "fn name"); /* a byte order mark */
    ck_assert_uint_eq(diags.errors, 0);
    ck_assert_str_eq(kinds_of("kernel kernels fn fnord in int"), "kernel name fn name in name");
    ck_assert_ptr_eq(only_token("BLOCK_M").value.name, intern_str(&names, "BLOCK_M"));
}
END_TEST

START_TEST(numbers_have_their_values)
{
    ck_assert_int_eq(only_token("0").value.i, 0);
    ck_assert_int_eq(only_token("1_000_000").value.i, 1000000);
    ck_assert_int_eq(only_token("0x7f").value.i, 127);
    ck_assert_int_eq(only_token("0b101").value.i, 5);
    ck_assert(only_token("9223372036854775807").value.i == INT64_MAX);
    ck_assert(only_token("1.4426950408889634").value.f == 1.4426950408889634);
    ck_assert(only_token("1e3").value.f == 1000.0);
    ck_assert(only_token("12.5e-3").value.f == 12.5e-3);
    ck_assert(only_token(".5").value.f == 0.5);
    ck_assert(only_token("5.").value.f == 5.0);
    ck_assert(only_token("4.9e-324").value.f == 4.9e-324);
    ck_assert(only_token("1.7976931348623157e308").value.f == DBL_MAX);
    ck_assert(only_token("1.5e-999").value.f == 0.0);
    ck_assert(only_token("1.5e-99999999999999999999").value.f == 0.0);
    ck_assert(only_token("0.0e99999999999999999999").value.f == 0.0);
}
END_TEST

static const char *const malformed[] = {"9223372036854775808",
                                        "010",
                                        "1e309",
                                        "1.5e99999999999999999999",
                                        "0x",
                                        "0b2",
                                        "12abc",
                                        "1.2.3",
                                        "1e",
                                        "1e+",
                                        "1__0",
                                        "1_",
                                        "0xg",
                                        "1.5f",
                                        "1_.5",
                                        "\"open",
                                        "/* open",
                                        "$",
                                        "@",
                                        "\x01",
                                        "\"two\nlines\"",
                                        "0x0x5",
                                        "1e5e5",
                                        "\xc3\xa9",
                                        "\x7f",
                                        "\"\x1b[31m\"", /* for whoever shows the text */
                                        "\"\xc2\x9b" "31m\"",
                                        "\"\xe2\x80\xae\"",
                                        "\"\x7f\""};

/* Wherever it stands; nothing else is said, since nothing else means anything. */
static const char *const not_utf8[] = {
    "fn // \xff",        "fn /* \xc3\x28 */",  "\"\x80\"",
    "fn \xc3",           "\xc0\xaf",           "\xe0\x80\x80",
    "\xed\xa0\x80",      "\xf4\x90\x80\x80",   "\xf0\x80\x80\x80",
    "\xf8\x88\x80\x80\x80", "\xff\xfe" "f",       "// \xe2\x82"};

START_TEST(what_is_not_utf8_is_one_error)
{
    ck_assert_str_eq(kinds_of(not_utf8[_i]), "");
    ck_assert_uint_eq(diags.errors, 1);
    ck_assert_ptr_nonnull(strstr(diags.all.at[0]->text, "not UTF-8"));
}
END_TEST

START_TEST(what_is_utf8_may_stand_in_comments_and_texts)
{
    ck_assert_str_eq(kinds_of("fn /* \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf */"
                              "\"\xed\x9f\xbf\t\""),
                     "fn text");
    ck_assert_uint_eq(diags.errors, 0);
}
END_TEST

START_TEST(malformed_text_is_an_error)
{
    kinds_of(malformed[_i]);
    ck_assert_msg(diags.errors >= 1, "%s", malformed[_i]);
    ck_assert_int_eq(diags.all.at[0]->id, DIAG_BAD_LITERAL);
}
END_TEST

START_TEST(comments_are_skipped)
{
    ck_assert_str_eq(kinds_of("a // b\nc /* d \n * e */ f / g"), "name name name / name");
    ck_assert_uint_eq(diags.errors, 0);
}
END_TEST

START_TEST(texts_have_two_escapes)
{
    ck_assert_str_eq(only_token("\"a \\\"b\\\" \\\\\"").value.name, "a \"b\" \\");
}
END_TEST

START_TEST(positions_are_bytes)
{
    kinds_of("ab  + c");
    ck_assert_uint_eq(tokens.all.at[1].lo, 4);
    ck_assert_uint_eq(tokens.all.at[1].hi, 5);
    ck_assert_uint_eq(tokens.all.at[2].lo, 6);
}
END_TEST

static tw_status lex_too_long(void *unused)
{
    size_t n = SOURCE_MAX_BYTES + 1;
    char *text = arena_alloc(&a, n + 1);

    (void)unused;
    memset(text, 'a', n);
    diag_init(&diags, &a);
    lex_text(&tokens, &a, &names, source_new(&a, "t.tw", text, n), &diags);
    return TW_OK;
}

START_TEST(a_text_over_the_limit_is_refused)
{
    ck_assert_int_eq(guard_run(lex_too_long, NULL), TW_OK);
    ck_assert_uint_eq(diags.errors, 1);
    ck_assert_int_eq(diags.all.at[0]->id, DIAG_LIMIT);
    ck_assert_uint_eq(tokens.all.n, 1);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("lex");
    TCase *c = tcase_create("lex");

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, operators_match_longest_first);
    tcase_add_test(c, words_are_names_or_reserved);
    tcase_add_test(c, numbers_have_their_values);
    tcase_add_loop_test(c, malformed_text_is_an_error, 0, sizeof malformed / sizeof *malformed);
    tcase_add_loop_test(c, what_is_not_utf8_is_one_error, 0, sizeof not_utf8 / sizeof *not_utf8);
    tcase_add_test(c, what_is_utf8_may_stand_in_comments_and_texts);
    tcase_add_test(c, comments_are_skipped);
    tcase_add_test(c, texts_have_two_escapes);
    tcase_add_test(c, positions_are_bytes);
    tcase_add_test(c, a_text_over_the_limit_is_refused);
    suite_add_tcase(s, c);
    return s;
}
