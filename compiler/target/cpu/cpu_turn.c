/* Operands of bf16 that lie against the order in which a dot wants them, turned as they are copied:
 * in words of two elements, never as f32.
 *
 *   pairs    the tensor's rows are the lanes, and pairs lie along them already: a square of words
 *            is transposed.
 *   narrow   the tensor's rows are to lie along the lanes, two of them in one word: their elements
 *            are interleaved first, then words are transposed.
 *
 * Two vectors of elements of each row are taken at once, so that a row is one load. Interleaving
 * goes by groups of 128 bits, which one instruction does; which row of the result a word belongs to
 * follows from that. */
#include "compiler/base/check.h"
#include "compiler/target/cpu/cpu_emit.h"

typedef struct turn {
    cpu_emit *e;
    const ir_op *load;
    const cpu_buf *to;
    ir_type space;
    int lane, inner;      /* dimensions: of the result's lanes, and along the tensor's rows */
    cpu_index at_lane, k; /* of the block's first element */
    int rows, width;      /* of the block, inside the tile */
} turn;

/* Row i of the block, 2 * lanes elements; those outside of the tensor are 0. */
static LLVMValueRef row_of(const turn *t, int i)
{
    cpu_emit *e = t->e;
    cpu_at at = {.lane = t->inner};

    if (i >= t->rows)
        return LLVMConstNull(ll_lanes(e->cx->i16, 2 * e->isa->lanes));
    at.i[t->lane] = t->at_lane;
    at.i[t->lane].off += i;
    at.i[t->inner] = t->k;
    return cpu_load_row(e, t->load, &at, t->width);
}

/* Elements x[j], y[j] next to each other, for the lower or upper half of each 128 bits. */
static LLVMValueRef interleave(const turn *t, LLVMValueRef x, LLVMValueRef y, int half)
{
    LLVMValueRef from[2 * CPU_MAX_LANES];
    int n = 2 * t->e->isa->lanes;

    for (int i = 0; i < n; i++)
        from[i] = ll_int(t->e->cx->i32, i / 8 * 8 + half * 4 + i % 8 / 2 + i % 2 * n);
    return LLVMBuildShuffleVector(t->e->cx->b, x, y, LLVMConstVector(from, (unsigned)n), "");
}

static LLVMValueRef as_words(const turn *t, LLVMValueRef v)
{
    return LLVMBuildBitCast(t->e->cx->b, v, ll_lanes(t->e->cx->i32, t->e->isa->lanes), "");
}

/* The first n words of v where the block's element k lies in the buffer: its rows are whole vectors
 * of words in pairs, of elements of 16 bits otherwise. */
static void put(const turn *t, LLVMValueRef v, int k, int n)
{
    cpu_emit *e = t->e;
    cpu_at at = {.lane = t->lane};
    int bytes = (t->to->pairs ? 4 : 2) * e->isa->lanes;

    at.i[t->lane] = t->at_lane;
    at.i[t->inner] = t->k;
    at.i[t->inner].off += k;
    if (n < e->isa->lanes)
        v = LLVMBuildShuffleVector(e->cx->b, v, LLVMGetPoison(LLVMTypeOf(v)), ll_iota(e->cx, 0, n),
                                   "");
    ll_store(e->cx, v, cpu_buf_address(e, t->to, &at, e->depth), (unsigned)bytes);
}

static void turn_pairs(const turn *t)
{
    LLVMValueRef word[CPU_MAX_LANES];
    int lanes = t->e->isa->lanes;

    for (int i = 0; i < lanes; i++)
        word[i] = as_words(t, row_of(t, i));
    ll_transpose(t->e->cx, word, lanes);
    for (int i = 0; 2 * i < t->width; i++)
        put(t, word[i], 2 * i, lanes);
}

/* One half after the other: all words of both would not fit the registers. */
static void turn_narrow(const turn *t)
{
    LLVMValueRef word[CPU_MAX_LANES];
    int lanes = t->e->isa->lanes;

    for (int half = 0; half < 2; half++) {
        for (int i = 0; i < lanes; i++)
            word[i] = as_words(t, interleave(t, row_of(t, 2 * i), row_of(t, 2 * i + 1), half));
        ll_transpose(t->e->cx, word, lanes);
        for (int i = 0; i < lanes; i++) {
            int k = i / 4 * 8 + half * 4 + i % 4;
            if (k < t->width) /* a buffer's lanes are whole vectors of elements */
                put(t, word[i], k, t->rows > lanes ? lanes : lanes / 2);
        }
    }
}

static void turn_block(turn *t, cpu_index k, int width)
{
    t->k = k;
    t->width = width;
    if (t->to->pairs)
        turn_pairs(t);
    else
        turn_narrow(t);
}

static void turn_rows(turn *t, cpu_index at_lane, int rows)
{
    int n = t->space.shape[t->inner], step = 2 * t->e->isa->lanes, whole = n / step * step;
    cpu_loop l;

    t->at_lane = at_lane;
    t->rows = rows;
    if (whole) {
        cpu_index k = cpu_loop_open(t->e, &l, whole, step, NULL, 0);
        turn_block(t, k, step);
        cpu_loop_close(t->e, &l, NULL);
    }
    if (n > whole)
        turn_block(t, (cpu_index){.off = whole}, n - whole);
}

void cpu_emit_turned(cpu_emit *e, const cpu_nest *n)
{
    ir_val v = n->items.at[0].v;
    const cpu_buf *to = &e->plan->bufs.at[cpu_buf_root(e->plan, e->plan->value.at[v].buf)];
    turn t = {e, n->turned, to, n->space, n->lane, n->inner, .rows = 0};
    int all = n->space.shape[n->lane], step = (to->pairs ? 1 : 2) * e->isa->lanes;
    int whole = all / step * step;
    cpu_loop l;

    ICHECK(n->space.rank == 2 && to->lane == n->lane, "an operand of a dot");
    if (whole) {
        cpu_index i = cpu_loop_open(e, &l, whole, step, NULL, 0);
        turn_rows(&t, i, step);
        cpu_loop_close(e, &l, NULL);
    }
    if (all > whole)
        turn_rows(&t, (cpu_index){.off = whole}, all - whole);
}
