/* mma: mma.sync, its factors from ldmatrix or, the left one, from registers.
 *
 * ldmatrix.x4 gives each lane the words of four 8 x 8 matrices, of which lane l says where row l %
 * 8 of matrix l / 8 is. With the lane patterns below its words are, two by two, what mma.sync takes
 * in adjacent registers: row l % 16, chunk l / 16 the left factor; the right one by .trans from [K,
 * N] row l % 8 + 8 (l / 16), chunk l / 8 % 2 the right factor from [N, K]; the left one by .trans
 * k goes by 16, of tf32 by 8. */
#include "compiler/base/check.h"
#include "compiler/ir/iredit.h"
#include "compiler/target/nvptx/nvptx_emit.h"

enum { M_STEP = 16, N_STEP = 8, FACTORS = 6, SPACE_SHARED = 3 };

typedef struct factor {
    bool in_registers;
    ir_val v;         /* in registers */
    nv_slot slot;     /* else; dimensions as the product sees them: [M, K] or [K, N] */
    layout_map lanes; /* who says where a row of an 8 x 8 matrix is */
    bool trans;
} factor;
typedef struct product {
    enum dtype t;
    int m, n, k; /* pieces of a warp: of 16, 8, 8 */
    factor a, b;
    LLVMValueRef *acc;
} product;

/* ---- factors in shared memory ---------------------------------------------------------------- */

static void add_digit(layout_map *map, enum layout_place place, int dim, int32_t extent,
                      int32_t stride)
{
    map->digit[map->n++] = (layout_digit){(uint8_t)place, (int8_t)dim, extent, stride};
}

/* Warps move along dimension `outer` (0 of A, 1 of B) as in the accumulator. */
static void add_warps(layout_map *map, const layout_map *acc, int outer)
{
    for (int i = 0; i < acc->n; i++) {
        const layout_digit *d = &acc->digit[i];
        if (d->place == PLACE_WARP)
            add_digit(map, PLACE_WARP, d->dim == outer ? outer : -1, d->extent,
                      d->dim == outer ? d->stride : 0);
    }
}

/* Is the slot stored with its dimensions as the product has them? */
static bool is_straight(const nv_slot *s)
{
    ICHECK(s->rank == 2, "a factor has two dimensions");
    return s->perm[0] == 0;
}

static void set_lanes(factor *f, const layout_map *acc, int outer)
{
    bool straight = is_straight(&f->slot);
    int row = straight ? 0 : 1, chunk = 1 - row;

    f->lanes = (layout_map){.rank = 2, .warps = acc->warps};
    /* mma.sync takes rows of A [M, K] and of B [N, K]; where k counts stored rows they are turned
     */
    f->trans = (outer == 0) != straight;
    add_digit(&f->lanes, PLACE_LANE, row, straight ? 16 : 8, 1);
    add_digit(&f->lanes, PLACE_LANE, chunk, 2, 8);
    if (!straight)
        add_digit(&f->lanes, PLACE_LANE, row, 2, 8);
    add_warps(&f->lanes, acc, outer);
}

/* 4 matrices, or 2. */
static void load_matrices(nv_emit *e, const factor *f, const int32_t *at, int count,
                          LLVMValueRef *word)
{
    static const char *const name[2][2] = {{"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x2.b16",
                                            "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16"},
                                           {"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x2.trans.b16",
                                            "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16"}};
    LLVMValueRef p = nv_shared_pointer(e, &f->slot, &f->lanes, at);
    LLVMTypeRef type = LLVMPointerTypeInContext(e->cx->context, SPACE_SHARED);
    LLVMValueRef v = ll_call(e->cx, name[f->trans][count == 4], &type, 1, &p, 1);

    for (int i = 0; i < count; i++)
        word[i] = LLVMBuildExtractValue(e->cx->b, v, (unsigned)i, "");
}

/* ---- 16-bit floats --------------------------------------------------------------------------- */

bool nv_mma_rounds(const nv_emit *e, const ir_op *op)
{
    if (op->code != OP_CAST || nv_type(e, op->args[0]).dtype != DT_F32 ||
        !nv_is_half((enum dtype)nv_type(e, op->res).dtype) || ir_count_uses(e->fn, op->res) != 1)
        return false;
    for (const ir_op *at = op->next; at; at = at->next) {
        if (at->code == OP_MMA && at->args[0] == op->res)
            return true;
    }
    return false;
}

