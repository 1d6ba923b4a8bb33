/* Each schedule in tests/nvptx, run as PTX by a machine in software, gives what the interpreter
 * gives. */
#include "tests/support/ptx_rig.h"
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILES = 256 };

static char name[MAX_FILES][300];
static int count;

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void list_files(void)
{
    DIR *dir = opendir("tests/nvptx");
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        size_t n = strlen(entry->d_name);
        if (n > 6 && strcmp(entry->d_name + n - 6, ".sched") == 0 && count < MAX_FILES)
            snprintf(name[count++], sizeof *name, "tests/nvptx/%s", entry->d_name);
    }
    if (dir)
        closedir(dir);
    qsort(name, (size_t)count, sizeof *name, by_name);
}

static char *read_text(const char *path)
{
    static char text[1 << 18];
    FILE *f = fopen(path, "rb");

    ck_assert_ptr_nonnull(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text;
}

START_TEST(ptx_gives_what_the_interpreter_gives)
{
    const char *wrong = ptx_rig_run(name[_i], read_text(name[_i]), "sm_80");

    ck_assert_msg(wrong == NULL, "%s: %s", name[_i], wrong);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("ptx");
    TCase *t = tcase_create("ptx");

    list_files();
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, ptx_gives_what_the_interpreter_gives, 0, count);
    suite_add_tcase(suite, t);
    return suite;
}
