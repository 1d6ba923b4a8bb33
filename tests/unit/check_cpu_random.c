/* Random kernels on every path of the CPU against the interpreter, element by element.
 * TW_RANDOM_KERNELS (a count) makes the run longer, TW_RANDOM_SEED starts elsewhere. */
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "compiler/ir/irtext.h"
#include "compiler/passes/pipeline.h"
#include "tests/support/cpu_rig.h"
#include "tests/support/random_ir.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct memory {
    unsigned char *p[TENSORS];
} memory;

static memory memory_new(random_ir *g, const memory *like)
{
    memory m;

    for (int i = 0; i < TENSORS; i++) {
        m.p[i] = cpu_rig_alloc(g->t[i].bytes, g->t[i].at_start);
        if (like)
            memcpy(m.p[i], like->p[i], g->t[i].bytes);
        else
            random_ir_fill(g, i, m.p[i]);
    }
    return m;
}

static void memory_free(const random_ir *g, memory *m)
{
    for (int i = 0; i < TENSORS; i++)
        cpu_rig_free(m->p[i], g->t[i].bytes, g->t[i].at_start);
}

static void bind(random_ir *g, const memory *m)
{
    const ir_fn *fn = g->m->kernel;

    for (int i = 0; i < TENSORS; i++) {
        interp_view *v = &g->arg[i].view;
        v->base = m->p[i];
        for (int d = 0; d < g->t[i].rank; d++) {
            v->stride[d] = g->t[i].stride[d];
            v->extent[d] = g->t[i].extent[d];
        }
    }
    g->arg[TENSORS].scalar.i = 3;
    g->arg[TENSORS + 1].scalar.f = -2.0;
    g->arg[TENSORS + 2].scalar.i = 5;
    for (uint32_t i = TENSORS + SCALARS; i < fn->params.n; i++)
        g->arg[i].scalar.i = g->dim[fn->params.at[i].symbol];
}

static ir_scalar element_of(enum dtype t, const unsigned char *p)
{
    ir_scalar v = {0};
    float f;

    if (t != DT_F32) {
        memcpy(&v, p, (size_t)dtype_bytes(t));
        return v;
    }
    memcpy(&f, p, sizeof f);
    v.f = (double)f;
    return v;
}

static bool equal(enum dtype t, const unsigned char *x, const unsigned char *y)
{
    float a, b;

    if (t != DT_F32)
        return memcmp(x, y, (size_t)dtype_bytes(t)) == 0;
    memcpy(&a, x, sizeof a);
    memcpy(&b, y, sizeof b);
    return a == b || (isnan(a) && isnan(b));
}

/* Elements that differ; the first is described in text. */
static int differences(const random_ir *g, const memory *x, const memory *y, char *text,
                       size_t size)
{
    int n = 0;

    for (int i = 0; i < TENSORS; i++) {
        size_t element = (size_t)dtype_bytes(g->t[i].dtype);
        for (size_t at = 0; at < g->t[i].bytes; at += element) {
            if (equal(g->t[i].dtype, x->p[i] + at, y->p[i] + at))
                continue;
            ir_scalar a = element_of(g->t[i].dtype, x->p[i] + at);
            ir_scalar b = element_of(g->t[i].dtype, y->p[i] + at);
            if (n++ == 0)
                snprintf(text, size,
                         "tensor %s, element %zu of its memory: %lld (%g), not %lld (%g)",
                         g->m->kernel->params.at[i].name, at / element, (long long)a.i, a.f,
                         (long long)b.i, b.f);
        }
    }
    return n;
}

static void show(random_ir *g, const char *why, uint64_t seed)
{
    strbuf text;

    sb_init(&text, &g->a);
    ir_print(&text, g->m, 0);
    fprintf(stderr, "seed %llu: %s\n%s", (unsigned long long)seed, why, text.s);
}

static int check_target(random_ir *g, const target *t, const memory *start, const memory *want,
                        uint64_t seed)
{
    memory m = memory_new(g, start);
    int failed = 0, wrong;
    char text[256] = "";

    bind(g, &m);
    tw_status st = cpu_rig_run(g->m, t, false, g->arg, g->grid, &failed);
    wrong = st == TW_OK && failed == 0 ? differences(g, &m, want, text, sizeof text) : -1;
    if (st != TW_OK)
        snprintf(text, sizeof text, "%s: %s", tw_status_name(st), tw_last_error()->text);
    if (wrong)
        show(g, arena_printf(&g->a, "%s: %d elements differ; %s", t->name, wrong, text), seed);
    memory_free(g, &m);
    return wrong != 0;
}

static volatile uint64_t now_at; /* for a debugger */

typedef struct trial {
    uint64_t seed;
    int wrong;
} trial;

static tw_status one_kernel(void *arg)
{
    trial *r = arg;
    now_at = r->seed;
    random_ir g = {.state = r->seed * 7919 + 1, .grid = {2, 1, 1}};
    interp_fault fault = {0};

    arena_init(&g.a);
    intern_init(&g.names, &g.a);
    diag_init(&g.diags, &g.a);
    random_ir_make(&g);
    memory start = memory_new(&g, NULL), want = memory_new(&g, &start);
    bind(&g, &want);
    interp_launch launch = {.arg = g.arg, .grid = {g.grid[0], g.grid[1], g.grid[2]}};
    tw_status st = interp_run(interp_prepare(&g.a, g.m), &launch, 0, INT64_MAX, &fault);
    ck_assert_msg(st == TW_OK, "seed %llu: interpreter: %s", (unsigned long long)r->seed,
                  fault.text);
    if (random_ir_below(&g, 100) < 60)
        ck_assert_int_eq(pipeline_run(g.m, &g.diags, NULL), TW_OK);
    for (size_t i = 0; i < target_count(); i++) {
        const target *t = target_at(i);
        if (!strcmp(t->family, "cpu") && t->usable(t))
            r->wrong += check_target(&g, t, &start, &want, r->seed);
    }
    memory_free(&g, &start);
    memory_free(&g, &want);
    arena_release(&g.a);
    return TW_OK;
}

static long setting(const char *name, long otherwise)
{
    const char *text = getenv(name);

    return text ? strtol(text, NULL, 10) : otherwise;
}

START_TEST(random_kernels_agree_with_the_interpreter)
{
    long n = setting("TW_RANDOM_KERNELS", 25), first = setting("TW_RANDOM_SEED", 1);
    int wrong = 0;

    for (long i = first; i < first + n; i++) {
        trial r = {.seed = (uint64_t)i};
        ck_assert_int_eq(guard_run(one_kernel, &r), TW_OK);
        wrong += r.wrong;
    }
    ck_assert_int_eq(wrong, 0);
    ck_assert_int_eq(mem_live(), 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("random kernels on the CPU");
    TCase *t = tcase_create("random");

    tcase_set_timeout(t, 3000);
    tcase_add_test(t, random_kernels_agree_with_the_interpreter);
    suite_add_tcase(s, t);
    return s;
}
