#include "compiler/base/mem.h"
#include "compiler/base/source.h"
#include <check.h>
#include <string.h>

static arena a;

static void setup(void)
{
    arena_init(&a);
}

static void teardown(void)
{
    arena_release(&a);
    ck_assert_int_eq(mem_live(), 0);
}

static void check_line(const source *s, int line, const char *want)
{
    size_t n;
    const char *text = source_line_text(s, line, &n);

    ck_assert_uint_eq(n, strlen(want));
    ck_assert_mem_eq(text, want, n);
}

START_TEST(lines_and_columns)
{
    static const char text[] = "ab\n\n\tcd\nlast";
    source *s = source_new(&a, "k.tw", text, strlen(text));

    ck_assert_uint_eq(s->nlines, 4);
    ck_assert_int_eq(source_line(s, 0), 1);
    ck_assert_int_eq(source_line(s, 2), 1); /* the newline belongs to its line */
    ck_assert_int_eq(source_column(s, 2), 3);
    ck_assert_int_eq(source_line(s, 3), 2);
    ck_assert_int_eq(source_column(s, 3), 1);
    ck_assert_int_eq(source_line(s, 5), 3);
    ck_assert_int_eq(source_column(s, 5), 2); /* a tab is one column */
    ck_assert_int_eq(source_line(s, (uint32_t)strlen(text)), 4);
    ck_assert_int_eq(source_column(s, (uint32_t)strlen(text)), 5);
    check_line(s, 1, "ab");
    check_line(s, 2, "");
    check_line(s, 3, "\tcd");
    check_line(s, 4, "last");
}
END_TEST

START_TEST(empty_text_has_one_line)
{
    source *s = source_new(&a, "k.tw", "", 0);

    ck_assert_uint_eq(s->nlines, 1);
    ck_assert_int_eq(source_line(s, 0), 1);
    ck_assert_int_eq(source_column(s, 0), 1);
    check_line(s, 1, "");
}
END_TEST

START_TEST(text_is_copied_with_its_nuls)
{
    char text[] = "a\0b\n";
    source *s = source_new(&a, "k.tw", text, 4);

    memset(text, 'x', sizeof text);
    ck_assert_mem_eq(s->text, "a\0b\n", 5);
    ck_assert_uint_eq(s->len, 4);
    ck_assert_uint_eq(s->nlines, 2);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("source");
    TCase *t = tcase_create("source");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, lines_and_columns);
    tcase_add_test(t, empty_text_has_one_line);
    tcase_add_test(t, text_is_copied_with_its_nuls);
    suite_add_tcase(s, t);
    return s;
}
