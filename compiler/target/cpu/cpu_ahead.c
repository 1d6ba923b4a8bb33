/* What the next iteration of a loop reads against its tensor's order is asked for while a dot runs.
 *
 * Rows of such a block lie far apart, where no prefetcher of a processor looks, and the nest that
 * turns them has nothing to do while it waits. The block of the next iteration lies a fixed
 * distance further on, so each block of rows of a dot's nest asks for a share of its lines.
 * Addresses beyond the tensor do no harm: nothing is read. */
#include "compiler/target/cpu/cpu_nests.h"
#include "compiler/target/cpu/cpu_slice.h"

/* ---- the plan -------------------------------------------------------------------------------- */

static bool is_short(int64_t v)
{
    return v >= INT32_MIN && v <= INT32_MAX;
}

/* By how much v grows from one iteration of `loop` to the next, in *by. False: not known. */
static bool growth(const cpu_plan *p, const ir_op *loop, ir_val v, int depth, int64_t *by)
{
    const ir_op *op = ir_def(p->fn, v);
    int64_t lo, hi, x, y;

    *by = 0;
    if (v == loop->regions[0]->arg) {
        facts_range(p->facts, loop->args[2], by, &hi);
        return *by == hi && is_short(*by);
    }
    if (!op)
        return p->fn->values.at[v].block != loop->regions[0];
    if (op->parent != loop->regions[0] || op->code == OP_CONST_INT)
        return true;
    if (depth == 0 || op->nargs != 2 || !growth(p, loop, op->args[0], depth - 1, &x) ||
        !growth(p, loop, op->args[1], depth - 1, &y) || !is_short(x) || !is_short(y))
        return false;
    if (op->code == OP_ADD || op->code == OP_SUB) {
        *by = op->code == OP_ADD ? x + y : x - y;
        return true;
    }
    facts_range(p->facts, op->args[1], &lo, &hi);
    if (op->code == OP_MUL && y == 0 && lo == hi && is_short(lo)) {
        *by = x * lo;
        return true;
    }
    return x == 0 && y == 0;
}

typedef struct ahead_walk {
    cpu_plan *p;
    cpu_step *reader; /* its nest turns the loads */
    cpu_step *dot;    /* of the same block, before it */
} ahead_walk;

/* The indices of the load must be known before the dot. */
static bool is_early(const ahead_walk *k, ir_val v)
{
    const cpu_step *s = k->p->value.at[v].step;

    return !s || s->block != k->dot->block || s->order < k->dot->order;
}

static void ahead_leaf(void *arg, const cpu_leaf *l)
{
    ahead_walk *k = arg;
    const cpu_nest *n = k->reader->nest;
    cpu_ahead ahead = {.load = l->load, .lane = -1};
    bool moves = false;

    if (!l->load || k->p->value.at[l->v].place != CPU_VIRTUAL)
        return;
    int along = cpu_contiguous_dim(k->p, l->load), rank = ir_type_of(k->p->fn, l->v).rank;
    if (along < 0 || l->dim[along] != n->inner)
        return;
    for (int d = 0; d < rank; d++) {
        if (l->dim[d] == n->lane)
            ahead.lane = cpu_view_dim(l->load, d);
    }
    for (int d = 0; d < (int)l->load->attr[0].ints.n; d++) {
        ir_val start = l->load->args[1 + d];
        if (cpu_is_gathered(k->p->fn, l->load, d) || !is_early(k, start) ||
            !growth(k->p, k->dot->block->owner->op, start, 4, &ahead.by[d]))
            return;
        moves = moves || ahead.by[d] != 0;
    }
    if (moves && ahead.lane >= 0)
        vec_push(&k->dot->nest->ahead, k->p->a, ahead);
}

static cpu_step *dot_before(cpu_step *s)
{
    const cpu_nest *n = s->nest;

    for (s = s->prev; s && s->kind != STEP_CONTROL; s = s->prev) {
        if (s->kind == STEP_NEST && s->nest->dot && s->nest->lane == n->lane &&
            s->nest->inner == n->inner && type_same_shape(s->nest->space, n->space))
            return s;
    }
    return NULL;
}

void cpu_look_ahead(cpu_plan *p, cpu_block *b)
{
    for (cpu_step *s = b->first; s; s = s->next) {
        if (s->kind != STEP_NEST || !s->nest->blocks || !b->owner || b->owner->op->code != OP_FOR)
            continue;
        ahead_walk k = {p, s, dot_before(s)};
        for (uint32_t i = 0; i < s->nest->items.n && k.dot; i++)
            cpu_each_leaf(p, &s->nest->items.at[i], ahead_leaf, &k);
    }
}

/* ---- the code -------------------------------------------------------------------------------- */

static void ask_for(cpu_emit *e, LLVMValueRef p)
{
    LLVMTypeRef type = e->cx->ptr;
    LLVMValueRef read = ll_int(e->cx->i32, 0), near = ll_int(e->cx->i32, 3);
    LLVMValueRef arg[] = {p, read, near, ll_int(e->cx->i32, 1)};

    ll_call(e->cx, "llvm.prefetch", &type, 1, arg, 4);
}

/* Where the block of the next iteration begins. */
static LLVMValueRef next_origin(cpu_emit *e, const cpu_ahead *a)
{
    const cpu_view *view = cpu_slice_view(e, a->load);
    LLVMValueRef p = cpu_slice_origin(e, a->load), by = ll_i64(e->cx, 0);

    for (int d = 0; d < (int)a->load->attr[0].ints.n; d++)
        by = cpu_add(e, by, cpu_mul(e, view->stride[d], ll_i64(e->cx, a->by[d]), 0), 0);
    cpu_hoist(e, 0);
    p = ll_gep(e->cx, cpu_slice_element(e, a->load), p, by);
    cpu_home(e);
    return p;
}

/* For lanes `first` and the next ones, w of them: all lines of their rows. */
static void ask_for_rows(cpu_emit *e, const cpu_ahead *a, LLVMValueRef first, int w, int extent)
{
    enum { LINE = 64 };
    int per_line = LINE / (int)cpu_slice_align(e, a->load);
    LLVMTypeRef elem = cpu_slice_element(e, a->load);
    LLVMValueRef stride = cpu_slice_view(e, a->load)->stride[a->lane];
    LLVMValueRef p = ll_gep(e->cx, elem, next_origin(e, a), ll_mul(e->cx, first, stride));

    for (int i = 0; i < w; i++) {
        for (int k = 0; k < extent; k += per_line)
            ask_for(e, ll_gep(e->cx, elem, p, ll_i64(e->cx, k)));
        p = ll_gep(e->cx, elem, p, stride);
    }
}

void cpu_emit_ahead(cpu_nesting *s, int mr, int nr, cpu_index row)
{
    cpu_emit *e = s->e;

    for (uint32_t i = 0; i < s->n->ahead.n; i++) {
        int extent = s->n->space.shape[s->n->inner], lanes = nr * e->isa->lanes;
        int units = extent / mr, w = (lanes + units - 1) / units;
        LLVMValueRef unit = LLVMBuildUDiv(e->cx->b, cpu_index_value(e, row), ll_i64(e->cx, mr), "");
        LLVMValueRef first = ll_mul(e->cx, unit, ll_i64(e->cx, w));
        first = ll_add(e->cx, first, cpu_index_value(e, s->at.i[s->n->lane]));
        ask_for_rows(e, &s->n->ahead.at[i], first, w, extent);
    }
}
