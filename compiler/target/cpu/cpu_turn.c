/* Operands of bf16 that lie against the order in which a dot wants them, turned as they are copied:
 * never as f32. So are tiles that are stored turned.
 *
 *   narrow   the tensor's rows are to lie along the lanes: squares of 8 x 8 elements
 *   pairs    the same, but two elements of a row stay one word: squares of 4 x 4 words
 *
 * A square's rows are eight elements of the tensor, 128 bits, which are loaded to where they belong
 * in a register: its parts of 128 bits hold rows that are as far apart as a square is high. So one
 * instruction interleaves all squares of a register pair at once, within its parts, and none has to
 * move anything across them. */
#include "compiler/base/check.h"
#include "compiler/target/cpu/cpu_emit.h"
#include "compiler/target/cpu/cpu_slice.h"
#include <string.h>

enum { PART = 8 /* elements */, MOST_ROWS = 2 * CPU_MAX_LANES };

typedef struct turn {
    cpu_emit *e;
    const ir_op *load, *store;
    const cpu_buf *to; /* NULL where the tile is stored to a tensor */
    bool pairs;
    ir_type space;
    int lane, inner;      /* dimensions: of the result's lanes, and along the tensor's rows */
    int high;             /* rows of a square, and its columns */
    bool inside;          /* all of the tile is inside of the tensor */
    cpu_index at_lane, k; /* of the block's first element */
    int rows, width;      /* of the block, inside the tile */
    LLVMValueRef row[MOST_ROWS]; /* where parts are not loaded one by one: 2 * lanes elements */
} turn;

/* Of the tensor; what is stored is the tile that was loaded, with its dimensions swapped. */
static cpu_at row_at(const turn *t, int i)
{
    int lane = t->store ? 1 - t->lane : t->lane;
    cpu_at at = {.lane = 1 - lane};

    at.i[lane] = t->at_lane;
    at.i[lane].off += i;
    at.i[1 - lane] = t->k;
    return at;
}

/* Part c of row i; what is outside of the tile or the tensor is 0. */
static LLVMValueRef part_of(const turn *t, int i, int c)
{
    cpu_emit *e = t->e;
    cpu_at at = row_at(t, i);

    if (i >= t->rows)
        return LLVMConstNull(ll_lanes(e->cx->i16, PART));
    if (t->row[i])
        return LLVMBuildShuffleVector(e->cx->b, t->row[i], LLVMGetPoison(LLVMTypeOf(t->row[i])),
                                      ll_iota(e->cx, PART * c, PART), "");
    at.i[at.lane].off += PART * c;
    return cpu_load_inside(e, t->load, &at, PART);
}

/* Rows j, j + high, j + 2 high ... next to each other, their parts c. */
static LLVMValueRef gather_parts(const turn *t, int j, int c)
{
    cpu_emit *e = t->e;
    int n = 2 * e->isa->lanes;
    LLVMValueRef v = LLVMGetPoison(ll_lanes(e->cx->i16, n));
    LLVMTypeRef types[] = {LLVMTypeOf(v), ll_lanes(e->cx->i16, PART)};

    for (int at = 0; at < n; at += PART) {
        LLVMValueRef arg[] = {v, part_of(t, j + at / PART * t->high, c), ll_i64(e->cx, at)};
        v = ll_call(e->cx, "llvm.vector.insert", types, 2, arg, 3);
    }
    return t->pairs ? LLVMBuildBitCast(e->cx->b, v, ll_lanes(e->cx->i32, n / 2), "") : v;
}

/* The lanes of the block's element k. A buffer's rows are whole vectors of words in pairs, but of
 * elements of 16 bits otherwise: then the upper half may be beyond its end, and it is aligned to
 * half a register. */
