/* Tiles of indices: gathers and scatters of rows, columns and both, with indices far outside,
 * between pages that cannot be touched. */
#include "tests/support/numeric_case.h"
#include "tests/support/numeric_dtype.h"
#include <check.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *spec, *target;
} device[] = {
    {"interp", NULL},         {"cpu", NULL}, {"cpu:1", "cpu-avx512"}, {"cpu:1", "cpu-avx2"},
    {"cpu:1", "cpu-generic"},
};
enum { DEVICES = sizeof device / sizeof *device, M = 23, N = 41, INDICES = 24 };

/* Rows of x that a tile of indices names: all different, some outside. */
static const int32_t rows[INDICES] = {5,  -1, 22, 0,       23,      7,  1,  2,  3,  40, 6,  4,
                                      20, 19, 18, INT_MAX, INT_MIN, 17, 16, 15, 14, 13, 12, -23};
static const int32_t columns[INDICES] = {40, 3,  41, 0,  39, -1, 17, 18, 19, 33, 32, 31,
                                         1,  2,  64, 30, 29, 28, 27, 26, 25, 24, 23, 22};

typedef struct gather {
    const char *what, *body;
    /* the element of x at element (i, j) of the result, of 24 by 24; -1: outside, or not there */
    int (*row)(int i), (*column)(int j);
} gather;

static int inside(int64_t v, int n) { return v >= 0 && v < n ? (int)v : -1; }
static int named_row(int i) { return inside(rows[i], M); }
static int named_column(int j) { return inside(columns[j], N); }
static int odd_row(int i) { return inside(2 * i + 1, M); }
static int row_from_end(int i) { return inside(M - 1 - i, M); }
static int next_row(int i) { return inside(i + 3, M); }
static int next_column(int j) { return inside(j + 30, N); }
static int fifth_row(int i) { (void)i; return 5; }

static const gather gathers[] = {
    {"rows", "load(x[r, 30 :+ 24])", named_row, next_column},
    {"columns", "load(x[3 :+ 24, c])", next_row, named_column},
    {"both", "load(x[r, c])", named_row, named_column},
    {"every other row", "load(x[arange(24) * 2 + 1, c])", odd_row, named_column},
    {"from the end", "load(x[m - 1 - arange(24), 30 :+ 24])", row_from_end, next_column},
    {"columns of a row", "broadcast(load(x[5, c])[None, :], 24, 24)", fifth_row, named_column},
    {"turned", "trans(load(trans_x[c, r]))", named_row, named_column},
};

typedef struct tensors {
    num_tensor x, turned, y;
    int32_t r[INDICES], c[INDICES];
} tensors;

static void open_tensors(tensors *t, const num_dtype *type, enum num_layout layout,
                         enum num_place place)
{
    num_random random = {7};

    num_alloc_as(&t->x, "x", type, 2, (int64_t[]){M, N}, layout, place);
    /* what has one row many times has no transpose that has */
    num_alloc_as(&t->turned, "trans_x", type, 2, (int64_t[]){N, M},
                 layout == NUM_BROADCAST ? NUM_DENSE : layout, place);
    num_alloc_as(&t->y, "y", type, 2, (int64_t[]){INDICES, INDICES}, NUM_PADDED, place);
    num_fill(&t->x, &random, 3.0);
    for (int i = 0; i < M * N; i++)
        num_set_at(&t->turned, i % N * M + i / N, num_value_at(&t->x, i));
    num_protect(&t->x);
    num_protect(&t->turned);
    memcpy(t->r, rows, sizeof rows);
    memcpy(t->c, columns, sizeof columns);
}

static void close_tensors(tensors *t)
{
    num_free(&t->x);
    num_free(&t->turned);
    num_free(&t->y);
}

