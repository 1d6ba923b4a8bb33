#include "compiler/target/llvm/llvm_build.h"
#include "compiler/base/check.h"
#include <llvm/Config/llvm-config.h>
#include <string.h>

enum { MAX_LANES = 64 };

void ll_open(ll_cx *cx, LLVMContextRef context, const char *module)
{
    cx->context = context;
    cx->module = LLVMModuleCreateWithNameInContext(module, context);
    cx->b = LLVMCreateBuilderInContext(context);
    cx->i1 = LLVMInt1TypeInContext(context);
    cx->i8 = LLVMInt8TypeInContext(context);
    cx->i16 = LLVMInt16TypeInContext(context);
    cx->i32 = LLVMInt32TypeInContext(context);
    cx->i64 = LLVMInt64TypeInContext(context);
    cx->f32 = LLVMFloatTypeInContext(context);
    cx->f64 = LLVMDoubleTypeInContext(context);
    cx->ptr = LLVMPointerTypeInContext(context, 0);
}

/* ---- types ---- */

static LLVMTypeRef scalar_type(const ll_cx *cx, enum dtype t)
{
    switch (t) {
    case DT_I1:
        return cx->i1;
    case DT_I8:
    case DT_U8:
        return cx->i8;
    case DT_I16:
    case DT_U16:
        return cx->i16;
    case DT_I32:
    case DT_U32:
        return cx->i32;
    case DT_I64:
    case DT_U64:
        return cx->i64;
    case DT_F16:
        return LLVMHalfTypeInContext(cx->context);
    case DT_BF16:
        return LLVMBFloatTypeInContext(cx->context);
    case DT_F32:
        return cx->f32;
    case DT_F64:
        return cx->f64;
    case DT_COUNT:
        break;
    }
    ICHECK(0, "a dtype of a value");
    return NULL;
}

LLVMTypeRef ll_lanes(LLVMTypeRef scalar, int lanes)
{
    return lanes == 1 ? scalar : LLVMVectorType(scalar, (unsigned)lanes);
}

LLVMTypeRef ll_type(const ll_cx *cx, enum dtype t, int lanes)
{
    return ll_lanes(scalar_type(cx, t), lanes);
}

LLVMTypeRef ll_memory_type(const ll_cx *cx, enum dtype t, int lanes)
{
    return ll_lanes(t == DT_I1 ? cx->i8 : scalar_type(cx, t), lanes);
}

int ll_lanes_of(LLVMTypeRef t)
{
    return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? (int)LLVMGetVectorSize(t) : 1;
}

LLVMTypeRef ll_scalar_of(LLVMTypeRef t)
{
    return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetElementType(t) : t;
}

/* ---- constants ---- */

static LLVMValueRef const_splat(LLVMTypeRef type, LLVMValueRef scalar)
{
    LLVMValueRef at[MAX_LANES];
    int lanes = ll_lanes_of(type);

    ICHECK(lanes <= MAX_LANES, "a vector of a known width");
    if (LLVMGetTypeKind(type) != LLVMVectorTypeKind)
        return scalar;
    for (int i = 0; i < lanes; i++)
        at[i] = scalar;
    return LLVMConstVector(at, (unsigned)lanes);
}

LLVMValueRef ll_int(LLVMTypeRef type, int64_t v)
{
    LLVMTypeRef scalar = ll_scalar_of(type);
    unsigned bits = LLVMGetIntTypeWidth(scalar);
    uint64_t u = bits < 64 ? (uint64_t)v & ((1ull << bits) - 1) : (uint64_t)v;

    return const_splat(type, LLVMConstInt(scalar, u, 0));
}

LLVMValueRef ll_float(LLVMTypeRef type, double v)
{
    return const_splat(type, LLVMConstReal(ll_scalar_of(type), v));
}

LLVMValueRef ll_i64(const ll_cx *cx, int64_t v)
{
    return LLVMConstInt(cx->i64, (uint64_t)v, 1);
}

LLVMValueRef ll_iota(const ll_cx *cx, int64_t first, int lanes)
{
    LLVMValueRef at[MAX_LANES];

    if (lanes == 1)
        return ll_int(cx->i32, first);
    for (int i = 0; i < lanes; i++)
        at[i] = ll_int(cx->i32, first + i);
    return LLVMConstVector(at, (unsigned)lanes);
}

LLVMValueRef ll_first_lanes(const ll_cx *cx, int n, int lanes)
{
    LLVMValueRef at[MAX_LANES];

    for (int i = 0; i < lanes; i++)
        at[i] = ll_int(cx->i1, i < n);
    return LLVMConstVector(at, (unsigned)lanes);
}

bool ll_is_zero(LLVMValueRef v)
{
    return LLVMIsAConstantInt(v) && LLVMConstIntGetZExtValue(v) == 0;
}

static bool is_one(LLVMValueRef v)
{
    return LLVMIsAConstantInt(v) && LLVMConstIntGetZExtValue(v) == 1;
}

