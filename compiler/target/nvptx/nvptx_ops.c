/* Elementwise ops, register by register, and the ops of shape, which move nothing. */
#include "compiler/base/check.h"
#include "compiler/ir/irbuild.h"
#include "compiler/target/llvm/llvm_exact.h"
#include "compiler/target/llvm/llvm_math.h"
#include "compiler/target/llvm/llvm_ops.h"
#include "compiler/target/nvptx/nvptx_emit.h"
#include <string.h>

/* ---- one element ----------------------------------------------------------------------------- */

static LLVMValueRef float_function(nv_emit *e, enum ir_opcode code, enum dtype t, LLVMValueRef x)
{
    const ll_math m = {.cx = e->cx, .fma = true};

    ICHECK(t == DT_F32, "functions of f64 are refused before");
    /* docs/LANGUAGE.md allows it: 2 ulp, and results below 2^-126 may be 0 */
    if (code == OP_EXP2)
        return ll_call(e->cx, "llvm.nvvm.ex2.approx.ftz", (LLVMTypeRef[]){e->cx->f32}, 1, &x, 1);
    return ll_math_op(&m, code, x);
}

static LLVMValueRef float_op(nv_emit *e, enum ir_opcode code, enum dtype t, LLVMValueRef *a)
{
    if (code == OP_FMA)
        return ll_fma(e->cx, a[0], a[1], a[2]);
    if (code == OP_REM)
        return ll_rem(e->cx, true, a[0], a[1]);
    LLVMValueRef v = ll_float_op(e->cx, code, a);
    return v ? v : float_function(e, code, t, a[0]);
}

static LLVMValueRef element_op(nv_emit *e, enum ir_opcode code, enum dtype from, enum dtype to,
                               LLVMValueRef *a)
{
    if (code == OP_WHERE)
        return ll_select(e->cx, a[0], a[1], a[2]);
    if (code == OP_CAST)
        return from == to ? a[0] : ll_cast(e->cx, nv_held(from), nv_held(to), a[0]);
    from = nv_held(from);
    return dtype_is_float(from) ? float_op(e, code, from, a) : ll_int_op(e->cx, code, from, a);
}

/* ---- all registers --------------------------------------------------------------------------- */

/* An earlier register with the same operands: rows that were widened repeat. */
static int same_operands(LLVMValueRef (*seen)[3], int r, int nargs)
{
    for (int i = 0; i < r; i++) {
        if (memcmp(seen[i], seen[r], sizeof **seen * (size_t)nargs) == 0)
            return i;
    }
    return -1;
}

static void bitcast(nv_emit *e, const ir_op *op)
{
    enum dtype to = (enum dtype)nv_type(e, op->res).dtype;
    int n = nv_registers(e, nv_type(e, op->res));
    LLVMValueRef *raw = ARENA_ARRAY(e->a, LLVMValueRef, (size_t)n);

    for (int r = 0; r < n; r++)
        raw[r] = LLVMBuildBitCast(e->cx->b, nv_raw(e, op->args[0], r), nv_raw_type(e, to), "");
    nv_set_raw(e, op->res, raw);
}

/* From the register of packed 16-bit values to another holding of the same value. */
static void copy_value(nv_emit *e, ir_val to, ir_val from)
{
    *nv_new(e, to) = *nv_at(e, from);
}

/* A quotient or remainder of scalars that are never negative: unsigned, which is shorter, and in 32
 * bits where they fit, which is shorter by far. NULL: not known to be. */
static LLVMValueRef divide_unsigned(nv_emit *e, const ir_op *op)
{
    LLVMBuilderRef b = e->cx->b;
    LLVMTypeRef type = nv_word_type(e, nv_type(e, op->res));
    int64_t x = nv_most(e, op->args[0]), y = nv_most(e, op->args[1]);

    if (x < 0 || y < 0)
        return NULL;
    LLVMValueRef a[] = {nv_get(e, op->args[0], 0), nv_get(e, op->args[1], 0)};
    bool narrow = x <= UINT32_MAX && y <= UINT32_MAX;
    for (int i = 0; i < 2 && narrow; i++)
        a[i] = LLVMBuildTruncOrBitCast(b, a[i], e->cx->i32, "");
    LLVMValueRef v = ll_int_op(e->cx, (enum ir_opcode)op->code, narrow ? DT_U32 : DT_U64, a);
    return LLVMBuildZExtOrBitCast(b, v, type, "");
}

static bool is_one(LLVMValueRef v)
{
    LLVMBool inexact;

    return LLVMIsAConstantFP(v) && LLVMConstRealGetDouble(v, &inexact) == 1.0;
}

