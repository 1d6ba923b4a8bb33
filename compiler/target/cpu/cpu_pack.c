/* Packs blocks of tensors for dots of bf16.
 *
 * Such a dot wants the elements of an operand that it adds up next to each other (cpu_tiles.c,
 * cpu_pairs.c). Where the tensor has them apart, as V of attention, each program turns the block
 * that it has loaded, and all programs of a head turn the same ones. Here the load becomes one of a
 * workspace, in which a step before the kernel's has put the whole tensor:
 *
 *     load %v, %b, %h, %n0, 0  extent=[0, 0, N, D]     N is summed, D lies together
 *     trans(load %packed, %block, 0, 0  extent=[0, D, N])
 *
 * Blocks are numbered from 1 in the order of the tensor's dimensions, each cut in the extents of
 * the load; block 0 is zeros, which is what a load outside of the tensor gives. So the load must
 * begin at multiples of its extents, and nothing else needs to be known of its indices. A block at
 * the end of a dimension is filled up with zeros.
 *
 * Which launches gain is for the tuner to find: packing pays where several programs read one
 * block. */
#include "compiler/target/cpu/cpu_pack.h"
#include "compiler/ir/irbuild.h"
#include "compiler/ir/iredit.h"
#include "compiler/passes/facts.h"

enum { SUMMED = 0, TOGETHER = 1 }; /* dimensions of the load's tile */
enum { MOST = 8 /* workspaces */, INSIDE = 7 /* of all three dimensions of one */ };

typedef struct packing {
    ir_module *m;
    ir_fn *fn;
    const facts *facts;
    cpu_packs *packs;
    VEC(ir_op *) dots;
} packing;

/* ---- what can be packed ---------------------------------------------------------------------- */

static int param_of(const ir_fn *fn, const ir_op *load)
{
    return (int)ir_value_of(fn, load->args[0])->index;
}

static int rank_of(const ir_op *load)
{
    return (int)load->attr[0].ints.n;
}

static int64_t extent_of(const ir_op *load, int d)
{
    return load->attr[0].ints.at[d];
}

/* A block of two dimensions, of which the last one is that whose elements lie together. */
static bool is_block(const ir_fn *fn, const ir_op *load)
{
    const ir_param *p = &fn->params.at[param_of(fn, load)];
    int rank = rank_of(load), walked = 0;

    for (int d = 0; d < rank; d++)
        walked += extent_of(load, d) != 0;
    return p->kind == PARAM_TENSOR && p->direction == DIR_IN && p->unit_inner && walked == 2 &&
           extent_of(load, rank - 1) != 0 && p->type.dtype == DT_BF16;
}

static bool is_multiple(const facts *f, const ir_fn *fn, ir_val v, int64_t of)
{
    const ir_op *op = ir_def(fn, v);

    if (op && op->code == OP_CONST_INT)
        return op->attr[0].i % of == 0;
    return (of & (of - 1)) == 0 && facts_divisor(f, v) >= of;
}

static bool begins_at_blocks(const packing *c, const ir_op *load)
{
    for (int d = 0; d < rank_of(load); d++) {
        ir_val at = load->args[1 + d];
        if (!type_equal(ir_type_of(c->fn, at), type_scalar(DT_I32)) ||
            (extent_of(load, d) && !is_multiple(c->facts, c->fn, at, extent_of(load, d))))
            return false;
    }
    return true;
}

/* The load that operand arg of the dot is but for its view, when it is against the dot's order, and
 * in a loop: what is loaded once a program is turned once. */
static ir_op *load_of(const packing *c, const ir_op *dot, int arg)
{
    ir_op *op = ir_def(c->fn, dot->args[arg]);
    bool turned = false;

    for (; op && op->code == OP_TRANS; op = ir_def(c->fn, op->args[0]))
        turned ^= op->attr[0].ints.at[0] == 1;
    if (!op || op->code != OP_LOAD || turned == (arg == 1) || ir_depth(op->parent) == 0 ||
        !is_block(c->fn, op) || !begins_at_blocks(c, op))
        return NULL;
    return ir_type_of(c->fn, op->res).shape[SUMMED] % 2 == 0 ? op : NULL;
}

/* ---- numbers of blocks ----------------------------------------------------------------------- */

static ir_val number(ir_builder *b, int64_t v)
{
    return ir_const_int(b, DT_I32, v);
}

