/* C's fmod as inline code: long division by whole digits.
 *
 *   |x| = r 2^ex, |y| = d 2^ey, r and d in [1, 2)
 *   r = r mod d; then, STEP bits of ex - ey at a time: r = r 2^STEP mod d
 *   the result is r 2^ey, with the sign of x
 *
 * Each r is a multiple of d's last place below d, so an f32 or f64 holds it. A quotient below
 * 2^STEP, rounded, is right or 1 too large, and r minus a multiple of d is exact by fma. */
#include "compiler/target/llvm/llvm_exact.h"
#include <math.h>
#include <stdio.h>

typedef struct format {
    LLVMTypeRef type, bits;
    int fraction, bias; /* bits of the fraction, which are a STEP as well */
} format;

static format format_of(const ll_cx *cx, LLVMTypeRef type)
{
    bool narrow = ll_scalar_of(type) == cx->f32;

    return (format){.type = type,
                    .bits = ll_lanes(narrow ? cx->i32 : cx->i64, ll_lanes_of(type)),
                    .fraction = narrow ? 23 : 52,
                    .bias = narrow ? 127 : 1023};
}

/* x >= 0 as m 2^e, m in [1, 2). Not of 0, infinity and NaN, whose m and e mean nothing. */
static LLVMValueRef split(const ll_cx *cx, const format *f, LLVMValueRef x, LLVMValueRef *e)
{
    LLVMBuilderRef b = cx->b;
    double least = ldexp(1.0, 1 - f->bias);
    LLVMValueRef tiny = LLVMBuildFCmp(b, LLVMRealOLT, x, ll_float(f->type, least), "");
    LLVMValueRef scale = ll_float(f->type, ldexp(1.0, f->fraction));
    LLVMValueRef u = ll_select(cx, tiny, LLVMBuildFMul(b, x, scale, ""), x);
    LLVMValueRef moved =
        ll_select(cx, tiny, ll_int(f->bits, f->bias + f->fraction), ll_int(f->bits, f->bias));

    u = LLVMBuildBitCast(b, u, f->bits, "");
    LLVMValueRef biased = LLVMBuildLShr(b, u, ll_int(f->bits, f->fraction), "");
    *e = LLVMBuildSub(b, biased, moved, "");
    u = LLVMBuildAnd(b, u, ll_int(f->bits, ((int64_t)1 << f->fraction) - 1), "");
    u = LLVMBuildOr(b, u, ll_int(f->bits, (int64_t)f->bias << f->fraction), "");
    return LLVMBuildBitCast(b, u, f->type, "");
}

/* 2^n, a normal number */
static LLVMValueRef power_of_two(const ll_cx *cx, const format *f, LLVMValueRef n)
{
    LLVMValueRef biased = LLVMBuildAdd(cx->b, n, ll_int(f->bits, f->bias), "");
    LLVMValueRef u = LLVMBuildShl(cx->b, biased, ll_int(f->bits, f->fraction), "");

    return LLVMBuildBitCast(cx->b, u, f->type, "");
}

/* r mod d */
static LLVMValueRef divide(ll_cx *cx, bool fma, LLVMValueRef r, LLVMValueRef d)
{
    LLVMBuilderRef b = cx->b;
    LLVMValueRef quotient = ll_unary(cx, "llvm.floor", LLVMBuildFDiv(b, r, d, ""));
    LLVMValueRef a[] = {LLVMBuildFNeg(b, quotient, ""), d, r};

    r = fma ? ll_fma(cx, a[0], a[1], a[2]) : ll_soft_fma(cx, a);
    LLVMValueRef below = LLVMBuildFCmp(b, LLVMRealOLT, r, LLVMConstNull(LLVMTypeOf(r)), "");
    return ll_select(cx, below, LLVMBuildFAdd(b, r, d, ""), r);
}

/* Is an element above 0? */
static LLVMValueRef any_above(const ll_cx *cx, LLVMValueRef v)
{
    LLVMTypeRef type = LLVMTypeOf(v);
    LLVMValueRef c = LLVMBuildICmp(cx->b, LLVMIntSGT, v, LLVMConstNull(type), "");
    int lanes = ll_lanes_of(type);

    if (lanes == 1)
        return c;
    LLVMTypeRef mask = LLVMIntTypeInContext(cx->context, (unsigned)lanes);
    c = LLVMBuildBitCast(cx->b, c, mask, "");
    return LLVMBuildICmp(cx->b, LLVMIntNE, c, LLVMConstNull(mask), "");
}

