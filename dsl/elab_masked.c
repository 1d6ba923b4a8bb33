/* elab_masked: for n, EDGE in masked_range(first, end, step, visible).
 *
 *   for i in blocks                        which blocks are seen, which are a whole run?
 *       seen = some(visible(n)), whole = every(visible(n)) and the block ends before `end`
 *   for i in seen blocks without the run   { if (some(visible(n))) body, EDGE is true }
 *   for i in the run                       { body, EDGE is false }
 *
 * where n is first + i * step. Only the first run of whole blocks is told apart. What `some` and
 * `every` make of a mask, pass bound_masks says; pass solve_searches knows this search, and divides
 * instead where it can.
 * The bounds of the last loop say twice what is true already, for proofs that slices are inside.
 */
#include "dsl/elaborate.h"

typedef struct masked {
    elab *cx;
    const stmt *s;
    const decl *visible;
    int64_t step;
    ir_val first, blocks, full; /* full: how many blocks end before `end` */
    ir_val seen_lo, seen_hi;    /* blocks from, to */
    ir_val run_lo, run_hi;
} masked;

static ir_val binary(masked *m, enum ir_opcode code, ir_val x, ir_val y)
{
    return ir_binary(&m->cx->b, code, x, y);
}

static ir_val number(masked *m, enum dtype t, int64_t c)
{
    return ir_const_int(&m->cx->b, t, c);
}

/* ---- arguments ---- */

static bool read_visible(masked *m)
{
    const expr *e = m->s->list.at[3];
    value v = elab_expr(m->cx, e);

    if (v.kind != VAL_FN)
        return false;
    m->visible = v.as.decl;
    if (m->visible->fn->args.n == 1)
        return true;
    diag *d = elab_error(m->cx, DIAG_BAD_CALL, e->where,
                         "masked_range calls '%s' with a block's first index, but it is %s",
                         m->visible->name, ast_fn_type(m->visible->fn, m->cx->diags->a));
    diag_note(m->cx->diags, d, m->visible->where, "'%s' is declared here", m->visible->name);
    return false;
}

/* In i64, where nothing wraps. */
static void count_blocks(masked *m, ir_val end)
{
    elab *cx = m->cx;
    ir_val zero = number(m, DT_I64, 0), step = number(m, DT_I64, m->step);
    ir_val first = ir_cast(&cx->b, m->first, DT_I64), last = ir_cast(&cx->b, end, DT_I64);
    ir_val length = binary(m, OP_MAX, binary(m, OP_SUB, last, first), zero);
    ir_val up = binary(m, OP_ADD, length, number(m, DT_I64, m->step - 1));
    ir_val most = number(m, DT_I64, INT32_MAX);
    m->blocks = ir_cast(&cx->b, binary(m, OP_MIN, binary(m, OP_DIV, up, step), most), DT_I32);
    m->full = ir_cast(&cx->b, binary(m, OP_MIN, binary(m, OP_DIV, length, step), most), DT_I32);
}

static bool read_arguments(masked *m)
{
    const expr_list *list = &m->s->list;
    value v[3];

    for (int i = 0; i < 3; i++)
        v[i] = elab_expr(m->cx, list->at[i]);
    m->first = elab_need_index(m->cx, &v[0], list->at[0], "the first value of masked_range");
    ir_val end = elab_need_index(m->cx, &v[1], list->at[1], "the end of masked_range");
    if (!elab_need_int(m->cx, &v[2], list->at[2], "the step of masked_range", 1, INT32_MAX,
                       &m->step) ||
        !read_visible(m) || !m->first || !end)
        return false;
    count_blocks(m, end);
    return true;
}

/* ---- blocks ---- */

static ir_val start_of(masked *m, ir_val block)
{
    return binary(m, OP_ADD, binary(m, OP_MUL, block, number(m, DT_I32, m->step)), m->first);
}

/* visible(n): a constant, an i1 scalar or an i1 tile; VAL_BAD after a report. */
static value visible_at(masked *m, ir_val n)
{
    const expr *e = m->s->list.at[3];
    value at = val_run(n), v = elab_inline(m->cx, e, m->visible, &at, &m->s->list.at[3]);

    if (v.kind == VAL_BAD || (val_is_number(&v) && val_dtype_of(m->cx, &v) == DT_I1))
        return v;
    elab_error(m->cx, DIAG_BAD_OPERAND, e->where, "'%s' gives %s, but masked_range needs i1",
               m->visible->name, val_text(m->cx, &v));
    return val_bad();
}

/* some(v) or every(v), as an i1 scalar. */
static ir_val summary(masked *m, enum ir_opcode what, const value *v)
{
    if (v->kind != VAL_RUN)
        return number(m, DT_I1, v->kind == VAL_CONST && v->as.num.i);
    if (val_run_type(m->cx, v).kind == TYPE_SCALAR)
        return v->as.run;
    return ir_build(&m->cx->b, what, &v->as.run, 1, NULL, (ir_type){0})->res;
}

