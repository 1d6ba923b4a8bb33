/* Loads, stores and atomics of tensors.
 *
 * Elements that may lie outside are reached under a condition for each vector. Where the innermost
 * dimension is one of those, a vector might lie partly inside: if the whole block is inside along
 * it, which is the same for all threads, vectors are taken, else one element at a time. Of a slice
 * that is known to be longer than its dimension, vectors are so short that none lies partly inside.
 * A store of several vectors asks the same of all dimensions: a condition for each is a branch, and
 * what comes from shared memory is then read behind it, one vector after the other. */
#include "compiler/base/check.h"
#include "compiler/target/llvm/llvm_ops.h"
#include "compiler/target/nvptx/nvptx_access.h"
#include <llvm/Config/llvm-config.h>
#include <string.h>

enum { VECTOR_BYTES = 16, MAX_VECTOR = 16 };

/* ---- vectors --------------------------------------------------------------------------------- */

static int vector_of(nv_emit *e, const nv_access *x)
{
    int d = x->rank - 1, bytes = dtype_bytes(x->t);

    if (x->tile_dim[d] < 0 || x->gathered[d] || !x->tensor->unit_inner)
        return 1;
    int n = nv_consecutive(&x->map, x->tile_dim[d], VECTOR_BYTES / bytes);
    int32_t divisor = nv_divisor(e, x->op->args[1 + d]);
    while (n > 1 && (x->tensor->align % (n * bytes) || divisor % n ||
                     (nv_access_never_whole(e, x, d) && nv_access_splits(e, x, d, n))))
        n /= 2;
    return n;
}

typedef void (*way_fn)(nv_emit *e, nv_access *x, int vector, unsigned inside, void *arg);

/* The dimensions of which it is asked, once for all threads, whether the whole block is inside. */
static unsigned asked(nv_emit *e, const nv_access *x, int vector)
{
    bool several = x->op->code == OP_STORE && x->n > 2 * vector;
    unsigned open = 0;

    for (int d = 0; d < x->rank; d++) {
        bool block = x->tile_dim[d] >= 0 && !x->gathered[d] && !(x->inside >> d & 1) &&
                     !nv_access_never_whole(e, x, d);
        if (block && (several || (vector > 1 && d == x->rank - 1)))
            open |= 1u << d;
    }
    return open;
}

/* Runs way once, or where dimensions are asked about, under both conditions. */
static nv_guard two_ways(nv_emit *e, nv_access *x, way_fn way, void *wide, void *narrow)
{
    int vector = vector_of(e, x), inner = x->rank - 1;
    unsigned open = asked(e, x, vector);
    LLVMValueRef all = NULL;
    nv_guard g = {0};

    if (!open) {
        way(e, x, vector, x->inside, wide);
        return g;
    }
    for (int d = 0; d < x->rank; d++)
        all = open >> d & 1 ? nv_both(e, all, nv_access_whole(e, x, d)) : all;
    LLVMBasicBlockRef whole = ll_block(e->cx, "whole"), part = ll_block(e->cx, "part");
    LLVMBuildCondBr(e->cx->b, all, whole, part);
    ll_at(e->cx, whole);
    way(e, x, vector, x->inside | open, wide);
    g.before = ll_here(e->cx);
    ll_at(e->cx, part);
    way(e, x, open >> inner & 1 ? 1 : vector, x->inside, narrow);
    g.inside = ll_here(e->cx);
    g.after = ll_block(e->cx, "");
    LLVMBuildBr(e->cx->b, g.after);
    ll_at(e->cx, g.before);
    LLVMBuildBr(e->cx->b, g.after);
    ll_at(e->cx, g.after);
    return g;
}

static nv_access whole_access(nv_emit *e, const ir_op *op)
{
    ir_type t = nv_type(e, op->code == OP_STORE ? op->args[op->nargs - 1] : op->res);
    layout_map map = {.warps = e->fn->warps};

    if (t.kind == TYPE_TILE)
        nv_map(e, t, &map);
    return nv_access_of(e, op, t, &map);
}

/* ---- loads ----------------------------------------------------------------------------------- */

static void load_vector(nv_emit *e, nv_access *x, int r, int vector, unsigned inside,
                        LLVMValueRef *raw)
{
    LLVMValueRef word[MAX_VECTOR];
    int32_t index[TILE_MAX_RANK] = {0};

    layout_element(&x->map, r, 0, 0, index);
    LLVMValueRef p = nv_access_pointer(e, x, index);
    nv_guard g = nv_guard_begin(e, nv_access_inside(e, x, index, inside));
    nv_vector_load(e, x->t, vector, p, x->tensor->direction == DIR_IN, word);
    nv_guard_end(e, &g);
    for (int i = 0; i < nv_vector_words(x->t, vector); i++)
        word[i] = nv_guard_value(e, &g, word[i], LLVMConstNull(LLVMTypeOf(word[i])));
    nv_split_words(e, x->t, vector, word, raw);
}

