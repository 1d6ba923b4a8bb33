/* Mutations of valid kernels: whatever the text, a load and a lowering end in a status, leak
 * nothing and, when they succeed, give IR that verifies and survives a round trip through text. */
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "compiler/ir/irtext.h"
#include "dsl/dsl.h"
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SEEDS 64
#define MAX_BYTES 40000
#define MUTANTS 40 /* of each seed and kind */

static char *seed_text[MAX_SEEDS], *seed_name[MAX_SEEDS];
static int nseeds;
static uint64_t state;

static uint32_t pick(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return n ? (uint32_t)(state >> 33) % n : 0;
}

static void add_seeds(const char *folder)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    char path[400];

    while (d && (e = readdir(d)) && nseeds < MAX_SEEDS) {
        size_t n = strlen(e->d_name);
        if (n < 4 || strcmp(e->d_name + n - 3, ".tw") != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        FILE *f = fopen(path, "rb");
        seed_text[nseeds] = calloc(1, MAX_BYTES + 1);
        seed_name[nseeds] = strdup(e->d_name);
        if (f && fread(seed_text[nseeds], 1, MAX_BYTES, f) > 0)
            nseeds++;
        if (f)
            fclose(f);
    }
    if (d)
        closedir(d);
}

/* ---- one run ---- */

static char mutant[4 * MAX_BYTES];
static arena a;
static dsl_unit *unit;

static void check_module(ir_module *m)
{
    diag_list broken;
    strbuf once, twice;
    intern names;

    diag_init(&broken, &a);
    ck_assert_msg(ir_verify(m, &broken), "%s:\n%s", broken.all.n ? broken.all.at[0]->text : "",
                  mutant);
    sb_init(&once, &a);
    sb_init(&twice, &a);
    ir_print(&once, m, 0);
    intern_init(&names, &a);
    ir_module *again = ir_parse(&a, &names, source_new(&a, "t.tir", once.s, once.n), &broken);
    ck_assert_msg(again != NULL, "%s\n%s", broken.all.n ? broken.all.at[0]->text : "", once.s);
    ir_print(&twice, again, 0);
    ck_assert_str_eq(once.s, twice.s);
}

static void lower_all(diag_list *diags, int64_t extent)
{
    for (size_t i = 0; i < dsl_kernel_count(unit); i++) {
        const kernel_source *s = dsl_kernel(unit, i);
        ir_binding b[64];
        uint32_t n = 0;
        intern names;
        ir_module *m = NULL;
        for (uint32_t k = 0; k < s->sig.nconsts; k++) {
            const sig_const *c = &s->sig.cons[k];
            b[n++] = (ir_binding){c->name, c->kind, c->kind == BIND_DTYPE ? DT_F32 : extent};
        }
        for (uint32_t k = 0; k < s->sig.ntunes; k++)
            b[n++] = (ir_binding){s->sig.tune[k].name, BIND_INT, s->sig.tune[k].set[0].value[0]};
        const char *why = NULL;
        s->valid(s, b, n, "cpu", &why);
        intern_init(&names, &a);
        uint32_t before = diags->errors;
        tw_status st = s->lower(s, &a, &names, b, n, "cpu", diags, &m);
        ck_assert_msg((st == TW_OK) == (diags->errors == before), "%s", mutant);
        if (st == TW_OK)
            check_module(m);
    }
}

static tw_status run_body(void *unused)
{
    diag_list diags;
    strbuf out;

    (void)unused;
    diag_init(&diags, &a);
    tw_status st = dsl_load("m.tw", mutant, strlen(mutant), &diags, &unit);
    ck_assert_msg((st == TW_OK) == (diags.errors == 0), "%s", mutant);
    if (st == TW_OK)
        lower_all(&diags, (int64_t)pick(3) * 32);
    sb_init(&out, &a);
    diag_render(&diags, &out, (int)pick(2));
    return TW_OK;
}

static void run_mutant(void)
{
    unit = NULL;
    arena_init(&a);
    ck_assert_msg(guard_run(run_body, NULL) == TW_OK, "%s", mutant);
    dsl_unit_destroy(unit);
    arena_release(&a);
    ck_assert_msg(mem_live() == 0, "%s", mutant);
}