/* r 2^left mod d, both in [1, 2); elements with nothing left keep their value. */
static LLVMValueRef long_division(ll_cx *cx, const format *f, bool fma, LLVMValueRef r,
                                  LLVMValueRef d, LLVMValueRef left)
{
    LLVMBuilderRef b = cx->b;
    LLVMValueRef first = divide(cx, fma, r, d), digit;
    LLVMBasicBlockRef before = ll_here(cx), head = ll_block(cx, "divide");
    LLVMBasicBlockRef body = ll_block(cx, "digit"), after = ll_block(cx, "");

    LLVMBuildBr(b, head);
    ll_at(cx, head);
    LLVMValueRef rest = LLVMBuildPhi(b, f->type, ""), more = LLVMBuildPhi(b, f->bits, "");
    LLVMBuildCondBr(b, any_above(cx, more), body, after);
    ll_at(cx, body);
    digit = ll_binary(cx, "llvm.smin", more, ll_int(f->bits, f->fraction));
    r = LLVMBuildFMul(b, rest, power_of_two(cx, f, digit), "");
    r = divide(cx, fma, r, d);
    LLVMValueRef less = LLVMBuildSub(b, more, digit, "");
    ll_phi_add(rest, first, before);
    ll_phi_add(more, left, before);
    ll_phi_add(rest, r, ll_here(cx));
    ll_phi_add(more, less, ll_here(cx));
    LLVMBuildBr(b, head);
    ll_at(cx, after);
    return rest;
}

LLVMValueRef ll_rem(ll_cx *cx, bool fma, LLVMValueRef x, LLVMValueRef y)
{
    LLVMBuilderRef b = cx->b;
    format f = format_of(cx, LLVMTypeOf(x));
    LLVMValueRef size = ll_unary(cx, "llvm.fabs", x), by = ll_unary(cx, "llvm.fabs", y);
    LLVMValueRef infinite =
        LLVMBuildFCmp(b, LLVMRealUGE, size, ll_float(f.type, (double)INFINITY), "");
    LLVMValueRef no_divisor = LLVMBuildFCmp(b, LLVMRealULE, by, LLVMConstNull(f.type), "");
    LLVMValueRef undefined = LLVMBuildOr(b, infinite, no_divisor, ""); /* NaN is both */
    LLVMValueRef small = LLVMBuildFCmp(b, LLVMRealOLT, size, by, "");
    LLVMValueRef known = LLVMBuildOr(b, undefined, small, ""), ex, ey;

    LLVMValueRef r = split(cx, &f, size, &ex), d = split(cx, &f, by, &ey);
    LLVMValueRef left = ll_select(cx, known, LLVMConstNull(f.bits), LLVMBuildSub(b, ex, ey, ""));
    r = long_division(cx, &f, fma, r, d, left);
    /* in two steps, each exact: 2^ey alone may be no normal number */
    LLVMValueRef half = LLVMBuildAShr(b, ey, ll_int(f.bits, 1), "");
    r = LLVMBuildFMul(b, r, power_of_two(cx, &f, half), "");
    r = LLVMBuildFMul(b, r, power_of_two(cx, &f, LLVMBuildSub(b, ey, half, "")), "");
    r = ll_select(cx, small, x, ll_binary(cx, "llvm.copysign", r, x));
    return ll_select(cx, undefined, ll_float(f.type, (double)NAN), r);
}

static void fill_rem(ll_cx *cx, LLVMValueRef fn, void *arg)
{
    const bool *fma = arg;

    LLVMBuildRet(cx->b, ll_rem(cx, *fma, LLVMGetParam(fn, 0), LLVMGetParam(fn, 1)));
}

LLVMValueRef ll_rem_call(ll_cx *cx, bool fma, LLVMValueRef x, LLVMValueRef y)
{
    LLVMTypeRef type = LLVMTypeOf(x), arg[] = {type, type};
    LLVMTypeRef fn_type = LLVMFunctionType(type, arg, 2, 0);
    LLVMValueRef args[] = {x, y};
    char name[32];

    snprintf(name, sizeof name, "rem.%dxf%d", ll_lanes_of(type),
             ll_scalar_of(type) == cx->f32 ? 32 : 64);
    return LLVMBuildCall2(cx->b, fn_type, ll_function(cx, name, fn_type, fill_rem, &fma), args, 2,
                          "");
}
