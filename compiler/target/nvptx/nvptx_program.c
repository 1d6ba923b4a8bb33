/* Which thread this is, and which program of the grid its block runs. */
#include "compiler/target/nvptx/nvptx_emit.h"

enum { SPACE_SHARED = 3 };

/* Is the grid's extent along the axis 1 at every launch? */
static bool is_flat(const nv_emit *e, int axis)
{
    const ir_fn *launch = e->module->launch;

    if (!launch || !launch->body->last || launch->body->last->nargs < 3)
        return false;
    const ir_op *def = ir_def(launch, launch->body->last->args[axis]);
    return def && def->code == OP_CONST_INT && def->attr[0].i == 1;
}

/* Is there one program at most along all axes behind this one? */
static bool is_last(const nv_emit *e, int axis)
{
    return axis == 2 || (is_flat(e, 2) && (axis == 1 || is_flat(e, 1)));
}

/* Block x runs the program x places behind the launch's first, axis 0 fastest. All in 32 bits: an
 * extent and the blocks of a launch are below 2^31, so each quotient is, and each sum below 2^32.
 * (A division of 64 bits is a call for ptxas; with one in it, relocatable code, which is what the
 * driver's linker makes, spills 80 bytes where the same text as a whole program spills none.) */
void nv_find_program(nv_emit *e)
{
    LLVMBuilderRef b = e->cx->b;
    LLVMValueRef id = ll_call(e->cx, "llvm.nvvm.read.ptx.sreg.ctaid.x", NULL, 0, NULL, 0);

    if (!e->first[0])
        return;
    for (int d = 0; d < 3; d++) {
        LLVMValueRef sum = ll_add(e->cx, id, e->first[d]);
        id = is_last(e, d) ? nv_i32(e, 0) : LLVMBuildUDiv(b, sum, e->grid[d], "");
        e->program[d] = is_last(e, d) ? sum : LLVMBuildURem(b, sum, e->grid[d], "");
    }
}

void nv_find_thread(nv_emit *e)
{
    LLVMBuilderRef b = e->cx->b;

    e->thread = ll_call(e->cx, "llvm.nvvm.read.ptx.sreg.tid.x", NULL, 0, NULL, 0);
    e->lane = LLVMBuildAnd(b, e->thread, nv_i32(e, NV_WARP - 1), "");
    e->warp = LLVMBuildLShr(b, e->thread, nv_i32(e, 5), "");
    LLVMTypeRef bytes = LLVMArrayType2(e->cx->i8, 0);
    LLVMValueRef memory =
        LLVMAddGlobalInAddressSpace(e->cx->module, bytes, "shared_memory", SPACE_SHARED);
    LLVMSetAlignment(memory, 1024);
    e->shared = LLVMBuildPtrToInt(b, memory, e->cx->i32, "");
}
