/* The interface of dsl/: what a load gives, signatures, constraints, statuses, memory, threads. */
#include "dsl/dsl.h"
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "compiler/ir/irtext.h"
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static arena a;
static diag_list diags;
static dsl_unit *unit;

static void setup(void)
{
    arena_init(&a);
    diag_init(&diags, &a);
    unit = NULL;
}

static void teardown(void)
{
    dsl_unit_destroy(unit);
    arena_release(&a);
    ck_assert_int_eq(mem_live(), 0);
}

static tw_status load(const char *text)
{
    return dsl_load("t.tw", text, strlen(text), &diags, &unit);
}

static const char full[] =
    "const TILE = 8;\n"
    "kernel first[T: float, D: int = 16, U: dtype = i64, F: bool = true](\n"
    "    q: T[B, M, D], out o: f32[M, 4, TILE], inout r: U[B], s: f32 = 1.0, n: i32)\n"
    "require n > 0\n"
    "tune P in {3, 1, 2}, Q in {10, 20} with P * D <= 32, F || P == 1\n"
    "tune on \"cpu\" P in {4, 5}\n"
    "tune on \"cpu-avx512\" P in {8} with Q == 20\n"
    "grid (M)\n"
    "{\n"
    "}\n"
    "kernel second() grid (1) { }\n";

START_TEST(a_signature)
{
    ck_assert_int_eq(load(full), TW_OK);
    ck_assert_uint_eq(dsl_kernel_count(unit), 2);
    ck_assert_str_eq(dsl_kernel_name(unit, 0), "first");
    ck_assert_str_eq(dsl_kernel_name(unit, 1), "second");
    const kernel_sig *s = &dsl_kernel(unit, 0)->sig;

    ck_assert_str_eq(s->name, "first");
    ck_assert_int_eq(s->text_lines, 9);
    ck_assert_uint_eq(s->nparams, 5);
    ck_assert_uint_eq(s->nsymbols, 2);
    ck_assert_str_eq(s->symbol[0], "B");
    ck_assert_str_eq(s->symbol[1], "M");

    const sig_param *q = &s->param[0], *o = &s->param[1], *r = &s->param[2];
    ck_assert(q->is_tensor && q->direction == DIR_IN && q->rank == 3);
    ck_assert(q->dtype == DT_NONE && q->dtype_const == 0);
    ck_assert(q->dim[0].kind == SIG_DIM_SYMBOL && q->dim[0].index == 0);
    ck_assert(q->dim[1].kind == SIG_DIM_SYMBOL && q->dim[1].index == 1);
    ck_assert(q->dim[2].kind == SIG_DIM_CONST && q->dim[2].index == 1);
    ck_assert(o->direction == DIR_OUT && o->dtype == DT_F32 && o->dtype_const == -1);
    ck_assert(o->dim[1].kind == SIG_DIM_LITERAL && o->dim[1].literal == 4);
    ck_assert(o->dim[2].kind == SIG_DIM_LITERAL && o->dim[2].literal == 8);
    ck_assert(r->direction == DIR_INOUT && r->dtype_const == 2);
    ck_assert(!s->param[3].is_tensor && s->param[3].has_default);
    ck_assert(!s->param[4].is_tensor && !s->param[4].has_default && s->param[4].dtype == DT_I32);

    ck_assert_uint_eq(s->nconsts, 4);
    ck_assert(s->cons[0].kind == BIND_DTYPE && !s->cons[0].has_default);
    ck_assert_uint_eq(s->cons[0].dtypes, 1u << DT_F16 | 1u << DT_BF16 | 1u << DT_F32);
    ck_assert(s->cons[1].kind == BIND_INT && s->cons[1].default_value == 16);
    ck_assert(s->cons[2].has_default && s->cons[2].default_value == DT_I64);
    ck_assert(s->cons[3].kind == BIND_BOOL && s->cons[3].default_value == 1);
}
END_TEST

