#include "cli/cli.h"
#include "cli/elemtype.h"
#include "cli/json.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers with units ---- */

START_TEST(numbers_have_three_digits)
{
    ck_assert_str_eq(text_seconds(0.0).s, "0.00 ns");
    ck_assert_str_eq(text_seconds(1.5e-9).s, "1.50 ns");
    ck_assert_str_eq(text_seconds(9.996e-6).s, "10.0 us");
    ck_assert_str_eq(text_seconds(99.96e-6).s, "100 us");
    ck_assert_str_eq(text_seconds(999.4e-6).s, "999 us");
    ck_assert_str_eq(text_seconds(999.6e-6).s, "1.00 ms");
    ck_assert_str_eq(text_seconds(0.9996).s, "1.00 s");
    ck_assert_str_eq(text_seconds(75.0).s, "75.0 s");
    ck_assert_str_eq(text_bytes(0).s, "0 B");
    ck_assert_str_eq(text_bytes(1023).s, "1023 B");
    ck_assert_str_eq(text_bytes(1024).s, "1.00 KiB");
    ck_assert_str_eq(text_bytes(1024.0 * 1024 * 1024 * 1024 * 5000).s, "5000 TiB");
    ck_assert_str_eq(text_rate(12.0, "flop/s").s, "12.0 flop/s");
    ck_assert_str_eq(text_rate(2.13e11, "flop/s").s, "213 Gflop/s");
    ck_assert_str_eq(text_rate(999.6e9, "B/s").s, "1.00 TB/s");
}
END_TEST

START_TEST(tables_align)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    term plain = {0};
    table t;

    table_begin(&t, "lrl");
    table_cell(&t, STYLE_BOLD, "%s", "a");
    table_cell(&t, STYLE_RED, "%d", 12345);
    table_cell(&t, STYLE_PLAIN, "%s", "end");
    table_cell(&t, STYLE_PLAIN, "%s", "é longer");
    table_cell(&t, STYLE_PLAIN, "%d", 7);
    table_cell(&t, STYLE_PLAIN, "%s", "");
    table_print(&t, &plain, out, 2);
    fclose(out);
    ck_assert_str_eq(text, "  a         12345  end\n  é longer      7\n");
    free(text);
}
END_TEST

static char *narrow_table(int width)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    term narrow = {.out_width = width};
    table t;

    table_begin(&t, "rll");
    table_cell(&t, STYLE_PLAIN, "%d", 7);
    table_cell(&t, STYLE_PLAIN, "%s", "CAUSAL=true,D=64,BLOCK_M=128 and an_end");
    table_cell(&t, STYLE_PLAIN, "%s", "yes");
    table_cell(&t, STYLE_PLAIN, "%d", 12);
    table_cell(&t, STYLE_PLAIN, "%s", "a_word_longer_than_its_column");
    table_cell(&t, STYLE_PLAIN, "%s", "no");
    table_print(&t, &narrow, out, 1);
    fclose(out);
    return text;
}

START_TEST(narrow_terminals_fold_cells)
{
    char *text = narrow_table(0);

    ck_assert_str_eq(text, "  7  CAUSAL=true,D=64,BLOCK_M=128 and an_end  yes\n"
                           " 12  a_word_longer_than_its_column            no\n");
    free(text);
    text = narrow_table(30);
    ck_assert_str_eq(text, "  7  CAUSAL=true,D=64,     yes\n"
                           "     BLOCK_M=128 and an_\n"
                           "     end\n"
                           " 12  a_word_longer_than_   no\n"
                           "     its_column\n");
    free(text);
    text = narrow_table(10); /* no narrower than 8 */
    ck_assert_ptr_nonnull(strstr(text, "  7  CAUSAL=t  yes\n     rue,\n     D=64,\n"));
    free(text);
}
END_TEST

/* ---- the nearest word ---- */

