/* Imports: which paths are asked for, what is refused, and files on disk. */
#include "compiler/base/mem.h"
#include "dsl/dsl.h"
#include "tilewright.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KERNEL "kernel k(out y: i32[N]) grid (1) { store(y[0], f(1)); }"

typedef struct fake {
    const char *path, *text;
} fake;

typedef struct disk {
    const fake *file;
    int count;
    char asked[1024];
} disk;

static tw_status read_fake(void *user, const char *path, char **text, size_t *len, const char **why)
{
    disk *d = user;
    size_t n = strlen(d->asked);

    snprintf(d->asked + n, sizeof d->asked - n, "%s ", path);
    for (int i = 0; i < d->count; i++) {
        if (strcmp(d->file[i].path, path) != 0)
            continue;
        *text = mem_strdup(d->file[i].text);
        *len = strlen(d->file[i].text);
        return *text ? TW_OK : TW_E_NOMEM;
    }
    *why = "not here";
    return TW_E_IO;
}

static arena a;
static diag_list diags;
static dsl_unit *unit;

static void setup(void)
{
    arena_init(&a);
    diag_init(&diags, &a);
    unit = NULL;
}

static void teardown(void)
{
    dsl_unit_destroy(unit);
    arena_release(&a);
    ck_assert_int_eq(mem_live(), 0);
}

static tw_status load(disk *d, const char *name, const char *text)
{
    const dsl_reader reader = {read_fake, d};

    return dsl_load_from(&reader, name, text, strlen(text), &diags, &unit);
}

START_TEST(paths_are_seen_from_the_file)
{
    static const struct {
        const char *name, *import, *asked;
    } row[] = {
        {"k.tw", "f.tw", "f.tw "},
        {"dir/k.tw", "f.tw", "dir/f.tw "},
        {"dir/k.tw", "./sub//f.tw", "dir/sub/f.tw "},
        {"k.tw", ".//f.tw", "f.tw "},
        {"dir/sub/k.tw", "../f.tw", "dir/f.tw "},
        {"dir/k.tw", "../f.tw", "f.tw "},
        {"dir/k.tw", "../../f.tw", "../f.tw "},
        {"../k.tw", "../f.tw", "../../f.tw "},
        {"/k.tw", "../f.tw", "/../f.tw "},
        {"dir/k.tw", "/abs/./f.tw", "/abs/f.tw "},
        {"k.tw", ".", ". "},
        {"dir/k.tw", "..", ". "},
    };

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char text[200];
        disk d = {0};

        snprintf(text, sizeof text, "import \"%s\"; %s", row[i].import, KERNEL);
        ck_assert_int_eq(load(&d, row[i].name, text), TW_E_SOURCE);
        ck_assert_str_eq(d.asked, row[i].asked);
        ck_assert_uint_eq(diags.errors, i + 1); /* and not that f is unknown */
    }
}
END_TEST

START_TEST(each_file_once)
{
    static const fake file[] = {
        {"lib/a.tw", "import \"b.tw\"; fn f(v) { return g(v); }"},
        {"lib/b.tw", "import \"../k.tw\"; import \"./a.tw\"; fn g(v) { return v + ONE; }"},
        {"k.tw", "const ONE = 1; kernel other() grid (1) { }"},
    };
    disk d = {file, 3, ""};

    ck_assert_int_eq(
        load(&d, "main.tw", "import \"lib/a.tw\"; import \"lib/../lib/b.tw\"; " KERNEL), TW_OK);
    ck_assert_str_eq(d.asked, "lib/a.tw lib/b.tw k.tw ");
    ck_assert_uint_eq(dsl_kernel_count(unit), 1);
    ck_assert_str_eq(dsl_kernel_name(unit, 0), "k");
}
END_TEST

START_TEST(nor_the_first_file_again)
{
    static const fake file[] = {
        {"lib/a.tw", "import \"../lib/main.tw\"; fn f(v) { return v + ONE; }"},
    };
    disk d = {file, 1, ""};

    ck_assert_int_eq(
        load(&d, "./lib/main.tw", "import \"a.tw\"; import \"main.tw\"; const ONE = 1; " KERNEL),
        TW_OK);
    ck_assert_str_eq(d.asked, "lib/a.tw ");
}
END_TEST

START_TEST(a_text_without_a_reader_imports_nothing)
{
    const char *text = "import \"f.tw\"; " KERNEL;

    ck_assert_int_eq(dsl_load("k.tw", text, strlen(text), &diags, &unit), TW_E_SOURCE);
    ck_assert_str_eq(diags.all.at[0]->text, "'f.tw' cannot be imported: this text is not a file");
}
END_TEST

START_TEST(only_so_many_files)
{
    char text[4000] = "";
    disk d = {0};

    for (int i = 0; i < 70; i++)
        snprintf(text + strlen(text), 40, "import \"f%d.tw\"; ", i);
    ck_assert_int_eq(load(&d, "k.tw", text), TW_E_SOURCE);
    ck_assert_uint_eq(diags.errors, 70);
    ck_assert_ptr_nonnull(strstr(d.asked, "f63.tw"));
    ck_assert_ptr_null(strstr(d.asked, "f64.tw"));
}
END_TEST

/* Each allocation fails in turn. */
START_TEST(out_of_memory_is_a_status)
{
    static const fake file[] = {{"a.tw", "import \"b.tw\"; fn f(v) { return v * TWO; }"},
                                {"b.tw", "const TWO = 2;"}};
    disk d = {file, 2, ""};
    tw_status st = TW_E_NOMEM;

    for (int n = 1; st == TW_E_NOMEM && n < 3000; n++) {
        mem_fail_after(n);
        st = load(&d, "k.tw", "import \"a.tw\"; " KERNEL);
        mem_fail_after(0);
        d.asked[0] = '\0';
    }
    ck_assert_int_eq(st, TW_OK);
}
END_TEST

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[300];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

START_TEST(files_on_disk)
{
    char folder[] = "/tmp/tw_import.XXXXXX", path[300];
    tw_context *cx = NULL;
    tw_kernel *k = NULL;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    write_file(folder, "f.tw", "fn f(v) { return v; }");
    write_file(folder, "k.tw", "import \"f.tw\"; " KERNEL);
    write_file(folder, "bad.tw", "import \"none.tw\"; " KERNEL);
    ck_assert_int_eq(tw_context_create(NULL, &cx), TW_OK);
    snprintf(path, sizeof path, "%s/k.tw", folder);
    ck_assert_int_eq(tw_kernel_load(cx, path, NULL, &k), TW_OK);
    tw_kernel_destroy(k);
    snprintf(path, sizeof path, "%s/bad.tw", folder);
    ck_assert_int_eq(tw_kernel_load(cx, path, NULL, &k), TW_E_SOURCE);
    ck_assert_ptr_nonnull(
        strstr(tw_last_error()->text, "none.tw' cannot be imported: No such file"));
    tw_context_destroy(cx);
    static const char *const made[] = {"f.tw", "k.tw", "bad.tw"};
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, made[i]);
        unlink(path);
    }
    rmdir(folder);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("import");
    TCase *t = tcase_create("import");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, paths_are_seen_from_the_file);
    tcase_add_test(t, each_file_once);
    tcase_add_test(t, nor_the_first_file_again);
    tcase_add_test(t, a_text_without_a_reader_imports_nothing);
    tcase_add_test(t, only_so_many_files);
    tcase_add_test(t, out_of_memory_is_a_status);
    suite_add_tcase(s, t);
    t = tcase_create("disk");
    tcase_add_test(t, files_on_disk);
    suite_add_tcase(s, t);
    return s;
}