START_TEST(tune_sets_by_target)
{
    ck_assert_int_eq(load(full), TW_OK);
    const kernel_sig *s = &dsl_kernel(unit, 0)->sig;

    ck_assert_uint_eq(s->ntunes, 2);
    ck_assert_str_eq(s->tune[0].name, "P");
    ck_assert_str_eq(s->tune[1].name, "Q");
    const struct sig_set *any = sig_tune_set(s, 0, "nvptx-sm_80");
    ck_assert_uint_eq(any->n, 3);
    ck_assert_int_eq(any->value[0], 3);
    ck_assert_int_eq(any->value[2], 2);
    ck_assert_int_eq(sig_tune_set(s, 0, "cpu-avx2")->value[1], 5);
    ck_assert_int_eq(sig_tune_set(s, 0, "cpu-avx512")->value[0], 8);
    ck_assert_int_eq(sig_tune_set(s, 1, "cpu-avx512")->value[1], 20);
}
END_TEST

static const char ranges[] = "kernel k() tune A in {64, range(16, 97, 16), 7}, B in range(3),"
                             " C in range(9, 0, -4) grid (1) { }";

START_TEST(tune_sets_of_ranges)
{
    static const int64_t want[3][7] = {{64, 16, 32, 48, 80, 96, 7}, {0, 1, 2}, {9, 5, 1}};
    static const uint32_t count[3] = {7, 3, 3};

    ck_assert_int_eq(load(ranges), TW_OK);
    for (uint32_t i = 0; i < 3; i++) {
        const struct sig_set *set = sig_tune_set(&dsl_kernel(unit, 0)->sig, i, "cpu");
        ck_assert_uint_eq(set->n, count[i]);
        for (uint32_t k = 0; k < set->n; k++)
            ck_assert_int_eq(set->value[k], want[i][k]);
    }
}
END_TEST

static bool is_valid(int64_t p, int64_t q, int64_t d, int64_t f, const char *target,
                     const char **why)
{
    const kernel_source *s = dsl_kernel(unit, 0);
    const ir_binding b[] = {{"T", BIND_DTYPE, DT_F32}, {"D", BIND_INT, d},
                            {"U", BIND_DTYPE, DT_I32}, {"F", BIND_BOOL, f},
                            {"P", BIND_INT, p},        {"Q", BIND_INT, q}};

    return s->valid(s, b, 6, target, why);
}

START_TEST(constraints_by_target)
{
    const char *why = NULL;

    ck_assert_int_eq(load(full), TW_OK);
    ck_assert(is_valid(2, 10, 16, 1, "interp", &why));
    ck_assert(!is_valid(3, 10, 16, 1, "interp", &why));
    ck_assert_str_eq(why, "P * D <= 32");
    ck_assert(!is_valid(2, 10, 16, 0, "cpu-avx2", &why));
    ck_assert_str_eq(why, "F || P == 1");
    ck_assert(is_valid(2, 10, 16, 1, "cpu-avx2", &why));
    ck_assert(!is_valid(2, 10, 16, 1, "cpu-avx512", &why));
    ck_assert_str_eq(why, "Q == 20");
    ck_assert(is_valid(2, 20, 16, 1, "cpu-avx512", &why));
    ck_assert(is_valid(1000000000, 1, 0, 1, "", &why));
}
END_TEST

static tw_status lower_body(void *out)
{
    const kernel_source *s = dsl_kernel(unit, 0);
    ir_binding b[16];
    uint32_t n = 0;
    intern names;
    ir_module *m = NULL;

    intern_init(&names, &a);
    for (uint32_t i = 0; i < s->sig.nconsts; i++)
        b[n++] = (ir_binding){s->sig.cons[i].name, s->sig.cons[i].kind, DT_F16};
    for (uint32_t i = 0; i < s->sig.ntunes; i++)
        b[n++] = (ir_binding){s->sig.tune[i].name, BIND_INT, s->sig.tune[i].set[0].value[0]};
    tw_status st = s->lower(s, &a, &names, b, n, "cpu", &diags, &m);
    if (st == TW_OK && out)
        *(ir_module **)out = m;
    return st;
}

