/* solve_searches: the blocks that a masked_range visits, by division instead of a search.
 *
 *   %lo, %hi, %from, %to = for %i = 0 to %n step 1 iter (n, 0, 0, 0) {
 *     %seen = lt (%i * 64 + a), b                        x = max(b - a + 63, 0) / 64
 *     yield where %seen, (min %lo, %i), %lo      ->      %lo = where 0 < min(x, n), 0, n
 *           where %seen, %i + 1, %hi                     %hi = min(x, n)
 *           ...                                          ...
 *
 * needs: %n >= 0, and a loop as dsl/elab_masked.c makes it (bound_masks has said what some and
 * every are, licm has moved out what no block changes) that carries only these, of any conditions:
 *
 *   where c, (min v, i), v                      from n: the first i of c, or n
 *   where c, i + 1, v                           from 0: behind the last i of c, or 0
 *   where c & v = 0, i, u                       from 0: the first i of c, or 0
 *   where c & (v = 0 | v = i), i + 1, v         from 0: behind the first run of c, or 0
 *
 * and conditions that block_stretches.h can say the blocks of. A search of another kind stays as it
 * is, as for ids that are loaded by block.
 *
 * leaves: scalar operations in i64, where nothing wraps, in place of the loop; the same results to
 * the bit. cost: nothing where no such loop is.
 */
#include "compiler/ir/iredit.h"
#include "compiler/passes/block_stretches.h"
#include "compiler/passes/pipeline.h"
#include "compiler/passes/purity.h"

enum { CONJUNCTS = 8, MAX_CARRIED = 4 };

enum answer { FIRST, BEHIND_LAST, BEGIN_OF_RUN, END_OF_RUN };
/* What the loop finds out of the blocks for which all conditions hold. */
typedef struct question {
    enum answer answer;
    int end; /* BEGIN_OF_RUN: the place of its END_OF_RUN */
    int n;
    ir_val all[CONJUNCTS];
} question;

static ir_val carried(const solving *s, int at)
{
    return s->counter + 1 + (ir_val)at;
}

/* ---- questions ------------------------------------------------------------------------------- */

static bool is_const(const solving *s, ir_val v, int64_t c)
{
    const ir_op *op = ir_def(s->fn, v);

    return op && op->code == OP_CONST_INT && op->attr[0].i == c;
}

/* v is code of x and y, in any order; y 0: the constant c. */
static bool is_op_of(const solving *s, ir_val v, enum ir_opcode code, ir_val x, ir_val y, int64_t c)
{
    const ir_op *op = ir_def(s->fn, v);

    for (int i = 0; op && op->code == code && i < 2; i++) {
        if (op->args[i] == x && (y ? op->args[!i] == y : is_const(s, op->args[!i], c)))
            return true;
    }
    return false;
}

/* What an `and` joins; false: too much. */
static bool read_conjuncts(const solving *s, ir_val v, question *q)
{
    const ir_op *op = ir_def(s->fn, v);

    if (op && op->code == OP_AND)
        return read_conjuncts(s, op->args[0], q) && read_conjuncts(s, op->args[1], q);
    if (q->n == CONJUNCTS)
        return false;
    q->all[q->n++] = v;
    return true;
}

static void drop_conjunct(question *q, int i)
{
    q->all[i] = q->all[--q->n];
}

static bool is_unbegun_or_next(const solving *s, ir_val v, ir_val end)
{
    const ir_op *op = ir_def(s->fn, v);

    for (int i = 0; op && op->code == OP_OR && i < 2; i++) {
        if (is_op_of(s, op->args[i], OP_CMP_EQ, end, 0, 0) &&
            is_op_of(s, op->args[!i], OP_CMP_EQ, end, s->counter, 0))
            return true;
    }
    return false;
}

/* i + 1 becomes the carried value; of a run if a condition says so, which is dropped. */
static void read_behind(const solving *s, int at, question *q)
{
    q->answer = BEHIND_LAST;
    for (int i = 0; i < q->n; i++) {
        if (!is_unbegun_or_next(s, q->all[i], carried(s, at)))
            continue;
        q->answer = END_OF_RUN;
        drop_conjunct(q, i);
        return;
    }
}

/* i becomes the carried value, once: while the end of the run is 0. */
static bool read_begin(const solving *s, question *q)
{
    q->answer = BEGIN_OF_RUN;
    for (int i = 0; i < q->n; i++) {
        for (int j = 0; j < s->loop->nres; j++) {
            if (!is_op_of(s, q->all[i], OP_CMP_EQ, carried(s, j), 0, 0))
                continue;
            q->end = j;
            drop_conjunct(q, i);
            return true;
        }
    }
    return false;
}

/* What the carried value at place `at` becomes, and from what. */
static bool read_question(const solving *s, int at, question *q)
{
    ir_val next = s->loop->regions[0]->last->args[at], init = s->loop->args[3 + at];
    const ir_op *op = ir_def(s->fn, next);

    *q = (question){0};
    if (op && op->code == OP_WHERE && op->args[2] == carried(s, at)) {
        if (!read_conjuncts(s, op->args[0], q))
            return false;
        next = op->args[1];
    }
    if (is_op_of(s, next, OP_MIN, carried(s, at), s->counter, 0)) {
        q->answer = FIRST;
        return init == s->loop->args[1];
    }
    if (!is_const(s, init, 0))
        return false;
    if (next == s->counter)
        return read_begin(s, q);
    read_behind(s, at, q);
    return is_op_of(s, next, OP_ADD, s->counter, 0, 1);
}