LLVMValueRef ll_add(const ll_cx *cx, LLVMValueRef a, LLVMValueRef b)
{
    if (ll_is_zero(a))
        return b;
    return ll_is_zero(b) ? a : LLVMBuildAdd(cx->b, a, b, "");
}

LLVMValueRef ll_mul(const ll_cx *cx, LLVMValueRef a, LLVMValueRef b)
{
    if (is_one(a) || ll_is_zero(b))
        return b;
    return is_one(b) || ll_is_zero(a) ? a : LLVMBuildMul(cx->b, a, b, "");
}

/* ---- operations ---- */

LLVMValueRef ll_call(const ll_cx *cx, const char *intrinsic, LLVMTypeRef *types, int ntypes,
                     LLVMValueRef *args, int nargs)
{
    unsigned id = LLVMLookupIntrinsicID(intrinsic, strlen(intrinsic));

    ICHECK(id != 0, "an intrinsic that LLVM knows");
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(cx->module, id, types, (size_t)ntypes);
    LLVMTypeRef type = LLVMIntrinsicGetType(cx->context, id, types, (size_t)ntypes);
    return LLVMBuildCall2(cx->b, type, f, args, (unsigned)nargs, "");
}

LLVMValueRef ll_unary(const ll_cx *cx, const char *intrinsic, LLVMValueRef x)
{
    return ll_call(cx, intrinsic, (LLVMTypeRef[]){LLVMTypeOf(x)}, 1, &x, 1);
}

LLVMValueRef ll_binary(const ll_cx *cx, const char *intrinsic, LLVMValueRef x, LLVMValueRef y)
{
    return ll_call(cx, intrinsic, (LLVMTypeRef[]){LLVMTypeOf(x)}, 1, (LLVMValueRef[]){x, y}, 2);
}

LLVMValueRef ll_fma(const ll_cx *cx, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z)
{
    return ll_call(cx, "llvm.fma", (LLVMTypeRef[]){LLVMTypeOf(x)}, 1, (LLVMValueRef[]){x, y, z}, 3);
}

LLVMValueRef ll_splat(const ll_cx *cx, LLVMValueRef scalar, int lanes)
{
    LLVMTypeRef type = ll_lanes(LLVMTypeOf(scalar), lanes);

    if (lanes == 1)
        return scalar;
    if (LLVMIsConstant(scalar) && !LLVMIsPoison(scalar))
        return const_splat(type, scalar);
    LLVMValueRef one =
        LLVMBuildInsertElement(cx->b, LLVMGetPoison(type), scalar, ll_i64(cx, 0), "");
    LLVMValueRef zeros = LLVMConstNull(ll_lanes(cx->i32, lanes));
    return LLVMBuildShuffleVector(cx->b, one, LLVMGetPoison(type), zeros, "");
}

LLVMValueRef ll_select(const ll_cx *cx, LLVMValueRef c, LLVMValueRef x, LLVMValueRef y)
{
    if (LLVMIsAConstantInt(c))
        return LLVMConstIntGetZExtValue(c) ? x : y;
    return LLVMBuildSelect(cx->b, c, x, y, "");
}

LLVMValueRef ll_gep(const ll_cx *cx, LLVMTypeRef elem, LLVMValueRef base, LLVMValueRef offset)
{
    return ll_is_zero(offset) ? base : LLVMBuildGEP2(cx->b, elem, base, &offset, 1, "");
}

LLVMValueRef ll_load(const ll_cx *cx, LLVMTypeRef type, LLVMValueRef ptr, unsigned align)
{
    LLVMValueRef v = LLVMBuildLoad2(cx->b, type, ptr, "");

    LLVMSetAlignment(v, align);
    return v;
}

LLVMValueRef ll_store(const ll_cx *cx, LLVMValueRef v, LLVMValueRef ptr, unsigned align)
{
    LLVMValueRef st = LLVMBuildStore(cx->b, v, ptr);

    LLVMSetAlignment(st, align);
    return st;
}

/* Calls a masked access: args without its alignment, which LLVM 22 takes as an attribute of the
 * pointer args[at], and LLVM 19 as an argument after it. */
static LLVMValueRef call_masked(const ll_cx *cx, const char *intrinsic, LLVMTypeRef *types,
                                LLVMValueRef *args, int nargs, int at, unsigned align)
{
#if LLVM_VERSION_MAJOR >= 22
    LLVMValueRef call = ll_call(cx, intrinsic, types, 2, args, nargs);
    unsigned kind = LLVMGetEnumAttributeKindForName("align", 5);

    LLVMAddCallSiteAttribute(call, (unsigned)at + 1,
                             LLVMCreateEnumAttribute(cx->context, kind, align));
    return call;
#else
    LLVMValueRef with[4];

    for (int i = 0; i <= nargs; i++)
        with[i] = i == at + 1 ? ll_int(cx->i32, align) : args[i - (i > at)];
    return ll_call(cx, intrinsic, types, 2, with, nargs + 1);
#endif
}

