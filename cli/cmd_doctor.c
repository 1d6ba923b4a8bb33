/* doctor: looks at everything that a launch needs, and says what is wrong and what to do. */
#include "cli/cli.h"
#include "cli/json.h"
#include "cli/open.h"
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum finding { FINE, WORTH_KNOWING, WRONG } finding;

typedef struct doctor {
    cli *c;
    tw_context *cx;
    tw_device *cpu, *interp;
    json j;
    table rows;
    int warnings, code; /* exit code of the first thing that is wrong */
} doctor;

/* todo: what to do about it, or NULL. */
__attribute__((format(printf, 5, 6))) static void report(doctor *d, finding f, const char *what,
                                                         const char *todo, const char *format, ...)
{
    static const char *const word[] = {"ok", "note", "wrong"};
    static const style colour[] = {STYLE_GREEN, STYLE_YELLOW, STYLE_RED};
    char text[1024];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    d->warnings += f == WORTH_KNOWING;
    if (d->c->opt.json) {
        json_object(&d->j, NULL);
        json_text(&d->j, "check", what);
        json_text(&d->j, "state", word[f]);
        json_text(&d->j, "text", text);
        json_text(&d->j, "todo", todo);
        json_end_object(&d->j);
        return;
    }
    table_cell(&d->rows, colour[f], "%s", word[f]);
    table_cell(&d->rows, STYLE_BOLD, "%s", what);
    table_cell(&d->rows, STYLE_PLAIN, "%s", text);
    if (todo) {
        table_cell(&d->rows, STYLE_PLAIN, "%s", "");
        table_cell(&d->rows, STYLE_PLAIN, "%s", "");
        table_cell(&d->rows, STYLE_DIM, "-> %s", todo);
    }
}

static void wrong(doctor *d, tw_status st, const char *what, const char *todo, const char *text)
{
    report(d, WRONG, what, todo, "%.*s", (int)strcspn(text, "\n"), text);
    if (!d->code)
        d->code = tw_status_exit_code(st);
}

/* ---- library and processor ------------------------------------------------------------------- */

static void check_library(doctor *d)
{
    char built[32];

    snprintf(built, sizeof built, "%d.%d.%d", TW_VERSION_MAJOR, TW_VERSION_MINOR, TW_VERSION_PATCH);
    if (strcmp(built, tw_version()) == 0)
        report(d, FINE, "library", NULL, "%s, code by %s", tw_version(), tw_codegen_version());
    else
        report(d, WORTH_KNOWING, "library", "install command and library of one version",
               "%s, but the command was built for %s", tw_version(), built);
}

static void check_processor(doctor *d)
{
    tw_device_info info = TW_DEVICE_INFO_INIT;
    tw_status st = tw_device_open(d->cx, "cpu", &d->cpu);

    if (!st)
        st = tw_device_query(d->cpu, &info);
    if (st) {
        wrong(d, st, "processor", NULL, tw_last_error()->text);
        return;
    }
    bool slow = info.features && strcmp(info.features, "x86-64-v2") == 0;
    report(d, slow ? WORTH_KNOWING : FINE, "processor",
           slow ? "AVX2 is needed for speed; a virtual machine may hide it" : NULL,
           "%s, code path %s", info.name, info.target);
    report(d, FINE, "features", NULL, "%s",
           info.features && *info.features ? info.features : "none beyond the baseline");
    if (info.l1_bytes && info.l2_bytes)
        report(d, FINE, "caches", NULL, "%s L1, %s L2 a core", text_bytes((double)info.l1_bytes).s,
               text_bytes((double)info.l2_bytes).s);
    else
        report(d, WORTH_KNOWING, "caches", NULL,
               "sizes are unknown: default tile sizes may not fit");
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

/* That there is none is fine; one that cannot be used is worth knowing. */
static void check_gpu(doctor *d)
{
    tw_device_info info = TW_DEVICE_INFO_INIT;
    tw_device *dev;
    tw_status st = tw_device_open(d->cx, "cuda", &dev);

    if (st != TW_OK) {
        const tw_error *e = tw_last_error();
        const char *why = e->diagnostic_count ? e->diagnostics[0].text : e->text;
        report(d, st == TW_E_DEVICE ? FINE : WORTH_KNOWING, "gpu", NULL,
               "none that can be used: %.*s", (int)strcspn(why, "\n"), why);
        return;
    }
    if (tw_device_query(dev, &info) == TW_OK)
        report(d, FINE, "gpu", NULL, "%s, capability %d.%d, driver %s, code path %s", info.name,
               info.capability / 10, info.capability % 10, info.driver, info.target);
    tw_device_close(dev);
}

/* ---- threads --------------------------------------------------------------------------------- */

static bool read_line(const char *path, char *out, int size)
{
    FILE *f = fopen(path, "r");
    bool read = f && fgets(out, size, f);

    if (f)
        fclose(f);
    if (read)
        out[strcspn(out, "\n")] = '\0';
    return read;
}

/* Processors' worth of time that the control group allows; 0: any. */
static double quota(void)
{
    char group[512], path[640], line[128];
    double allowed, period;

    if (!read_line("/proc/self/cgroup", group, sizeof group) || strncmp(group, "0::", 3) != 0)
        return 0.0;
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group + 3);
    if (!read_line(path, line, sizeof line) || sscanf(line, "%lf %lf", &allowed, &period) != 2)
        return 0.0;
    return period > 0.0 ? allowed / period : 0.0;
}

