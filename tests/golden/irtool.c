/* irtool: what golden tests of tile IR run.
 *   irtool print|plain|hash|verify FILE      parse, then print (plain: numbered) / hash / nothing
 *   irtool pass NAME FILE                    parse, run one pass, print
 *   irtool passes FILE                       parse, run all passes, print
 *   irtool tails FILE                        the same, then pipeline_run_tails
 *   irtool schedule [NAME=VALUE...] FILE     parse, run all passes, schedule, print
 *       num_warps, num_stages, operand_registers, lazy_rescale, program_order, stage_blocks,
 *       capability (80);
 *       pass=NAME: only this pass of the schedule, and none before; after=NAME: what it leaves
 * FILE of - is standard input. What goes wrong is printed to standard output, because a golden test
 * holds it too. Exit codes: 0; 1 the text is wrong or the pass failed; 2 usage, or no such file. */
#include "compiler/base/guard.h"
#include "compiler/ir/irtext.h"
#include "compiler/base/error.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/schedule.h"
#include <stdio.h>
#include <string.h>

typedef struct job {
    const char *verb, *pass, *name, *after;
    int capability;
    schedule_params params;
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

static void keep_dump(void *user, const char *heading, const char *text)
{
    job *j = user;

    (void)heading;
    sb_fmt(&j->out, "%s", text);
}

static tw_status run_schedule(job *j, ir_module *m)
{
    gpu_limits gpu = gpu_limits_of(j->capability);
    pipeline_options options = {
        .dump = j->after, .verify_each = true, .text = keep_dump, .user = j};

    if (j->pass)
        return schedule_run_pass(m, j->pass, &gpu, &j->params, &j->diags, &options, NULL);
    tw_status st = pipeline_run(m, &j->diags, NULL);
    return st == TW_OK ? schedule_run(m, &gpu, &j->params, &j->diags, &options, NULL) : st;
}

static tw_status run_tails(job *j, ir_module *m)
{
    tw_status st = pipeline_run(m, &j->diags, NULL);

    return st == TW_OK ? pipeline_run_tails(m, &j->diags, NULL) : st;
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
    if (strcmp(j->verb, "schedule") == 0)
        st = run_schedule(j, m);
    else if (j->pass)
        st = pipeline_run_pass(m, j->pass, &j->diags, NULL);
    else if (strcmp(j->verb, "passes") == 0)
        st = pipeline_run(m, &j->diags, NULL);
    else if (strcmp(j->verb, "tails") == 0)
        st = run_tails(j, m);
    if (st != TW_OK)
        return st;
    if (strcmp(j->verb, "hash") == 0)
        put_hash(j, m);
    else if (strcmp(j->verb, "verify") != 0 && !j->after)
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
    else if (st != TW_OK && error_get()->text && *error_get()->text)
        printf("%s: %s\n", tw_status_name(st), error_get()->text);
    else if (st != TW_OK)
        printf("%s: %s\n", tw_status_name(st), tw_status_meaning(st));
    fputs(j->out.s, stdout);
    arena_release(&j->a);
    return st == TW_OK ? 0 : 1;
}

static bool read_setting(job *j, const char *word)
{
    const char *value = strchr(word, '=');
    struct {
        const char *name;
        int *to;
    } number[] = {{"num_warps", &j->params.num_warps},
                  {"num_stages", &j->params.num_stages},
                  {"operand_registers", &j->params.operand_registers},
                  {"lazy_rescale", &j->params.lazy_rescale},
                  {"program_order", &j->params.program_order},
                  {"stage_blocks", &j->params.stage_blocks},
                  {"capability", &j->capability}};

    if (!value++)
        return false;
    size_t n = (size_t)(value - word);
    if (strncmp(word, "pass=", n) == 0)
        j->pass = value;
    if (strncmp(word, "after=", n) == 0)
        j->after = value;
    for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
        if (strncmp(word, number[i].name, n - 1) == 0 && !number[i].name[n - 1])
            return sscanf(value, "%d", number[i].to) == 1;
    }
    return j->pass == value || j->after == value;
}

int main(int argc, char **argv)
{
    static const char *const verbs[] = {"print", "plain", "hash", "verify", "pass", "passes",
                                        "tails", "schedule"};
    job j = {.params = schedule_defaults(), .capability = 80};
    int at = 2;

    for (size_t i = 0; argc > 1 && i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(argv[1], verbs[i]) == 0)
            j.verb = verbs[i];
    }
    if (j.verb && strcmp(j.verb, "pass") == 0 && argc > at)
        j.pass = argv[at++];
    while (j.verb && strcmp(j.verb, "schedule") == 0 && at < argc && read_setting(&j, argv[at]))
        at++;
    if (!j.verb || argc != at + 1) {
        fputs("usage: irtool print|plain|hash|verify|passes FILE\n"
              "       irtool pass NAME FILE\n"
              "       irtool schedule [NAME=VALUE...] FILE\n", stderr);
        return 2;
    }
    if (read_file(&j, argv[argc - 1]) != 0) {
        fprintf(stderr, "irtool: cannot read %s\n", argv[argc - 1]);
        return 2;
    }
    return run(&j);
}