static LLVMValueRef word_in_registers(nv_emit *e, const product *p, int i)
{
    const ir_op *def = ir_def(e->fn, p->a.v);

    if (!def || !nv_mma_rounds(e, def))
        return nv_at(e, p->a.v)->at[i];
    return nv_pack(e, p->t, nv_get(e, def->args[0], 2 * i), nv_get(e, def->args[0], 2 * i + 1));
}

/* Words of A for rows 16 m.. and k from 8 k.. on. */
static void left_words(nv_emit *e, const product *p, int m, int k, LLVMValueRef *word)
{
    const int32_t at[] = {m * M_STEP, k * 8};

    if (!p->a.in_registers) {
        load_matrices(e, &p->a, at, 4, word);
        return;
    }
    for (int i = 0; i < 4; i++)
        word[i] = word_in_registers(e, p, 2 * (m * p->k + k) + i);
}

/* Words of B for all columns: 2 a piece of 8 columns; two pieces at a time. */
static void right_words(nv_emit *e, const product *p, int k, LLVMValueRef (*word)[2])
{
    for (int n = 0; n < p->n; n += 2) {
        const int32_t at[] = {k * 8, n * N_STEP};
        int count = n + 1 < p->n ? 4 : 2;
        LLVMValueRef got[4];
        load_matrices(e, &p->b, at, count, got);
        for (int i = 0; i < count; i++)
            word[n + i / 2][i % 2] = got[i];
    }
}

static LLVMValueRef as_operand(nv_emit *e, const product *p, LLVMValueRef word)
{
    LLVMTypeRef pair = LLVMVectorType(LLVMHalfTypeInContext(e->cx->context), 2);

    return p->t == DT_F16 ? LLVMBuildBitCast(e->cx->b, word, pair, "") : word;
}

static void multiply(nv_emit *e, const char *name, LLVMValueRef *factors, LLVMValueRef *acc)
{
    LLVMValueRef args[FACTORS + 4];

    for (int i = 0; i < FACTORS; i++)
        args[i] = factors[i];
    for (int i = 0; i < 4; i++)
        args[FACTORS + i] = acc[i];
    LLVMValueRef v = ll_call(e->cx, name, NULL, 0, args, FACTORS + 4);
    for (int i = 0; i < 4; i++)
        acc[i] = LLVMBuildExtractValue(e->cx->b, v, (unsigned)i, "");
}

static void half_multiply(nv_emit *e, const product *p, LLVMValueRef *left, LLVMValueRef *right,
                          LLVMValueRef *acc)
{
    const char *name = p->t == DT_BF16 ? "llvm.nvvm.mma.m16n8k16.row.col.bf16"
                                       : "llvm.nvvm.mma.m16n8k16.row.col.f32.f32";
    LLVMValueRef f[FACTORS];

    for (int i = 0; i < FACTORS; i++)
        f[i] = as_operand(e, p, i < 4 ? left[i] : right[i - 4]);
    multiply(e, name, f, acc);
}

static void half_step(nv_emit *e, product *p, int k)
{
    LLVMValueRef(*left)[4] = arena_alloc(e->a, sizeof *left * (size_t)p->m);
    LLVMValueRef(*right)[2] = arena_alloc(e->a, sizeof *right * (size_t)p->n);

    for (int m = 0; m < p->m; m++)
        left_words(e, p, m, k, left[m]);
    right_words(e, p, k, right);
    for (int n = 0; n < p->n; n++) {
        for (int m = 0; m < p->m; m++)
            half_multiply(e, p, left[m], right[n], &p->acc[4 * (m * p->n + n)]);
    }
}

/* ---- tf32 ------------------------------------------------------------------------------------ */

/* The order of k within an eight is that of registers, 2t and 2t + 1, for both factors. */
static LLVMValueRef rounded(nv_emit *e, LLVMValueRef x)
{
    return ll_call(e->cx, "llvm.nvvm.f2tf32.rna", NULL, 0, &x, 1);
}

static LLVMValueRef one_float(nv_emit *e, const factor *f, int32_t row, int32_t column)
{
    const int32_t at[] = {row, column};
    LLVMValueRef word;

    nv_vector_load(e, DT_F32, 1, nv_shared_pointer(e, &f->slot, &f->lanes, at), false, &word);
    return rounded(e, word);
}

static void set_float_lanes(factor *f, const layout_map *acc, int outer)
{
    f->lanes = (layout_map){.rank = 2, .warps = acc->warps};
    add_digit(&f->lanes, PLACE_LANE, 1 - outer, 4, 2);
    add_digit(&f->lanes, PLACE_LANE, outer, 8, 1);
    add_warps(&f->lanes, acc, outer);
}