LLVMValueRef ll_masked_load(const ll_cx *cx, LLVMTypeRef type, LLVMValueRef ptr, unsigned align,
                            LLVMValueRef mask)
{
    return call_masked(cx, "llvm.masked.load", (LLVMTypeRef[]){type, cx->ptr},
                       (LLVMValueRef[]){ptr, mask, LLVMConstNull(type)}, 3, 0, align);
}

void ll_masked_store(const ll_cx *cx, LLVMValueRef v, LLVMValueRef ptr, unsigned align,
                     LLVMValueRef mask)
{
    (void)call_masked(cx, "llvm.masked.store", (LLVMTypeRef[]){LLVMTypeOf(v), cx->ptr},
                      (LLVMValueRef[]){v, ptr, mask}, 3, 1, align);
}

LLVMValueRef ll_gather(const ll_cx *cx, LLVMTypeRef type, LLVMValueRef ptrs, unsigned align,
                       LLVMValueRef mask)
{
    return call_masked(cx, "llvm.masked.gather", (LLVMTypeRef[]){type, LLVMTypeOf(ptrs)},
                       (LLVMValueRef[]){ptrs, mask, LLVMConstNull(type)}, 3, 0, align);
}

void ll_scatter(const ll_cx *cx, LLVMValueRef v, LLVMValueRef ptrs, unsigned align,
                LLVMValueRef mask)
{
    (void)call_masked(cx, "llvm.masked.scatter", (LLVMTypeRef[]){LLVMTypeOf(v), LLVMTypeOf(ptrs)},
                      (LLVMValueRef[]){v, ptrs, mask}, 3, 1, align);
}

void ll_transpose(const ll_cx *cx, LLVMValueRef *rows, int n)
{
    LLVMValueRef low[MAX_LANES], high[MAX_LANES], next[MAX_LANES];

    for (int i = 0; i < n; i++) {
        low[i] = ll_int(cx->i32, (i & 1) * n + i / 2);
        high[i] = ll_int(cx->i32, (i & 1) * n + n / 2 + i / 2);
    }
    LLVMValueRef lows = LLVMConstVector(low, (unsigned)n),
                 highs = LLVMConstVector(high, (unsigned)n);
    for (int stage = 1; stage < n; stage *= 2) {
        for (int i = 0; i < n / 2; i++) {
            next[2 * i] = LLVMBuildShuffleVector(cx->b, rows[i], rows[i + n / 2], lows, "");
            next[2 * i + 1] = LLVMBuildShuffleVector(cx->b, rows[i], rows[i + n / 2], highs, "");
        }
        memcpy(rows, next, sizeof *rows * (size_t)n);
    }
}

/* Elements of x and y in turn, for the lower or the upper half of each part. */
static LLVMValueRef interleave(const ll_cx *cx, LLVMValueRef x, LLVMValueRef y, int part, int half)
{
    LLVMValueRef from[2 * MAX_LANES];
    int n = ll_lanes_of(LLVMTypeOf(x));

    for (int i = 0; i < n; i++)
        from[i] = ll_int(cx->i32, i / part * part + half * part / 2 + i % part / 2 + i % 2 * n);
    return LLVMBuildShuffleVector(cx->b, x, y, LLVMConstVector(from, (unsigned)n), "");
}

void ll_transpose_squares(const ll_cx *cx, LLVMValueRef *rows, int high)
{
    LLVMValueRef next[MAX_LANES];

    for (int stage = 1; stage < high; stage *= 2) {
        for (int i = 0; i < high; i++)
            next[i] = interleave(cx, rows[i / 2], rows[i / 2 + high / 2], high, i % 2);
        memcpy(rows, next, sizeof *rows * (size_t)high);
    }
}

/* ---- functions, blocks ---- */

LLVMValueRef ll_function(ll_cx *cx, const char *name, LLVMTypeRef type,
                         void (*fill)(ll_cx *cx, LLVMValueRef fn, void *arg), void *arg)
{
    LLVMValueRef fn = LLVMGetNamedFunction(cx->module, name), outer = cx->fn;
    LLVMBasicBlockRef back = ll_here(cx);

    if (fn)
        return fn;
    fn = LLVMAddFunction(cx->module, name, type);
    LLVMSetLinkage(fn, LLVMInternalLinkage);
    cx->fn = fn;
    ll_at(cx, ll_block(cx, "entry"));
    fill(cx, fn, arg);
    cx->fn = outer;
    ll_at(cx, back);
    return fn;
}

LLVMBasicBlockRef ll_block(const ll_cx *cx, const char *name)
{
    return LLVMAppendBasicBlockInContext(cx->context, cx->fn, name);
}

void ll_at(const ll_cx *cx, LLVMBasicBlockRef block)
{
    LLVMPositionBuilderAtEnd(cx->b, block);
}

LLVMBasicBlockRef ll_here(const ll_cx *cx)
{
    return LLVMGetInsertBlock(cx->b);
}

void ll_phi_add(LLVMValueRef phi, LLVMValueRef v, LLVMBasicBlockRef from)
{
    LLVMAddIncoming(phi, &v, &from, 1);
}
