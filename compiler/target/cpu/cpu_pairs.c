/* Pairs of bf16 in words of 32 bits: what vdpbf16ps multiplies. It takes subnormal factors and
 * results for 0, and so does the conversion that is used here: nobody else sees what it gives. */
#include "compiler/base/check.h"
#include "compiler/target/cpu/cpu_emit.h"

static LLVMTypeRef words(const cpu_emit *e)
{
    return ll_lanes(e->cx->i32, e->isa->lanes);
}

static LLVMValueRef as_bf16(const cpu_emit *e, LLVMValueRef words)
{
    LLVMTypeRef bf16 = LLVMBFloatTypeInContext(e->cx->context);

    return LLVMBuildBitCast(e->cx->b, words, ll_lanes(bf16, 2 * e->isa->lanes), "");
}

LLVMValueRef cpu_load_pairs(cpu_emit *e, ir_val v, const cpu_at *at)
{
    cpu_at in = *at;
    ir_val base = cpu_operand(e, v, &in);
    const cpu_value *value = &e->plan->value.at[base];
    int depth = cpu_at_depth(&in, ir_type_of(e->fn, base).rank);
    bool direct = in.lane < 0 && value->direct;
    LLVMValueRef p;

    if (direct) {
        p = cpu_direct_address(e, base, &in, depth);
    } else {
        ICHECK(value->pairs && value->buf, "an operand in pairs");
        p = cpu_buf_address(e, &e->plan->bufs.at[cpu_buf_root(e->plan, value->buf)], &in, depth);
    }
    cpu_hoist(e, depth);
    LLVMValueRef got = ll_load(e->cx, in.lane < 0 ? e->cx->i32 : words(e), p,
                               direct        ? 2
                               : in.lane < 0 ? 4
                                             : 4 * (unsigned)e->isa->lanes);
    cpu_home(e);
    return got;
}

/* Of values of bf16, the halves that they are. */
static LLVMValueRef join_exact(cpu_emit *e, LLVMValueRef low, LLVMValueRef high)
{
    LLVMBuilderRef b = e->cx->b;

    low = LLVMBuildLShr(b, LLVMBuildBitCast(b, low, words(e), ""), ll_int(words(e), 16), "");
    high = LLVMBuildAnd(b, LLVMBuildBitCast(b, high, words(e), ""), ll_int(words(e), -65536), "");
    return LLVMBuildOr(b, low, high, "");
}

static LLVMValueRef join_rounded(cpu_emit *e, LLVMValueRef low, LLVMValueRef high)
{
    int lanes = e->isa->lanes;
    LLVMValueRef arg[] = {high, low}, from[2 * CPU_MAX_LANES];
    LLVMValueRef both = ll_call(e->cx, "llvm.x86.avx512bf16.cvtne2ps2bf16.512", NULL, 0, arg, 2);

    for (int i = 0; i < 2 * lanes; i++)
        from[i] = ll_int(e->cx->i32, i / 2 + i % 2 * lanes);
    both = LLVMBuildShuffleVector(e->cx->b, both, LLVMGetPoison(LLVMTypeOf(both)),
                                  LLVMConstVector(from, 2 * (unsigned)lanes), "");
    return LLVMBuildBitCast(e->cx->b, both, words(e), "");
}

LLVMValueRef cpu_rounded_bits(cpu_emit *e, LLVMValueRef v)
{
    int lanes = ll_lanes_of(LLVMTypeOf(v));

    if (!e->isa->bf16_round || lanes != e->isa->lanes)
        return cpu_to_memory(e, DT_BF16, cpu_round(e, DT_BF16, v));
    v = ll_call(e->cx, "llvm.x86.avx512bf16.cvtneps2bf16.512", NULL, 0, &v, 1);
    return LLVMBuildBitCast(e->cx->b, v, ll_lanes(e->cx->i16, lanes), "");
}

void cpu_store_pairs(cpu_emit *e, uint32_t buf, const cpu_at *at, LLVMValueRef low,
                     LLVMValueRef high, bool exact)
{
    const cpu_buf *b = &e->plan->bufs.at[cpu_buf_root(e->plan, buf)];
    LLVMValueRef p = cpu_buf_address(e, b, at, e->depth);
    LLVMValueRef both;

    if (exact) {
        both = join_exact(e, low, high);
    } else if (e->isa->bf16_round) {
        both = join_rounded(e, low, high);
    } else {
        both = join_exact(e, cpu_round(e, DT_BF16, low), cpu_round(e, DT_BF16, high));
    }

    ICHECK(b->pairs && at->lane == b->lane, "vectors of pairs");
    ll_store(e->cx, both, p, 4 * (unsigned)e->isa->lanes);
}

LLVMValueRef cpu_add_products(cpu_emit *e, LLVMValueRef acc, LLVMValueRef x, LLVMValueRef y)
{
    LLVMValueRef arg[] = {acc, as_bf16(e, x), as_bf16(e, y)};

    return ll_call(e->cx, "llvm.x86.avx512bf16.dpbf16ps.512", NULL, 0, arg, 3);
}