START_TEST(words_near_enough_are_suggested)
{
    static const char *const list[] = {"store", "seed", "config", "v"};

    ck_assert_str_eq(nearest_word("stroe", list, 4), "store");
    ck_assert_str_eq(nearest_word("sed", list, 4), "seed");
    ck_assert_str_eq(nearest_word("confg", list, 4), "config");
    ck_assert_ptr_null(nearest_word("budget", list, 4));
    ck_assert_ptr_null(nearest_word("x", list, 4)); /* not any letter for any other */
    ck_assert_ptr_null(nearest_word("", list, 4));
    ck_assert_ptr_null(nearest_word("store", list, 0));
}
END_TEST

/* ---- JSON ---- */

START_TEST(json_is_escaped)
{
    char *text = NULL;
    size_t size;
    json j = {.out = open_memstream(&text, &size)};

    json_object(&j, NULL);
    json_text(&j, "q\"\\", "\n\t\x01 é \xe2\x82\xac \xff \xc0\x80 \xed\xa0\x80 \xe2\x82");
    json_text(&j, "none", NULL);
    json_array(&j, "list");
    json_end_array(&j);
    json_array(&j, "numbers");
    json_number(&j, NULL, 0.1);
    json_number(&j, NULL, 1.0 / 3.0);
    json_number(&j, NULL, (double)NAN);
    json_number(&j, NULL, (double)-INFINITY);
    json_int(&j, NULL, INT64_MIN);
    json_bool(&j, NULL, true);
    json_end_array(&j);
    json_end_object(&j);
    fclose(j.out);
    ck_assert_str_eq(text, "{\n"
                           "  \"q\\\"\\\\\": \"\\n\\u0009\\u0001 é \xe2\x82\xac \\ufffd "
                           "\\ufffd\\ufffd \\ufffd\\ufffd\\ufffd \\ufffd\\ufffd\",\n"
                           "  \"none\": null,\n"
                           "  \"list\": [],\n"
                           "  \"numbers\": [\n"
                           "    0.1,\n"
                           "    0.3333333333333333,\n"
                           "    null,\n"
                           "    null,\n"
                           "    -9223372036854775808,\n"
                           "    true\n"
                           "  ]\n"
                           "}\n");
    free(text);
}
END_TEST

/* ---- elements ---- */

static bool parses(enum elemtype_id id, const char *text, double want)
{
    char out[8] = {0};

    if (!elemtype_parse(&elemtypes[id], text, out))
        return false;
    double got = elemtype_value(&elemtypes[id], out);
    return got == want || (isnan(got) && isnan(want));
}

START_TEST(elements_are_parsed_or_refused)
{
    char out[8];

    ck_assert(parses(ELEM_F32, "0.1", (double)0.1f));
    ck_assert(parses(ELEM_F64, "0.1", 0.1));
    ck_assert(parses(ELEM_F32, "-inf", -INFINITY));
    ck_assert(parses(ELEM_F32, "nan", NAN));
    ck_assert(parses(ELEM_I1, "true", 1.0));
    ck_assert(parses(ELEM_I1, "0", 0.0));
    ck_assert(parses(ELEM_I8, "-128", -128.0));
    ck_assert(parses(ELEM_U8, "255", 255.0));
    ck_assert(parses(ELEM_I16, "-3", -3.0));
    ck_assert(parses(ELEM_U16, "65535", 65535.0));
    ck_assert(parses(ELEM_I32, "-2147483648", -2147483648.0));
    ck_assert(parses(ELEM_U32, "0xffffffff", 4294967295.0));
    ck_assert(parses(ELEM_I64, "-9223372036854775808", -0x1p63));
    ck_assert(parses(ELEM_U64, "18446744073709551615", 0x1p64));
    ck_assert(elemtype_parse(&elemtypes[ELEM_U8], "010", out) && out[0] == 10); /* not octal */
    ck_assert(elemtype_parse(&elemtypes[ELEM_I8], "-0x10", out) && (signed char)out[0] == -16);
    ck_assert(!elemtype_parse(&elemtypes[ELEM_F32], "", out));
    ck_assert(!elemtype_parse(&elemtypes[ELEM_F32], "1x", out));
    ck_assert(!elemtype_parse(&elemtypes[ELEM_I1], "2", out));
    ck_assert(!elemtype_parse(&elemtypes[ELEM_I8], "128", out));
    ck_assert(!elemtype_parse(&elemtypes[ELEM_I8], "-129", out));
    ck_assert(!elemtype_parse(&elemtypes[ELEM_U8], "-1", out));
    ck_assert(!elemtype_parse(&elemtypes[ELEM_U8], "256", out));
    ck_assert(!elemtype_parse(&elemtypes[ELEM_I32], "2147483648", out));
    ck_assert(!elemtype_parse(&elemtypes[ELEM_I64], "9223372036854775808", out));
    ck_assert(!elemtype_parse(&elemtypes[ELEM_I32], "1.5", out));
}
END_TEST

