#include "store/storekey.h"
#include <check.h>
#include <string.h>

static const char *text_of(const store_coord *c, size_t n)
{
    static char text[512];

    ck_assert_uint_lt(store_coords_text(c, n, text, sizeof text), sizeof text);
    return text;
}

START_TEST(text_says_kind_and_bucket)
{
    store_coord c[] = {{"T", COORD_EXACT, "f32", 0},
                       {"CAUSAL", COORD_LABEL, "true", 0},
                       {"D", COORD_VALUE, NULL, 128},
                       {"M", COORD_BUCKET, NULL, 1000}};

    ck_assert_str_eq(text_of(c, 4), "T:f32, CAUSAL=true, D=128, M~1024");
    ck_assert_str_eq(text_of(c, 0), "");
}
END_TEST

START_TEST(buckets_end_at_powers_of_two)
{
    const struct {
        int64_t value;
        const char *text;
    } row[] = {{0, "M~0"},
               {1, "M~1"},
               {2, "M~2"},
               {3, "M~4"},
               {1024, "M~1024"},
               {1025, "M~2048"},
               {2147483647, "M~2147483648"}};

    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        store_coord c = {"M", COORD_BUCKET, NULL, row[i].value};
        ck_assert_str_eq(text_of(&c, 1), row[i].text);
    }
}
END_TEST

/* A name with a comma must not look like two coordinates. */
START_TEST(separators_in_text_are_replaced)
{
    store_coord c[] = {{"name", COORD_LABEL, "Intel, 3.0\nGHz", 0}, {"n", COORD_VALUE, NULL, -3}};

    ck_assert_str_eq(text_of(c, 2), "name=Intel; 3.0 GHz, n=-3");
}
END_TEST

START_TEST(short_buffers_get_a_prefix_and_the_length)
{
    store_coord c[] = {{"D", COORD_VALUE, NULL, 128}, {"M", COORD_BUCKET, NULL, 1000}};
    char text[9];

    ck_assert_uint_eq(store_coords_text(c, 2, text, sizeof text), strlen("D=128, M~1024"));
    ck_assert_str_eq(text, "D=128, M");
    ck_assert_uint_eq(store_coords_text(c, 2, NULL, 0), strlen("D=128, M~1024"));
}
END_TEST

START_TEST(distance_counts_doublings)
{
    const struct {
        const char *a, *b;
        double distance;
    } row[] = {
        {"T:f32, D=128, M~1024", "T:f32, D=128, M~1024", 0.0},
        {"T:f32, D=64, M~1024", "T:f32, D=128, M~4096", 3.0},
        {"T:f32, D=64", "T:f16, D=64", -1.0},
        {"CAUSAL=true, D=64", "CAUSAL=false, D=64", 2.0},
        {"D=64, M~1", "D=64", -1.0},
        {"D=64", "E=64", -1.0},
        {"D=64", "D~64", -1.0},
        {"M~0", "M~1", 1.0},
        {"M~-x", "M~1", -1.0},
        {"", "", 0.0},
    };

    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        ck_assert_double_eq_tol(store_coords_distance(row[i].a, row[i].b), row[i].distance, 1e-12);
        ck_assert_double_eq_tol(store_coords_distance(row[i].b, row[i].a), row[i].distance, 1e-12);
    }
}
END_TEST

START_TEST(seeds_match_by_item)
{
    const char *text = "T:f32, D=128, CAUSAL=true, M~1024";

    ck_assert(key_text_has(text, ""));
    ck_assert(key_text_has(text, "D=128"));
    ck_assert(key_text_has(text, "CAUSAL=true, T:f32"));
    ck_assert(!key_text_has(text, "D=12"));
    ck_assert(!key_text_has(text, "D=128, M~2048"));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("storekey");
    TCase *t = tcase_create("coordinates");

    tcase_add_test(t, text_says_kind_and_bucket);
    tcase_add_test(t, buckets_end_at_powers_of_two);
    tcase_add_test(t, separators_in_text_are_replaced);
    tcase_add_test(t, short_buffers_get_a_prefix_and_the_length);
    tcase_add_test(t, distance_counts_doublings);
    tcase_add_test(t, seeds_match_by_item);
    suite_add_tcase(s, t);
    return s;
}
