/* peel_tails: the last, ragged block of a loop over a dimension gets a loop of its own.
 *
 *   %acc = for %k = 0 to %K step 64 (...)        %whole = div %K, 64
 *     load %a, %m, %k extent=[64, 64]            %mid = mul %whole, 64
 *                                        ->      %main = for %k = 0 to %mid step 64 (...)
 *                                                %acc = for %k = %mid to %K step 64 (%main)
 *
 * prove_bounds then shows that every block of the first loop lies in the tensor, and drops masks
 * that ask for it. The second loop runs once at most, or not at all. What is computed, and in which
 * order, stays the same to the bit. Done only where it pays: the loop goes over all of a dimension
 * of a tensor, a slice of it begins at the counter, and whether that is inside is not known yet.
 *
 * cost: a copy of the body; hence loops of at most MOST_OPS operations, without a loop inside. In
 * no step of all targets: CPUs ask for it (pipeline_run_tails), while code for GPUs decides with
 * one branch a block, and a second loop would be pipelined, and hold registers, like the first.
 */
#include "compiler/ir/irbuild.h"
#include "compiler/ir/iredit.h"
#include "compiler/passes/pipeline.h"

enum { MOST_OPS = 100 };

typedef struct peeling {
    ir_fn *fn;
    const ir_op *loop; /* the one at hand */
    int64_t step;
    int ops;
    bool gains, has_loop;
    uint32_t changes;
} peeling;

static bool const_int(const ir_fn *fn, ir_val v, int64_t *c)
{
    const ir_op *def = ir_def(fn, v);

    *c = def && def->code == OP_CONST_INT ? def->attr[0].i : 0;
    return def && def->code == OP_CONST_INT;
}

/* Is v the extent of dimension d of the view, or a constant below it? */
static bool within_extent(const ir_fn *fn, ir_val view, int d, ir_val v)
{
    const ir_value *tensor = ir_value_of(fn, view), *end = ir_value_of(fn, v);
    int64_t c;

    if (tensor->block != fn->body)
        return false;
    int32_t dim = fn->params.at[tensor->index].dim[d];
    if (fn->dims.at[dim].is_const)
        return const_int(fn, v, &c) && c >= 0 && c <= fn->dims.at[dim].value;
    return end->block == fn->body && fn->params.at[end->index].kind == PARAM_DIM &&
           fn->params.at[end->index].symbol == dim;
}

static void look(ir_op *op, void *arg)
{
    peeling *p = arg;

    p->ops++;
    p->has_loop |= op->code == OP_FOR || op->code == OP_WHILE;
    if (!op_is_access((enum ir_opcode)op->code))
        return;
    const ir_attr extent = op->attr[0];
    for (uint32_t d = 0; d < extent.ints.n; d++)
        p->gains |= op->args[1 + d] == p->loop->regions[0]->arg && !(op->attr[1].i >> d & 1) &&
                    extent.ints.at[d] <= p->step &&
                    within_extent(p->fn, op->args[0], (int)d, p->loop->args[1]);
}

static bool pays(peeling *p, const ir_op *loop)
{
    int64_t lo;

    if (!const_int(p->fn, loop->args[0], &lo) || lo != 0 ||
        !const_int(p->fn, loop->args[2], &p->step) || p->step <= 1)
        return false;
    p->loop = loop;
    p->ops = 0;
    p->gains = p->has_loop = false;
    ir_walk(loop->regions[0], look, p);
    return p->gains && !p->has_loop && p->ops <= MOST_OPS;
}

static void peel(peeling *p, ir_op *loop)
{
    ir_builder b = ir_before(p->fn, loop);
    ir_op *tail = ir_copy_before(p->fn, loop, loop->next);

    b.where = loop->where;
    ir_val whole = ir_binary(&b, OP_DIV, loop->args[1], loop->args[2]);
    ir_val mid = ir_binary(&b, OP_MUL, whole, loop->args[2]);
    for (int i = 0; i < loop->nres; i++)
        ir_replace_uses(p->fn, loop->res + (ir_val)i, tail->res + (ir_val)i);
    for (int i = 0; i < loop->nres; i++)
        tail->args[3 + i] = loop->res + (ir_val)i;
    loop->args[1] = tail->args[0] = mid;
    p->changes++;
}

static void visit_block(peeling *p, ir_block *blk)
{
    for (ir_op *op = blk->first, *next; op; op = next) {
        next = op->next;
        for (int i = 0; i < op->nregions; i++)
            visit_block(p, op->regions[i]);
        if (op->code == OP_FOR && pays(p, op))
            peel(p, op);
    }
}

tw_status pass_peel_tails(pass_cx *cx, ir_module *m)
{
    peeling p = {.fn = m->kernel};

    visit_block(&p, m->kernel->body);
    cx->changes = p.changes;
    return TW_OK;
}
