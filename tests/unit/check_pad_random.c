/* Random kernels whose dots are padded give on the interpreter what they gave before, element by
 * element, inf and NaN included: only the sign of a zero may differ. So do some of them as level 2,
 * under its race detector, but for the order of sums. TW_SEED and TW_COUNT in the
 * environment choose which and how many. */
#include "compiler/base/error.h"
#include "compiler/base/guard.h"
#include "tests/support/schedule_fixture.h"
#include "tests/support/schedule_run.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COUNT = 150,
    SCHEDULED = 5 /* of so many one */,
    EXTENTS = 3,
    MAX_TILES = 64,
    TEXT = 16384,
    STEPS = 14,
    OUTPUTS = 6
};

static const int extent[EXTENTS] = {20, 9, 16}; /* grows to 32, to 16; stays */

typedef struct tile {
    int rows, columns; /* which extents; columns -1: a row's worth each */
} tile;

typedef struct writer {
    char text[TEXT];
    size_t n;
    uint64_t state;
    tile at[MAX_TILES]; /* of v0, v1, ..., all f32 */
    int tiles, outputs;
    int output[OUTPUTS]; /* which tile */
} writer;

static int draw(writer *w, int below)
{
    w->state = w->state * 6364136223846793005u + 1442695040888963407u;
    return (int)((w->state >> 33) % (uint64_t)below);
}

__attribute__((format(printf, 2, 3))) static void put(writer *w, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    w->n += (size_t)vsnprintf(w->text + w->n, TEXT - w->n, format, ap);
    va_end(ap);
    ck_assert_uint_lt(w->n, TEXT);
}

/* The next tile's name and what makes it; returns its number. */
static int begin(writer *w, int rows, int columns)
{
    w->at[w->tiles] = (tile){rows, columns};
    put(w, "    let v%d = ", w->tiles);
    return w->tiles++;
}

/* A tile with these extents (-1: any), or -1. */
static int find(writer *w, int rows, int columns)
{
    int first = draw(w, w->tiles);

    for (int i = 0; i < w->tiles; i++) {
        int k = (first + i) % w->tiles;
        if (w->at[k].columns >= 0 && (rows < 0 || w->at[k].rows == rows) &&
            (columns < 0 || w->at[k].columns == columns))
            return k;
    }
    return -1;
}

static void put_elementwise(writer *w, int x)
{
    static const char *const one[] = {
        "-v%d;\n",      "v%d * 0.5;\n", "v%d + 1.0;\n",
        "1.0 / v%d;\n", "exp2(v%d);\n", "log2(v%d);\n",
        "abs(v%d);\n",  "v%d * by;\n",  "minimum(v%d, 2.0);\n",
        "v%d - 3.5;\n", "0.0 * v%d;\n", "cast(cast(v%d, i32), f32);\n"};
    int y = find(w, w->at[x].rows, w->at[x].columns);

    begin(w, w->at[x].rows, w->at[x].columns);
    switch (draw(w, 5)) {
    case 0:
        put(w, "v%d * v%d + v%d;\n", x, y, x);
        return;
    case 1: /* no NaN from here on */
        put(w, "where(v%d == v%d, v%d, 1.0);\n", x, x, x);
        return;
    case 2:
        put(w, "where(v%d > 0.5, v%d, v%d);\n", x, y, x);
        return;
    default:
        put(w, one[draw(w, (int)(sizeof one / sizeof *one))], x);
    }
}

static void put_dot(writer *w, int x)
{
    int y = find(w, w->at[x].columns, -1);

    if (y < 0)
        return;
    begin(w, w->at[x].rows, w->at[y].columns);
    put(w, "dot(cast(v%d, f16), cast(v%d, f16));\n", x, y);
}

static void put_reduction(writer *w, int x)
{
    static const char *const by[] = {"max(v%d, %d);\n", "min(v%d, %d);\n", "sum(v%d, %d);\n",
                                     "cast(argmax(v%d, %d), f32);\n"};
    int axis = draw(w, 2), r = begin(w, axis ? w->at[x].rows : w->at[x].columns, -1);

    put(w, by[draw(w, 4)], x, axis);
    begin(w, w->at[x].rows, w->at[x].columns);
    put(w, axis ? "v%d - v%d[:, None];\n" : "v%d + v%d[None, :];\n", x, r);
}

static void put_loop(writer *w, int x)
{
    int y = find(w, w->at[x].rows, w->at[x].columns);
    int square = find(w, w->at[x].columns, w->at[x].columns), v = w->tiles++;

    w->at[v] = w->at[x];
    put(w, "    var v%d = v%d;\n    for i in range(0, 3) {\n", v, x);
    if (square >= 0)
        put(w, "        v%d = dot(cast(v%d, f16), cast(v%d, f16), v%d) * 0.25;\n", v, v, square, v);
    else
        put(w, "        v%d = v%d * 0.5 + v%d;\n", v, v, y);
    put(w, "        if (i > by_int) v%d = -v%d;\n    }\n", v, v);
}

static void put_step(writer *w)
{
    int x = find(w, -1, -1);

    switch (draw(w, 8)) {
    case 0:
    case 1:
        put_dot(w, x);
        return;
    case 2:
        put_reduction(w, x);
        return;
    case 3:
        begin(w, w->at[x].columns, w->at[x].rows);
        put(w, "trans(v%d);\n", x);
        return;
    case 4:
        put_loop(w, x);
        return;
    case 5:
        begin(w, w->at[x].rows, w->at[x].columns);
        put(w, "cumsum(v%d, %d);\n", x, draw(w, 2));
        return;
    default:
        put_elementwise(w, x);
    }
}