static const struct {
    const char *text;
    tw_status load, lower;
} statuses[] = {
    {"kernel k(x: f32[N]) grid (N) { }", TW_OK, TW_OK},
    {"kernel k(x: f32[N]) grid (N) { let a = 1 }", TW_E_SOURCE, TW_OK},
    {"kernel k(x: f32[N]) grid (N) { let a = x + 1.0; }", TW_OK, TW_E_SOURCE},
    {"kernel k(x: f32[N]) grid (N) { let a = zeros(f32[2048, 2048]); }", TW_OK, TW_E_LIMIT},
    {"kernel k[B: bool](x: f32[N]) require !B grid (N) { }", TW_OK, TW_E_ARG},
    {"", TW_OK, TW_OK},
};

START_TEST(statuses_say_whose_fault)
{
    ck_assert_int_eq(load(statuses[_i].text), statuses[_i].load);
    if (statuses[_i].load == TW_OK && dsl_kernel_count(unit))
        ck_assert_int_eq(guard_run(lower_body, NULL), statuses[_i].lower);
}
END_TEST

static tw_status render(void *out)
{
    strbuf b;

    sb_init(&b, &a);
    diag_render(&diags, &b, 0);
    *(char **)out = b.s;
    return TW_OK;
}

START_TEST(diagnostics_outlive_a_failed_load)
{
    char text[] = "kernel k(x: f32[N]) grid (N) {\n    let y = loadd(x[0]);\n}\n", *out = NULL;

    ck_assert_int_eq(load(text), TW_E_SOURCE);
    ck_assert_ptr_null(unit);
    memset(text, '?', sizeof text - 1);
    ck_assert_int_eq(guard_run(render, &out), TW_OK);
    ck_assert_str_eq(out, "t.tw:2:13: error: nothing here is called 'loadd' [unknown-name]\n"
                          "    2 |     let y = loadd(x[0]);\n"
                          "      |             ^~~~~\n"
                          "      = hint: did you mean 'load'?\n");
}
END_TEST

START_TEST(embedded_zeros_are_errors)
{
    static const char text[] = "kernel k() grid (1) { \0 }";

    ck_assert_int_eq(dsl_load("t", text, sizeof text - 1, &diags, &unit), TW_E_SOURCE);
}
END_TEST

static char *attention(void)
{
    FILE *f = fopen("tests/dsl/ok/design_attention.tw", "rb");
    char *text = calloc(1, 1 << 16);

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_gt(fread(text, 1, (1 << 16) - 1, f), 1000);
    fclose(f);
    return text;
}

/* Lowers into an arena of its own; the printed IR. */
typedef struct job {
    arena a;
    diag_list diags;
    char *text;
} job;

static tw_status job_body(void *arg)
{
    job *j = arg;
    const kernel_source *s = dsl_kernel(unit, 0);
    const ir_binding b[] = {{"T", BIND_DTYPE, DT_F32}, {"D", BIND_INT, 128},
                            {"DV", BIND_INT, 64},      {"CAUSAL", BIND_BOOL, 1},
                            {"BLOCK_M", BIND_INT, 32}, {"BLOCK_N", BIND_INT, 16}};
    intern names;
    ir_module *m = NULL;
    strbuf out;

    diag_init(&j->diags, &j->a);
    intern_init(&names, &j->a);
    tw_status st = s->lower(s, &j->a, &names, b, 6, "cpu", &j->diags, &m);
    if (st != TW_OK)
        return st;
    sb_init(&out, &j->a);
    ir_print(&out, m, 0);
    j->text = out.s;
    return TW_OK;
}

static void *job_thread(void *arg)
{
    job *j = arg;

    arena_init(&j->a);
    return guard_run(job_body, j) == TW_OK ? j->text : NULL;
}

START_TEST(threads_share_a_source)
{
    pthread_t thread[4];
    job jobs[4] = {0};
    void *out = NULL;
    char *text = attention();

    ck_assert_int_eq(load(text), TW_OK);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, job_thread, &jobs[i]), 0);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_join(thread[i], &out), 0);
        ck_assert_ptr_nonnull(out);
        ck_assert_str_eq(jobs[i].text, jobs[0].text);
    }
    for (int i = 0; i < 4; i++)
        arena_release(&jobs[i].a);
    free(text);
}
END_TEST

