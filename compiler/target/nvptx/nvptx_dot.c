/* dot: the exact product, by FMA (integers: multiply and add), both factors read from shared
 * memory.
 *
 *   for k in steps of CHUNK { read a[rows of this thread, k..], b[k.., its columns]; multiply }
 *
 * A short product has no loop. */
#include "compiler/base/check.h"
#include "compiler/target/llvm/llvm_ops.h"
#include "compiler/target/nvptx/nvptx_emit.h"
#include <string.h>

enum { STEP = 8, UNROLLED = 1024, VECTOR_BYTES = 16, MAX_VECTOR = 16 };

typedef struct product {
    enum dtype t, sum; /* of the factors and of the accumulator */
    nv_slot slot[2];
    layout_map map[2]; /* [M, K] and [K, N]: lanes along m or n only */
    int32_t *at[2];    /* rows, columns of this thread, without lane parts */
    int count[2];
    int *which[2]; /* register -> entry of at */
    int n;         /* registers */
    LLVMValueRef *acc;
    const nv_motion *motion[2];
} product;

static void list_places(nv_emit *e, product *p, const layout_map *acc, int side)
{
    p->at[side] = ARENA_ARRAY(e->a, int32_t, (size_t)p->n);
    p->which[side] = ARENA_ARRAY(e->a, int, (size_t)p->n);
    for (int r = 0; r < p->n; r++) {
        int32_t index[TILE_MAX_RANK];
        int i = 0;
        layout_element(acc, r, 0, 0, index);
        while (i < p->count[side] && p->at[side][i] != index[side])
            i++;
        if (i == p->count[side])
            p->at[side][p->count[side]++] = index[side];
        p->which[side][r] = i;
    }
    p->map[side] = *acc;
    for (int i = 0; i < acc->n; i++) {
        if (acc->digit[i].dim != side)
            p->map[side].digit[i].dim = -1;
    }
}

static LLVMValueRef as_factor(nv_emit *e, const product *p, LLVMValueRef raw)
{
    return ll_cast(e->cx, nv_held(p->t), p->sum, nv_from_raw(e, p->t, raw));
}

static LLVMValueRef multiply(nv_emit *e, const product *p, LLVMValueRef x, LLVMValueRef y,
                             LLVMValueRef acc)
{
    LLVMBuilderRef b = e->cx->b;

    if (dtype_is_float(p->sum))
        return ll_fma(e->cx, x, y, acc);
    return LLVMBuildAdd(b, LLVMBuildMul(b, x, y, ""), acc, "");
}

/* How many elements from `at` on, along dimension dim of a factor, one access reads. */
static int run_of(const product *p, int side, int dim, int32_t at, int most)
{
    const nv_slot *s = &p->slot[side];
    int bytes = dtype_bytes(p->t), n = 1;
    int64_t width = (int64_t)s->type.shape[s->type.rank - 1];

    if (s->perm[dim] != s->rank - 1)
        return 1;
    while (2 * n <= most && 2 * n * bytes <= VECTOR_BYTES && at % (2 * n) == 0 &&
           width % (2 * n) == 0 && s->align % (2 * n * bytes) == 0)
        n *= 2;
    return n;
}

/* out[i]: element (row, column + i) or (row + i, column): along dimension dim from index on. */
static void read_run(nv_emit *e, product *p, int side, const int32_t *index, int n,
                     LLVMValueRef *out)
{
    LLVMValueRef word[MAX_VECTOR], raw[MAX_VECTOR];
    LLVMValueRef q = nv_shared_moving(e, &p->slot[side], &p->map[side], index, p->motion[side]);

    nv_vector_load(e, p->t, n, q, false, word);
    nv_split_words(e, p->t, n, word, raw);
    for (int i = 0; i < n; i++)
        out[i] = as_factor(e, p, raw[i]);
}

/* a[i * steps + u] of row i, k + u */
static void read_left(nv_emit *e, product *p, int32_t k, int steps, LLVMValueRef *a)
{
    for (int i = 0; i < p->count[0]; i++) {
        for (int u = 0; u < steps;) {
            const int32_t index[] = {p->at[0][i], k + u};
            int n = run_of(p, 0, 1, k + u, steps - u);
            read_run(e, p, 0, index, n, &a[i * steps + u]);
            u += n;
        }
    }
}