/* Is 1 / x exact by one step of Newton's method? Not of the least and greatest exponents. */
static LLVMValueRef is_plain(nv_emit *e, LLVMValueRef x)
{
    LLVMBuilderRef b = e->cx->b;
    LLVMValueRef exponent = LLVMBuildBitCast(b, x, e->cx->i32, "");

    exponent =
        LLVMBuildAnd(b, ll_add(e->cx, exponent, nv_i32(e, 0x1800000)), nv_i32(e, 0x7f800000), "");
    return LLVMBuildICmp(b, LLVMIntUGT, exponent, nv_i32(e, 0x1ffffff), "");
}

static LLVMValueRef quick_reciprocal(nv_emit *e, LLVMValueRef x)
{
    LLVMValueRef r = ll_call(e->cx, "llvm.nvvm.rcp.approx.ftz.f", NULL, 0, &x, 1);
    LLVMValueRef error = ll_fma(e->cx, x, r, ll_float(e->cx->f32, -1.0));

    return ll_fma(e->cx, r, LLVMBuildFNeg(e->cx->b, error, ""), r);
}

/* 1 / x of several f32. ptxas makes of each two steps behind a branch on what is_plain asks, so
 * that one waits for the other; here one branch is for all. */
static bool reciprocals(nv_emit *e, const ir_op *op, int n, LLVMValueRef *out)
{
    LLVMValueRef plain = NULL, *exact = ARENA_ARRAY(e->a, LLVMValueRef, (size_t)n);
    LLVMBasicBlockRef quick, slow, after;

    if (n < 2 || nv_type(e, op->res).dtype != DT_F32)
        return false;
    for (int r = 0; r < n; r++) {
        if (!is_one(nv_get(e, op->args[0], r)))
            return false;
    }
    for (int r = 0; r < n; r++)
        plain = nv_both(e, plain, is_plain(e, nv_get(e, op->args[1], r)));
    quick = ll_block(e->cx, "quick");
    slow = ll_block(e->cx, "slow");
    after = ll_block(e->cx, "");
    LLVMBuildCondBr(e->cx->b, plain, quick, slow);
    for (int way = 0; way < 2; way++) {
        ll_at(e->cx, way ? slow : quick);
        for (int r = 0; r < n; r++) {
            LLVMValueRef x = nv_get(e, op->args[1], r);
            LLVMValueRef one = nv_get(e, op->args[0], r);
            *(way ? &exact[r] : &out[r]) =
                way ? LLVMBuildFDiv(e->cx->b, one, x, "") : quick_reciprocal(e, x);
        }
        LLVMBuildBr(e->cx->b, after);
    }
    ll_at(e->cx, after);
    for (int r = 0; r < n; r++) {
        LLVMValueRef phi = LLVMBuildPhi(e->cx->b, e->cx->f32, "");
        ll_phi_add(phi, out[r], quick);
        ll_phi_add(phi, exact[r], slow);
        out[r] = phi;
    }
    return true;
}

void nv_elementwise(nv_emit *e, const ir_op *op)
{
    enum ir_opcode code = (enum ir_opcode)op->code;
    ir_type t = nv_type(e, op->res);
    enum dtype from = (enum dtype)nv_type(e, op->args[code == OP_WHERE]).dtype;
    int n = nv_registers(e, t);

    if (code == OP_BITCAST) {
        bitcast(e, op);
        return;
    }
    if (nv_mma_rounds(e, op))
        return;
    if (code == OP_CAST && from == t.dtype) {
        copy_value(e, op->res, op->args[0]);
        return;
    }
    LLVMValueRef *out = ARENA_ARRAY(e->a, LLVMValueRef, (size_t)n);
    if ((code == OP_DIV || code == OP_REM) && (out[0] = divide_unsigned(e, op))) {
        nv_set(e, op->res, out);
        return;
    }
    if (code == OP_DIV && reciprocals(e, op, n, out)) {
        nv_set(e, op->res, out);
        return;
    }
    LLVMValueRef(*seen)[3] = arena_alloc(e->a, sizeof *seen * (size_t)n);
    for (int r = 0; r < n; r++) {
        for (int i = 0; i < op->nargs; i++)
            seen[r][i] = nv_get(e, op->args[i], r);
        int same = same_operands(seen, r, op->nargs);
        out[r] = same >= 0 ? out[same] : element_op(e, code, from, (enum dtype)t.dtype, seen[r]);
    }
    nv_set(e, op->res, out);
}

/* ---- leaves ---------------------------------------------------------------------------------- */

static LLVMValueRef constant(nv_emit *e, const ir_op *op, enum dtype t)
{
    LLVMTypeRef type = ll_type(e->cx, nv_held(t), 1);

    return dtype_is_float(t) ? ll_float(type, op->attr[0].f) : ll_int(type, op->attr[0].i);
}

