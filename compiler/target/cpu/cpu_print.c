/* print: the elements lie in memory (a tile in its buffer, a scalar in the frame), and whoever
 * launched is called with their place. The artifact says how they lie there. */
#include "compiler/base/check.h"
#include "compiler/target/cpu/cpu_emit.h"

static const cpu_buf *buffer_of(const cpu_emit *e, ir_val v)
{
    return &e->plan->bufs.at[cpu_buf_root(e->plan, e->plan->value.at[v].buf)];
}

static artifact_print describe(const cpu_emit *e, const ir_op *op)
{
    artifact_print p = artifact_print_of(e->a, e->fn, op);

    p.held = (uint8_t)cpu_held((enum dtype)p.dtype);
    for (int d = 0; d < p.rank; d++)
        p.stride[d] = buffer_of(e, op->args[0])->stride[d];
    return p;
}

/* A scalar in the frame. */
static LLVMValueRef kept_scalar(cpu_emit *e, ir_val v)
{
    enum dtype t = cpu_held((enum dtype)ir_type_of(e->fn, v).dtype);

    LLVMPositionBuilderBefore(e->cx->b, LLVMGetBasicBlockTerminator(e->entry));
    LLVMValueRef room = LLVMBuildAlloca(e->cx->b, cpu_memory_type(e, t, 1), "");
    cpu_home(e);
    ll_store(e->cx, cpu_to_memory(e, t, e->scalar[v]), room, (unsigned)dtype_bytes(t));
    return room;
}

void cpu_emit_print(cpu_emit *e, const ir_op *op)
{
    ll_cx *cx = e->cx;
    LLVMTypeRef type[] = {cx->ptr, cx->i32, cx->i32, cx->i32, cx->i32, cx->ptr};
    LLVMTypeRef fn = LLVMFunctionType(LLVMVoidTypeInContext(cx->context), type, 6, 0);
    LLVMValueRef target = cpu_slot(e, SLOT_PRINT, 0, 0), elements;

    if (cpu_is_tile(e->plan, op->args[0]))
        elements =
            ll_gep(cx, cx->i8, e->arg_scratch, ll_i64(cx, buffer_of(e, op->args[0])->offset));
    else
        elements = kept_scalar(e, op->args[0]);
    LLVMValueRef arg[] = {target,        ll_int(cx->i32, e->prints.n),
                          e->arg_pid[0], e->arg_pid[1],
                          e->arg_pid[2], elements};
    vec_push(&e->prints, e->a, describe(e, op));
    /* print_target begins with the function */
    LLVMBuildCall2(cx->b, fn, ll_load(cx, cx->ptr, target, 8), arg, 6, "");
}
