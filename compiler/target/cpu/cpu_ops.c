/* Elementwise ops with the meaning of docs/LANGUAGE.md (ireval.h is the same in C), for scalars and
 * vectors alike. */
#include "compiler/base/check.h"
#include "compiler/target/cpu/cpu_emit.h"
#include "compiler/target/llvm/llvm_exact.h"
#include "compiler/target/llvm/llvm_ops.h"
#include <math.h>

static LLVMValueRef compare_float(cpu_emit *e, LLVMRealPredicate p, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildFCmp(e->cx->b, p, x, y, "");
}

static bool is_signed(enum dtype t)
{
    return dtype_kind(t) == DTK_SINT;
}

static LLVMTypeRef with_lanes(LLVMTypeRef scalar, LLVMValueRef like)
{
    return ll_lanes(scalar, ll_lanes_of(LLVMTypeOf(like)));
}

/* ---- floats ---------------------------------------------------------------------------------- */

LLVMValueRef cpu_fma_or_not(cpu_emit *e, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z)
{
    if (e->isa->fma)
        return ll_fma(e->cx, x, y, z);
    return LLVMBuildFAdd(e->cx->b, LLVMBuildFMul(e->cx->b, x, y, ""), z, "");
}

/* m where v is less than 8 above it, else the larger: what m rescales then mostly stays as it is.
 * Not <= 8: the difference is rounded. From m = -inf it is inf or NaN. */
static LLVMValueRef lazy_maximum(cpu_emit *e, LLVMValueRef m, LLVMValueRef v, LLVMValueRef larger)
{
    LLVMBuilderRef b = e->cx->b;
    LLVMValueRef most = LLVMConstReal(LLVMTypeOf(m), 8.0);
    LLVMValueRef near = LLVMBuildFCmp(b, LLVMRealOLT, LLVMBuildFSub(b, v, m, ""), most, "");

    return LLVMBuildSelect(b, near, m, larger, "");
}

static LLVMValueRef float_op(cpu_emit *e, enum ir_opcode code, LLVMValueRef *a)
{
    if (code == OP_FMA)
        return e->isa->fma ? ll_fma(e->cx, a[0], a[1], a[2]) : ll_soft_fma(e->cx, a);
    if (code == OP_REM)
        return ll_rem_call(e->cx, e->isa->fma, a[0], a[1]);
    LLVMValueRef v = ll_float_op(e->cx, code, a);
    if (code == OP_RUNNING_MAX && e->isa->tiles != CPU_TILES_NONE)
        return lazy_maximum(e, a[0], a[1], v);
    return v ? v : cpu_math(e, code, a[0]);
}

/* ---- casts ----------------------------------------------------------------------------------- */

static LLVMValueRef cast(cpu_emit *e, enum dtype from, enum dtype to, LLVMValueRef x)
{
    if (from == to) /* a copy */
        return x;
    return cpu_round(e, to, ll_cast(e->cx, cpu_held(from), cpu_held(to), x));
}

static LLVMValueRef bitcast(cpu_emit *e, enum dtype from, enum dtype to, LLVMValueRef x)
{
    x = cpu_to_memory(e, from, x);
    x = LLVMBuildBitCast(e->cx->b, x, with_lanes(cpu_memory_type(e, to, 1), x), "");
    return cpu_to_register(e, to, x);
}

/* ---- entry ----------------------------------------------------------------------------------- */

/* Is the result of an op on values of a 16-bit float always one of its values? */
static bool is_exact(enum ir_opcode code)
{
    switch ((int)code) {
    case OP_NEG:
    case OP_ABS:
    case OP_FLOOR:
    case OP_CEIL:
    case OP_MAX:
    case OP_MIN:
    case OP_RUNNING_MAX:
    case OP_CMP_EQ:
    case OP_CMP_NE:
    case OP_CMP_LT:
    case OP_CMP_LE:
        return true;
    default:
        return false;
    }
}

LLVMValueRef cpu_op(cpu_emit *e, enum ir_opcode code, enum dtype from, enum dtype to,
                    LLVMValueRef *args)
{
    if (code == OP_WHERE)
        return ll_select(e->cx, args[0], args[1], args[2]);
    if (code == OP_CAST)
        return cast(e, from, to, args[0]);
    if (code == OP_BITCAST)
        return bitcast(e, from, to, args[0]);
    if (!dtype_is_float(from))
        return ll_int_op(e->cx, code, from, args);
    LLVMValueRef v = float_op(e, code, args);
    return is_exact(code) ? v : cpu_round(e, to, v);
}

/* One instruction each: a NaN in x is lost, one in y is kept. */
LLVMValueRef cpu_combine(cpu_emit *e, enum ir_opcode code, enum dtype t, LLVMValueRef x,
                         LLVMValueRef y)
{
    bool greatest = code == OP_REDUCE_MAX;

    if (code == OP_REDUCE_SUM)
        return dtype_is_float(t) ? LLVMBuildFAdd(e->cx->b, x, y, "")
                                 : LLVMBuildAdd(e->cx->b, x, y, "");
    if (!dtype_is_float(t))
        return ll_int_extreme(e->cx, t, greatest, x, y);
    return ll_select(e->cx, compare_float(e, greatest ? LLVMRealOGT : LLVMRealOLT, x, y), x, y);
}

LLVMValueRef cpu_neutral(cpu_emit *e, enum ir_opcode code, enum dtype t, int lanes)
{
    LLVMTypeRef type = ll_type(e->cx, t, lanes);
    int64_t most = (int64_t)(UINT64_MAX >> (65 - dtype_bits(t)));

    if (code == OP_REDUCE_SUM)
        return LLVMConstNull(type);
    if (dtype_is_float(t))
        return ll_float(type, code == OP_REDUCE_MAX ? -(double)INFINITY : (double)INFINITY);
    if (is_signed(t))
        return ll_int(type, code == OP_REDUCE_MAX ? -most - 1 : most);
    return ll_int(type, code == OP_REDUCE_MAX ? 0 : -1);
}