static void check_threads(doctor *d)
{
    tw_device_info info = TW_DEVICE_INFO_INIT;
    cpu_set_t set;
    double share = quota(), load = 0.0;
    long online = sysconf(_SC_NPROCESSORS_ONLN);

    if (!d->cpu || tw_device_query(d->cpu, &info))
        return;
    int allowed = sched_getaffinity(0, sizeof set, &set) ? (int)online : CPU_COUNT(&set);
    if (share > 0.0)
        report(d, share < 1.0 ? WORTH_KNOWING : FINE, "threads",
               share < 1.0 ? "less than one processor: raise the quota (cpu.max)" : NULL,
               "%d; %d of %ld processors, a quota of %.3g", info.threads, allowed, online, share);
    else
        report(d, FINE, "threads", NULL, "%d; %d of %ld processors, no quota", info.threads,
               allowed, online);
    if (getloadavg(&load, 1) == 1 && load > 0.7 * allowed)
        report(d, WORTH_KNOWING, "load", "tune on a quiet machine; the results stay right",
               "%.1f on %d processors: times measured now say little", load, allowed);
    else
        report(d, FINE, "load", NULL, "%.1f", load);
}

/* ---- store ----------------------------------------------------------------------------------- */

typedef struct store_totals {
    int configs, artifacts;
} store_totals;

static bool add_row(void *user, const tw_store_row *row)
{
    store_totals *t = user;

    t->configs++;
    t->artifacts += row->artifacts;
    return true;
}

static void check_store(doctor *d)
{
    tw_store_info info = TW_STORE_INFO_INIT;
    store_totals t = {0};

    if (tw_store_query(d->cx, &info)) {
        wrong(d, tw_last_error()->status, "store", NULL, tw_last_error()->text);
    } else if (!info.path) {
        report(d, WORTH_KNOWING, "store", "set TILEWRIGHT_STORE, or HOME, or give --store=FILE",
               "none: what is tuned is forgotten with the process");
    } else if (!info.writes) {
        wrong(d, TW_E_STORE, "store", "results stay right, but nothing is remembered",
              info.why ? info.why : "it cannot be written");
    } else if (tw_store_list(d->cx, add_row, &t)) {
        wrong(d, tw_last_error()->status, "store", NULL, tw_last_error()->text);
    } else {
        report(d, FINE, "store", NULL, "%s: %s, %d configuration%s, %d of their artifacts",
               info.path, text_bytes((double)info.bytes).s, t.configs, t.configs == 1 ? "" : "s",
               t.artifacts);
    }
}

/* ---- a kernel -------------------------------------------------------------------------------- */

enum { ROWS = 37, INNER = 29, COLUMNS = 21 };
static const char kernel_text[] =
    "kernel doctor(x: f32[M, K], y: f32[K, N], out z: f32[M, N])\n"
    "grid (cdiv(M, 16))\n"
    "{\n"
    "    let m0 = program_id(0) * 16;\n"
    "    let s = dot(load(x[m0 :+ 16, 0 :+ 32]), load(y[0 :+ 32, 0 :+ 24]));\n"
    "    let e = exp(s - max(s, 1)[:, None]);\n"
    "    store(z[m0 :+ 16, 0 :+ 24], e / sum(e, 1)[:, None]);\n"
    "}\n";