/* arg: room for the words of the result */
static void load_way(nv_emit *e, nv_access *x, int vector, unsigned inside, void *arg)
{
    LLVMValueRef *raw = ARENA_ARRAY(e->a, LLVMValueRef, (size_t)x->n);

    nv_access_forget(x);
    for (int r = 0; r < x->n; r += vector)
        load_vector(e, x, r, vector, inside, &raw[r]);
    nv_words_of_raw(e, x->tile, raw, arg);
}

void nv_load(nv_emit *e, const ir_op *op)
{
    nv_access x = whole_access(e, op);
    nv_value *v = nv_new(e, op->res);
    LLVMValueRef *other = ARENA_ARRAY(e->a, LLVMValueRef, (size_t)v->n);
    nv_guard g = two_ways(e, &x, load_way, v->at, other);

    if (!g.after)
        return;
    for (int i = 0; i < v->n; i++)
        v->at[i] = nv_guard_value(e, &g, other[i], v->at[i]);
}

/* ---- stores ---------------------------------------------------------------------------------- */

static void store_way(nv_emit *e, nv_access *x, int vector, unsigned inside, void *arg)
{
    LLVMValueRef raw[MAX_VECTOR];

    (void)arg;
    nv_access_forget(x);
    for (int r = 0; r < x->n; r += vector) {
        int32_t index[TILE_MAX_RANK] = {0};
        layout_element(&x->map, r, 0, 0, index);
        LLVMValueRef p = nv_access_pointer(e, x, index);
        nv_guard g = nv_guard_begin(e, nv_access_inside(e, x, index, inside));
        for (int i = 0; i < vector; i++)
            raw[i] = nv_raw(e, x->op->args[x->op->nargs - 1], r + i);
        nv_vector_store(e, x->t, vector, p, raw);
        nv_guard_end(e, &g);
    }
}

/* A scalar is held by every thread: the first one stores it. */
static LLVMValueRef acts(nv_emit *e, const nv_access *x)
{
    if (x->tile.kind == TYPE_TILE)
        return nv_first_copy(e, &x->map);
    return LLVMBuildICmp(e->cx->b, LLVMIntEQ, e->thread, nv_i32(e, 0), "");
}

void nv_store(nv_emit *e, const ir_op *op)
{
    nv_access x = whole_access(e, op);
    nv_guard g = nv_guard_begin(e, acts(e, &x));

    (void)two_ways(e, &x, store_way, NULL, NULL);
    nv_guard_end(e, &g);
}

/* ---- atomics --------------------------------------------------------------------------------- */

static LLVMTypeRef word_of(const nv_emit *e, enum dtype t)
{
    return dtype_bits(t) == 64 ? e->cx->i64 : e->cx->i32;
}

static LLVMValueRef as_word(nv_emit *e, enum dtype t, LLVMValueRef v)
{
    return LLVMBuildBitCast(e->cx->b, v, word_of(e, t), "");
}

/* Other GPUs and the host take no part. */
static LLVMValueRef read_and_write(nv_emit *e, LLVMAtomicRMWBinOp how, LLVMValueRef p,
                                   LLVMValueRef v)
{
#if LLVM_VERSION_MAJOR >= 20
    unsigned scope = LLVMGetSyncScopeID(e->cx->context, "device", 6);

    return LLVMBuildAtomicRMWSyncScope(e->cx->b, how, p, v, LLVMAtomicOrderingMonotonic, scope);
#else
    return LLVMBuildAtomicRMW(e->cx->b, how, p, v, LLVMAtomicOrderingMonotonic, 0);
#endif
}

static LLVMValueRef replace_if(nv_emit *e, LLVMValueRef p, LLVMValueRef expected, LLVMValueRef word,
                               LLVMValueRef *done)
{
    LLVMValueRef pair = LLVMBuildAtomicCmpXchg(
        e->cx->b, p, expected, word, LLVMAtomicOrderingMonotonic, LLVMAtomicOrderingMonotonic, 0);

    *done = LLVMBuildExtractValue(e->cx->b, pair, 1, "");
    return LLVMBuildExtractValue(e->cx->b, pair, 0, "");
}

/* Tries to put code(old, v) in the place of old until nobody came between. */
static LLVMValueRef replace_float(nv_emit *e, enum ir_opcode code, enum dtype t, LLVMValueRef p,
                                  LLVMValueRef v)
{
    LLVMBasicBlockRef before = ll_here(e->cx), again = ll_block(e->cx, "again");
    LLVMBasicBlockRef after = ll_block(e->cx, "");
    LLVMValueRef first = ll_load(e->cx, word_of(e, t), p, (unsigned)dtype_bytes(t)), done;

    LLVMSetOrdering(first, LLVMAtomicOrderingMonotonic);
    LLVMBuildBr(e->cx->b, again);
    ll_at(e->cx, again);
    LLVMValueRef old = LLVMBuildPhi(e->cx->b, word_of(e, t), "");
    LLVMValueRef arg[] = {LLVMBuildBitCast(e->cx->b, old, LLVMTypeOf(v), ""), v};
    LLVMValueRef word = as_word(e, t, ll_float_op(e->cx, code, arg));
    LLVMValueRef seen = replace_if(e, p, old, word, &done);
    ll_phi_add(old, first, before);
    ll_phi_add(old, seen, ll_here(e->cx));
    LLVMBuildCondBr(e->cx->b, done, after, again);
    ll_at(e->cx, after);
    return LLVMBuildBitCast(e->cx->b, old, LLVMTypeOf(v), "");
}

