#include "dsl/import.h"
#include "compiler/base/guard.h"
#include <string.h>

/* path, seen from the folder of from, without what "." and ".." say twice. */
static const char *joined(arena *a, const char *from, const char *path)
{
    const char *slash = strrchr(from, '/');
    int folder = *path == '/' || !slash ? 0 : (int)(slash - from) + 1;
    char *whole = arena_printf(a, "%.*s%s", folder, from, path), *end = whole;

    for (const char *at = whole; *at;) {
        size_t n = strcspn(at, "/");
        bool up = n == 2 && strncmp(at, "..", 2) == 0;
        bool here = (n == 1 && *at == '.') || (n == 0 && at > whole);
        char *last = end > whole ? end - 1 : whole; /* the slash that ends what is kept */

        while (last > whole && last[-1] != '/')
            last--;
        bool known = up && end > whole && strncmp(last, "../", 3) != 0 && *last != '/';
        if (known) {
            end = last;
        } else if (!here) {
            memmove(end, at, n + (at[n] == '/'));
            end += n + (at[n] == '/');
        }
        at += n + (at[n] == '/');
    }
    *end = '\0';
    return end > whole ? whole : ".";
}

static bool has_path(const import_list *list, const char *path)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (strcmp(list->at[i].path, path) == 0)
            return true;
    }
    return false;
}

tw_status imports_of(import_list *list, arena *a, const char *first, const unit_ast *unit)
{
    first = joined(a, "", first);
    for (uint32_t i = 0; i < unit->imports.n; i++) {
        const import_ast *from = &unit->imports.at[i];
        import one = {joined(a, unit->src->name, from->path), from->where};
        if (!has_path(list, one.path) && strcmp(one.path, first) != 0)
            vec_push(list, a, one);
    }
    return TW_OK;
}

typedef struct refusal {
    diag_list *diags;
    const import *import;
    const char *why;
} refusal;

static tw_status refuse(void *arg)
{
    const refusal *r = arg;

    diag_add(r->diags, DIAG_BAD_FILE, r->import->where, "'%s' cannot be imported: %s",
             r->import->path, r->why);
    return TW_E_SOURCE;
}

tw_status import_read(const dsl_reader *reader, const import_list *list, uint32_t i,
                      diag_list *diags, char **text, size_t *len)
{
    refusal r = {diags, &list->at[i], "this text is not a file"};
    tw_status st = TW_E_IO;

    if (i >= IMPORT_MAX)
        r.why = "a text may import 64 files";
    else if (reader)
        st = reader->read(reader->user, list->at[i].path, text, len, &r.why);
    return st == TW_OK || st == TW_E_NOMEM ? st : guard_run(refuse, &r);
}