/* False where the device cannot. */
static bool run(num_device *d, const char *type, const char *statement, tensors *t)
{
    const num_dtype *i32 = num_dtype_named("i32");
    int64_t n = INDICES;
    DLTensor tr = num_vector(i32, t->r, &n), tc = num_vector(i32, t->c, &n);
    char source[600];

    snprintf(source, sizeof source,
             "kernel g(x: %s[M, N], trans_x: %s[N, M], row: i32[24], column: i32[24],"
             " inout y: %s[P, Q], m: i32) grid (1) {\n"
             "    let r = load(row[:]), c = load(column[:]);\n    %s\n}\n",
             type, type, type, statement);
    return num_run_text(d, source,
                        (tw_arg[]){TW_TENSOR("x", &t->x.dl), TW_TENSOR("trans_x", &t->turned.dl),
                                   TW_TENSOR("row", &tr), TW_TENSOR("column", &tc),
                                   TW_TENSOR("y", &t->y.dl), TW_INT("m", M)},
                        6);
}

static int check_gather(num_device *d, const char *type, const gather *g, enum num_layout layout,
                        enum num_place place)
{
    char statement[160];
    tensors t;
    int bad = 0;

    open_tensors(&t, num_dtype_named(type), layout, place);
    snprintf(statement, sizeof statement, "store(y[0 :+ 24, 0 :+ 24], %s);", g->body);
    bool ran = run(d, type, statement, &t);
    for (int i = 0; i < INDICES * INDICES && ran; i++) {
        int r = g->row(i / INDICES), c = g->column(i % INDICES);
        double want = r < 0 || c < 0 ? 0.0 : num_value_at(&t.x, r * N + c);
        bad += num_value_at(&t.y, i) != want;
    }
    bad += !num_padding_intact(&t.y);
    close_tensors(&t);
    if (bad)
        num_say("%s: %d elements of %s of %s are wrong, layout %d\n", d->label, bad, g->what, type,
                (int)layout);
    return bad;
}

START_TEST(each_gather)
{
    static const char *const type[] = {"f32", "bf16", "f16"};
    num_device d;
    int bad = 0;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (size_t i = 0; i < sizeof gathers / sizeof *gathers; i++)
        for (int layout = 0; layout < NUM_LAYOUTS; layout++)
            bad += check_gather(&d, type[layout % 3], &gathers[i], (enum num_layout)layout,
                                layout % 2 ? NUM_AT_START : NUM_AT_END);
    num_close(&d);
    ck_assert_int_eq(bad, 0);
}
END_TEST

typedef struct scatter {
    const char *what, *statement;
    bool by_row, by_column;
} scatter;

static const scatter scatters[] = {
    {"rows", "store(y[r, 0 :+ 24], load(x[0 :+ 24, 0 :+ 24]));", true, false},
    {"columns", "store(y[0 :+ 24, c], load(x[0 :+ 24, 0 :+ 24]));", false, true},
    {"both", "store(y[r, c], load(x[0 :+ 24, 0 :+ 24]));", true, true},
};

static int check_scatter(num_device *d, const scatter *s, enum num_layout layout)
{
    static double want[INDICES * INDICES];
    tensors t;
    int bad = 0;

    open_tensors(&t, num_dtype_named("f32"), layout, NUM_AT_END);
    for (int i = 0; i < INDICES * INDICES; i++) {
        num_set_at(&t.y, i, -5.0);
        want[i] = -5.0;
    }
    for (int i = 0; i < INDICES * INDICES; i++) {
        int r = i / INDICES, c = i % INDICES;
        int to_r = inside(s->by_row ? rows[r] : r, INDICES);
        int to_c = inside(s->by_column ? columns[c] : c, INDICES);
        if (to_r >= 0 && to_c >= 0)
            want[to_r * INDICES + to_c] = r < M ? num_value_at(&t.x, r * N + c) : 0.0;
    }
    bool ran = run(d, "f32", s->statement, &t);
    for (int i = 0; i < INDICES * INDICES && ran; i++)
        bad += num_value_at(&t.y, i) != want[i];
    bad += !num_padding_intact(&t.y);
    close_tensors(&t);
    if (bad)
        num_say("%s: %d elements of a scatter of %s are wrong\n", d->label, bad, s->what);
    return bad;
}