/* Every pattern of the two-byte floats is a number that gives the pattern back, and what lies
 * between two of them goes to the nearer one, from the middle to the even one. */
START_TEST(two_byte_floats_round_to_nearest)
{
    for (int id = 0; id < ELEM_COUNT; id++) {
        const elemtype *e = &elemtypes[id];
        if (!e->is_float || e->bytes != 2)
            continue;
        for (uint32_t bits = 0; bits < 0x10000; bits++) {
            uint16_t here = (uint16_t)bits, next = (uint16_t)(bits + 1), out;
            double low = elemtype_value(e, &here), high = elemtype_value(e, &next);
            elemtype_put(e, low, &out);
            ck_assert(out == here || (isnan(low) && isnan(elemtype_value(e, &out))));
            if (!isfinite(low) || !isfinite(high) || bits == 0x7fff || bits == 0xffff)
                continue;
            elemtype_put(e, low + (high - low) * 0.25, &out);
            ck_assert_uint_eq(out, here);
            elemtype_put(e, low + (high - low) * 0.75, &out);
            ck_assert_uint_eq(out, next);
            elemtype_put(e, (low + high) / 2.0, &out);
            ck_assert_uint_eq(out, bits % 2 ? next : here);
        }
    }
    ck_assert(parses(ELEM_F16, "65519.99", 65504.0));
    ck_assert(parses(ELEM_F16, "-inf", -INFINITY));
    ck_assert(parses(ELEM_BF16, "1e-300", 0.0));
    char out[8]; /* what is finite stays finite, as in a launch */
    ck_assert(!elemtype_parse(&elemtypes[ELEM_F16], "65520", out));
    ck_assert(!elemtype_parse(&elemtypes[ELEM_F16], "-1e300", out));
    ck_assert(!elemtype_parse(&elemtypes[ELEM_BF16], "3.4e38", out));
    ck_assert(!elemtype_parse(&elemtypes[ELEM_F32], "3.5e38", out));
    ck_assert(!elemtype_parse(&elemtypes[ELEM_F64], "1e309", out));
    ck_assert(parses(ELEM_BF16, "1.00390625", 1.0));
}
END_TEST

START_TEST(elements_have_one_name_each)
{
    for (int i = 0; i < ELEM_COUNT; i++) {
        const elemtype *e = &elemtypes[i];
        ck_assert_ptr_eq(elemtype_named(e->name, strlen(e->name)), e);
        ck_assert_ptr_eq(elemtype_of_dlpack(elemtype_dlpack(e)), e);
        if (e->npy)
            ck_assert_ptr_eq(elemtype_of_npy(e->npy, e->bytes), e);
    }
    ck_assert_ptr_null(elemtype_named("f3", 2));
    ck_assert_ptr_null(elemtype_of_dlpack((DLDataType){kDLFloat, 32, 4}));
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("cli_text");
    TCase *t = tcase_create("cli_text");

    tcase_add_test(t, numbers_have_three_digits);
    tcase_add_test(t, tables_align);
    tcase_add_test(t, narrow_terminals_fold_cells);
    tcase_add_test(t, words_near_enough_are_suggested);
    tcase_add_test(t, json_is_escaped);
    tcase_add_test(t, elements_are_parsed_or_refused);
    tcase_add_test(t, two_byte_floats_round_to_nearest);
    tcase_add_test(t, elements_have_one_name_each);
    suite_add_tcase(s, t);
    return s;
}