/* ---- mutations ---- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The token around a place: a word, or one character. */
static void token_at(const char *text, uint32_t at, uint32_t *lo, uint32_t *hi)
{
    *lo = at;
    *hi = at + 1;
    if (!is_word(text[at]))
        return;
    while (*lo > 0 && is_word(text[*lo - 1]))
        (*lo)--;
    while (is_word(text[*hi]))
        (*hi)++;
}

static void splice(uint32_t lo, uint32_t hi, const char *with, uint32_t n)
{
    uint32_t len = (uint32_t)strlen(mutant);

    if (len + n >= sizeof mutant)
        return;
    memmove(mutant + lo + n, mutant + hi, len - hi + 1);
    memcpy(mutant + lo, with, n);
}

/* What may stand where a token was, a space behind each but the last. */
static const char words[] =
    "0 1 -1 64 1.5 true inf nan None : :+ ( ) [ ] { } ; , ? let var fn for while if else "
    "return const kernel range i1 i32 i64 f32 f16 f64 load store dot where trans cast "
    "max sum arange zeros full && < == / % << 2147483648 9223372036854775807 \" /* // "
    "\x80 1000000 broadcast exp2 assert static_assert ! ~ = += program_id";

static const char *any_word(uint32_t *n)
{
    const char *w = words + pick(sizeof words - 1);

    while (w > words && w[-1] != ' ')
        w--;
    *n = (uint32_t)strcspn(w, " ");
    return w;
}

static void mutate_token(const char *donor)
{
    uint32_t len = (uint32_t)strlen(mutant), lo, hi, from, to;

    if (!len)
        return;
    token_at(mutant, pick(len), &lo, &hi);
    token_at(donor, pick((uint32_t)strlen(donor)), &from, &to);
    switch (pick(5)) {
    case 0:
        splice(lo, hi, "", 0);
        return;
    case 1:
        splice(lo, lo, donor + from, to - from);
        return;
    case 2:
        splice(lo, hi, donor + from, to - from);
        return;
    case 3: {
        const char *w = any_word(&from);
        splice(lo, pick(2) ? hi : lo, w, from);
        return;
    }
    default:
        to = from + pick(60);
        if (to < strlen(donor))
            splice(lo, hi, donor + from, to - from);
    }
}

static void mutate_bytes(void)
{
    uint32_t len = (uint32_t)strlen(mutant);

    for (uint32_t i = 0; i < 4 && len; i++)
        mutant[pick(len)] = (char)(1 + pick(255));
    if (len && pick(4) == 0)
        mutant[pick(len)] = '\0';
}

static void fuzz(int seed, bool bytes)
{
    state = (uint64_t)seed * 2 + bytes + 1;
    for (int i = 0; i < MUTANTS; i++) {
        strcpy(mutant, seed_text[seed]);
        for (uint32_t k = 0; k < 1 + pick(4); k++) {
            if (bytes)
                mutate_bytes();
            else
                mutate_token(seed_text[pick((uint32_t)nseeds)]);
        }
        run_mutant();
    }
}

START_TEST(changed_tokens)
{
    fuzz(_i, false);
}
END_TEST

START_TEST(changed_bytes)
{
    fuzz(_i, true);
}
END_TEST

START_TEST(cut_texts)
{
    for (size_t n = strlen(seed_text[_i]); n > 0; n -= n > 97 ? 97 : n) {
        strcpy(mutant, seed_text[_i]);
        mutant[n] = '\0';
        run_mutant();
    }
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("dsl fuzz");
    TCase *c = tcase_create("fuzz");

    add_seeds("tests/dsl/ok");
    add_seeds("kernels");
    add_seeds("tests/dsl/err");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, changed_tokens, 0, nseeds);
    tcase_add_loop_test(c, changed_bytes, 0, nseeds);
    tcase_add_loop_test(c, cut_texts, 0, nseeds);
    suite_add_tcase(s, c);
    return s;
}
