#include "compiler/base/hash.h"
#include <check.h>
#include <string.h>

/* Keys of stored configurations rest on these bits: a change here forgets every store. */
START_TEST(values_never_change)
{
    char text[HASH_TEXT];

    hash_text(hash_str(""), text);
    ck_assert_str_eq(text, "99aa06d3014798d86001c324468d497f");
    hash_text(hash_mix(hash_str("a"), hash_str("b")), text);
    ck_assert_str_eq(text, "19131124ff43b9719d62555f6199645b");
}
END_TEST

START_TEST(same_bytes_same_hash)
{
    ck_assert(hash_equal(hash_str("tile"), hash_mem("tiles", 4)));
    ck_assert(!hash_equal(hash_str("tile"), hash_str("Tile")));
    ck_assert(!hash_equal(hash_mem("a\0b", 3), hash_mem("a\0c", 3)));
    ck_assert(hash_equal(hash_mem(NULL, 0), hash_str("")));
}
END_TEST

START_TEST(mixing_has_an_order)
{
    hash128 a = hash_str("a"), b = hash_str("b");

    ck_assert(!hash_equal(hash_mix(a, b), hash_mix(b, a)));
    ck_assert(!hash_equal(hash_mix(a, a), a));
}
END_TEST

START_TEST(text_reads_back)
{
    hash128 h = {0x0123456789abcdefu, 0xfedcba9876543210u}, back;
    char text[HASH_TEXT];

    hash_text(h, text);
    ck_assert_str_eq(text, "fedcba98765432100123456789abcdef");
    ck_assert(hash_parse(text, &back));
    ck_assert(hash_equal(h, back));
}
END_TEST

START_TEST(bad_text_is_refused)
{
    hash128 h;

    ck_assert(!hash_parse("", &h));
    ck_assert(!hash_parse("fedcba98765432100123456789abcde", &h));
    ck_assert(!hash_parse("fedcba98765432100123456789abcdeff", &h));
    ck_assert(!hash_parse("FEDCBA98765432100123456789ABCDEF", &h));
    ck_assert(!hash_parse("fedcba98765432100123456789abcdeg", &h));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("hash");
    TCase *t = tcase_create("hash");

    tcase_add_test(t, values_never_change);
    tcase_add_test(t, same_bytes_same_hash);
    tcase_add_test(t, mixing_has_an_order);
    tcase_add_test(t, text_reads_back);
    tcase_add_test(t, bad_text_is_refused);
    suite_add_tcase(s, t);
    return s;
}