START_TEST(each_scatter)
{
    num_device d;
    int bad = 0;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (size_t i = 0; i < sizeof scatters / sizeof *scatters; i++)
        for (int layout = 0; layout < NUM_BROADCAST; layout++)
            bad += check_scatter(&d, &scatters[i], (enum num_layout)layout);
    num_close(&d);
    ck_assert_int_eq(bad, 0);
}
END_TEST

/* A tile of indices of several dimensions: one of x for each, then one of y. */
START_TEST(blocks)
{
    static const char statement[] =
        "let at = load(row[4 :+ 20])[:, None] + arange(24)[None, :];"
        "store(y[4 :+ 20, 0 :+ 24], load(x[5, at]));"
        "store(y[3, arange(4)[:, None] * 6 + 5 - arange(6)[None, :]], load(x[0 :+ 4, 0 :+ 6]));";
    num_device d;
    int bad = 0;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (int layout = 0; layout < NUM_LAYOUTS; layout++) {
        tensors t;
        open_tensors(&t, num_dtype_named("f32"), (enum num_layout)layout, NUM_AT_END);
        bool ran = run(&d, "f32", statement, &t);
        for (int i = 3; i < INDICES && ran; i++)
            for (int j = 0; j < INDICES; j++) {
                int at = inside((int32_t)((uint32_t)rows[i] + (uint32_t)j), N);
                int from = i > 3 ? at < 0 ? -1 : 5 * N + at : j / 6 * N + 5 - j % 6;
                bad += num_value_at(&t.y, i * INDICES + j) !=
                       (from < 0 ? 0.0 : num_value_at(&t.x, from));
            }
        bad += !num_padding_intact(&t.y);
        close_tensors(&t);
    }
    num_close(&d);
    ck_assert_msg(bad == 0, "%s: %d elements", d.label, bad);
}
END_TEST

/* Pages of a tensor, by a table: what a paged cache does. */
START_TEST(pages)
{
    static const char text[] =
        "kernel paged(x: f32[PAGES, 8, 16], table: i32[N], out y: f32[K, 16]) grid (N) {\n"
        "    let page = load(table[program_id(0)]);\n"
        "    let slot = arange(8) ^ 1;\n"
        "    store(y[program_id(0) * 8 :+ 8, :], load(x[page, slot, :]));\n"
        "}\n";
    static float x[4 * 8 * 16], y[3 * 8 * 16];
    int32_t table[3] = {2, 7, 0};
    int64_t sx[] = {4, 8, 16}, st = 3, sy[] = {24, 16};
    num_device d;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    DLTensor tx = {x, {kDLCPU, 0}, 3, {kDLFloat, 32, 1}, sx, NULL, 0};
    DLTensor ty = {y, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, sy, NULL, 0};
    DLTensor tt = num_vector(num_dtype_named("i32"), table, &st);
    for (int i = 0; i < 4 * 8 * 16; i++)
        x[i] = (float)i;
    if (num_run_text(&d, text,
                     (tw_arg[]){TW_TENSOR("x", &tx), TW_TENSOR("table", &tt), TW_TENSOR("y", &ty)},
                     3))
        for (int i = 0; i < 3 * 8 * 16; i++) {
            int page = table[i / 128], slot = i / 16 % 8 ^ 1;
            float want = page < 4 ? x[page * 128 + slot * 16 + i % 16] : 0.0f;
            ck_assert_msg(y[i] == want, "%s: y[%d]", d.label, i);
        }
    num_close(&d);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("gathers");
    TCase *t = tcase_create("indices");

    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, each_gather, 0, DEVICES);
    tcase_add_loop_test(t, each_scatter, 0, DEVICES);
    tcase_add_loop_test(t, blocks, 0, DEVICES);
    tcase_add_loop_test(t, pages, 0, DEVICES);
    suite_add_tcase(s, t);
    return s;
}
