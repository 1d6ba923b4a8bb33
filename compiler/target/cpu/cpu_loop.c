/* Loops inside of a nest. Trip counts are constants, of at least one: the test is at the end. A
 * loop of one iteration is no loop. What runs on a condition has a depth of its own, as a loop has:
 * what is computed there is not known after it. */
#include "compiler/base/check.h"
#include "compiler/target/cpu/cpu_emit.h"

cpu_index cpu_loop_open(cpu_emit *e, cpu_loop *l, int64_t n, int64_t step, LLVMValueRef *carried,
                        int ncarried)
{
    *l = (cpu_loop){.n = n, .step = step, .ncarried = ncarried};
    if (n <= step)
        return (cpu_index){0};
    LLVMBasicBlockRef before = e->here;
    l->head = ll_block(e->cx, "loop");
    LLVMBuildBr(e->cx->b, l->head);
    ICHECK(e->depth + 1 < CPU_MAX_DEPTH, "loops of a nest are few");
    e->enter[e->depth++] = before;
    cpu_goto(e, l->head);
    l->index = LLVMBuildPhi(e->cx->b, e->cx->i64, "");
    ll_phi_add(l->index, ll_i64(e->cx, 0), before);
    for (int i = 0; i < ncarried; i++) {
        l->phi[i] = LLVMBuildPhi(e->cx->b, LLVMTypeOf(carried[i]), "");
        ll_phi_add(l->phi[i], carried[i], before);
        carried[i] = l->phi[i];
    }
    return (cpu_index){l->index, 0, e->depth};
}

void cpu_loop_close(cpu_emit *e, cpu_loop *l, LLVMValueRef *carried)
{
    if (!l->head)
        return;
    LLVMBasicBlockRef after = ll_block(e->cx, "");
    LLVMValueRef next = LLVMBuildAdd(e->cx->b, l->index, ll_i64(e->cx, l->step), "");
    LLVMValueRef more = LLVMBuildICmp(e->cx->b, LLVMIntULT, next, ll_i64(e->cx, l->n), "");

    LLVMBuildCondBr(e->cx->b, more, l->head, after);
    ll_phi_add(l->index, next, e->here);
    for (int i = 0; i < l->ncarried; i++)
        ll_phi_add(l->phi[i], carried[i], e->here);
    cpu_memo_close(e, e->depth);
    e->depth--;
    cpu_goto(e, after);
}

LLVMBasicBlockRef cpu_when_open(cpu_emit *e, LLVMValueRef condition)
{
    LLVMBasicBlockRef before = e->here, then = ll_block(e->cx, ""), after = ll_block(e->cx, "");

    LLVMBuildCondBr(e->cx->b, condition, then, after);
    ICHECK(e->depth + 1 < CPU_MAX_DEPTH, "loops of a nest are few");
    e->enter[e->depth++] = before;
    cpu_goto(e, then);
    return after;
}

void cpu_when_close(cpu_emit *e, LLVMBasicBlockRef after)
{
    LLVMBuildBr(e->cx->b, after);
    cpu_memo_close(e, e->depth);
    e->depth--;
    cpu_goto(e, after);
}
