/* What masked_range visits, for random masks of rows and columns: the same with the search solved
 * (pass solve_searches) as with the search run, and what the mask itself says, element by element.
 * Most masks are solvable; TW_SEED and TW_COUNT in the environment choose which and how many. */
#include "compiler/base/guard.h"
#include "compiler/ir/iredit.h"
#include "compiler/passes/pipeline.h"
#include "compiler/target/interp/interp.h"
#include "dsl/dsl.h"
#include "tests/support/numeric_case.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 150, DRAWS = 8 };
enum { PROGRAMS = 3, ROWS = 5, STEP = 8, MOST_BLOCKS = 13 };
enum { ATOMS = 4, SCALARS = 4 };

static long setting(const char *name, long otherwise)
{
    const char *text = getenv(name);

    return text ? strtol(text, NULL, 0) : otherwise;
}

/* ---- masks ----------------------------------------------------------------------------------- */

enum side { COLUMN, ROW, SCALAR, ROW_PLUS, ROW_MINUS, COLUMN_OF, ROW_OF, LEAST, SIDES };
typedef struct atom { /* left op right, of which one may be negated and both made i64 */
    int left, right, op, scalar;
    int by; /* divisor; and factor of what is wide */
    bool negated, wide;
} atom;
typedef struct mask {
    int n;
    atom at[ATOMS];
    bool both[ATOMS]; /* and, else or, with what stands before */
} mask;
static const char *const operators[] = {"<", "<=", ">", ">=", "==", "!="};

static mask random_mask(num_random *r)
{
    mask m = {.n = 1 + (int)num_below(r, ATOMS)};

    for (int i = 0; i < m.n; i++) {
        atom *a = &m.at[i];
        *a = (atom){.left = num_below(r, 3) ? COLUMN : (int)num_below(r, SIDES),
                    .right = (int)num_below(r, SIDES),
                    .op = (int)num_below(r, num_below(r, 4) ? 4 : 6),
                    .scalar = (int)num_below(r, SCALARS),
                    .by = 1 + (int)num_below(r, 20),
                    .negated = num_below(r, 5) == 0,
                    .wide = num_below(r, 6) == 0};
        m.both[i] = num_below(r, 3) != 0;
    }
    return m;
}

static void side_text(strbuf *b, int side, const atom *a)
{
    if (a->wide)
        sb_fmt(b, "%d * cast(", a->by);
    switch ((enum side)side) {
    case COLUMN:
    case ROW:
        sb_fmt(b, "%s", side == ROW ? "row" : "col");
        break;
    case SCALAR:
        sb_fmt(b, "s%d", a->scalar);
        break;
    case ROW_PLUS:
    case ROW_MINUS:
        sb_fmt(b, "(row %c s%d)", side == ROW_PLUS ? '+' : '-', a->scalar);
        break;
    case COLUMN_OF:
    case ROW_OF:
        sb_fmt(b, "%s / %d", side == ROW_OF ? "row" : "col", a->by);
        break;
    case LEAST:
        sb_fmt(b, "minimum(col, s%d)", a->scalar);
        break;
    case SIDES:
        break;
    }
    if (a->wide)
        sb_fmt(b, ", i64)");
}

static void mask_text(strbuf *b, const mask *m)
{
    for (int i = 0; i < m->n; i++)
        sb_fmt(b, "(");
    for (int i = 0; i < m->n; i++) {
        const atom *a = &m->at[i];
        sb_fmt(b, "%s%s(", i == 0 ? "" : m->both[i] ? " & " : " | ", a->negated ? "!" : "");
        side_text(b, a->left, a);
        sb_fmt(b, " %s ", operators[a->op]);
        side_text(b, a->right, a);
        sb_fmt(b, "))");
    }
}

static int64_t side_value(int side, const atom *a, const int32_t *s, int64_t row, int64_t col)
{
    int64_t c = s[a->scalar], v = 0;

    switch ((enum side)side) {
    case COLUMN:
    case ROW:
        v = side == ROW ? row : col;
        break;
    case SCALAR:
        v = c;
        break;
    case ROW_PLUS:
    case ROW_MINUS: /* wraps in i32 */
        v = (int32_t)(uint32_t)(uint64_t)(side == ROW_PLUS ? row + c : row - c);
        break;
    case COLUMN_OF:
    case ROW_OF:
        v = (side == ROW_OF ? row : col) / a->by;
        break;
    case LEAST:
        v = col < c ? col : c;
        break;
    case SIDES:
        break;
    }
    return a->wide ? v * a->by : v;
}

