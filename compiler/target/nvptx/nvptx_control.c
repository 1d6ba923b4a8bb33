/* Loops and choices: what they carry is phis, one for each word that a thread holds. */
#include "compiler/target/nvptx/nvptx_emit.h"

static void move_value(nv_emit *e, ir_val to, ir_val from)
{
    if (nv_type(e, from).kind == TYPE_SCALAR || nv_type(e, from).kind == TYPE_TILE)
        e->value[to] = *nv_at(e, from);
}

/* Phis of the block at hand for values of these types; to[i] is what they are called. */
static void make_phis(nv_emit *e, ir_val to, int n)
{
    for (int i = 0; i < n; i++) {
        nv_value *v = nv_new(e, to + (ir_val)i);
        LLVMTypeRef type = nv_word_type(e, nv_type(e, to + (ir_val)i));
        for (int r = 0; r < v->n; r++)
            v->at[r] = LLVMBuildPhi(e->cx->b, type, "");
    }
}

static void feed_phis(nv_emit *e, ir_val to, const ir_val *from, int n, LLVMBasicBlockRef block)
{
    for (int i = 0; i < n; i++) {
        nv_value *v = nv_at(e, to + (ir_val)i), *w = nv_at(e, from[i]);
        for (int r = 0; r < v->n; r++)
            ll_phi_add(v->at[r], w->at[r], block);
    }
}

static bool const_step(const nv_emit *e, ir_val step, int64_t *value)
{
    const ir_op *def = ir_def(e->fn, step);

    if (!def || def->code != OP_CONST_INT)
        return false;
    *value = def->attr[0].i;
    return true;
}

/* Is there an iteration for counter i? */
static LLVMValueRef goes_on(nv_emit *e, const ir_op *op, LLVMValueRef i)
{
    LLVMBuilderRef b = e->cx->b;
    LLVMValueRef hi = nv_get(e, op->args[1], 0), step = nv_get(e, op->args[2], 0);
    int64_t known;

    if (const_step(e, op->args[2], &known))
        return known == 0 ? ll_int(e->cx->i1, 0)
                          : LLVMBuildICmp(b, known > 0 ? LLVMIntSLT : LLVMIntSGT, i, hi, "");
    LLVMValueRef up = LLVMBuildICmp(b, LLVMIntSGT, step, nv_i32(e, 0), "");
    LLVMValueRef down = LLVMBuildICmp(b, LLVMIntSLT, step, nv_i32(e, 0), "");
    up = LLVMBuildAnd(b, up, LLVMBuildICmp(b, LLVMIntSLT, i, hi, ""), "");
    down = LLVMBuildAnd(b, down, LLVMBuildICmp(b, LLVMIntSGT, i, hi, ""), "");
    return LLVMBuildOr(b, up, down, "");
}

/* A counter that would leave i32 stops at its end, which ends the loop. One that moves by 1 reaches
 * the loop's end first. */
static LLVMValueRef next_count(nv_emit *e, const ir_op *op, LLVMValueRef i)
{
    int64_t step;

    if (const_step(e, op->args[2], &step) && (step == 1 || step == -1))
        return LLVMBuildAdd(e->cx->b, i, nv_i32(e, step), "");
    return ll_binary(e->cx, "llvm.sadd.sat", i, nv_get(e, op->args[2], 0));
}

static const ir_val *yielded(const ir_block *blk)
{
    return blk->last->args;
}

void nv_for(nv_emit *e, const ir_op *op)
{
    const ir_block *body = op->regions[0];
    LLVMBasicBlockRef before = ll_here(e->cx), head = ll_block(e->cx, "loop");
    LLVMBasicBlockRef inside = ll_block(e->cx, "body"), after;
    int n = op->nres;

    LLVMBuildBr(e->cx->b, head);
    ll_at(e->cx, head);
    make_phis(e, body->arg, n + 1);
    feed_phis(e, body->arg, &op->args[0], 1, before);
    feed_phis(e, body->arg + 1, &op->args[3], n, before);
    LLVMValueRef i = nv_at(e, body->arg)->at[0];
    LLVMValueRef more = goes_on(e, op, i);
    after = ll_block(e->cx, "done");
    LLVMBuildCondBr(e->cx->b, more, inside, after);
    ll_at(e->cx, inside);
    nv_emit_block(e, body);
    ll_phi_add(i, next_count(e, op, i), ll_here(e->cx));
    feed_phis(e, body->arg + 1, yielded(body), n, ll_here(e->cx));
    LLVMBuildBr(e->cx->b, head);
    LLVMMoveBasicBlockAfter(after, ll_here(e->cx));
    ll_at(e->cx, after);
    for (int k = 0; k < n; k++)
        move_value(e, op->res + (ir_val)k, body->arg + 1 + (ir_val)k);
}

void nv_while(nv_emit *e, const ir_op *op)
{
    const ir_block *test = op->regions[0], *body = op->regions[1];
    LLVMBasicBlockRef before = ll_here(e->cx), head = ll_block(e->cx, "test");
    LLVMBasicBlockRef inside = ll_block(e->cx, "body"), after = ll_block(e->cx, "done");

    LLVMBuildBr(e->cx->b, head);
    ll_at(e->cx, head);
    make_phis(e, test->arg, op->nargs);
    feed_phis(e, test->arg, op->args, op->nargs, before);
    nv_emit_block(e, test);
    const ir_val *pass = test->last->args;
    LLVMBuildCondBr(e->cx->b, nv_get(e, pass[0], 0), inside, after);
    for (uint32_t k = 0; k < body->nargs; k++)
        move_value(e, body->arg + k, pass[1 + k]);
    ll_at(e->cx, inside);
    nv_emit_block(e, body);
    feed_phis(e, test->arg, yielded(body), op->nargs, ll_here(e->cx));
    LLVMBuildBr(e->cx->b, head);
    ll_at(e->cx, after);
    for (int k = 0; k < op->nres; k++)
        move_value(e, op->res + (ir_val)k, pass[1 + k]);
}

void nv_if(nv_emit *e, const ir_op *op)
{
    LLVMBasicBlockRef arm[2] = {ll_block(e->cx, "then"), ll_block(e->cx, "else")}, end[2];

    LLVMBuildCondBr(e->cx->b, nv_get(e, op->args[0], 0), arm[0], arm[1]);
    for (int i = 0; i < 2; i++) {
        ll_at(e->cx, arm[i]);
        nv_emit_block(e, op->regions[i]);
        end[i] = ll_here(e->cx);
    }
    LLVMBasicBlockRef after = ll_block(e->cx, "joined");
    for (int i = 0; i < 2; i++) {
        ll_at(e->cx, end[i]);
        LLVMBuildBr(e->cx->b, after);
    }
    ll_at(e->cx, after);
    make_phis(e, op->res, op->nres);
    for (int i = 0; i < 2; i++)
        feed_phis(e, op->res, yielded(op->regions[i]), op->nres, end[i]);
}
