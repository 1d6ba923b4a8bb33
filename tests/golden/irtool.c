/* irtool: what golden tests of tile IR run.
 *   irtool print|plain|hash|verify FILE      parse, then print (plain: numbered) / hash / nothing
 *   irtool pass NAME FILE                    parse, run one pass, print
 *   irtool passes FILE                       parse, run all passes, print
 * FILE of - is standard input. What goes wrong is printed to standard output, because a golden test
 * holds it too. Exit codes: 0; 1 the text is wrong or the pass failed; 2 usage, or no such file. */
#include "compiler/base/guard.h"
#include "compiler/ir/irtext.h"
#include "compiler/passes/pipeline.h"
#include <stdio.h>
#include <string.h>

typedef struct job {
    const char *verb, *pass, *name;
    char *text;
    size_t n;
    arena a;
    diag_list diags;
    strbuf out;
} job;

static int read_all(job *j, FILE *f)
{
    static char text[4 << 20];

    j->text = text;
    j->n = fread(text, 1, sizeof text - 1, f);
    return ferror(f) ? -1 : 0;
}

static int read_file(job *j, const char *path)
{
    j->name = strcmp(path, "-") == 0 ? "<stdin>" : path;
    FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (!f)
        return -1;
    int rc = read_all(j, f);
    if (f != stdin)
        fclose(f);
    return rc;
}

static void put_hash(job *j, const ir_module *m)
{
    char text[HASH_TEXT];

    hash_text(ir_hash(m), text);
    sb_fmt(&j->out, "%s\n", text);
}

static tw_status work(void *arg)
{
    job *j = arg;
    intern names;

    intern_init(&names, &j->a);
    const source *src = source_new(&j->a, j->name, j->text, j->n);
    ir_module *m = ir_parse(&j->a, &names, src, &j->diags);
    if (!m)
        return TW_E_SOURCE;
    tw_status st = TW_OK;
    if (j->pass)
        st = pipeline_run_pass(m, j->pass, &j->diags, NULL);
    else if (strcmp(j->verb, "passes") == 0)
        st = pipeline_run(m, &j->diags, NULL);
    if (st != TW_OK)
        return st;
    if (strcmp(j->verb, "hash") == 0)
        put_hash(j, m);
    else if (strcmp(j->verb, "verify") != 0)
        ir_print(&j->out, m, strcmp(j->verb, "plain") == 0 ? IR_PRINT_PLAIN : 0);
    return TW_OK;
}

static int run(job *j)
{
    arena_init(&j->a);
    diag_init(&j->diags, &j->a);
    sb_init(&j->out, &j->a);
    tw_status st = guard_run(work, j);
    if (st != TW_OK && j->diags.all.n)
        diag_render(&j->diags, &j->out, 0);
    else if (st != TW_OK)
        printf("%s: %s\n", tw_status_name(st), tw_status_meaning(st));
    fputs(j->out.s, stdout);
    arena_release(&j->a);
    return st == TW_OK ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const char *const verbs[] = {"print", "plain", "hash", "verify", "pass", "passes"};
    job j = {0};

    for (size_t i = 0; argc > 1 && i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(argv[1], verbs[i]) == 0)
            j.verb = verbs[i];
    }
    int with_pass = j.verb && strcmp(j.verb, "pass") == 0;
    if (!j.verb || argc != 3 + with_pass) {
        fputs("usage: irtool print|plain|hash|verify|passes FILE\n"
              "       irtool pass NAME FILE\n", stderr);
        return 2;
    }
    j.pass = with_pass ? argv[2] : NULL;
    if (read_file(&j, argv[argc - 1]) != 0) {
        fprintf(stderr, "irtool: cannot read %s\n", argv[argc - 1]);
        return 2;
    }
    return run(&j);
}