static bool is_seen(const mask *m, const int32_t *s, int64_t row, int64_t col)
{
    bool seen = false;

    for (int i = 0; i < m->n; i++) {
        const atom *a = &m->at[i];
        int64_t x = side_value(a->left, a, s, row, col), y = side_value(a->right, a, s, row, col);
        const bool holds[] = {x<y, x <= y, x> y, x >= y, x == y, x != y};
        bool one = holds[a->op] != a->negated;
        seen = i == 0 ? one : m->both[i] ? (seen && one) : (seen || one);
    }
    return seen;
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* Row p of y: first index * 2, and 1 more of an edge, of each block that program p visits; behind
 * them -1. */
static void kernel_text(strbuf *b, const char *visible, const char *first)
{
    sb_fmt(b,
           "kernel k(out y: i32[P, C], s0: i32, s1: i32, s2: i32, s3: i32, end: i32)\n"
           "grid (P)\n{\n"
           "    let row = (program_id(0) * %d + arange(%d))[:, None];\n"
           "    var n = 0;\n"
           "    fn seen(n0) { let col = (n0 + arange(%d))[None, :]; return %s; }\n"
           "    for n0, EDGE in masked_range(%s, end, %d, seen) {\n"
           "        store(y[program_id(0), n], n0 * 2 + (EDGE ? 1 : 0));\n"
           "        n += 1;\n    }\n"
           "    store(y[program_id(0), n], -1);\n}\n",
           ROWS, ROWS, STEP, visible, first, STEP);
}

typedef struct visits {
    int32_t at[PROGRAMS][MOST_BLOCKS + 1];
} visits;

typedef struct job {
    arena a;
    intern names;
    diag_list diags;
    num_random random;
    const char *text; /* NULL: random ones */
    bool solved;
} job;

static void run(arena *a, const ir_module *m, const int32_t *s, int32_t end, visits *out)
{
    interp_arg arg[8] = {0};
    interp_fault fault = {0};
    interp_launch launch = {.arg = arg, .grid = {PROGRAMS, 1, 1}};

    memset(out, 0, sizeof *out);
    arg[0].view = (interp_view){out->at, {MOST_BLOCKS + 1, 1}, {PROGRAMS, MOST_BLOCKS + 1}};
    for (int i = 0; i < SCALARS; i++)
        arg[1 + i].scalar.i = s[i];
    arg[1 + SCALARS].scalar.i = end;
    arg[2 + SCALARS].scalar.i = PROGRAMS;
    arg[3 + SCALARS].scalar.i = MOST_BLOCKS + 1;
    tw_status st = interp_run(interp_prepare(a, m), &launch, 0, PROGRAMS, &fault);
    ck_assert_msg(st == TW_OK, "%s", fault.text);
}

static ir_module *lowered(job *j, const char *text)
{
    ir_module *m = NULL;
    dsl_unit *unit = NULL;

    diag_init(&j->diags, &j->a);
    intern_init(&j->names, &j->a);
    ck_assert_msg(dsl_load("k.tw", text, strlen(text), &j->diags, &unit) == TW_OK, "%s", text);
    const kernel_source *from = dsl_kernel(unit, 0);
    tw_status st = from->lower(from, &j->a, &j->names, NULL, 0, "cpu-avx2", &j->diags, &m);
    ck_assert_msg(st == TW_OK, "%s", text);
    dsl_unit_destroy(unit);
    return m;
}

static void count_loops(ir_op *op, void *arg)
{
    *(int *)arg += op->code == OP_FOR;
}

static int loops(const ir_module *m)
{
    int n = 0;

    ir_walk(m->kernel->body, count_loops, &n);
    return n;
}

static void pass(job *j, ir_module *m, const char *name)
{
    const pipeline_options verify = {.verify_each = true};

    ck_assert_msg(pipeline_run_pass(m, name, &j->diags, &verify) == TW_OK, "%s: %s", name,
                  tw_last_error()->text);
}

/* The module before and after the pass. */
static void two_forms(job *j, const char *text, ir_module *form[2])
{
    static const char *const steps[] = {"simplify", "cse", "bound_masks", "licm"};

    form[0] = lowered(j, text);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        pass(j, form[0], steps[i]);
    form[1] = ir_clone(form[0], &j->a);
    pass(j, form[1], "solve_searches");
    j->solved = loops(form[1]) < loops(form[0]);
}

/* ---- what must hold -------------------------------------------------------------------------- */

/* Every block with something to see is visited, whole ones alone without an edge, in order. */
static void check_visits(const mask *m, const int32_t *s, int32_t end, const visits *v,
                         const char *text)
{
    for (int p = 0; p < PROGRAMS; p++) {
        const int32_t *at = v->at[p];
        for (int32_t n0 = 0; n0 < end; n0 += STEP) {
            bool some = false, every = n0 + STEP <= end;
            for (int i = 0; i < ROWS * STEP; i++) {
                bool seen = is_seen(m, s, p * ROWS + i / STEP, n0 + i % STEP);
                some |= seen;
                every &= seen;
            }
            int edges = 0, wholes = 0;
            for (int i = 0; at[i] >= 0; i++) {
                edges += at[i] == n0 * 2 + 1;
                wholes += at[i] == n0 * 2;
            }
            ck_assert_msg(edges + wholes <= 1 && (!some || edges + wholes) && (every || !wholes),
                          "%send %d: program %d visits %d %d times, %d whole", text, end, p, n0,
                          edges + wholes, wholes);
        }
        for (int i = 0; at[i] >= 0; i++)
            ck_assert_msg(at[i] / 2 < end && (i == 0 || at[i] % 2 < at[i - 1] % 2 ||
                                              (at[i] % 2 == at[i - 1] % 2 && at[i] > at[i - 1])),
                          "%send %d: program %d, visit %d", text, end, p, i);
    }
}

static int32_t random_scalar(num_random *r)
{
    static const int64_t around[] = {0, 0, 40, 40, -30, INT32_MIN, INT32_MAX, 1 << 30, -(1 << 30)};
    int64_t v = around[num_below(r, 9)] + num_below(r, 41) - 20;

    return (int32_t)(v < INT32_MIN ? INT32_MIN : v > INT32_MAX ? INT32_MAX : v);
}

static void check_draws(job *j, const mask *m, const char *text, ir_module *const form[2])
{
    for (int draw = 0; draw < DRAWS; draw++) {
        int32_t s[SCALARS], end = (int32_t)num_below(&j->random, STEP * MOST_BLOCKS + 9) - 8;
        visits searched, solved;
        arena_mark mark = arena_save(&j->a);
        for (int i = 0; i < SCALARS; i++)
            s[i] = random_scalar(&j->random);
        run(&j->a, form[0], s, end, &searched);
        run(&j->a, form[1], s, end, &solved);
        ck_assert_msg(!memcmp(&searched, &solved, sizeof solved), "%send %d, %d %d %d %d", text,
                      end, s[0], s[1], s[2], s[3]);
        check_visits(m, s, end, &solved, text);
        arena_rewind(&j->a, mark);
    }
}

static tw_status random_masks(void *arg)
{
    job *j = arg;
    long first = setting("TW_SEED", 1), n = setting("TW_COUNT", COUNT), solved = 0;

    for (long seed = first; seed < first + n; seed++) {
        arena_mark mark = arena_save(&j->a);
        strbuf of_mask, text;
        ir_module *form[2];
        j->random = (num_random){(uint64_t)seed};
        mask m = random_mask(&j->random);
        sb_init(&of_mask, &j->a);
        sb_init(&text, &j->a);
        mask_text(&of_mask, &m);
        kernel_text(&text, of_mask.s, "0");
        two_forms(j, text.s, form);
        solved += j->solved;
        check_draws(j, &m, text.s, form);
        arena_rewind(&j->a, mark);
    }
    ck_assert_msg(n < 20 || solved * 2 > n, "only %ld of %ld searches are solved", solved, n);
    return TW_OK;
}

START_TEST(random_masks_are_visited_as_searched)
{
    static job j;

    arena_init(&j.a);
    ck_assert_int_eq(guard_run(random_masks, &j), TW_OK);
    arena_release(&j.a);
}
END_TEST

/* ---- kinds ----------------------------------------------------------------------------------- */

typedef struct kind {
    const char *mask, *first;
    bool solved;
} kind;

static const kind kinds[] = {
    {"col < end & col <= row + s0", "0", true},              /* causal */
    {"col <= row + s0 & col > row + s0 - s1", "0", true},    /* window */
    {"col < end & (col < s1 | col <= row + s0)", "0", true}, /* prefix */
    {"col < s1", "0", true},                                 /* lengths */
    {"col / 16 == row / 16", "0", true},                     /* chunks */
    {"col >> 4 <= row >> 4", "0", true},
    {"col < s0 | (col > row - 9 & col <= row)", "0", true}, /* window and sinks */
    {"col < s1 & (col > row | s3 > 0)", "0", true},
    {"col < maximum(s0, row) & minimum(col, row) < s2", "0", true},
    {"true", "0", true},
    {"col <= row + s0", "16", true},
    {"col <= row + s0", "s1", false}, /* may wrap */
    {"col * col < row", "0", false},
    {"col % 3 == 0 & col <= row", "0", false},
    {"(col ^ row) < 8", "0", false},
};

static tw_status each_kind(void *arg)
{
    job *j = arg;

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        strbuf text;
        ir_module *form[2];
        sb_init(&text, &j->a);
        kernel_text(&text, kinds[i].mask, kinds[i].first);
        two_forms(j, text.s, form);
        ck_assert_msg(j->solved == kinds[i].solved, "%s: %s", kinds[i].mask,
                      j->solved ? "solved" : "searched");
    }
    return TW_OK;
}

START_TEST(linear_masks_need_no_search)
{
    static job j;

    arena_init(&j.a);
    ck_assert_int_eq(guard_run(each_kind, &j), TW_OK);
    arena_release(&j.a);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("searches for blocks");
    TCase *t = tcase_create("searches");

    tcase_add_test(t, random_masks_are_visited_as_searched);
    tcase_add_test(t, linear_masks_need_no_search);
    suite_add_tcase(s, t);
    return s;
}