/* Blocks along dimension d of the load's view. */
static ir_val blocks_along(ir_builder *b, const ir_param *p, const ir_op *load, int d)
{
    ir_val extent = ir_dim_value(b, p->dim[d]), size = number(b, extent_of(load, d));

    if (extent_of(load, d) == 0)
        return extent;
    ir_val whole = ir_binary(b, OP_DIV, extent, size), rest = ir_binary(b, OP_REM, extent, size);
    ir_val more = ir_binary(b, OP_MIN, rest, number(b, 1));
    return ir_binary(b, OP_ADD, whole, more);
}

/* The number of the block that the load is of; 0 outside of the tensor. */
static ir_val block_of(ir_builder *b, const ir_op *load)
{
    const ir_param *p = &b->fn->params.at[param_of(b->fn, load)];
    ir_val block = number(b, 0), inside = ir_const_int(b, DT_I1, 1);

    for (int d = 0; d < rank_of(load); d++) {
        ir_val n = blocks_along(b, p, load, d), i = load->args[1 + d];
        if (extent_of(load, d))
            i = ir_binary(b, OP_DIV, i, number(b, extent_of(load, d)));
        ir_val from = ir_binary(b, OP_CMP_LE, number(b, 0), i), to = ir_binary(b, OP_CMP_LT, i, n);
        inside = ir_binary(b, OP_AND, inside, ir_binary(b, OP_AND, from, to));
        block = ir_binary(b, OP_ADD, ir_binary(b, OP_MUL, block, n), i);
    }
    return ir_where(b, inside, ir_binary(b, OP_ADD, block, number(b, 1)), number(b, 0));
}

/* ---- the workspace --------------------------------------------------------------------------- */

/* As a parameter of fn; the load is one of the kernel. */
static ir_param workspace_param(ir_fn *fn, const ir_fn *kernel, const ir_op *load, int index,
                                enum ir_direction is)
{
    ir_type t = ir_type_of(kernel, load->res);
    const char *name = kernel->params.at[param_of(kernel, load)].name;
    unsigned row = (unsigned)t.shape[SUMMED] * (unsigned)dtype_bytes((enum dtype)t.dtype);
    ir_param p = {.kind = PARAM_WORKSPACE, .direction = is, .symbol = index, .unit_inner = true};

    p.name = arena_printf(fn->module->a, "packed_%s_%d", name, index);
    p.type = type_view((enum dtype)t.dtype, 3);
    p.dim[0] = ir_add_dim(fn, NULL, true, INT32_MAX); /* which of them there are is not asked */
    p.dim[1] = ir_add_dim(fn, NULL, true, t.shape[TOGETHER]);
    p.dim[2] = ir_add_dim(fn, NULL, true, t.shape[SUMMED]);
    p.align = (uint16_t)(row % 64 ? row & -row : 64);
    return p;
}

static ir_val load_packed(ir_builder *b, ir_val view, ir_val block, ir_type t)
{
    ir_val zero = number(b, 0), at[] = {block, zero, zero};
    int32_t extent[] = {0, t.shape[TOGETHER], t.shape[SUMMED]};
    ir_val v = ir_load(b, view, at, extent);

    ir_def(b->fn, v)->attr[1].i = INSIDE;
    return v;
}

/* ---- the step that fills it ------------------------------------------------------------------ */

/* Where block pid - 1 begins, the last dimension fastest. Of -1, at least one index comes out
 * negative: nothing of it is inside. */
static void begin_of(ir_builder *b, const ir_param *p, const ir_op *load, ir_val pid, ir_val *at)
{
    ir_val left = ir_binary(b, OP_SUB, pid, number(b, 1));

    for (int d = rank_of(load) - 1; d >= 0; d--) {
        ir_val n = blocks_along(b, p, load, d);
        at[d] = d ? ir_binary(b, OP_REM, left, n) : left;
        left = ir_binary(b, OP_DIV, left, n);
        if (extent_of(load, d))
            at[d] = ir_binary(b, OP_MUL, at[d], number(b, extent_of(load, d)));
    }
}

/* load: the kernel's, of its parameter number `param` and of a tile like block. */
static void fill_body(ir_fn *fn, int param, const ir_op *load, ir_type block)
{
    ir_builder b = ir_at_end(fn, fn->body);
    ir_val at[VIEW_MAX_RANK], pid = ir_program_id(&b, 0), zero = number(&b, 0);
    ir_val view = ir_param_value(fn, param), to[] = {pid, zero, zero};
    ir_val packed = ir_param_value(fn, (int)fn->params.n - 1);
    int32_t extent[VIEW_MAX_RANK], whole[] = {0, block.shape[TOGETHER], block.shape[SUMMED]};

    begin_of(&b, &fn->params.at[param], load, pid, at);
    for (int d = 0; d < rank_of(load); d++)
        extent[d] = (int32_t)extent_of(load, d);
    ir_val v = ir_trans(&b, ir_load(&b, view, at, extent), (int[]){1, 0});
    ir_store(&b, packed, to, whole, v);
    fn->body->last->attr[1].i = INSIDE;
    ir_return(&b, NULL, 0);
}

