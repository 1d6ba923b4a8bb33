/* Random damage to right text: the parser and the verifier answer, and never crash. What is still
 * accepted round-trips. The seed is fixed; TW_FUZZ_SEED and TW_FUZZ_ROUNDS choose others. */
#include "tests/support/ir_fixture.h"
#include "compiler/base/guard.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;

static uint32_t next_random(uint32_t below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % below;
}

static char seed_text[1 << 16];
static char *word[4096]; /* the tokens of the seed text, to splice in */
static uint32_t nwords;

static void load_seed(const char *path)
{
    static char copy[1 << 16];
    FILE *f = fopen(path, "rb");

    ck_assert_ptr_nonnull(f);
    size_t n = fread(seed_text, 1, sizeof seed_text - 1, f);
    fclose(f);
    seed_text[n] = '\0';
    *strstr(seed_text, "# ==>") = '\0';
    memcpy(copy, seed_text, sizeof copy);
    nwords = 0;
    for (char *w = strtok(copy, " \n"); w && nwords < 4096; w = strtok(NULL, " \n"))
        word[nwords++] = w;
}

static void replace_word(char *text, size_t room)
{
    uint32_t at = next_random((uint32_t)strlen(text) + 1);
    size_t cut = strcspn(text + at, " \n"), len = strlen(text);
    const char *w = word[next_random(nwords)];
    size_t n = strlen(w);

    if (len - cut + n + 1 >= room)
        return;
    memmove(text + at + n, text + at + cut, len - at - cut + 1);
    memcpy(text + at, w, n);
}

static void swap_lines(char *text)
{
    char *a = strchr(text + next_random((uint32_t)strlen(text) + 1), '\n');
    char *b = a ? strchr(a + 1, '\n') : NULL, *c = b ? strchr(b + 1, '\n') : NULL;
    static char line[1 << 16];

    if (!c)
        return;
    memcpy(line, a, (size_t)(b - a));
    memmove(a, b, (size_t)(c - b));
    memcpy(a + (c - b), line, (size_t)(b - a));
}

static void damage(char *text, size_t room)
{
    static const char bytes[] = "%@#(){}[]<>,:=-\"\\.0123456789aefinxz \n\x01\xff";
    size_t len = strlen(text);
    uint32_t at = next_random((uint32_t)len + 1);

    switch (next_random(6)) {
    case 0:
        if (len)
            text[at < len ? at : len - 1] = bytes[next_random(sizeof bytes - 1)];
        break;
    case 1:
        text[at] = '\0';
        break;
    case 2:
        memmove(text + at, text + at + (at < len), len - at + (at == len));
        break;
    case 3:
        swap_lines(text);
        break;
    default:
        replace_word(text, room);
        break;
    }
}

static tw_status parse_damaged(void *arg)
{
    ir_module *m = ir_try(arg);

    if (!m) {
        ck_assert_uint_ge(ir_diags.errors, 1);
        ir_messages();
        return TW_E_SOURCE;
    }
    const char *shown = ir_show(m, 0);
    ck_assert_str_eq(ir_show(ir_must(shown), 0), shown);
    return TW_OK;
}

static uint64_t setting(const char *name, uint64_t usual)
{
    const char *given = getenv(name);

    return given ? strtoull(given, NULL, 0) : usual;
}

START_TEST(damaged_text_is_answered)
{
    static char text[1 << 17];
    uint64_t rounds = setting("TW_FUZZ_ROUNDS", 4000), accepted = 0;

    load_seed(_i ? "tests/golden/ir/every_op_2.sched" : "tests/golden/ir/every_op.tir");
    state = setting("TW_FUZZ_SEED", 20260101);
    for (uint64_t i = 0; i < rounds; i++) {
        strcpy(text, seed_text);
        for (uint32_t n = 1 + next_random(3); n > 0; n--)
            damage(text, sizeof text);
        arena_mark mark = arena_save(&ir_arena);
        intern_init(&ir_names, &ir_arena);
        diag_init(&ir_diags, &ir_arena);
        tw_status st = guard_run(parse_damaged, text);
        ck_assert_msg(st == TW_OK || st == TW_E_SOURCE, "%s on:\n%s", tw_status_name(st), text);
        accepted += st == TW_OK;
        arena_rewind(&ir_arena, mark);
    }
    ck_assert_uint_gt(accepted, rounds / 100);
    ck_assert_uint_lt(accepted, rounds / 2);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("irfuzz");
    TCase *tc = tcase_create("irfuzz");

    tcase_add_checked_fixture(tc, ir_fixture_setup, ir_fixture_teardown);
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, damaged_text_is_answered, 0, 2);
    suite_add_tcase(s, tc);
    return s;
}
