/* The register block of a dot: mr rows of nr vectors of its result are summed over all of K in
 * registers. One operand gives vectors, the other one element (or pair) at a time for all lanes. */
#include "compiler/base/check.h"
#include "compiler/target/cpu/cpu_emit.h"

enum { MAX_BLOCK = 32 };

typedef struct block {
    cpu_emit *e;
    const ir_op *dot;
    const cpu_at *at; /* of each vector of the result */
    int mr, nr;
    int vector, row;             /* operand numbers */
    LLVMValueRef acc[MAX_BLOCK]; /* by row, then vector */
} block;

static LLVMValueRef multiply_add(cpu_emit *e, enum dtype t, LLVMValueRef x, LLVMValueRef y,
                                 LLVMValueRef acc)
{
    if (dtype_is_float(t))
        return cpu_fma_or_not(e, x, y, acc);
    return LLVMBuildAdd(e->cx->b, LLVMBuildMul(e->cx->b, x, y, ""), acc, "");
}

/* Where the lanes of vector j are in the vector operand, and row r's element in the other. */
static cpu_at vector_at(const block *b, int j, cpu_index k)
{
    cpu_at in = {.lane = b->vector};

    in.i[b->vector] = b->at[j].i[b->vector];
    in.i[1 - b->vector] = k;
    return in;
}

static cpu_at element_at(const block *b, int r, cpu_index k)
{
    cpu_at in = {.lane = -1};

    in.i[b->row] = b->at[r * b->nr].i[b->row];
    in.i[1 - b->row] = k;
    return in;
}

/* acc += row r's element k * vector j's lanes at k */
static void add_elements(block *b, cpu_index k)
{
    cpu_emit *e = b->e;
    enum dtype from = (enum dtype)ir_type_of(e->fn, b->dot->args[0]).dtype;
    enum dtype to = (enum dtype)ir_type_of(e->fn, b->dot->res).dtype;
    LLVMValueRef lanes[MAX_BLOCK];

    for (int j = 0; j < b->nr; j++) {
        cpu_at in = vector_at(b, j, k);
        LLVMValueRef v = cpu_vector(e, cpu_eval_operand(e, b->dot->args[b->vector], &in));
        lanes[j] = from == to ? v : cpu_op(e, OP_CAST, from, to, &v);
    }
    for (int r = 0; r < b->mr; r++) {
        cpu_at in = element_at(b, r, k);
        LLVMValueRef x = cpu_vector(e, cpu_eval_operand(e, b->dot->args[b->row], &in));
        x = from == to ? x : cpu_op(e, OP_CAST, from, to, &x);
        for (int j = 0; j < b->nr; j++) {
            LLVMValueRef *acc = &b->acc[r * b->nr + j];
            *acc = multiply_add(e, to, x, lanes[j], *acc);
        }
    }
}

/* acc += row r's elements k and k + 1 * vector j's lanes at both */
static void add_pairs(block *b, cpu_index k)
{
    cpu_emit *e = b->e;
    LLVMValueRef lanes[MAX_BLOCK];

    for (int j = 0; j < b->nr; j++) {
        cpu_at in = vector_at(b, j, k);
        lanes[j] = cpu_load_pairs(e, b->dot->args[b->vector], &in);
    }
    for (int r = 0; r < b->mr; r++) {
        cpu_at in = element_at(b, r, k);
        LLVMValueRef x = cpu_load_pairs(e, b->dot->args[b->row], &in);
        x = ll_splat(e->cx, x, e->isa->lanes);
        for (int j = 0; j < b->nr; j++) {
            LLVMValueRef *acc = &b->acc[r * b->nr + j];
            *acc = cpu_add_products(e, *acc, x, lanes[j]);
        }
    }
}

/* How many steps of K a round takes. */
static int steps_of(int64_t n)
{
    return n % 2 ? 1 : 2;
}

void cpu_emit_dot(cpu_emit *e, const cpu_nest *n, const cpu_at *at, int mr, int nr)
{
    const ir_op *dot = n->dot;
    bool pairs = cpu_dot_kind(e->plan, dot) == CPU_DOT_PAIRS;
    int64_t depth = ir_type_of(e->fn, dot->args[0]).shape[1];
    int wide = pairs ? 2 : 1, steps = steps_of(depth / wide);
    block b = {.e = e, .dot = dot, .at = at, .mr = mr, .nr = nr};
    cpu_loop l;

    ICHECK(mr * nr <= MAX_BLOCK, "a register block fits the registers");
    b.vector = cpu_dot_vector(e->plan, dot);
    b.row = 1 - b.vector;
    for (int i = 0; i < mr * nr; i++)
        b.acc[i] = cpu_vector(e, cpu_eval(e, dot->args[2], &at[i]));
    cpu_index k = cpu_loop_open(e, &l, depth, steps * wide, b.acc, mr * nr);
    for (int i = 0; i < steps; i++, k.off += wide) {
        if (pairs)
            add_pairs(&b, k);
        else
            add_elements(&b, k);
    }
    cpu_loop_close(e, &l, b.acc);
    for (int i = 0; i < mr * nr; i++)
        cpu_remember(e, dot->res, &at[i], (cpu_got){b.acc[i], e->depth});
}
