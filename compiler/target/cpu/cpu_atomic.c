/* Atomic operations on elements of tensors.
 *
 * A tile goes element by element, in a loop over the set bits of the lanes' mask; what the loop
 * reads and gives lies on the stack meanwhile. Floats are added and compared in a loop that tries
 * to replace the element until nobody came between. Nothing but the element itself is ordered. */
#include "compiler/base/check.h"
#include "compiler/target/cpu/cpu_emit.h"

static LLVMTypeRef word_of(const cpu_emit *e, enum dtype t)
{
    return dtype_bits(t) == 64 ? e->cx->i64 : e->cx->i32;
}

static LLVMValueRef as_word(cpu_emit *e, enum dtype t, LLVMValueRef v)
{
    return LLVMBuildBitCast(e->cx->b, v, word_of(e, t), "");
}

static LLVMValueRef from_word(cpu_emit *e, enum dtype t, LLVMValueRef word)
{
    return LLVMBuildBitCast(e->cx->b, word, cpu_type(e, t, 1), "");
}

/* *done: was it replaced? */
static LLVMValueRef replace_if(cpu_emit *e, enum dtype t, LLVMValueRef p, LLVMValueRef expected,
                               LLVMValueRef word, LLVMValueRef *done)
{
    LLVMValueRef pair = LLVMBuildAtomicCmpXchg(
        e->cx->b, p, expected, word, LLVMAtomicOrderingMonotonic, LLVMAtomicOrderingMonotonic, 0);

    LLVMSetAlignment(pair, (unsigned)dtype_bytes(t));
    *done = LLVMBuildExtractValue(e->cx->b, pair, 1, "");
    return LLVMBuildExtractValue(e->cx->b, pair, 0, "");
}

static LLVMValueRef read_and_write(cpu_emit *e, enum dtype t, LLVMAtomicRMWBinOp how,
                                   LLVMValueRef p, LLVMValueRef word)
{
    LLVMValueRef old = LLVMBuildAtomicRMW(e->cx->b, how, p, word, LLVMAtomicOrderingMonotonic, 0);

    LLVMSetAlignment(old, (unsigned)dtype_bytes(t));
    return old;
}

/* As a word: what was there before code(that, v) took its place. */
static LLVMValueRef replace_float(cpu_emit *e, enum ir_opcode code, enum dtype t, LLVMValueRef p,
                                  LLVMValueRef v)
{
    LLVMBasicBlockRef before = e->here, again = ll_block(e->cx, "again");
    LLVMBasicBlockRef after = ll_block(e->cx, "");
    LLVMValueRef first = ll_load(e->cx, word_of(e, t), p, (unsigned)dtype_bytes(t)), done;

    LLVMSetOrdering(first, LLVMAtomicOrderingMonotonic);
    LLVMBuildBr(e->cx->b, again);
    cpu_goto(e, again);
    LLVMValueRef old = LLVMBuildPhi(e->cx->b, word_of(e, t), "");
    LLVMValueRef arg[] = {from_word(e, t, old), v};
    LLVMValueRef word = as_word(e, t, cpu_op(e, code, t, t, arg));
    LLVMValueRef seen = replace_if(e, t, p, old, word, &done);
    ll_phi_add(old, first, before);
    ll_phi_add(old, seen, e->here);
    LLVMBuildCondBr(e->cx->b, done, after, again);
    cpu_goto(e, after);
    return old;
}

static LLVMAtomicRMWBinOp extreme(enum dtype t, bool greatest)
{
    if (dtype_kind(t) == DTK_UINT)
        return greatest ? LLVMAtomicRMWBinOpUMax : LLVMAtomicRMWBinOpUMin;
    return greatest ? LLVMAtomicRMWBinOpMax : LLVMAtomicRMWBinOpMin;
}

/* v: the value; expected: before it, of a compare-and-swap. */
static LLVMValueRef update(cpu_emit *e, const ir_op *op, LLVMValueRef p, LLVMValueRef v,
                           LLVMValueRef expected)
{
    enum dtype t = (enum dtype)ir_type_of(e->fn, op->res).dtype;
    LLVMValueRef word, done;

    switch (op->code) {
    case OP_ATOMIC_CAS:
        word = replace_if(e, t, p, as_word(e, t, expected), as_word(e, t, v), &done);
        break;
    case OP_ATOMIC_XCHG:
        word = read_and_write(e, t, LLVMAtomicRMWBinOpXchg, p, as_word(e, t, v));
        break;
    case OP_ATOMIC_ADD:
        word = dtype_is_float(t) ? replace_float(e, OP_ADD, t, p, v)
                                 : read_and_write(e, t, LLVMAtomicRMWBinOpAdd, p, v);
        break;
    default: {
        bool greatest = op->code == OP_ATOMIC_MAX;
        ICHECK(greatest || op->code == OP_ATOMIC_MIN, "an atomic operation");
        word = dtype_is_float(t) ? replace_float(e, greatest ? OP_MAX : OP_MIN, t, p, v)
                                 : read_and_write(e, t, extreme(t, greatest), p, v);
    }
    }
    return from_word(e, t, word);
}

/* ---- one element ----------------------------------------------------------------------------- */

