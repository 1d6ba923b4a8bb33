/* Lists of names in messages: nothing is cut without being counted. */
#include "compiler/base/namelist.h"
#include <check.h>
#include <stdio.h>
#include <string.h>

static const char *list_of(char *text, size_t size, int n, const char *name)
{
    namelist l = namelist_begin(text, size, "it has ", ", ");

    for (int i = 0; i < n; i++)
        namelist_add(&l, "%s%d", name, i);
    namelist_end(&l);
    ck_assert_uint_lt(strlen(text), size);
    return text;
}

START_TEST(all_are_named_where_they_fit)
{
    char text[64];

    ck_assert_str_eq(list_of(text, sizeof text, 0, "a"), "it has ");
    ck_assert_str_eq(list_of(text, sizeof text, 1, "a"), "it has a0");
    ck_assert_str_eq(list_of(text, sizeof text, 4, "a"), "it has a0, a1, a2, a3");
}
END_TEST

START_TEST(those_left_out_are_counted)
{
    char text[64];

    ck_assert_str_eq(list_of(text, 40, 9, "abc"), "it has abc0 and 8 more");
    ck_assert_str_eq(list_of(text, 44, 9, "abc"), "it has abc0, abc1 and 7 more");
    ck_assert_str_eq(list_of(text, 40, 3, "a_name_too_long"), "it has 3 more");
}
END_TEST

/* Every size and number: the names shown are whole, and the numbers add up. */
START_TEST(names_are_whole_and_numbers_add_up)
{
    char text[128];

    for (size_t size = 31; size < sizeof text; size++) {
        for (int n = 0; n < 40; n++) {
            const char *at = list_of(text, size, n, "name") + strlen("it has ");
            int shown = 0, used = 0, i = 0;
            unsigned more = 0;
            for (; sscanf(at, "name%d%n", &i, &used) == 1 && i == shown; shown++) {
                at += used;
                at += strncmp(at, ", ", 2) == 0 ? 2 : 0;
            }
            at += strncmp(at, " and ", 5) == 0 ? 5 : 0;
            if (*at)
                ck_assert_int_eq(sscanf(at, "%u more%n", &more, &used), 1);
            ck_assert_int_eq(shown + (int)more, n);
        }
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("lists of names");
    TCase *t = tcase_create("namelist");

    tcase_add_test(t, all_are_named_where_they_fit);
    tcase_add_test(t, those_left_out_are_counted);
    tcase_add_test(t, names_are_whole_and_numbers_add_up);
    suite_add_tcase(s, t);
    return s;
}
