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

/* The launch's first program by axis. Its number may be above 2^32; divided where it is not 0, in a
 * branch that few launches take. */
static void find_first(nv_emit *e, LLVMValueRef at[3])
{
    LLVMBuilderRef b = e->cx->b;
    LLVMValueRef left = e->first, zero = nv_i32(e, 0);
    LLVMValueRef c = LLVMBuildICmp(b, LLVMIntNE, left, ll_i64(e->cx, 0), "");
    nv_guard g = nv_guard_begin(e, is_last(e, 0) ? NULL : c);

    for (int d = 0; d < 3; d++) {
        LLVMValueRef grid = LLVMBuildZExt(b, e->grid[d], e->cx->i64, "");
        LLVMValueRef here = is_last(e, d) ? left : LLVMBuildURem(b, left, grid, "");
        at[d] = LLVMBuildTrunc(b, here, e->cx->i32, "");
        left = is_last(e, d) ? ll_i64(e->cx, 0) : LLVMBuildUDiv(b, left, grid, "");
    }
    nv_guard_end(e, &g);
    for (int d = 0; d < 3 && !is_last(e, 0); d++)
        at[d] = nv_guard_value(e, &g, at[d], zero);
}

/* Programs are numbered with axis 0 fastest. A grid may hold more than 2^32 of them, but an extent,
 * and the blocks of a launch, are below 2^31: so is each quotient, and each sum below 2^32. */
void nv_find_program(nv_emit *e)
{
    LLVMBuilderRef b = e->cx->b;
    LLVMValueRef id = ll_call(e->cx, "llvm.nvvm.read.ptx.sreg.ctaid.x", NULL, 0, NULL, 0), at[3];

    if (!e->first)
        return;
    for (int d = 0; d < 3; d++)
        e->grid[d] = LLVMBuildTrunc(b, e->grid[d], e->cx->i32, "");
    find_first(e, at);
    for (int d = 0; d < 3; d++) {
        LLVMValueRef sum = ll_add(e->cx, id, at[d]);
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
