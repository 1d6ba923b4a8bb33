/* Dots in tiles of bf16: c[16 x 16] += a[16 x 32] b[32 x 16], summed in f32.
 *
 * a comes from the scalar operand: 16 of its rows, 32 elements of K next to each other; b from the
 * vector operand, in pairs: one row of the tile is 16 lanes of two elements. c is 16 rows of one
 * vector. Up to 2 x 2 of them are summed over all of K before they go to memory; cpu_tile_fit.c
 * counts the registers that this takes, so what is alive at once here must be what it counts.
 *
 * Everything goes through four operations. In AMX they are LLVM's intrinsics on values of type
 * x86_amx: LLVM allocates the registers, configures them once a function, and would spill them
 * around calls, of which there is none while one is in use. Emulated, a tile is memory on the
 * stack, and an operation a call of a function in the same module. */
#include "compiler/base/check.h"
#include "compiler/target/cpu/cpu_emit.h"

enum { ROWS = CPU_TILE_ROWS, ROW_BYTES = 64, STEP = 32, SLOTS = 8 };

/* ---- emulation ------------------------------------------------------------------------------- */

typedef struct count {
    LLVMBasicBlockRef head;
    LLVMValueRef index, end;
} count;

/* for (index = 0; index < end; index++), for an end above 0 */
static count count_open(cpu_emit *e, LLVMValueRef end)
{
    count c = {.head = ll_block(e->cx, "loop"), .end = end};
    LLVMBasicBlockRef before = ll_here(e->cx);

    LLVMBuildBr(e->cx->b, c.head);
    ll_at(e->cx, c.head);
    c.index = LLVMBuildPhi(e->cx->b, e->cx->i64, "");
    ll_phi_add(c.index, ll_i64(e->cx, 0), before);
    return c;
}

static void count_close(cpu_emit *e, const count *c)
{
    LLVMBasicBlockRef after = ll_block(e->cx, "");
    LLVMValueRef next = LLVMBuildAdd(e->cx->b, c->index, ll_i64(e->cx, 1), "");
    LLVMValueRef more = LLVMBuildICmp(e->cx->b, LLVMIntULT, next, c->end, "");

    ll_phi_add(c->index, next, ll_here(e->cx));
    LLVMBuildCondBr(e->cx->b, more, c->head, after);
    ll_at(e->cx, after);
}

/* p + row * stride + column, in bytes */
static LLVMValueRef place(cpu_emit *e, LLVMValueRef p, LLVMValueRef row, LLVMValueRef stride,
                          LLVMValueRef column)
{
    LLVMValueRef offset = ll_add(e->cx, ll_mul(e->cx, row, stride), column);

    return ll_gep(e->cx, e->cx->i8, p, offset);
}

/* (to, stride, from, stride, rows, words of a row): copies words of 32 bits */
static void fill_move(ll_cx *cx, LLVMValueRef fn, void *emit)
{
    cpu_emit *e = emit;
    LLVMValueRef arg[6];

    (void)cx;
    LLVMGetParams(fn, arg);
    count row = count_open(e, arg[4]), word = count_open(e, arg[5]);
    LLVMValueRef column = ll_mul(e->cx, word.index, ll_i64(e->cx, 4));
    LLVMValueRef v = ll_load(e->cx, e->cx->i32, place(e, arg[2], row.index, arg[3], column), 2);
    ll_store(e->cx, v, place(e, arg[0], row.index, arg[1], column), 2);
    count_close(e, &word);
    count_close(e, &row);
    LLVMBuildRetVoid(e->cx->b);
}

/* Element 0 or 1 of a word of two, in f32. */
static LLVMValueRef half_of(cpu_emit *e, LLVMValueRef word, int half)
{
    LLVMBuilderRef b = e->cx->b;

    word = half ? LLVMBuildAnd(b, word, ll_int(e->cx->i32, -65536), "")
                : LLVMBuildShl(b, word, ll_int(e->cx->i32, 16), "");
    return LLVMBuildBitCast(b, word, e->cx->f32, "");
}