LLVMValueRef cpu_atomic_element(cpu_emit *e, const ir_op *op)
{
    LLVMValueRef inside, p = cpu_element_pointer(e, op, &inside);
    LLVMValueRef v = e->scalar[op->args[op->nargs - 1]], expected = NULL;
    LLVMBasicBlockRef before = e->here, then, after;

    if (op->code == OP_ATOMIC_CAS)
        expected = e->scalar[op->args[op->nargs - 2]];
    if (!inside)
        return update(e, op, p, v, expected);
    then = ll_block(e->cx, "inside");
    after = ll_block(e->cx, "");
    LLVMBuildCondBr(e->cx->b, inside, then, after);
    cpu_goto(e, then);
    LLVMValueRef old = update(e, op, p, v, expected);
    then = e->here;
    LLVMBuildBr(e->cx->b, after);
    cpu_goto(e, after);
    LLVMValueRef res = LLVMBuildPhi(e->cx->b, LLVMTypeOf(old), "");
    ll_phi_add(res, old, then);
    ll_phi_add(res, LLVMConstNull(LLVMTypeOf(old)), before);
    return res;
}

/* ---- tiles ----------------------------------------------------------------------------------- */

enum { VALUES, EXPECTED, PLACES, GIVEN };

/* Memory of the frame that every atomic tile uses in turn, holding v's lanes. */
static LLVMValueRef spread(cpu_emit *e, LLVMValueRef v, int which)
{
    if (!e->room[which]) {
        LLVMPositionBuilderBefore(e->cx->b, LLVMGetBasicBlockTerminator(e->entry));
        e->room[which] = LLVMBuildAlloca(e->cx->b, ll_lanes(e->cx->i64, e->isa->lanes), "");
        LLVMSetAlignment(e->room[which], 64);
        cpu_home(e);
    }
    ll_store(e->cx, v, e->room[which], 64);
    return e->room[which];
}

static LLVMValueRef lane_address(cpu_emit *e, LLVMTypeRef elem, LLVMValueRef room,
                                 LLVMValueRef lane)
{
    return ll_gep(e->cx, elem, room, LLVMBuildZExt(e->cx->b, lane, e->cx->i64, ""));
}

static LLVMValueRef lane_value(cpu_emit *e, LLVMTypeRef elem, LLVMValueRef room, LLVMValueRef lane)
{
    return ll_load(e->cx, elem, lane_address(e, elem, room, lane), 4);
}

static LLVMValueRef bits_of(cpu_emit *e, LLVMValueRef mask)
{
    LLVMTypeRef bits = LLVMIntTypeInContext(e->cx->context, (unsigned)e->isa->lanes);

    return LLVMBuildZExt(e->cx->b, LLVMBuildBitCast(e->cx->b, mask, bits, ""), e->cx->i32, "");
}

static LLVMValueRef least_bit(cpu_emit *e, LLVMValueRef bits)
{
    LLVMTypeRef type = e->cx->i32;
    LLVMValueRef arg[] = {bits, LLVMConstAllOnes(e->cx->i1)};

    return ll_call(e->cx, "llvm.cttz", &type, 1, arg, 2);
}

static LLVMValueRef any(cpu_emit *e, LLVMValueRef bits)
{
    return LLVMBuildICmp(e->cx->b, LLVMIntNE, bits, ll_int(e->cx->i32, 0), "");
}

cpu_got cpu_atomic(cpu_emit *e, const ir_op *op, const cpu_at *at)
{
    LLVMValueRef mask, pointers = cpu_lane_pointers(e, op, at, &mask), expected = NULL;
    LLVMValueRef v = cpu_vector(e, cpu_eval(e, op->args[op->nargs - 1], at));
    LLVMTypeRef elem = ll_scalar_of(LLVMTypeOf(v));

    if (op->code == OP_ATOMIC_CAS)
        expected = spread(e, cpu_vector(e, cpu_eval(e, op->args[op->nargs - 2], at)), EXPECTED);
    LLVMValueRef room = spread(e, v, VALUES), places = spread(e, pointers, PLACES);
    LLVMValueRef given = spread(e, LLVMConstNull(LLVMTypeOf(v)), GIVEN), all = bits_of(e, mask);
    LLVMBasicBlockRef before = e->here, each = ll_block(e->cx, "each");
    LLVMBasicBlockRef after = ll_block(e->cx, "");
    LLVMBuildCondBr(e->cx->b, any(e, all), each, after);
    cpu_goto(e, each);
    LLVMValueRef bits = LLVMBuildPhi(e->cx->b, e->cx->i32, ""), lane = least_bit(e, bits);
    LLVMValueRef old =
        update(e, op, lane_value(e, e->cx->ptr, places, lane), lane_value(e, elem, room, lane),
               expected ? lane_value(e, elem, expected, lane) : NULL);
    ll_store(e->cx, old, lane_address(e, elem, given, lane), 4);
    LLVMValueRef less = LLVMBuildSub(e->cx->b, bits, ll_int(e->cx->i32, 1), "");
    LLVMValueRef rest = LLVMBuildAnd(e->cx->b, bits, less, "");
    ll_phi_add(bits, all, before);
    ll_phi_add(bits, rest, e->here);
    LLVMBuildCondBr(e->cx->b, any(e, rest), each, after);
    cpu_goto(e, after);
    cpu_got got = {ll_load(e->cx, LLVMTypeOf(v), given, 64), e->depth};
    cpu_remember(e, op->res, at, got);
    return got;
}
