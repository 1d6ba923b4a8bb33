/* What the completions offer is what the library has: neither more nor less. */
#include "cli/cli.h"
#include "cli/pages.h"
#include "compiler/target/target.h"
#include "runtime/profile.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The verbs are those of main.c, which is no part of the archive. */
const verb verbs[] = {{.name = NULL}};

static char *page;

static void setup(void)
{
    size_t size;
    FILE *out = open_memstream(&page, &size);

    write_bash_completion(out);
    fclose(out);
}

static void teardown(void)
{
    free(page);
}

/* The values that bash offers for an option: " a b c ". */
static void values_of(const char *option, char out[1024])
{
    char begin[64];
    size_t n;

    snprintf(begin, sizeof begin, "--%s) echo '", option);
    const char *at = strstr(page, begin);
    ck_assert_msg(at != NULL, "nothing is offered for --%s", option);
    at += strlen(begin);
    n = strcspn(at, "'");
    ck_assert_uint_lt(n, 1000);
    snprintf(out, 1024, " %.*s ", (int)n, at);
}

/* Takes name out of what is offered. */
static void must_offer(char *offered, const char *option, const char *name)
{
    char word[64];

    snprintf(word, sizeof word, " %s ", name);
    char *at = strstr(offered, word);
    ck_assert_msg(at != NULL, "--%s does not offer %s", option, name);
    memmove(at, at + strlen(word) - 1, strlen(at + strlen(word) - 1) + 1);
}

static void must_be_all(const char *offered, const char *option)
{
    ck_assert_msg(strspn(offered, " ") == strlen(offered), "--%s offers what is not there:%s",
                  option, offered);
}

/* The paths of other processors than this one are offered too: only one build knows them all. */
START_TEST(code_paths)
{
    char offered[1024];

    values_of("target", offered);
    for (size_t i = 0; i < target_count(); i++)
        if (strcmp(target_at(i)->family, "interp") != 0 &&
            strcmp(target_at(i)->family, "null") != 0)
            must_offer(offered, "target", target_at(i)->name);
#ifdef __x86_64__
    must_be_all(offered, "target");
#endif
}
END_TEST

START_TEST(profiles)
{
    char offered[1024];

    values_of("profile", offered);
    for (size_t i = 0; profile_at(i); i++)
        must_offer(offered, "profile", profile_at(i)->name);
    must_be_all(offered, "profile");
}
END_TEST

START_TEST(stages)
{
    char offered[1024], kept[1024], word[64];

    values_of("emit", offered);
    memcpy(kept, offered, sizeof kept);
    must_offer(offered, "emit", "ast");
    must_offer(offered, "emit", "tir");
    must_offer(offered, "emit", "cubin"); /* which the command makes of ptx */
    for (size_t i = 0; i < target_count(); i++) {
        for (const char *const *e = target_at(i)->emits; *e; e++) {
            if (strcmp(*e, "explain") == 0) /* a verb of its own */
                continue;
            snprintf(word, sizeof word, " %s ", *e);
            if (strstr(offered, word))
                must_offer(offered, "emit", *e);
            ck_assert_msg(strstr(kept, word) != NULL, "--emit does not offer %s", *e);
        }
    }
    must_be_all(offered, "emit");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("completion");
    TCase *t = tcase_create("offers");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, code_paths);
    tcase_add_test(t, profiles);
    tcase_add_test(t, stages);
    suite_add_tcase(s, t);
    return s;
}