typedef struct trial_data {
    float x[ROWS * INNER], y[INNER * COLUMNS], cpu[ROWS * COLUMNS], interp[ROWS * COLUMNS];
} trial_data;

static DLTensor matrix(float *at, int64_t *shape, int64_t rows, int64_t columns)
{
    shape[0] = rows;
    shape[1] = columns;
    return (DLTensor){at, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0};
}

static tw_status run_on(tw_kernel *k, tw_device *dev, trial_data *t, float *z)
{
    int64_t shape[3][2];
    DLTensor x = matrix(t->x, shape[0], ROWS, INNER), y = matrix(t->y, shape[1], INNER, COLUMNS),
             out = matrix(z, shape[2], ROWS, COLUMNS);
    const tw_arg args[] = {TW_TENSOR("x", &x), TW_TENSOR("y", &y), TW_TENSOR("z", &out)};

    return tw_launch(k, dev, NULL, args, 3);
}

static double worst(const trial_data *t)
{
    double most = 0.0;

    for (int i = 0; i < ROWS * COLUMNS; i++) {
        double e = fabs((double)t->cpu[i] - (double)t->interp[i]);
        most = e <= most ? most : e; /* a NaN counts */
    }
    return most;
}

/* What to do about the last error, which the trial's kernel and tensors do not explain. */
static const char *remedy(void)
{
    const tw_error *e = tw_last_error();

    if (e->diagnostic_count && e->diagnostics[0].hint)
        return e->diagnostics[0].hint;
    return e->status == TW_E_NOMEM
               ? NULL
               : "what stands there does not follow from your files: please report it";
}

static void check_kernel(doctor *d)
{
    trial_data *t = cli_alloc(1, sizeof *t);
    tw_kernel *k = NULL;
    double start = 0.0, seconds = 0.0, error = 0.0;

    for (int i = 0; i < ROWS * INNER; i++)
        t->x[i] = (float)(i * 37 % 101) / 50.0f - 1.0f;
    for (int i = 0; i < INNER * COLUMNS; i++)
        t->y[i] = (float)(i * 53 % 89) / 44.0f - 1.0f;
    tw_status st = tw_device_open(d->cx, "interp", &d->interp);
    if (!st)
        st = tw_kernel_load_text(d->cx, "doctor.tw", kernel_text, strlen(kernel_text), NULL, &k);
    if (!st) {
        start = cli_now();
        st = run_on(k, d->cpu, t, t->cpu);
        seconds = cli_now() - start;
    }
    if (!st)
        st = run_on(k, d->interp, t, t->interp);
    if (st)
        wrong(d, st, "kernel", remedy(), tw_last_error()->text);
    else if (!((error = worst(t)) < 1e-5))
        wrong(d, TW_E_MISMATCH, "kernel", "please report it, with the lines above",
              "machine code and the interpreter differ");
    else
        report(d, FINE, "kernel", NULL,
               "compiled or found, and run, in %s; as the interpreter has it, within %.1g",
               text_seconds(seconds).s, error);
    tw_kernel_destroy(k);
    free(t);
}

/* ---- all ------------------------------------------------------------------------------------- */

static void check_all(doctor *d)
{
    check_library(d);
    check_processor(d);
    check_gpu(d);
    check_threads(d);
    check_store(d);
    if (d->cpu)
        check_kernel(d);
}

int cmd_doctor(cli *c)
{
    doctor d = {.c = c, .j = {.out = stdout}};

    if (c->opt.word_count)
        return cli_usage(c, "'%s' is one word too many", c->opt.word[0]);
    CLI_TRY(open_context(c, TW_LOG_ERROR, &d.cx)); /* the store's warning is reported below */
    table_begin(&d.rows, "lll");
    if (c->opt.json)
        json_array(&d.j, NULL);
    check_all(&d);
    tw_device_close(d.cpu);
    tw_device_close(d.interp);
    tw_context_destroy(d.cx);
    if (c->opt.json) {
        json_end_array(&d.j);
        table_free(&d.rows);
        return d.code;
    }
    table_print(&d.rows, &c->term, stdout, 0);
    printf("%s\n", d.code       ? "something is wrong"
                   : d.warnings ? "all works; the notes say what could be better"
                                : "all is well");
    return d.code;
}