static void put(const turn *t, LLVMValueRef v, int k)
{
    cpu_emit *e = t->e;
    cpu_at at = {.lane = t->lane};
    int lanes = e->isa->lanes, words = t->pairs || t->rows > lanes ? lanes : lanes / 2;
    int bytes = (t->pairs ? 4 : 2) * lanes;

    at.i[t->lane] = t->at_lane;
    at.i[t->inner] = t->k;
    at.i[t->inner].off += k;
    v = LLVMBuildBitCast(e->cx->b, v, ll_lanes(e->cx->i32, lanes), "");
    if (words < lanes)
        v = LLVMBuildShuffleVector(e->cx->b, v, LLVMGetPoison(LLVMTypeOf(v)),
                                   ll_iota(e->cx, 0, words), "");
    LLVMValueRef p = t->store ? cpu_slice_address(e, t->store, &at, e->depth)
                              : cpu_buf_address(e, t->to, &at, e->depth);
    ll_store(e->cx, v, p, t->store ? cpu_slice_align(e, t->store) : (unsigned)bytes);
}

static void turn_block(turn *t, cpu_index k, int width)
{
    LLVMValueRef square[PART];

    t->k = k;
    t->width = width;
    for (int i = 0; i < t->rows; i++) {
        cpu_at at = row_at(t, i);
        t->row[i] = t->inside && width % PART == 0 ? NULL : cpu_load_row(t->e, t->load, &at, width);
    }
    for (int c = 0; c * PART < width; c++) {
        for (int j = 0; j < t->high; j++)
            square[j] = gather_parts(t, j, c);
        ll_transpose_squares(t->e->cx, square, t->high);
        for (int i = 0; i < t->high; i++) {
            int at = c * PART + i * PART / t->high;
            if (at < width)
                put(t, square[i], at);
        }
    }
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

static void turn_all(turn *t, bool inside)
{
    int n = t->space.shape[t->lane], step = t->high * 2 * t->e->isa->lanes / PART;
    int whole = n / step * step;
    cpu_loop l;

    t->inside = inside;
    if (whole) {
        cpu_index i = cpu_loop_open(t->e, &l, whole, step, NULL, 0);
        turn_rows(t, i, step);
        cpu_loop_close(t->e, &l, NULL);
    }
    if (n > whole)
        turn_rows(t, (cpu_index){.off = whole}, n - whole);
}

static bool is_gathered(const turn *t)
{
    bool any = false;

    for (int d = 0; d < (int)t->load->attr[0].ints.n; d++)
        any = any || cpu_is_gathered(t->e->fn, t->load, d);
    return any;
}

/* Unless it is known, it is asked once whether all is inside of the tensor. */
static void turn_where_it_lies(turn *t)
{
    cpu_emit *e = t->e;
    LLVMValueRef inside = cpu_slice_inside(e, t->load);

    if (!inside) {
        turn_all(t, true);
        return;
    }
    LLVMBasicBlockRef after = cpu_when_open(e, inside);
    turn_all(t, true);
    cpu_when_close(e, after);
    after = cpu_when_open(e, LLVMBuildNot(e->cx->b, inside, ""));
    turn_all(t, false);
    cpu_when_close(e, after);
}

void cpu_emit_turned(cpu_emit *e, const cpu_nest *n)
{
    const cpu_item *item = &n->items.at[0];
    turn t = {.e = e, .load = n->turned, .space = n->space, .lane = n->lane, .inner = n->inner};

    if (item->kind == ITEM_STORE) {
        t.store = item->op;
    } else {
        t.to = &e->plan->bufs.at[cpu_buf_root(e->plan, e->plan->value.at[item->v].buf)];
        t.pairs = t.to->pairs != 0;
        ICHECK(t.to->lane == n->lane, "an operand of a dot");
    }
    ICHECK(n->space.rank == 2, "two dimensions are turned");
    t.high = t.pairs ? PART / 2 : PART;
    if (is_gathered(&t))
        turn_all(&t, false);
    else
        turn_where_it_lies(&t);
}
