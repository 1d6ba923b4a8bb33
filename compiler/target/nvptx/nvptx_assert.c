/* Asserts: all threads of a block see the same condition, so the block ends as a whole. Its first
 * thread notes the failure in the launch's assert_record, if nobody has before. */
#include "compiler/target/nvptx/nvptx_emit.h"
#include <llvm-c/Core.h>
#include <stddef.h>

static LLVMValueRef word(const nv_emit *e, size_t offset)
{
    return ll_gep(e->cx, e->cx->i8, e->assert_record, ll_i64(e->cx, (int64_t)offset));
}

static void put(const nv_emit *e, size_t offset, LLVMValueRef v)
{
    (void)ll_store(e->cx, v, word(e, offset), 4);
}

/* Was the record free? Of this device alone: the host takes no part before it is written. */
static LLVMValueRef take(const nv_emit *e)
{
    LLVMBuilderRef b = e->cx->b;
    LLVMValueRef p = word(e, offsetof(assert_record, taken));
    LLVMAtomicOrdering relaxed = LLVMAtomicOrderingMonotonic;
#if LLVM_VERSION_MAJOR >= 20
    unsigned scope = LLVMGetSyncScopeID(e->cx->context, "device", 6);
    LLVMValueRef pair = LLVMBuildAtomicCmpXchgSyncScope(b, p, nv_i32(e, 0), nv_i32(e, 1), relaxed,
                                                        relaxed, scope);
#else
    LLVMValueRef pair =
        LLVMBuildAtomicCmpXchg(b, p, nv_i32(e, 0), nv_i32(e, 1), relaxed, relaxed, 0);
#endif
    return LLVMBuildExtractValue(b, pair, 1, "");
}

static void tell(nv_emit *e, const ir_op *op)
{
    for (int d = 0; d < 3; d++)
        put(e, offsetof(assert_record, program) + 4 * (size_t)d, e->program[d]);
    for (int i = 1; i < op->nargs; i++)
        put(e, offsetof(assert_record, value) + 4 * (size_t)(i - 1), nv_get(e, op->args[i], 0));
}

void nv_assert(nv_emit *e, const ir_op *op)
{
    LLVMBuilderRef b = e->cx->b;
    LLVMBasicBlockRef failed = ll_block(e->cx, "failed"), holds = ll_block(e->cx, "holds");

    vec_push(&e->asserts, e->a, artifact_assert_text(e->a, op));
    LLVMBuildCondBr(b, nv_get(e, op->args[0], 0), holds, failed);
    ll_at(e->cx, failed);
    LLVMValueRef one = LLVMBuildICmp(b, LLVMIntEQ, e->thread, nv_i32(e, 0), "");
    nv_guard first = nv_guard_begin(e, one), taken = nv_guard_begin(e, take(e));
    put(e, offsetof(assert_record, told), nv_i32(e, op->nargs > 1));
    if (op->nargs > 1)
        tell(e, op);
    LLVMBuildFence(b, LLVMAtomicOrderingRelease, 0, "");
    put(e, offsetof(assert_record, failed), nv_i32(e, e->asserts.n));
    nv_guard_end(e, &taken);
    nv_guard_end(e, &first);
    LLVMBuildRetVoid(b);
    ll_at(e->cx, holds);
}