static void put_outputs(writer *w)
{
    for (w->outputs = 0; w->outputs < OUTPUTS; w->outputs++) {
        int x = w->tiles - 1 - w->outputs;
        w->output[w->outputs] = x;
        put(w,
            w->at[x].columns < 0 ? "    store(y%d[0, :], v%d);\n" : "    store(y%d[:, :], v%d);\n",
            w->outputs, x);
    }
}

static void write_kernel(writer *w, uint64_t seed)
{
    writer body = {.state = seed * 2654435761u + 99};

    for (int i = 0; i < EXTENTS * EXTENTS; i++) {
        begin(&body, i / EXTENTS, i % EXTENTS);
        put(&body, "cast(load(x%d[:, :]), f32);\n", i);
    }
    for (int i = 0; i < STEPS; i++)
        put_step(&body);
    put_outputs(&body);
    *w = body;
    w->n = 0;
    put(w, "kernel k(");
    for (int i = 0; i < EXTENTS * EXTENTS; i++)
        put(w, "x%d: f16[%d, %d], ", i, extent[i / EXTENTS], extent[i % EXTENTS]);
    for (int i = 0; i < OUTPUTS; i++) {
        tile t = w->at[w->output[i]];
        put(w, "out y%d: f32[%d, %d], ", i, t.columns < 0 ? 1 : extent[t.rows],
            extent[t.columns < 0 ? t.rows : t.columns]);
    }
    put(w, "f: f32[1])\ngrid (1)\n{\n    let by = load(f[0]), by_int = cast(by, i32);\n%s}\n",
        body.text);
}

/* ---- */

/* fn's tensors in order: halves with an inf and a NaN now and then, poisoned outputs. */
static run_case tensors(const ir_module *m, writer *w)
{
    run_case c = {0};

    for (uint32_t i = 0; i < m->kernel->params.n; i++) {
        const ir_param *p = &m->kernel->params.at[i];
        run_tensor *t = &c.t[c.n++];
        ck_assert_int_eq(p->kind, PARAM_TENSOR);
        *t =
            (run_tensor){.name = p->name, .dtype = (enum dtype)p->type.dtype, .rank = p->type.rank};
        for (int d = 0; d < t->rank; d++)
            t->extent[d] = m->kernel->dims.at[p->dim[d]].value;
        t->data = arena_alloc(&schedule_memory, run_elements(t) * 4);
        if (p->direction != DIR_IN)
            run_poison(t);
        else
            run_fill(t, i + 1, 1.0);
        if (t->dtype == DT_F16 && draw(w, 4) == 0) {
            uint16_t special = draw(w, 2) ? 0x7c00 : 0x7e00;
            memcpy((char *)t->data + 2 * (size_t)draw(w, (int)run_elements(t)), &special, 2);
        }
    }
    return c;
}

static tw_status pad(void *arg)
{
    schedule_params params = schedule_defaults();
    gpu_limits gpu = gpu_limits_of(80);
    pipeline_options verify = {.verify_each = true};
    schedule_result res = {0};
    ir_module *m = *(ir_module **)arg;
    tw_status st = schedule_run_pass(m, "pad_dots", &gpu, &params, &schedule_diags, &verify, &res);

    *(ir_module **)arg = res.npadded ? m : NULL;
    return st;
}

static void must_agree(const run_case *want, const run_case *got, double tolerance, const writer *w,
                       long seed)
{
    for (int k = 0; k < want->n; k++) {
        for (size_t i = 0; i < run_elements(&want->t[k]); i++) {
            double x = run_element(&want->t[k], i), y = run_element(&got->t[k], i);
            if (!(x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= tolerance * (1 + fabs(x))))
                ck_abort_msg("seed %ld: %s[%zu] is %g, not %g, in\n%s", seed, want->t[k].name, i, y,
                             x, w->text);
        }
    }
}

static void must_run(const ir_module *m, run_case *c, long seed)
{
    interp_fault fault = {0};

    ck_assert_msg(run_module(m, c, &fault) == TW_OK, "seed %ld: %s", seed, fault.text);
}

/* Was anything padded? */
static bool one_kernel(long seed)
{
    static writer w;
    writer again;

    schedule_setup();
    write_kernel(&w, (uint64_t)seed);
    ir_module *m = schedule_lower_text(w.text, "", 2), *scheduled;
    again = w;
    run_case want = tensors(m, &w), got = tensors(m, &again);
    must_run(m, &want, seed);
    ck_assert_msg(guard_run(pad, &m) == TW_OK, "seed %ld: %s", seed, error_get()->text);
    if (m) {
        must_run(m, &got, seed);
        must_agree(&want, &got, 0, &w, seed);
    }
    if (m && seed % SCHEDULED == 0) {
        scheduled = schedule_lower_text(w.text, "", 2);
        ck_assert_msg(schedule_make(scheduled, 80, schedule_defaults(), NULL) == TW_OK,
                      "seed %ld: %s", seed, error_get()->text);
        must_run(scheduled, &got, seed);
        must_agree(&want, &got, 1e-3, &w, seed);
    }
    schedule_teardown();
    return m != NULL;
}

static long setting(const char *name, long otherwise)
{
    const char *text = getenv(name);

    return text ? strtol(text, NULL, 0) : otherwise;
}

START_TEST(padded_kernels_give_what_they_gave)
{
    long first = setting("TW_SEED", 1), count = setting("TW_COUNT", COUNT), padded = 0;

    for (long seed = first; seed < first + count; seed++)
        padded += one_kernel(seed);
    ck_assert_int_ge(padded, count / 2);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("pad_random");
    TCase *c = tcase_create("pad_random");

    tcase_set_timeout(c, 120);
    tcase_add_test(c, padded_kernels_give_what_they_gave);
    suite_add_tcase(s, c);
    return s;
}
