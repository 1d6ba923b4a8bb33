#include "runtime/seeds.h"
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "runtime/text_file.h"
#include <stdio.h>
#include <string.h>

#define MAX_BYTES (1 << 20)
#define MAX_SEEDS 4096

extern const char *const seeds_shipped[]; /* generated from kernels/seeds.txt */

struct seed_list {
    arena a;
    VEC(store_seed) seed;
};

typedef struct reading {
    seed_list *l;
    const char *text; /* NULL: the shipped ones */
    size_t length;    /* of text */
    int line, bad;    /* bad: the first line that is wrong, or 0 */
} reading;

/* As store_coords_text separates them: "D=64, M~1024". */
static const char *problem_of(arena *a, const char *word)
{
    char *out = arena_alloc(a, 2 * strlen(word) + 1), *to = out;

    if (strcmp(word, "-") == 0)
        return "";
    for (; *word; word++) {
        *to++ = *word;
        if (*word == ',')
            *to++ = ' ';
    }
    return out;
}

/* A row has four words; a comment or an empty line is none. */
static void add_row(reading *r, const char *text)
{
    char *rest = arena_strndup(&r->l->a, text, strcspn(text, "#\n")), *word[5] = {0};
    int n = 0;

    while (n < 5 && (word[n] = strtok_r(rest, " \t\r", &rest)) != NULL)
        n++;
    if (n == 0)
        return;
    if (n != 4 || r->l->seed.n == MAX_SEEDS) {
        r->bad = r->bad ? r->bad : r->line;
        return;
    }
    const store_seed s = {word[0], word[1], problem_of(&r->l->a, word[2]), word[3]};
    vec_push(&r->l->seed, &r->l->a, s);
}

static tw_status read_guarded(void *arg)
{
    reading *r = arg;
    const char *line = r->text;

    for (int i = 0; !line && seeds_shipped[i]; i++)
        add_row(r, seeds_shipped[i]);
    while (line && *line) {
        r->line++;
        add_row(r, line);
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    if (line && line < r->text + r->length) /* a NUL */
        r->bad = r->bad ? r->bad : r->line;
    return TW_OK;
}

static void warn(tw_context *cx, const char *path, const char *what)
{
    runtime_log(cx, TW_LOG_WARNING, "%s: %s; it is no file of seeds as kernels/seeds.txt is one",
                path, what);
}

tw_status seeds_open(tw_context *cx, const char *path, seed_list **out)
{
    reading r = {0};
    const char *why = NULL;
    char *text = NULL, what[40];
    size_t length = 0;

    *out = NULL;
    if (path && !*path)
        return TW_OK;
    tw_status st = path ? text_file_read(path, MAX_BYTES, &text, &length, &why) : TW_OK;
    if (st != TW_OK && st != TW_E_NOMEM) {
        warn(cx, path, why);
        return TW_OK;
    }
    r.text = text;
    r.length = length;
    r.l = st == TW_OK ? mem_zalloc(sizeof *r.l) : NULL;
    if (r.l)
        arena_init(&r.l->a);
    st = r.l ? guard_run(read_guarded, &r) : TW_E_NOMEM;
    mem_free(text);
    if (st != TW_OK) {
        seeds_close(r.l);
        return error_set(st, "no memory for seeds");
    }
    snprintf(what, sizeof what, "line %d is wrong", r.bad);
    if (r.bad)
        warn(cx, path, what);
    store_set_seeds(cx->store, r.l->seed.at, r.l->seed.n);
    *out = r.l;
    return TW_OK;
}

void seeds_close(seed_list *l)
{
    if (!l)
        return;
    arena_release(&l->a);
    mem_free(l);
}