/* (c, a, b, rows, lanes, words of K): tiles with rows of ROW_BYTES */
static void fill_multiply(ll_cx *cx, LLVMValueRef fn, void *emit)
{
    cpu_emit *e = emit;
    LLVMValueRef arg[6], bytes = ll_i64(cx, ROW_BYTES), word = ll_i64(cx, 4);

    LLVMGetParams(fn, arg);
    count i = count_open(e, arg[3]), j = count_open(e, arg[4]), k = count_open(e, arg[5]);
    LLVMValueRef c = place(e, arg[0], i.index, bytes, ll_mul(e->cx, j.index, word));
    LLVMValueRef x = ll_load(e->cx, e->cx->i32,
                             place(e, arg[1], i.index, bytes, ll_mul(e->cx, k.index, word)), 4);
    LLVMValueRef y = ll_load(e->cx, e->cx->i32,
                             place(e, arg[2], k.index, bytes, ll_mul(e->cx, j.index, word)), 4);
    LLVMValueRef sum = ll_load(e->cx, e->cx->f32, c, 4);
    for (int half = 0; half < 2; half++)
        sum = cpu_fma_or_not(e, half_of(e, x, half), half_of(e, y, half), sum);
    ll_store(e->cx, sum, c, 4);
    count_close(e, &k);
    count_close(e, &j);
    count_close(e, &i);
    LLVMBuildRetVoid(e->cx->b);
}

/* Calls the module's function of that name, which takes three pointers or strides and three counts.
 */
static void call(cpu_emit *e, const char *name, LLVMTypeRef *types,
                 void (*fill)(ll_cx *cx, LLVMValueRef fn, void *arg), LLVMValueRef *arg)
{
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(e->cx->context), types, 6, 0);

    LLVMBuildCall2(e->cx->b, type, ll_function(e->cx, name, type, fill, e), arg, 6, "");
}

static void emulate_move(cpu_emit *e, LLVMValueRef *arg)
{
    LLVMTypeRef p = e->cx->ptr, n = e->cx->i64, types[] = {p, n, p, n, n, n};

    call(e, "tile_move", types, fill_move, arg);
}

static void emulate_multiply(cpu_emit *e, LLVMValueRef *arg)
{
    LLVMTypeRef p = e->cx->ptr, n = e->cx->i64, types[] = {p, p, p, n, n, n};

    call(e, "tile_multiply", types, fill_multiply, arg);
}

static LLVMValueRef slot_memory(cpu_emit *e, int slot)
{
    LLVMTypeRef type = LLVMArrayType2(e->cx->i8, SLOTS * ROWS * ROW_BYTES);

    if (!e->tile_memory) {
        LLVMPositionBuilderBefore(e->cx->b, LLVMGetBasicBlockTerminator(e->entry));
        e->tile_memory = LLVMBuildAlloca(e->cx->b, type, "tiles");
        LLVMSetAlignment(e->tile_memory, 64);
        cpu_home(e);
    }
    return ll_gep(e->cx, e->cx->i8, e->tile_memory, ll_i64(e->cx, slot * ROWS * ROW_BYTES));
}

/* ---- the four operations --------------------------------------------------------------------- */

/* Part of a tile: rows, and bytes of each. slot: which of the eight, for the emulation. */
typedef struct shape {
    int rows, bytes;
} shape;

static LLVMValueRef short_int(const cpu_emit *e, int v)
{
    return ll_int(e->cx->i16, v);
}

static LLVMValueRef tile_load(cpu_emit *e, int slot, shape s, LLVMValueRef p, LLVMValueRef stride)
{
    if (e->isa->tiles == CPU_TILES_AMX) {
        LLVMValueRef arg[] = {short_int(e, s.rows), short_int(e, s.bytes), p, stride};
        return ll_call(e->cx, "llvm.x86.tileloadd64.internal", NULL, 0, arg, 4);
    }
    LLVMValueRef tile = slot_memory(e, slot);
    LLVMValueRef arg[] = {tile,   ll_i64(e->cx, ROW_BYTES), p,
                          stride, ll_i64(e->cx, s.rows),    ll_i64(e->cx, s.bytes / 4)};
    emulate_move(e, arg);
    return tile;
}