/* One block of the search: carried are seen_lo, seen_hi, run_lo, run_hi. */
static void search_block(masked *m, ir_val i, ir_val at, ir_val next[4])
{
    ir_builder *b = &m->cx->b;
    ir_val seen_lo = at, seen_hi = at + 1, run_lo = at + 2, run_hi = at + 3;
    ir_val after = binary(m, OP_ADD, i, number(m, DT_I32, 1));
    value v = visible_at(m, start_of(m, i));
    ir_val seen = summary(m, OP_SOME, &v);
    ir_val every = summary(m, OP_EVERY, &v);
    ir_val whole = binary(m, OP_AND, every, binary(m, OP_CMP_LT, i, m->full));
    ir_val begins = binary(m, OP_CMP_EQ, run_hi, number(m, DT_I32, 0));
    ir_val grows = binary(m, OP_OR, begins, binary(m, OP_CMP_EQ, run_hi, i));

    next[0] = ir_where(b, seen, binary(m, OP_MIN, seen_lo, i), seen_lo);
    next[1] = ir_where(b, seen, after, seen_hi);
    next[2] = ir_where(b, binary(m, OP_AND, whole, begins), i, run_lo);
    next[3] = ir_where(b, binary(m, OP_AND, whole, grows), after, run_hi);
}

static void search(masked *m)
{
    elab *cx = m->cx;
    ir_val zero = number(m, DT_I32, 0), one = number(m, DT_I32, 1), next[4];
    ir_val init[4] = {m->blocks, zero, zero, zero};
    ir_op *op = ir_for(&cx->b, zero, m->blocks, one, init, 4);
    ir_builder outer = cx->b;

    cx->b = ir_at_end(outer.fn, op->regions[0]);
    cx->b.where = outer.where;
    search_block(m, op->regions[0]->arg, op->regions[0]->arg + 1, next);
    ir_yield(&cx->b, next, 4);
    cx->b = outer;
    m->seen_lo = op->res;
    m->seen_hi = op->res + 1;
    ir_val none = binary(m, OP_CMP_EQ, op->res + 3, zero); /* no run: an empty one at the end */
    m->run_lo = ir_where(&cx->b, none, m->seen_hi, op->res + 2);
    m->run_hi = ir_where(&cx->b, none, m->seen_hi, op->res + 3);
}

/* ---- the loops ---- */

/* The loop over [lo, hi) with the counter; its body is for the caller to fill and end. */
static ir_op *open_loop(masked *m, ir_val lo, ir_val hi, carried *c)
{
    ir_op *op = ir_for(&m->cx->b, lo, hi, number(m, DT_I32, 1), c->now, (int)c->n);

    m->cx->b = ir_at_end(m->cx->b.fn, op->regions[0]);
    m->cx->b.where = m->s->where;
    elab_set_vars(m->cx, c, op->regions[0]->arg + 1);
    elab_read_vars(m->cx, c);
    return op;
}

static void close_loop(masked *m, ir_op *op, ir_builder outer, carried *c)
{
    elab_read_vars(m->cx, c);
    ir_yield(&m->cx->b, c->now, (int)c->n);
    m->cx->b = outer;
    elab_set_vars(m->cx, c, op->res);
}

static void bind(masked *m, ir_val n, bool edge)
{
    value v = val_run(n);

    elab_name_value(m->cx, m->s->decls.at[0], &v);
    m->cx->env[m->s->decls.at[0]->slot] = v;
    m->cx->env[m->s->decls.at[1]->slot] = val_bool(edge);
}

/* The seen blocks before the run and those behind it. */
static void edges(masked *m)
{
    elab *cx = m->cx;
    carried c = elab_carry(cx, &m->s->assigned);
    ir_val gap = binary(m, OP_SUB, m->run_hi, m->run_lo);
    ir_val n = binary(m, OP_SUB, binary(m, OP_SUB, m->seen_hi, m->seen_lo), gap);
    ir_val zero = number(m, DT_I32, 0);
    ir_val last = binary(m, OP_SUB, m->blocks, number(m, DT_I32, 1));
    ir_builder outer = cx->b;
    ir_op *op = open_loop(m, zero, n, &c);
    ir_val i = binary(m, OP_ADD, m->seen_lo, op->regions[0]->arg);
    ir_val behind = binary(m, OP_CMP_LE, m->run_lo, i);
    stmt guarded = {
        .kind = STMT_IF, .where = m->s->where, .then = m->s->then, .assigned = m->s->assigned};

    i = binary(m, OP_ADD, i, ir_where(&cx->b, behind, gap, number(m, DT_I32, 0)));
    i = binary(m, OP_MAX, binary(m, OP_MIN, i, last), zero); /* known already; for proofs */
    ir_val at = start_of(m, i);
    value v = visible_at(m, at);
    bind(m, at, true);
    elab_run_if(cx, &guarded, summary(m, OP_SOME, &v));
    close_loop(m, op, outer, &c);
}

static void run_of_whole_blocks(masked *m)
{
    elab *cx = m->cx;
    carried c = elab_carry(cx, &m->s->assigned);
    ir_val lo = binary(m, OP_MAX, m->run_lo, number(m, DT_I32, 0));
    ir_val hi = binary(m, OP_MIN, m->run_hi, m->full);
    ir_builder outer = cx->b;
    ir_op *op = open_loop(m, lo, hi, &c);

    bind(m, start_of(m, op->regions[0]->arg), false);
    if (m->s->then)
        elab_stmt(cx, m->s->then);
    close_loop(m, op, outer, &c);
}

void elab_masked(elab *cx, const stmt *s)
{
    masked m = {.cx = cx, .s = s};

    if (!elab_need_program(cx, s->where, "a loop") || s->decls.n < 2 || s->list.n < 4 ||
        !read_arguments(&m))
        return;
    search(&m);
    edges(&m);
    run_of_whole_blocks(&m);
}
