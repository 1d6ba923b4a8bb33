/* nvtool: what tests of PTX run.
 *   nvtool TARGET STAGE [NAME=VALUE ...] FILE      level 2 (or level 1) text -> STAGE (ll, ptx,
 * sched) on standard output; `inside` bits are taken as written Exit codes: 0; 1 what went wrong,
 * on standard output; 2 usage. */
#include "compiler/base/error.h"
#include "compiler/base/guard.h"
#include "compiler/ir/irtext.h"
#include "compiler/target/target.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PARAMS = 16 };

typedef struct job {
    const target *t;
    const char *stage, *file;
    char *text;
    size_t n;
    ir_binding config[MAX_PARAMS];
    uint32_t nconfig;
    arena a;
    diag_list diags;
    const char *data;
    size_t size;
} job;

static tw_status work(void *arg)
{
    job *j = arg;
    intern names;

    intern_init(&names, &j->a);
    ir_module *m = ir_parse(&j->a, &names, source_new(&j->a, j->file, j->text, j->n), &j->diags);
    if (!m)
        return TW_E_SOURCE;
    target_input in = {.module = m, .config = j->config, .nconfig = j->nconfig, .diags = &j->diags};
    return j->t->emit(j->t, &in, j->stage, &j->a, &j->data, &j->size);
}

static int run(job *j)
{
    strbuf why;

    arena_init(&j->a);
    diag_init(&j->diags, &j->a);
    sb_init(&why, &j->a);
    tw_status st = error_thrown(guard_run(work, j));
    if (st != TW_OK && j->diags.all.n)
        diag_render(&j->diags, &why, 0);
    if (st == TW_OK)
        fwrite(j->data, 1, j->size, stdout);
    else
        printf("%s: %s\n%s", tw_status_name(st), tw_last_error()->text, why.s ? why.s : "");
    arena_release(&j->a);
    return st == TW_OK ? 0 : 1;
}

static bool read_param(job *j, char *text)
{
    char *equals = strchr(text, '=');

    if (!equals || j->nconfig == MAX_PARAMS)
        return false;
    *equals = 0;
    j->config[j->nconfig++] = (ir_binding){.name = text, .value = atoll(equals + 1)};
    return true;
}

static bool read_file(job *j, const char *path)
{
    static char text[1 << 20];
    FILE *f = fopen(path, "rb");

    if (!f)
        return false;
    j->file = path;
    j->text = text;
    j->n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    return true;
}

int main(int argc, char **argv)
{
    static job j;
    bool ok = argc >= 4;

    for (int i = 3; ok && i < argc - 1; i++)
        ok = read_param(&j, argv[i]);
    if (ok)
        j.t = target_find(argv[1]);
    if (!ok || !j.t || !read_file(&j, argv[argc - 1])) {
        fputs("usage: nvtool TARGET ll|ptx|sched [NAME=VALUE ...] FILE\n", stderr);
        return 2;
    }
    j.stage = argv[2];
    return run(&j);
}
