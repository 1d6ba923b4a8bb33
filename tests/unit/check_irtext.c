#include "tests/support/ir_fixture.h"
#include <check.h>
#include <dirent.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

/* Twice printed, both forms, equal hashes. */
static void check_round_trip(const char *name, const char *text)
{
    ir_module *m = ir_try(text);

    ck_assert_msg(m != NULL, "%s:\n%s", name, ir_messages());
    const char *first = ir_show(m, 0), *plain = ir_show(m, IR_PRINT_PLAIN);
    ir_module *again = ir_must(first), *numbered = ir_must(plain);
    ck_assert_str_eq(ir_show(again, 0), first);
    ck_assert_str_eq(ir_show(again, IR_PRINT_PLAIN), plain);
    ck_assert_str_eq(ir_show(numbered, IR_PRINT_PLAIN), plain);
    ck_assert(hash_equal(ir_hash(m), ir_hash(again)));
    ck_assert(hash_equal(ir_hash(m), ir_hash(numbered)));
    ck_assert(hash_equal(ir_hash(m), ir_hash(ir_clone(m, &ir_arena))));
}

/* Statements in the kernel of ir_wrap; the second column is how they print, NULL when the same. */
static const char *const snippets[][2] = {
    {"", NULL},
    {"%a = const.i -7 : i8", NULL},
    {"%a = const.i 18 : u64", NULL},
    {"%a = const.f 1 : f32", "%a = const.f 1.0 : f32"},
    {"%a = const.f 1e30 : f64", NULL},
    {"%a = const.f 0.1 : bf16", "%a = const.f 0.100097656 : bf16"},
    {"%a = const.f -0.0 : f32", NULL},
    {"%a = const.f 340282350000000000000000000000000000000.0 : f32",
     "%a = const.f 3.4028235e38 : f32"},
    {"%a = const.f 1e400 : f64", "%a = const.f inf : f64"},
    {"%a=arange 5:i32[ 3 ]# c\n", "%a = arange 5 : i32[3]"},
    {"%a = arange 0 : i32[2] // c", "%a = arange 0 : i32[2]"},
    {"%7 = const.i 1 : i32", "%0 = const.i 1 : i32"},
    {"%a.b = const.i 1 : i32", NULL},
};

START_TEST(snippets_print_as_written)
{
    for (size_t i = 0; i < sizeof snippets / sizeof *snippets; i++) {
        const char *text = ir_wrap(snippets[i][0]);
        const char *want = snippets[i][1] ? snippets[i][1] : snippets[i][0];
        check_round_trip(snippets[i][0], text);
        const char *shown = ir_show(ir_must(text), 0);
        ck_assert_msg(strstr(shown, want) != NULL, "wanted %s in:\n%s", want, shown);
    }
}
END_TEST

START_TEST(level_1_may_be_said)
{
    ir_module *m = ir_must("level 1\nkernel @f() { return }");

    ck_assert_str_eq(ir_show(m, 0), "kernel @f() {\n    return\n}\n");
}
END_TEST

START_TEST(names_count_in_the_text_only)
{
    ir_module *a = ir_must("kernel @f<N>(in %x : view<f32, 1>[N], dim %n : i32 = N) {\n"
                           "%one = const.i 1 : i32\n%two = add %one, %n : i32\nreturn }");
    ir_module *b = ir_must("kernel @other<K>(in %y : view<f32, 1>[K], dim %k : i32 = K) {\n"
                           "%0 = const.i 1 : i32\n\n\n%p = add %0, %k : i32\nreturn }");
    ir_module *c = ir_must("kernel @f<N>(in %x : view<f32, 1>[N], dim %n : i32 = N) {\n"
                           "%one = const.i 2 : i32\n%two = add %one, %n : i32\nreturn }");

    ck_assert(hash_equal(ir_hash(a), ir_hash(b)));
    ck_assert(!hash_equal(ir_hash(a), ir_hash(c)));
}
END_TEST