static void tf32_step(nv_emit *e, product *p, int k)
{
    LLVMValueRef(*left)[4] = arena_alloc(e->a, sizeof *left * (size_t)p->m);

    for (int m = 0; m < p->m; m++) {
        for (int i = 0; i < 4; i++) { /* (g, 2t), (g + 8, 2t), (g, 2t + 1), (g + 8, 2t + 1) */
            if (p->a.in_registers)
                left[m][i] =
                    rounded(e, nv_get(e, p->a.v, 4 * (m * p->k + k) + 2 * (i % 2) + i / 2));
            else
                left[m][i] = one_float(e, &p->a, m * M_STEP + 8 * (i % 2), 8 * k + i / 2);
        }
    }
    for (int n = 0; n < p->n; n++) {
        LLVMValueRef right[2];
        for (int i = 0; i < 2; i++)
            right[i] = one_float(e, &p->b, 8 * k + i, n * N_STEP);
        for (int m = 0; m < p->m; m++) {
            LLVMValueRef f[] = {left[m][0], left[m][1], left[m][2], left[m][3], right[0], right[1]};
            multiply(e, "llvm.nvvm.mma.m16n8k8.row.col.tf32", f, &p->acc[4 * (m * p->n + n)]);
        }
    }
}

/* ---- the op ---------------------------------------------------------------------------------- */

static factor factor_of(nv_emit *e, ir_val v, const layout_map *acc, int outer, bool tf32)
{
    factor f = {.v = v, .in_registers = nv_type(e, v).kind == TYPE_TILE};

    ICHECK(!f.in_registers || outer == 0, "the right factor is in shared memory");
    if (f.in_registers)
        return f;
    f.slot = nv_slot_of(e, v);
    if (tf32)
        set_float_lanes(&f, acc, outer);
    else
        set_lanes(&f, acc, outer);
    return f;
}

void nv_mma(nv_emit *e, const ir_op *op)
{
    ir_type t = nv_type(e, op->res), b = nv_type(e, op->args[1]);
    bool tf32 = b.dtype == DT_F32;
    layout_map acc;

    nv_map(e, t, &acc);
    product p = {.t = (enum dtype)b.dtype,
                 .m = t.shape[0] / (M_STEP * layout_warps_along(&acc, 0)),
                 .n = t.shape[1] / (N_STEP * layout_warps_along(&acc, 1)),
                 .k = b.shape[b.rank - 2] / 8,
                 .a = factor_of(e, op->args[0], &acc, 0, tf32),
                 .b = factor_of(e, op->args[1], &acc, 1, tf32)};
    ICHECK(tf32 ? op->attr[0].i == 1 : nv_is_half(p.t), "mma multiplies 16-bit floats, or tf32");
    p.acc = nv_new(e, op->res)->at;
    for (int r = 0; r < 4 * p.m * p.n; r++)
        p.acc[r] = nv_get(e, op->args[2], r);
    for (int k = 0; tf32 && k < p.k; k++)
        tf32_step(e, &p, k);
    for (int k = 0; !tf32 && k < p.k; k += 2)
        half_step(e, &p, k);
}

/* The right factor is ones: each of its eight columns gives the sums. */
void nv_mma_sum(nv_emit *e, const ir_op *op)
{
    ir_type t = nv_type(e, op->args[0]);
    LLVMValueRef one = nv_i32(e, t.dtype == DT_BF16 ? 0x3f803f80 : 0x3c003c00);
    LLVMValueRef left[4], *out = nv_new(e, op->res)->at;
    layout_map map;

    nv_map(e, t, &map);
    product p = {.t = (enum dtype)t.dtype,
                 .m = t.shape[0] / (M_STEP * layout_warps_along(&map, 0)),
                 .k = t.shape[1] / 8,
                 .a = {.in_registers = true, .v = op->args[0]}};
    for (int m = 0; m < p.m; m++) {
        LLVMValueRef zero = ll_float(e->cx->f32, 0.0), acc[] = {zero, zero, zero, zero};
        for (int k = 0; k < p.k; k += 2) {
            left_words(e, &p, m, k, left);
            half_multiply(e, &p, left, (LLVMValueRef[]){one, one}, acc);
        }
        out[2 * m] = acc[0];
        out[2 * m + 1] = acc[2];
    }
}