static LLVMValueRef tile_zero(cpu_emit *e, int slot, shape s)
{
    LLVMTypeRef row = ll_lanes(e->cx->i32, ROWS);

    if (e->isa->tiles == CPU_TILES_AMX) {
        LLVMValueRef arg[] = {short_int(e, s.rows), short_int(e, s.bytes)};
        return ll_call(e->cx, "llvm.x86.tilezero.internal", NULL, 0, arg, 2);
    }
    LLVMValueRef tile = slot_memory(e, slot);
    for (int i = 0; i < s.rows; i++)
        ll_store(e->cx, LLVMConstNull(row),
                 ll_gep(e->cx, e->cx->i8, tile, ll_i64(e->cx, i * ROW_BYTES)), 64);
    return tile;
}

/* c + a b; k: bytes of a row of a. */
static LLVMValueRef tile_multiply(cpu_emit *e, shape s, int k, LLVMValueRef c, LLVMValueRef a,
                                  LLVMValueRef b)
{
    if (e->isa->tiles == CPU_TILES_AMX) {
        LLVMValueRef arg[] = {
            short_int(e, s.rows), short_int(e, s.bytes), short_int(e, k), c, a, b};
        return ll_call(e->cx, "llvm.x86.tdpbf16ps.internal", NULL, 0, arg, 6);
    }
    LLVMValueRef arg[] = {
        c, a, b, ll_i64(e->cx, s.rows), ll_i64(e->cx, s.bytes / 4), ll_i64(e->cx, k / 4)};
    emulate_multiply(e, arg);
    return c;
}

static void tile_store(cpu_emit *e, shape s, LLVMValueRef p, LLVMValueRef stride, LLVMValueRef tile)
{
    if (e->isa->tiles == CPU_TILES_AMX) {
        LLVMValueRef arg[] = {short_int(e, s.rows), short_int(e, s.bytes), p, stride, tile};
        ll_call(e->cx, "llvm.x86.tilestored64.internal", NULL, 0, arg, 5);
        return;
    }
    LLVMValueRef arg[] = {p,
                          stride,
                          tile,
                          ll_i64(e->cx, ROW_BYTES),
                          ll_i64(e->cx, s.rows),
                          ll_i64(e->cx, s.bytes / 4)};
    emulate_move(e, arg);
}

/* ---- a block of them ------------------------------------------------------------------------- */

typedef struct block {
    cpu_emit *e;
    const ir_op *dot;
    const cpu_nest *n;
    const cpu_at *at; /* of the block's first element */
    cpu_stage stage;
    int rows, nr, nt; /* rows in all, vectors, tiles of rows */
    LLVMValueRef acc[4];
} block;

static shape shape_of(const block *b, int t)
{
    int left = b->rows - t * ROWS;

    return (shape){left < ROWS ? left : ROWS, ROW_BYTES};
}

static LLVMValueRef stage_place(const block *b, int t, int j)
{
    cpu_emit *e = b->e;
    int64_t offset = t * ROWS * b->stage.stride + j * e->isa->lanes;

    return ll_gep(e->cx, e->cx->f32, b->stage.p, ll_i64(e->cx, offset));
}

/* Tile t of the scalar operand at k, whose rows are `bytes` long. */
static LLVMValueRef load_rows(block *b, int t, cpu_index k, int bytes)
{
    cpu_emit *e = b->e;
    int row = 1 - cpu_dot_vector(e->plan, b->dot);
    cpu_at in = {.lane = -1};

    in.i[row] = b->at->i[b->n->inner];
    in.i[row].off += t * ROWS;
    in.i[1 - row] = k;
    ir_val v = cpu_operand(e, b->dot->args[row], &in);
    const cpu_value *value = &e->plan->value.at[v];
    int depth = cpu_at_depth(&in, 2), lane;
    LLVMValueRef p, stride;
    if (value->direct) {
        lane = cpu_contiguous_dim(e->plan, ir_def(e->fn, v));
        p = cpu_direct_address(e, v, &in, depth);
        stride = cpu_mul(e, e->direct[v].stride[1 - lane], ll_i64(e->cx, 2), 0);
    } else {
        ICHECK(value->narrow && value->buf, "an operand in rows of bf16");
        const cpu_buf *buf = &e->plan->bufs.at[cpu_buf_root(e->plan, value->buf)];
        p = cpu_buf_address(e, buf, &in, depth);
        stride = ll_i64(e->cx, 2 * buf->stride[1 - buf->lane]);
    }
    return tile_load(e, 4 + t, (shape){shape_of(b, t).rows, bytes}, p, stride);
}

