/* Random kernels give the same bits before and after each pass, and after all of them, on the
 * interpreter; and a second run of all passes changes nothing. Random damage to the text of tile
 * IR, where the verifier still accepts it, never makes a pass crash or break the IR. TW_SEED and
 * TW_COUNT in the environment choose which and how many. */
#include "compiler/base/guard.h"
#include "compiler/ir/irtext.h"
#include "compiler/passes/pipeline.h"
#include "compiler/target/interp/interp.h"
#include "dsl/dsl.h"
#include "tests/support/random_kernel.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 120, ROWS = 37, COLUMNS = 45 };
enum { PLANES = RANDOM_PROGRAMS * RANDOM_PLANES, CELLS = PLANES * RANDOM_EXTENT * RANDOM_EXTENT };

static long setting(const char *name, long otherwise)
{
    const char *text = getenv(name);

    return text ? strtol(text, NULL, 0) : otherwise;
}

typedef struct outputs {
    float yf[CELLS];
    int32_t yi[CELLS];
} outputs;

typedef struct job {
    arena a;
    intern names;
    diag_list diags;
    const kernel_source *source;
    float x[ROWS * COLUMNS];
    int32_t w[ROWS * COLUMNS];
} job;

static int64_t extent_of(const ir_fn *fn, const char *tensor, int d)
{
    static const int64_t in[] = {ROWS, COLUMNS}, out[] = {PLANES, RANDOM_EXTENT, RANDOM_EXTENT};

    (void)fn;
    return tensor[0] == 'y' ? out[d] : in[d];
}

static void bind_view(const ir_fn *fn, const ir_param *p, void *base, interp_view *v)
{
    int64_t stride = 1;

    v->base = base;
    for (int d = p->type.rank - 1; d >= 0; d--) {
        v->extent[d] = extent_of(fn, p->name, d);
        v->stride[d] = stride;
        stride *= v->extent[d];
    }
}

/* The extent of dimension symbol `dim`: that of a tensor which has it. */
static int64_t dim_value(const ir_fn *fn, int32_t dim)
{
    for (uint32_t i = 0; i < fn->params.n; i++) {
        const ir_param *p = &fn->params.at[i];
        for (int d = 0; p->kind == PARAM_TENSOR && d < p->type.rank; d++) {
            if (p->dim[d] == dim)
                return extent_of(fn, p->name, d);
        }
    }
    ck_abort_msg("a dimension without a tensor");
    return 0;
}

static void bind(job *j, const ir_fn *fn, outputs *out, interp_arg *arg)
{
    for (uint32_t i = 0; i < fn->params.n; i++) {
        const ir_param *p = &fn->params.at[i];
        void *base = p->name[0] == 'x'        ? (void *)j->x
                     : p->name[0] == 'w'      ? (void *)j->w
                     : !strcmp(p->name, "yf") ? (void *)out->yf
                                              : (void *)out->yi;
        if (p->kind == PARAM_TENSOR)
            bind_view(fn, p, base, &arg[i].view);
        else if (p->kind == PARAM_DIM)
            arg[i].scalar.i = dim_value(fn, p->symbol);
    }
}

/* False when an assert failed, which only checked mode may add. */
static bool run(job *j, const ir_module *m, outputs *out, const char *what)
{
    interp_arg arg[32] = {0};
    interp_fault fault = {0};
    ir_scalar in[32] = {0};
    const char *failed = NULL;
    interp_launch launch = {.arg = arg};

    memset(out, 0xee, sizeof *out);
    bind(j, m->kernel, out, arg);
    for (uint32_t i = 0; i < m->kernel->params.n; i++)
        in[i] = arg[i].scalar;
    tw_status st = launch_eval(launch_prepare(&j->a, m->launch), in, ~0ull, launch.grid, &failed);
    ck_assert_msg(st == TW_OK, "%s: %s", what, failed);
    st = interp_run(interp_prepare(&j->a, m), &launch, 0, INT64_MAX, &fault);
    bool stopped = st == TW_E_ASSERT && !strcmp(what, "check_accesses");
    ck_assert_msg(st == TW_OK || stopped, "%s: %s: %s", what, tw_status_name(st), fault.text);
    return !stopped;
}

static ir_module *lowered(job *j)
{
    ir_module *m = NULL;
    tw_status st =
        j->source->lower(j->source, &j->a, &j->names, NULL, 0, "cpu-generic", &j->diags, &m);

    ck_assert(st == TW_OK || st == TW_E_LIMIT);
    return st == TW_OK ? m : NULL;
}

static void must_agree(const outputs *want, const outputs *got, const char *what, const char *text)
{
    for (int i = 0; i < CELLS; i++) {
        bool same = want->yf[i] == got->yf[i] || !memcmp(&want->yf[i], &got->yf[i], sizeof(float));
        if (!same || want->yi[i] != got->yi[i])
            ck_abort_msg("%s\n%s: cell %d of plane %d is %g, %d, not %g, %d", text, what,
                         i % (RANDOM_EXTENT * RANDOM_EXTENT), i / (RANDOM_EXTENT * RANDOM_EXTENT),
                         (double)got->yf[i], got->yi[i], (double)want->yf[i], want->yi[i]);
    }
}