static LLVMAtomicRMWBinOp extreme(enum dtype t, bool greatest)
{
    if (dtype_kind(t) == DTK_UINT)
        return greatest ? LLVMAtomicRMWBinOpUMax : LLVMAtomicRMWBinOpUMin;
    return greatest ? LLVMAtomicRMWBinOpMax : LLVMAtomicRMWBinOpMin;
}

static LLVMValueRef update(nv_emit *e, nv_access *x, LLVMValueRef p, int r)
{
    const ir_op *op = x->op;
    LLVMValueRef v = nv_get(e, op->args[op->nargs - 1], r), old, done;
    bool greatest = op->code == OP_ATOMIC_MAX, real = dtype_is_float(x->t);

    switch ((int)op->code) {
    case OP_ATOMIC_CAS:
        old = as_word(e, x->t, nv_get(e, op->args[op->nargs - 2], r));
        old = replace_if(e, p, old, as_word(e, x->t, v), &done);
        return LLVMBuildBitCast(e->cx->b, old, LLVMTypeOf(v), "");
    case OP_ATOMIC_XCHG:
        old = read_and_write(e, LLVMAtomicRMWBinOpXchg, p, as_word(e, x->t, v));
        return LLVMBuildBitCast(e->cx->b, old, LLVMTypeOf(v), "");
    case OP_ATOMIC_ADD:
        return read_and_write(e, real ? LLVMAtomicRMWBinOpFAdd : LLVMAtomicRMWBinOpAdd, p, v);
    default:
        if (real)
            return replace_float(e, greatest ? OP_MAX : OP_MIN, x->t, p, v);
        return read_and_write(e, extreme(x->t, greatest), p, v);
    }
}

static bool is_used(const nv_emit *e, ir_val v)
{
    return e->used[v];
}

/* The first copies' results for all that hold the element: through shared memory of its own. */
static void spread(nv_emit *e, nv_access *x, LLVMValueRef *out, LLVMValueRef acting)
{
    LLVMValueRef zero = nv_i32(e, 0);
    LLVMTypeRef type = ll_type(e->cx, x->t, 1);
    int64_t count = type_elements(x->tile);
    LLVMValueRef room = LLVMAddGlobalInAddressSpace(
        e->cx->module, LLVMArrayType2(type, (uint64_t)count), "spread", 3);

    LLVMSetInitializer(room, LLVMGetPoison(LLVMArrayType2(type, (uint64_t)count)));
    LLVMSetLinkage(room, LLVMInternalLinkage);
    for (int pass = 0; pass < 2; pass++) {
        nv_guard g = nv_guard_begin(e, pass ? NULL : acting);
        for (int r = 0; r < x->n; r++) {
            LLVMValueRef at = zero;
            int32_t index[TILE_MAX_RANK] = {0};
            layout_element(&x->map, r, 0, 0, index);
            for (int d = 0; d < x->map.rank; d++) {
                uint32_t bits;
                LLVMValueRef i = nv_lane_index(e, &x->map, d, &bits);
                i = nv_plus(e, i, nv_i32(e, index[d]));
                at = ll_add(e->cx, ll_mul(e->cx, at, nv_i32(e, x->map.shape[d])), i);
            }
            LLVMValueRef p = ll_gep(e->cx, type, room, at);
            if (pass)
                out[r] = ll_load(e->cx, type, p, (unsigned)dtype_bytes(x->t));
            else
                (void)ll_store(e->cx, out[r], p, (unsigned)dtype_bytes(x->t));
        }
        nv_guard_end(e, &g);
        (void)ll_call(e->cx, "llvm.nvvm.barrier.cta.sync.aligned.all", NULL, 0, &zero, 1);
    }
}

void nv_atomic(nv_emit *e, const ir_op *op)
{
    nv_access x = whole_access(e, op);
    LLVMValueRef acting = acts(e, &x), none = LLVMConstNull(ll_type(e->cx, x.t, 1));
    LLVMValueRef *out = ARENA_ARRAY(e->a, LLVMValueRef, (size_t)x.n);

    for (int r = 0; r < x.n; r++) {
        int32_t index[TILE_MAX_RANK] = {0};
        layout_element(&x.map, r, 0, 0, index);
        LLVMValueRef p = nv_access_pointer(e, &x, index);
        LLVMValueRef inside = nv_access_inside(e, &x, index, x.inside);
        nv_guard g = nv_guard_begin(e, nv_both(e, acting, inside));
        LLVMValueRef old = update(e, &x, p, r);
        nv_guard_end(e, &g);
        out[r] = is_used(e, op->res) ? nv_guard_value(e, &g, old, none) : none;
    }
    if (acting && is_used(e, op->res))
        spread(e, &x, out, acting);
    nv_set(e, op->res, out);
}
