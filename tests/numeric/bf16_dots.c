/* Dots of bf16 whose operands are used in more than one way: along both dimensions, beside other
 * uses, rounded on the way, ragged, in either order in memory, with an even and an odd inner
 * extent. Whole numbers, so that every sum is exact in any order. */
#include "tests/support/numeric_dtype.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *spec, *target;
} device[] = {
    {"interp", NULL},        {"cpu", NULL},         {"cpu:1", "cpu-avx512-bf16"},
    {"cpu:1", "cpu-avx512"}, {"cpu:1", "cpu-avx2"}, {"cpu:1", "cpu-generic"},
};
enum { DEVICES = sizeof device / sizeof *device };

enum { M = 21, N = 37, MOST = 70 };

typedef struct problem {
    int k, tile_k; /* extent, and of the tile that holds it */
    bool turned;   /* tensors lie column by column */
} problem;
static const problem problems[] = {
    {24, 24, false}, {21, 24, false}, {21, 24, true},  {31, 31, false},
    {31, 31, true},  {2, 2, false},   {64, 64, false}, {61, 70, true},
};
enum { PROBLEMS = sizeof problems / sizeof *problems };

/* Rows of x are used as rows and as columns; y too, and is stored; z is rounded to bf16. */
static const char text[] =
    "kernel dots[TM: int, TK: int, TN: int](a: bf16[M, K], b: bf16[K, N], out c: f32[M, N],\n"
    "    out d: f32[K, K], out e: f32[N, N], out f: f32[M, N], out g: bf16[K, N]) grid (1) {\n"
    "    let x = load(a[0 :+ TM, 0 :+ TK]), y = load(b[0 :+ TK, 0 :+ TN]);\n"
    "    let z = cast(cast(x, f32) * 257.0, bf16);\n"
    "    var s = zeros(f32[TM, TN]);\n"
    "    for i in range(0, 3, 1) s = dot(x, y, s);\n"
    "    store(c[0 :+ TM, 0 :+ TN], s);\n"
    "    store(d[0 :+ TK, 0 :+ TK], dot(trans(x), x));\n"
    "    store(e[0 :+ TN, 0 :+ TN], dot(trans(y), y, 1.0));\n"
    "    store(f[0 :+ TM, 0 :+ TN], dot(z, y));\n"
    "    store(g[0 :+ TK, 0 :+ TN], y + y);\n"
    "}\n";

static const num_dtype *bf16(void)
{
    return num_dtype_named("bf16");
}

typedef struct matrix {
    int64_t shape[2], stride[2];
    char data[MOST * MOST * 4];
    DLTensor t;
} matrix;

static matrix *new_matrix(const num_dtype *k, int rows, int columns, bool turned)
{
    matrix *m = calloc(1, sizeof *m);

    ck_assert_ptr_nonnull(m);
    m->shape[0] = rows;
    m->shape[1] = columns;
    m->stride[turned] = turned ? rows : columns;
    m->stride[0] = turned ? 1 : columns;
    m->stride[1] = turned ? rows : 1;
    m->t =
        (DLTensor){m->data, {kDLCPU, 0}, 2, {k->code, (uint8_t)k->bits, 1}, m->shape, m->stride, 0};
    memset(m->data, 0x7f, sizeof m->data);
    return m;
}

static int place(const matrix *m, int i, int j)
{
    return (int)(i * m->stride[0] + j * m->stride[1]);
}

static double get(const num_dtype *k, const matrix *m, int i, int j)
{
    return num_get(k, m->data, place(m, i, j)).f;
}

static void fill(num_random *r, matrix *m)
{
    for (int i = 0; i < m->shape[0]; i++)
        for (int j = 0; j < m->shape[1]; j++)
            num_put(bf16(), m->data, place(m, i, j), (num_value){.f = (double)num_below(r, 7) - 3});
}

/* sum over k of x[i, k] y[k, j], where a transposed factor is read the other way round */
static double product(const matrix *x, bool tx, const matrix *y, bool ty, int i, int j, int n)
{
    double sum = 0.0;

    for (int k = 0; k < n; k++)
        sum += (tx ? get(bf16(), x, k, i) : get(bf16(), x, i, k)) *
               (ty ? get(bf16(), y, j, k) : get(bf16(), y, k, j));
    return sum;
}

typedef struct run {
    matrix *a, *b, *c, *d, *e, *f, *g;
} run;

static int wrong_elements(const run *t, int k)
{
    const num_dtype *f32 = num_dtype_named("f32");
    int bad = 0;

    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double ab = product(t->a, false, t->b, false, i, j, k);
            bad += get(f32, t->c, i, j) != 3 * ab;
            double z = 0.0;
            for (int l = 0; l < k; l++)
                z += num_round(bf16(), 257 * get(bf16(), t->a, i, l)) * get(bf16(), t->b, l, j);
            bad += get(f32, t->f, i, j) != z;
        }
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++)
            bad += get(f32, t->d, i, j) != product(t->a, true, t->a, false, i, j, M);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            bad += get(f32, t->e, i, j) != 1 + product(t->b, true, t->b, false, i, j, k);
    for (int i = 0; i < k; i++)
        for (int j = 0; j < N; j++)
            bad += get(bf16(), t->g, i, j) != 2 * get(bf16(), t->b, i, j);
    return bad;
}

static int check_problem(num_device *d, num_random *r, const problem *p)
{
    const num_dtype *f32 = num_dtype_named("f32");
    run t = {new_matrix(bf16(), M, p->k, p->turned), new_matrix(bf16(), p->k, N, p->turned),
             new_matrix(f32, M, N, p->turned),       new_matrix(f32, p->k, p->k, p->turned),
             new_matrix(f32, N, N, p->turned),       new_matrix(f32, M, N, p->turned),
             new_matrix(bf16(), p->k, N, p->turned)};
    int bad = 0;

    fill(r, t.a);
    fill(r, t.b);
    tw_arg arg[] = {TW_TENSOR("a", &t.a->t), TW_TENSOR("b", &t.b->t), TW_TENSOR("c", &t.c->t),
                    TW_TENSOR("d", &t.d->t), TW_TENSOR("e", &t.e->t), TW_TENSOR("f", &t.f->t),
                    TW_TENSOR("g", &t.g->t), TW_INT("TM", 24),        TW_INT("TK", p->tile_k),
                    TW_INT("TN", 40)};
    if (num_run_text(d, text, arg, 10))
        bad = wrong_elements(&t, p->k);
    if (bad)
        num_say("%s: %d elements are wrong, inner extent %d of %d%s\n", d->label, bad, p->k,
                p->tile_k, p->turned ? ", turned" : "");
    matrix *all[] = {t.a, t.b, t.c, t.d, t.e, t.f, t.g};
    for (int i = 0; i < 7; i++)
        free(all[i]);
    return bad;
}

START_TEST(dots)
{
    num_random r = {57};
    num_device d;
    int bad = 0;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (int i = 0; i < PROBLEMS; i++)
        bad += check_problem(&d, &r, &problems[i]);
    num_close(&d);
    ck_assert_int_eq(bad, 0);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("dots of bf16");
    TCase *t = tcase_create("operands");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, dots, 0, DEVICES);
    suite_add_tcase(s, t);
    return s;
}