START_TEST(what_a_specialisation_promises_counts)
{
    ir_module *a = ir_must("kernel @f<8>(in %x : view<f32, 1>[8]) { return }");
    ir_module *b = ir_must("kernel @f<8>(in %x : view<f32, 1>[8] unit) { return }");
    ir_module *c = ir_must("kernel @f<8>(in %x : view<f32, 1>[8] align=16) { return }");
    ir_module *d = ir_must("kernel @f<8>(out %x : view<f32, 1>[8]) { return }");

    ck_assert(!hash_equal(ir_hash(a), ir_hash(b)));
    ck_assert(!hash_equal(ir_hash(a), ir_hash(c)));
    ck_assert(!hash_equal(ir_hash(b), ir_hash(c)));
    ck_assert(!hash_equal(ir_hash(a), ir_hash(d)));
}
END_TEST

START_TEST(equal_hints_become_unique_names)
{
    ir_module *m = ir_must(ir_wrap("%a = const.i 1 : i32\n%b = const.i 2 : i32\n"
                                   "%c = const.i 3 : i32\n%a_1 = const.i 4 : i32"));
    ir_fn *fn = m->kernel;

    for (ir_op *op = fn->body->first; op->next && op->attr[0].i < 4; op = op->next)
        ir_name(fn, op->res, "a");
    const char *text = ir_show(m, 0);
    ck_assert_ptr_nonnull(strstr(text, "%a = const.i 1"));
    ck_assert_ptr_nonnull(strstr(text, "%a_1 = const.i 2"));
    ck_assert_ptr_nonnull(strstr(text, "%a_2 = const.i 3"));
    ck_assert_ptr_nonnull(strstr(text, "%a_1_1 = const.i 4"));
    check_round_trip("hints", text);
}
END_TEST

START_TEST(the_locale_of_the_application_does_not_matter)
{
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8"))
        (void)setlocale(LC_NUMERIC, "C"); /* not installed: the test then shows less */
    check_round_trip("locale", ir_wrap("%a = const.f 1.5 : f32"));
    (void)setlocale(LC_NUMERIC, "C");
}
END_TEST

/* ---- files ---- */

static const char *read_text(const char *path)
{
    static char text[1 << 20];
    FILE *f = fopen(path, "rb");

    ck_assert_msg(f != NULL, "%s", path);
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    return arena_strdup(&ir_arena, text);
}

/* A golden test holds its input and, below the arrow, what came out of it. */
static int check_golden(const char *path)
{
    char *text = arena_strdup(&ir_arena, read_text(path));
    char *arrow = strstr(text, "# ==>\n");

    if (arrow)
        *arrow = '\0';
    check_round_trip(path, text);
    /* Below the arrow of a .tir file level 2 may be what a partial pass of a schedule leaves. */
    bool scheduled = strstr(path, ".sched") && arrow && strncmp(arrow + 6, "level ", 6) == 0;
    if (scheduled || (arrow && strncmp(arrow + 6, "kernel ", 7) == 0))
        check_round_trip(path, arrow + 6);
    return 1;
}

static int check_folder(const char *path)
{
    DIR *dir = opendir(path);
    int n = 0;

    for (struct dirent *e; dir && (e = readdir(dir));) {
        const char *inner = arena_printf(&ir_arena, "%s/%s", path, e->d_name);
        size_t len = strlen(e->d_name);
        if (e->d_name[0] == '.' || strcmp(e->d_name, "err") == 0)
            continue;
        if ((len > 4 && strcmp(e->d_name + len - 4, ".tir") == 0) ||
            (len > 6 && strcmp(e->d_name + len - 6, ".sched") == 0))
            n += check_golden(inner);
        else if (!strchr(e->d_name, '.'))
            n += check_folder(inner);
    }
    if (dir)
        closedir(dir);
    return n;
}

START_TEST(every_file_of_tile_ir_round_trips)
{
    ck_assert_int_gt(check_folder("tests"), 1);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("irtext");
    TCase *tc = tcase_create("irtext");

    tcase_add_checked_fixture(tc, ir_fixture_setup, ir_fixture_teardown);
    tcase_add_test(tc, snippets_print_as_written);
    tcase_add_test(tc, level_1_may_be_said);
    tcase_add_test(tc, names_count_in_the_text_only);
    tcase_add_test(tc, what_a_specialisation_promises_counts);
    tcase_add_test(tc, equal_hints_become_unique_names);
    tcase_add_test(tc, the_locale_of_the_application_does_not_matter);
    tcase_add_test(tc, every_file_of_tile_ir_round_trips);
    suite_add_tcase(s, tc);
    return s;
}