/* Columns that lie side by side in this thread, and in every lane from a multiple on. */
static int columns_from(const product *p, int i)
{
    int most = nv_consecutive(&p->map[1], 1, MAX_VECTOR), n = 1;

    while (i + n < p->count[1] && p->at[1][i + n] == p->at[1][i] + n && n < most)
        n++;
    return n;
}

static void read_right(nv_emit *e, product *p, int32_t k, LLVMValueRef *b)
{
    for (int i = 0; i < p->count[1];) {
        const int32_t index[] = {k, p->at[1][i]};
        int n = run_of(p, 1, 1, p->at[1][i], columns_from(p, i));
        read_run(e, p, 1, index, n, &b[i]);
        i += n;
    }
}

static void step(nv_emit *e, product *p, int32_t k, int steps)
{
    LLVMValueRef *a = ARENA_ARRAY(e->a, LLVMValueRef, (size_t)(p->count[0] * steps));
    LLVMValueRef *b = ARENA_ARRAY(e->a, LLVMValueRef, (size_t)p->count[1]);

    read_left(e, p, k, steps, a);
    for (int u = 0; u < steps; u++) {
        read_right(e, p, k + u, b);
        for (int r = 0; r < p->n; r++)
            p->acc[r] = multiply(e, p, a[p->which[0][r] * steps + u], b[p->which[1][r]], p->acc[r]);
    }
}

/* k counts from 0 to extent, a multiple of STEP. */
static void looped(nv_emit *e, product *p, int32_t extent)
{
    LLVMBasicBlockRef before = ll_here(e->cx), body = ll_block(e->cx, "dot");
    LLVMBasicBlockRef after = ll_block(e->cx, "");
    LLVMValueRef *phi = ARENA_ARRAY(e->a, LLVMValueRef, (size_t)p->n);
    uint32_t bits = 1;

    while (bits < (uint32_t)extent)
        bits *= 2;
    LLVMBuildBr(e->cx->b, body);
    ll_at(e->cx, body);
    LLVMValueRef k = LLVMBuildPhi(e->cx->b, e->cx->i32, "");
    const nv_motion motion[] = {{1, k, (bits - 1) & ~(uint32_t)(STEP - 1)},
                                {0, k, (bits - 1) & ~(uint32_t)(STEP - 1)}};
    for (int r = 0; r < p->n; r++) {
        phi[r] = LLVMBuildPhi(e->cx->b, LLVMTypeOf(p->acc[r]), "");
        ll_phi_add(phi[r], p->acc[r], before);
        p->acc[r] = phi[r];
    }
    p->motion[0] = &motion[0];
    p->motion[1] = &motion[1];
    step(e, p, 0, STEP);
    p->motion[0] = p->motion[1] = NULL;
    LLVMValueRef next = LLVMBuildAdd(e->cx->b, k, nv_i32(e, STEP), "");
    LLVMValueRef more = LLVMBuildICmp(e->cx->b, LLVMIntULT, next, nv_i32(e, extent), "");
    ll_phi_add(k, nv_i32(e, 0), before);
    ll_phi_add(k, next, ll_here(e->cx));
    for (int r = 0; r < p->n; r++)
        ll_phi_add(phi[r], p->acc[r], ll_here(e->cx));
    LLVMBuildCondBr(e->cx->b, more, body, after);
    ll_at(e->cx, after);
}

void nv_dot(nv_emit *e, const ir_op *op)
{
    ir_type t = nv_type(e, op->res), b = nv_type(e, op->args[1]);
    layout_map acc;

    nv_map(e, t, &acc);
    product p = {.t = (enum dtype)b.dtype,
                 .sum = (enum dtype)t.dtype,
                 .slot = {nv_slot_of(e, op->args[0]), nv_slot_of(e, op->args[1])},
                 .n = layout_registers(&acc)};
    int32_t k = b.shape[b.rank - 2], done = 0;
    p.acc = ARENA_ARRAY(e->a, LLVMValueRef, (size_t)p.n);
    list_places(e, &p, &acc, 0);
    list_places(e, &p, &acc, 1);
    for (int r = 0; r < p.n; r++)
        p.acc[r] = nv_get(e, op->args[2], r);
    if (k > STEP && (int64_t)k * p.n > UNROLLED) {
        done = k / STEP * STEP;
        looped(e, &p, done);
    }
    for (; done < k; done += STEP)
        step(e, &p, done, k - done < STEP ? k - done : STEP);
    nv_set(e, op->res, p.acc);
}