static void arange(nv_emit *e, const ir_op *op)
{
    nv_value *v = nv_new(e, op->res);
    uint32_t bits;
    layout_map map;

    nv_map(e, nv_type(e, op->res), &map);
    LLVMValueRef lane = nv_lane_index(e, &map, 0, &bits);
    for (int r = 0; r < v->n; r++) {
        int32_t index[TILE_MAX_RANK];
        layout_element(&map, r, 0, 0, index);
        LLVMValueRef here = nv_i32(e, op->attr[0].i + index[0]);
        v->at[r] = lane ? ll_add(e->cx, lane, here) : here;
    }
}

void nv_leaf(nv_emit *e, const ir_op *op)
{
    LLVMValueRef v = NULL;

    switch ((int)op->code) {
    case OP_ARANGE:
        arange(e, op);
        return;
    case OP_CONST_INT:
    case OP_CONST_FLOAT:
        v = constant(e, op, (enum dtype)nv_type(e, op->res).dtype);
        break;
    case OP_PROGRAM_ID:
        v = e->program[op->attr[0].i];
        break;
    case OP_NUM_PROGRAMS:
        v = e->grid[op->attr[0].i];
        break;
    default:
        break;
    }
    ICHECK(v, "a leaf");
    nv_new(e, op->res)->at[0] = v;
}

/* ---- shape ----------------------------------------------------------------------------------- */

static void splat(nv_emit *e, const ir_op *op)
{
    ir_type t = nv_type(e, op->res);
    LLVMValueRef word = nv_get(e, op->args[0], 0);
    nv_value *v = nv_new(e, op->res);

    if (nv_is_half((enum dtype)t.dtype))
        word = nv_pack(e, (enum dtype)t.dtype, word, word);
    for (int i = 0; i < v->n; i++)
        v->at[i] = word;
}

/* The register of `from` that holds the element at index in this thread; the maps move alike with
 * lanes and warps, so that thread 0 speaks for all. */
static int register_of(const layout_map *from, const int32_t *index, int guess)
{
    int n = layout_registers(from);

    for (int i = 0; i < n; i++) {
        int32_t at[TILE_MAX_RANK];
        int r = (guess + i) % n;
        layout_element(from, r, 0, 0, at);
        if (memcmp(at, index, sizeof *at * (size_t)from->rank) == 0)
            return r;
    }
    ICHECK(0, "both layouts give a thread the same elements");
    return 0;
}

static int64_t flat_index(const layout_map *map, const int32_t *index)
{
    int64_t at = 0;

    for (int d = 0; d < map->rank; d++)
        at = at * map->shape[d] + index[d];
    return at;
}

static void unflatten(const layout_map *map, int64_t at, int32_t *index)
{
    for (int d = map->rank - 1; d >= 0; d--) {
        index[d] = (int32_t)(at % map->shape[d]);
        at /= map->shape[d];
    }
}

/* The index in the operand of what has this index in the result. */
static void operand_index(const ir_op *op, const layout_map *to, const layout_map *from,
                          const int32_t *index, int32_t *out)
{
    int64_t axis = op->code == OP_EXPAND ? op->attr[0].i : 0;

    for (int d = 0; d < from->rank; d++) {
        switch ((int)op->code) {
        case OP_EXPAND:
            out[d] = index[d < axis ? d : d + 1];
            break;
        case OP_BROADCAST:
            out[d] = from->shape[d] == 1 ? 0 : index[d];
            break;
        case OP_TRANS:
            for (int i = 0; i < to->rank; i++)
                out[op->attr[0].ints.at[i]] = index[i];
            return;
        default:
            unflatten(from, flat_index(to, index), out);
            return;
        }
    }
}

void nv_shape(nv_emit *e, const ir_op *op)
{
    layout_map to, from;

    if (op->code == OP_SPLAT) {
        splat(e, op);
        return;
    }
    nv_map(e, nv_type(e, op->res), &to);
    nv_map(e, nv_type(e, op->args[0]), &from);
    int n = layout_registers(&to);
    int *from_reg = ARENA_ARRAY(e->a, int, (size_t)n);
    for (int r = 0; r < n; r++) {
        int32_t index[TILE_MAX_RANK], old[TILE_MAX_RANK];
        layout_element(&to, r, 0, 0, index);
        operand_index(op, &to, &from, index, old);
        from_reg[r] = register_of(&from, old, r > 0 ? from_reg[r - 1] + 1 : 0);
    }
    nv_permute(e, op->res, op->args[0], from_reg);
}