static ir_module *filler(const packing *c, const ir_op *load, int index)
{
    ir_module *m = ir_module_new(c->m->a, c->m->names);
    ir_fn *fn = ir_fn_new(m, arena_printf(m->a, "%s.pack%d", c->fn->name, index));

    m->level = 1;
    m->kernel = fn;
    for (uint32_t i = 0; i < c->fn->dims.n; i++)
        vec_push(&fn->dims, m->a, c->fn->dims.at[i]);
    for (uint32_t i = 0; i < c->fn->params.n && c->fn->params.at[i].kind != PARAM_WORKSPACE; i++)
        ir_add_param(fn, c->fn->params.at[i]);
    ir_add_param(fn, workspace_param(fn, c->fn, load, index, DIR_OUT));
    ir_fn_begin(fn);
    fill_body(fn, param_of(c->fn, load), load, ir_type_of(c->fn, load->res));
    return m;
}

/* Blocks of the tensor, and the one of zeros, each of them `factor`. */
static recipe_count count_of(const packing *c, const ir_op *load, int64_t factor)
{
    const ir_param *p = &c->fn->params.at[param_of(c->fn, load)];
    recipe_count n = {.factor = factor, .more = 1, .nterms = (uint8_t)rank_of(load)};

    for (int d = 0; d < rank_of(load); d++) {
        n.dim[d] = (uint8_t)p->dim[d];
        n.per[d] = extent_of(load, d) ? (int32_t)extent_of(load, d) : 1;
    }
    return n;
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static bool same_blocks(const ir_fn *fn, const ir_op *x, const ir_op *y)
{
    bool same = param_of(fn, x) == param_of(fn, y);

    for (int d = 0; same && d < rank_of(x); d++)
        same = extent_of(x, d) == extent_of(y, d);
    return same;
}

/* The workspace with the blocks that the load is of; -1: there is no room for one more. */
static int workspace_of(packing *c, const ir_op *load)
{
    ir_type t = ir_type_of(c->fn, load->res);
    int64_t bytes = type_elements(t) * dtype_bytes((enum dtype)t.dtype);
    uint32_t i = 0;

    while (i < c->packs->n && !same_blocks(c->fn, c->packs->at[i].load, load))
        i++;
    if (i < c->packs->n || i == MOST)
        return i < MOST ? (int)i : -1;
    cpu_pack pack = {load, filler(c, load, (int)i), count_of(c, load, 1), count_of(c, load, bytes)};
    vec_push(c->packs, c->m->a, pack);
    ir_append_param(c->fn, workspace_param(c->fn, c->fn, load, (int)i, DIR_IN));
    return (int)i;
}

static void read_packed(packing *c, ir_op *dot, int arg, ir_op *load)
{
    int index = workspace_of(c, load);
    ir_builder b = ir_before(c->fn, load);

    if (index < 0)
        return;
    b.where = load->where;
    ir_val view = ir_param_value(c->fn, (int)(c->fn->params.n - c->packs->n) + index);
    ir_val v = load_packed(&b, view, block_of(&b, load), ir_type_of(c->fn, load->res));
    dot->args[arg] = arg == 0 ? v : ir_trans(&b, v, (int[]){1, 0});
}

static void find_dot(ir_op *op, void *arg)
{
    packing *c = arg;

    if (op->code == OP_DOT)
        vec_push(&c->dots, c->m->a, op);
}

void cpu_pack_operands(ir_module *m, cpu_packs *packs)
{
    packing c = {.m = m, .fn = m->kernel, .facts = facts_compute(m->a, m->kernel), .packs = packs};
    VEC(ir_op *) loads = {0}; /* by dot and operand; found before anything changes */

    ir_walk(c.fn->body, find_dot, &c);
    for (uint32_t i = 0; i < 2 * c.dots.n; i++)
        vec_push(&loads, m->a, load_of(&c, c.dots.at[i / 2], (int)(i % 2)));
    for (uint32_t i = 0; i < loads.n; i++) {
        if (loads.at[i])
            read_packed(&c, c.dots.at[i / 2], (int)(i % 2), loads.at[i]);
    }
}