static bool same_conditions(const question *x, const question *y)
{
    for (int i = 0; i < x->n; i++) {
        bool found = false;
        for (int j = 0; j < y->n; j++)
            found |= x->all[i] == y->all[j];
        if (!found)
            return false;
    }
    return x->n == y->n;
}

static bool read_questions(const solving *s, question *q)
{
    for (int i = 0; i < s->loop->nres; i++) {
        if (!read_question(s, i, &q[i]))
            return false;
    }
    for (int i = 0; i < s->loop->nres; i++) {
        if (q[i].answer == BEGIN_OF_RUN &&
            (q[q[i].end].answer != END_OF_RUN || !same_conditions(&q[i], &q[q[i].end])))
            return false;
    }
    return true;
}

/* ---- answers --------------------------------------------------------------------------------- */

static ir_val answer(solving *s, const question *q, const stretches *x)
{
    ir_val v = 0;

    switch (q->answer) {
    case FIRST:
        v = stretches_first(s, x);
        break;
    case BEHIND_LAST:
        v = stretches_behind_last(s, x);
        break;
    case BEGIN_OF_RUN:
        v = stretches_first(s, x);
        v = ir_where(&s->b, ir_binary(&s->b, OP_CMP_LT, v, s->n), v, s->zero);
        break;
    case END_OF_RUN:
        v = stretches_end_of_run(s, x);
        break;
    }
    return ir_cast(&s->b, v, DT_I32);
}

/* ---- loops ----------------------------------------------------------------------------------- */

static bool is_search(const solving *s, const ir_op *op)
{
    int64_t least, most;

    if (op->nres == 0 || op->nres > MAX_CARRIED || !is_const(s, op->args[0], 0) ||
        !is_const(s, op->args[2], 1) || op->args[1] >= s->nvalues)
        return false;
    facts_range(s->f, op->args[1], &least, &most);
    if (least < 0)
        return false;
    for IR_EACH_OP(inner, op->regions[0]) {
        if (inner->nregions || (inner->code != OP_YIELD && !op_is_pure(s->fn, inner)))
            return false;
    }
    return true;
}

/* What question i is about, in the words of an earlier one where they are the same. */
static bool solve_question(solving *s, const question *q, int i, stretches *about)
{
    for (int j = 0; j < i; j++) {
        if (!same_conditions(&q[i], &q[j]))
            continue;
        about[i] = about[j];
        return true;
    }
    return stretches_solve(s, q[i].all, q[i].n, &about[i]);
}

/* False: the loop stays, and what was built may be half of it. */
static bool answer_all(solving *s, const question *q, ir_val *answers)
{
    stretches about[MAX_CARRIED];

    for (int i = 0; i < s->loop->nres; i++) {
        if (!solve_question(s, q, i, about))
            return false;
    }
    for (int i = 0; i < s->loop->nres; i++)
        answers[i] = answer(s, &q[i], &about[i]);
    return true;
}

/* Is it gone? */
static bool try_loop(solving *s, ir_op *loop)
{
    const ir_op *above = loop->prev;
    question q[MAX_CARRIED];
    ir_val answers[MAX_CARRIED];

    s->loop = loop;
    s->counter = loop->regions[0]->arg;
    if (!is_search(s, loop) || !read_questions(s, q))
        return false;
    s->b = ir_before(s->fn, loop);
    s->b.where = loop->where;
    s->first = (renames){.a = s->a};
    s->zero = ir_const_int(&s->b, DT_I64, 0);
    s->n = ir_cast(&s->b, loop->args[1], DT_I64);
    if (answer_all(s, q, answers)) {
        for (int i = 0; i < loop->nres; i++)
            ir_replace_uses(s->fn, loop->res + (ir_val)i, answers[i]);
        ir_unlink(loop);
        return true;
    }
    while (loop->prev != above)
        ir_unlink(loop->prev);
    return false;
}

/* How many loops are gone. */
static uint32_t visit_block(solving *s, ir_block *blk)
{
    uint32_t changes = 0;

    for IR_EACH_OP_SAFE(op, next, blk) {
        for (int i = 0; i < op->nregions; i++)
            changes += visit_block(s, op->regions[i]);
        if (op->code == OP_FOR)
            changes += try_loop(s, op);
    }
    return changes;
}

static void look(ir_op *op, void *arg)
{
    *(bool *)arg |= op->code == OP_FOR;
}

tw_status pass_solve_searches(pass_cx *cx, ir_module *m)
{
    solving s = {.fn = m->kernel, .a = cx->scratch, .nvalues = m->kernel->values.n};
    bool any = false;

    ir_walk(m->kernel->body, look, &any);
    if (!any)
        return TW_OK;
    s.f = facts_compute(cx->scratch, m->kernel);
    cx->changes = visit_block(&s, m->kernel->body);
    return TW_OK;
}