static void check_passes(job *j, const char *text)
{
    static outputs want, got;
    const pipeline_options verify = {.verify_each = true};
    ir_module *m = lowered(j);

    if (!m)
        return;
    (void)run(j, m, &want, "as lowered");
    const char *pass = "";
    for (size_t i = 0; pass; i++) {
        pass = pipeline_pass_name(i);
        m = lowered(j);
        tw_status st = pass ? pipeline_run_pass(m, pass, &j->diags, &verify)
                            : pipeline_run(m, &j->diags, &verify);
        ck_assert_msg(st == TW_OK, "%s", tw_last_error()->text);
        const char *what = pass ? pass : "all passes";
        if (run(j, m, &got, what))
            must_agree(&want, &got, what, text);
    }
}

static tw_status with_text(void *arg)
{
    job *j = arg;
    static char text[RANDOM_TEXT];
    long first = setting("TW_SEED", 1), n = setting("TW_COUNT", COUNT);

    for (long seed = first; seed < first + n; seed++) {
        arena_mark mark = arena_save(&j->a);
        num_random r = {(uint64_t)seed};
        dsl_unit *unit = NULL;
        diag_init(&j->diags, &j->a);
        intern_init(&j->names, &j->a);
        random_kernel((uint64_t)seed, text);
        ck_assert_int_eq(dsl_load("random.tw", text, strlen(text), &j->diags, &unit), TW_OK);
        j->source = dsl_kernel(unit, dsl_kernel_count(unit) - 1);
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            j->x[i] = (float)(num_below(&r, 17) - 8);
            j->w[i] = (int32_t)(num_below(&r, 17) - 8);
        }
        check_passes(j, text);
        dsl_unit_destroy(unit);
        arena_rewind(&j->a, mark);
    }
    return TW_OK;
}

START_TEST(passes_keep_every_bit)
{
    static job j;

    arena_init(&j.a);
    ck_assert_int_eq(guard_run(with_text, &j), TW_OK);
    arena_release(&j.a);
}
END_TEST

/* ---- damaged text ---------------------------------------------------------------------------- */

typedef struct text_of {
    arena a;
    char *text;
    bool accepted;
} text_of;

static tw_status survive(void *arg)
{
    text_of *t = arg;
    intern names;
    diag_list diags;
    const pipeline_options verify = {.verify_each = true};

    intern_init(&names, &t->a);
    diag_init(&diags, &t->a);
    ir_module *m =
        ir_parse(&t->a, &names, source_new(&t->a, "t", t->text, strlen(t->text)), &diags);
    if (!m)
        return TW_OK;
    t->accepted = true;
    return pipeline_run(m, &diags, &verify);
}

/* One word of the text takes the place of another. */
static void damage(num_random *r, const char *text, char *out, size_t room)
{
    size_t n = strlen(text), at = (size_t)num_below(r, (int64_t)n);
    size_t from = (size_t)num_below(r, (int64_t)n);
    const char *stops = " \n,";

    while (at > 0 && !strchr(stops, text[at - 1]))
        at--;
    while (from > 0 && !strchr(stops, text[from - 1]))
        from--;
    size_t old = strcspn(text + at, stops), with = strcspn(text + from, stops);
    snprintf(out, room, "%.*s%.*s%s", (int)at, text, (int)with, text + from, text + at + old);
}

static char *read_kernel(const char *path)
{
    static char text[1 << 15];
    FILE *f = fopen(path, "rb");

    ck_assert_msg(f != NULL, "%s", path);
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    char *end = strstr(text, "# ==>");
    ck_assert_ptr_nonnull(end);
    *end = '\0';
    return text;
}

static int survive_damage(const char *path, num_random *r, int times)
{
    static char damaged[1 << 16], twice[1 << 16];
    const char *text = read_kernel(path);
    int accepted = 0;

    for (int i = 0; i < times; i++) {
        text_of t = {.text = twice};
        damage(r, text, damaged, sizeof damaged);
        if (i % 2)
            damage(r, damaged, twice, sizeof twice);
        else
            memcpy(twice, damaged, sizeof damaged);
        arena_init(&t.a);
        tw_status st = guard_run(survive, &t);
        if (st != TW_OK)
            ck_abort_msg("%s\n%s: %s", twice, tw_status_name(st), tw_last_error()->text);
        accepted += t.accepted;
        arena_release(&t.a);
    }
    return accepted;
}

START_TEST(passes_survive_whatever_verifies)
{
    static const char *const paths[] = {
        "tests/pass/pipeline/attention_fwd.tir", "tests/pass/prove_bounds/causal_mask_offset.tir",
        "tests/pass/prove_bounds/requires.tir",  "tests/pass/dce/carried.tir",
        "tests/pass/simplify/where_and_not.tir", "tests/golden/ir/every_op.tir"};
    num_random r = {(uint64_t)setting("TW_SEED", 1)};
    int accepted = 0;

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        accepted += survive_damage(paths[i], &r, (int)setting("TW_COUNT", COUNT) * 5);
    ck_assert_int_gt(accepted, 100);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("random kernels through the passes");
    TCase *t = tcase_create("random");

    tcase_add_test(t, passes_keep_every_bit);
    tcase_add_test(t, passes_survive_whatever_verifies);
    suite_add_tcase(s, t);
    return s;
}
