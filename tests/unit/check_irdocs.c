/* docs/IR.md names every operation and attribute, and its examples are tile IR. */
#include "tests/support/ir_fixture.h"
#include <check.h>
#include <stdio.h>
#include <string.h>

static char page[1 << 17];

static void setup(void)
{
    ir_fixture_setup();
    FILE *f = fopen("docs/IR.md", "rb");
    ck_assert_ptr_nonnull(f);
    size_t n = fread(page, 1, sizeof page - 1, f);
    fclose(f);
    page[n] = '\0';
}

static bool says(const char *name)
{
    return strstr(page, arena_printf(&ir_arena, "`%s`", name)) != NULL;
}

START_TEST(every_operation_is_described)
{
    for (int i = 0; i < OP_COUNT; i++)
        ck_assert_msg(says(op_info((enum ir_opcode)i)->name), "docs/IR.md lacks `%s`",
                      op_info((enum ir_opcode)i)->name);
}
END_TEST

START_TEST(every_attribute_is_named)
{
    for (int i = 0; i < OP_COUNT; i++) {
        const ir_op_info *info = op_info((enum ir_opcode)i);
        for (int k = 0; k < OP_MAX_ATTRS && info->attr[k].kind; k++)
            ck_assert_msg(info->attr[k].kind == ATTR_STR || says(info->attr[k].name) ||
                              strstr(page, arena_printf(&ir_arena, "`%s=", info->attr[k].name)),
                          "docs/IR.md lacks the attribute `%s`", info->attr[k].name);
    }
}
END_TEST

START_TEST(every_element_type_is_listed)
{
    const char *list = strstr(page, "Element types: ");

    ck_assert_ptr_nonnull(list);
    for (int t = 0; t < DT_COUNT; t++)
        ck_assert_msg(strstr(list, dtype_name((enum dtype)t)) != NULL, "docs/IR.md lacks %s",
                      dtype_name((enum dtype)t));
}
END_TEST

START_TEST(every_rule_has_its_diagnostic)
{
    for (int id = DIAG_IR_SYNTAX; id <= DIAG_IR_LINKS; id++)
        ck_assert_msg(strstr(page, diag_name((enum diag_id)id)) != NULL, "docs/IR.md lacks %s",
                      diag_name((enum diag_id)id));
}
END_TEST

START_TEST(examples_are_tile_ir)
{
    int n = 0;

    for (char *at = page; (at = strstr(at, "```tir\n")); n++) {
        char *end = strstr(at += 7, "\n```");
        ck_assert_ptr_nonnull(end);
        *end = '\0';
        ir_must(at);
        at = end + 1;
    }
    ck_assert_int_ge(n, 2);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("irdocs");
    TCase *tc = tcase_create("irdocs");

    tcase_add_checked_fixture(tc, setup, ir_fixture_teardown);
    tcase_add_test(tc, every_operation_is_described);
    tcase_add_test(tc, every_attribute_is_named);
    tcase_add_test(tc, every_element_type_is_listed);
    tcase_add_test(tc, every_rule_has_its_diagnostic);
    tcase_add_test(tc, examples_are_tile_ir);
    suite_add_tcase(s, tc);
    return s;
}