/* Fail each allocation in turn: no crash, no leak, the right status. */
START_TEST(out_of_memory_is_a_status)
{
    char *text = attention();
    tw_status st = TW_E_NOMEM;

    for (long n = 1; st == TW_E_NOMEM && n < 1000; n++) {
        arena_init(&a);
        diag_init(&diags, &a);
        mem_fail_after(n);
        st = load(text);
        if (st == TW_OK) {
            job j = {0};
            arena_init(&j.a);
            st = guard_run(job_body, &j);
            arena_release(&j.a);
        }
        mem_fail_after(0);
        ck_assert(st == TW_OK || st == TW_E_NOMEM);
        dsl_unit_destroy(unit);
        unit = NULL;
        arena_release(&a);
        ck_assert_int_eq(mem_live(), 0);
    }
    ck_assert_int_eq(st, TW_OK);
    free(text);
}
END_TEST

/* A few words repeat a kernel as long as a text may be: only so often. */
START_TEST(what_is_extended_is_bounded)
{
    enum { ROOM = 1 << 20 };
    char *text = malloc(ROOM);
    size_t n = 0;

    n += (size_t)snprintf(text + n, ROOM - n, "kernel k(x: f32[N]) grid (1) {\n");
    for (int i = 0; i < 25000; i++)
        n += (size_t)snprintf(text + n, ROOM - n, "{ let a = N + N; }\n");
    n += (size_t)snprintf(text + n, ROOM - n, "}\n");
    for (int i = 0; i < 8000; i++)
        n += (size_t)snprintf(text + n, ROOM - n, "kernel k%d extends k { }\n", i);
    ck_assert_uint_lt(n, ROOM);
    ck_assert_int_eq(load(text), TW_E_SOURCE);
    ck_assert_uint_eq(diags.errors, 1);
    ck_assert_int_eq(diags.all.at[0]->id, DIAG_LIMIT);
    free(text);
}
END_TEST

START_TEST(the_tree_prints)
{
    static const char text[] = "fn f(x) { return x * 2; }\n"
                               "kernel k(n: i32) grid (1) {\n"
                               "    var a = 0, b = 0;\n"
                               "    fn bump() { a += 1; }\n"
                               "    for i in range(n) { if (i > 2) bump(); else b = f(i); }\n"
                               "}\n";

    ck_assert_int_eq(load(text), TW_OK);
    const kernel_source *s = dsl_kernel(unit, 0);
    ck_assert_str_eq(s->print_ast(s, &a), "fn f(x)\n"
                                          "  return (* x 2)\n"
                                          "kernel k\n"
                                          "  scalar n: i32\n"
                                          "  grid (1)\n"
                                          "    var a = 0\n"
                                          "    var b = 0\n"
                                          "    fn bump()  assigns a\n"
                                          "      a += 1\n"
                                          "    for i in range(n)  assigns a, b\n"
                                          "      if (> i 2)  assigns a, b\n"
                                          "        bump()\n"
                                          "      else\n"
                                          "        b = f(i)\n");
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("dsl");
    TCase *c = tcase_create("dsl");

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, a_signature);
    tcase_add_test(c, tune_sets_by_target);
    tcase_add_test(c, tune_sets_of_ranges);
    tcase_add_test(c, constraints_by_target);
    tcase_add_loop_test(c, statuses_say_whose_fault, 0, sizeof statuses / sizeof *statuses);
    tcase_add_test(c, diagnostics_outlive_a_failed_load);
    tcase_add_test(c, embedded_zeros_are_errors);
    tcase_add_test(c, threads_share_a_source);
    tcase_add_test(c, out_of_memory_is_a_status);
    tcase_add_test(c, what_is_extended_is_bounded);
    tcase_add_test(c, the_tree_prints);
    suite_add_tcase(s, c);
    return s;
}