/* Vector j of the vector operand at k, `pairs` of elements. */
static LLVMValueRef load_vectors(block *b, int j, cpu_index k, int pairs)
{
    cpu_emit *e = b->e;
    int vector = cpu_dot_vector(e->plan, b->dot);
    cpu_at in = {.lane = vector};

    in.i[vector] = b->at->i[b->n->lane];
    in.i[vector].off += (int64_t)j * e->isa->lanes;
    in.i[1 - vector] = k;
    ir_val v = cpu_operand(e, b->dot->args[vector], &in);
    const cpu_value *value = &e->plan->value.at[v];
    ICHECK(value->pairs && value->buf, "an operand in pairs");
    const cpu_buf *buf = &e->plan->bufs.at[cpu_buf_root(e->plan, value->buf)];
    LLVMValueRef p = cpu_buf_address(e, buf, &in, cpu_at_depth(&in, 2));
    /* the stride of an element is half of a pair's */
    LLVMValueRef stride = ll_i64(e->cx, 4 * 2 * buf->stride[1 - buf->lane]);
    return tile_load(e, 6 + j, (shape){pairs, ROW_BYTES}, p, stride);
}

/* Each tile is loaded just before its first use: LLVM does not reorder loads to keep fewer. */
static void add_step(block *b, cpu_index k, int depth)
{
    LLVMValueRef x[2], y[2];

    for (int t = 0; t < b->nt; t++) {
        x[t] = load_rows(b, t, k, 2 * depth);
        for (int j = 0; j < b->nr; j++) {
            LLVMValueRef *acc = &b->acc[t * b->nr + j];
            if (t == 0)
                y[j] = load_vectors(b, j, k, depth / 2);
            *acc = tile_multiply(b->e, shape_of(b, t), 2 * depth, *acc, x[t], y[j]);
        }
    }
}

static void add_all(block *b)
{
    int64_t depth = ir_type_of(b->e->fn, b->dot->args[0]).shape[1];
    int64_t whole = depth / STEP * STEP;
    int rest = (int)(depth - whole), steps = whole / STEP % 2 ? 1 : 2;
    cpu_loop l;

    if (whole) {
        cpu_index k = cpu_loop_open(b->e, &l, whole, steps * STEP, b->acc, b->nt * b->nr);
        for (int i = 0; i < steps; i++, k.off += STEP)
            add_step(b, k, STEP);
        cpu_loop_close(b->e, &l, b->acc);
    }
    if (rest)
        add_step(b, (cpu_index){.off = whole}, rest);
}

bool cpu_dot_starts_at_zero(const cpu_emit *e, const ir_op *dot)
{
    const ir_op *start = ir_def(e->fn, dot->args[2]);
    const ir_op *value = start && start->code == OP_SPLAT ? ir_def(e->fn, start->args[0]) : NULL;

    return value && value->code == OP_CONST_FLOAT && value->attr[0].f == 0.0;
}

void cpu_emit_tiles(cpu_emit *e, const cpu_nest *n, const cpu_at *at, int rows, int nr,
                    cpu_stage stage)
{
    block b = {.e = e, .dot = n->dot, .n = n, .at = at, .stage = stage, .rows = rows, .nr = nr};
    LLVMValueRef stride = ll_i64(e->cx, 4 * stage.stride);
    bool zero = cpu_dot_starts_at_zero(e, n->dot);

    b.nt = (rows + ROWS - 1) / ROWS;
    ICHECK(b.nt <= 2 && nr <= 2 && e->isa->lanes == ROWS, "four tiles of a result at most");
    for (int u = 0; u < b.nt * nr; u++) {
        shape s = shape_of(&b, u / nr);
        b.acc[u] =
            zero ? tile_zero(e, u, s) : tile_load(e, u, s, stage_place(&b, u / nr, u % nr), stride);
    }
    add_all(&b);
    for (int u = 0; u < b.nt * nr; u++)
        tile_store(e, shape_of(&b, u / nr), stage_place(&b, u / nr, u % nr), stride, b.acc[u]);
}
