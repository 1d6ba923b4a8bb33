/* What programs call. print: the elements lie in memory (a tile in its buffer, a scalar in the
 * frame), and whoever launched is called with their place. The artifact says how they lie there. */
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

static LLVMValueRef frame_room(cpu_emit *e, LLVMTypeRef type)
{
    LLVMPositionBuilderBefore(e->cx->b, LLVMGetBasicBlockTerminator(e->entry));
    LLVMValueRef room = LLVMBuildAlloca(e->cx->b, type, "");
    cpu_home(e);
    return room;
}

static LLVMValueRef kept_scalar(cpu_emit *e, ir_val v)
{
    enum dtype t = cpu_held((enum dtype)ir_type_of(e->fn, v).dtype);
    LLVMValueRef room = frame_room(e, cpu_memory_type(e, t, 1));

    ll_store(e->cx, cpu_to_memory(e, t, e->scalar[v]), room, (unsigned)dtype_bytes(t));
    return room;
}

/* Function number `which` of program_calls, with this program and what data points to. */
static void call_host(cpu_emit *e, int which, uint32_t index, LLVMValueRef data)
{
    ll_cx *cx = e->cx;
    LLVMTypeRef type[] = {cx->ptr, cx->i32, cx->i32, cx->i32, cx->i32, cx->ptr};
    LLVMTypeRef fn = LLVMFunctionType(LLVMVoidTypeInContext(cx->context), type, 6, 0);
    LLVMValueRef calls = cpu_slot(e, SLOT_CALLS, 0, 0);
    LLVMValueRef arg[] = {calls,         ll_int(cx->i32, index), e->arg_pid[0],
                          e->arg_pid[1], e->arg_pid[2],          data};

    LLVMValueRef at = ll_gep(cx, cx->ptr, calls, ll_i64(cx, which));
    LLVMBuildCall2(cx->b, fn, ll_load(cx, cx->ptr, at, 8), arg, 6, "");
}

void cpu_emit_print(cpu_emit *e, const ir_op *op)
{
    LLVMValueRef elements;

    if (cpu_is_tile(e->plan, op->args[0]))
        elements = ll_gep(e->cx, e->cx->i8, e->arg_scratch,
                          ll_i64(e->cx, buffer_of(e, op->args[0])->offset));
    else
        elements = kept_scalar(e, op->args[0]);
    call_host(e, 0, e->prints.n, elements);
    vec_push(&e->prints, e->a, describe(e, op));
}

void cpu_emit_failure(cpu_emit *e, const ir_op *op, uint32_t index)
{
    const ll_cx *cx = e->cx;

    if (!e->values)
        e->values = frame_room(e, LLVMArrayType2(cx->i32, ASSERT_MAX_VALUES));
    for (int i = 0; i < ASSERT_MAX_VALUES; i++) {
        LLVMValueRef v = i + 1 < op->nargs ? e->scalar[op->args[1 + i]] : ll_int(cx->i32, 0);
        ll_store(cx, v, ll_gep(cx, cx->i32, e->values, ll_i64(cx, i)), 4);
    }
    call_host(e, 1, index, e->values);
}
