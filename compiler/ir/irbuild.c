#include "compiler/ir/irbuild.h"
#include "compiler/base/check.h"
#include "compiler/ir/ireval.h"
#include "compiler/ir/layout.h"
#include <math.h>
#include <string.h>

static arena *arena_of(const ir_builder *b)
{
    return b->fn->module->a;
}

ir_module *ir_module_new(arena *a, intern *names)
{
    ir_module *m = ARENA_NEW(a, ir_module);

    m->a = a;
    m->names = names;
    m->level = 1;
    return m;
}

ir_fn *ir_fn_new(ir_module *m, const char *name)
{
    ir_fn *fn = ARENA_NEW(m->a, ir_fn);

    fn->module = m;
    fn->name = intern_str(m->names, name);
    vec_push(&fn->values, m->a, (ir_value){0});
    vec_push(&fn->layouts, m->a, NULL);
    return fn;
}

/* ---- signature ---- */

static int unnamed_dim(const ir_fn *fn, int64_t value)
{
    for (uint32_t i = 0; i < fn->dims.n; i++) {
        if (!fn->dims.at[i].name && fn->dims.at[i].value == value)
            return (int)i;
    }
    return -1;
}

int ir_add_dim(ir_fn *fn, const char *name, bool is_const, int64_t value)
{
    ir_module *m = fn->module;
    ir_dim dim = {name ? intern_str(m->names, name) : NULL, is_const, is_const ? value : 0};

    ICHECK(name || is_const, "a dimension without a name is a constant");
    int known = name ? -1 : unnamed_dim(fn, value);
    return known >= 0 ? known : (int)vec_push(&fn->dims, m->a, dim);
}

int ir_add_param(ir_fn *fn, ir_param p)
{
    ICHECK(!fn->body, "parameters come before the body");
    p.name = intern_str(fn->module->names, p.name);
    return (int)vec_push(&fn->params, fn->module->a, p);
}

static ir_val new_value(ir_fn *fn, ir_value v)
{
    return (ir_val)vec_push(&fn->values, fn->module->a, v);
}

static ir_block *new_block(ir_fn *fn, ir_op *owner)
{
    ir_block *blk = ARENA_NEW(fn->module->a, ir_block);

    blk->owner = owner;
    return blk;
}

static void add_block_arg(ir_fn *fn, ir_block *blk, ir_type t, const char *name)
{
    ir_val v =
        new_value(fn, (ir_value){.type = t, .block = blk, .index = blk->nargs, .name = name});

    if (!blk->nargs++)
        blk->arg = v;
}

void ir_fn_begin(ir_fn *fn)
{
    ICHECK(!fn->body, "a function has one body");
    fn->body = new_block(fn, NULL);
    for (uint32_t i = 0; i < fn->params.n; i++)
        add_block_arg(fn, fn->body, fn->params.at[i].type, fn->params.at[i].name);
}

ir_val ir_param_value(const ir_fn *fn, int param)
{
    ICHECK(fn->body && (uint32_t)param < fn->params.n, "the parameter exists");
    return fn->body->arg + (ir_val)param;
}

ir_val ir_dim_value(ir_builder *b, int dim)
{
    const ir_fn *fn = b->fn;

    ICHECK((uint32_t)dim < fn->dims.n, "the dimension exists");
    if (fn->dims.at[dim].is_const)
        return ir_const_int(b, DT_I32, fn->dims.at[dim].value);
    for (uint32_t i = 0; i < fn->params.n; i++) {
        if (fn->params.at[i].kind == PARAM_DIM && fn->params.at[i].symbol == dim)
            return ir_param_value(fn, (int)i);
    }
    ICHECK(false, "a run-time dimension has a hidden parameter");
    return 0;
}

/* ---- the general form ---- */

ir_builder ir_at_end(ir_fn *fn, ir_block *block)
{
    return (ir_builder){.fn = fn, .block = block};
}

ir_builder ir_before(ir_fn *fn, ir_op *op)
{
    return (ir_builder){.fn = fn, .block = op->parent, .before = op, .where = op->where};
}

static void link_op(ir_builder *b, ir_op *op)
{
    ir_block *blk = b->block;
    ir_op *next = b->before, *prev = next ? next->prev : blk->last;

    ICHECK(next || !prev || !(op_info(prev->code)->traits & OPT_TERM),
           "nothing follows a terminator");
    op->parent = blk;
    op->prev = prev;
    op->next = next;
    *(prev ? &prev->next : &blk->first) = op;
    *(next ? &next->prev : &blk->last) = op;
}

static ir_attr copy_attr(ir_fn *fn, enum ir_attr_kind kind, ir_attr x)
{
    arena *a = fn->module->a;

    if (kind == ATTR_INTS)
        x.ints.at = arena_dup(a, x.ints.at, x.ints.n * sizeof *x.ints.at);
    else if (kind == ATTR_STR)
        x.s = arena_strdup(a, x.s);
    return x;
}

/* An op with its operands and attributes, not yet linked, no results. */
static ir_op *new_op(ir_builder *b, enum ir_opcode code, const ir_val *args, int nargs,
                     const ir_attr *attrs)
{
    const ir_op_info *info = op_info(code);
    ir_op *op = ARENA_NEW(arena_of(b), ir_op);

    ICHECK(nargs >= 0 && nargs <= UINT16_MAX, "an op has at most 65535 operands");
    op->code = (uint16_t)code;
    op->where = b->where;
    op->nargs = (uint16_t)nargs;
    op->args = ARENA_ARRAY(arena_of(b), ir_val, (size_t)nargs);
    for (int i = 0; i < nargs; i++)
        op->args[i] = args[i];
    for (int i = 0; i < OP_MAX_ATTRS && info->attr[i].kind; i++)
        op->attr[i] = copy_attr(b->fn, info->attr[i].kind, attrs[i]);
    return op;
}

static void add_result(ir_builder *b, ir_op *op, ir_type t)
{
    ir_val v = new_value(b->fn, (ir_value){.type = t, .def = op, .index = op->nres});

    if (!op->nres++)
        op->res = v;
}

static void check_args(const ir_fn *fn, const ir_val *args, int nargs)
{
    for (int i = 0; i < nargs; i++)
        ICHECK(args[i] > 0 && args[i] < fn->values.n, "an operand is a value of the function");
}

static ir_type checked_type(ir_builder *b, enum ir_opcode code, const ir_val *args, int nargs,
                            const ir_attr *attrs, ir_type type)
{
    static const ir_attr none[OP_MAX_ATTRS];
    const char *why = "";

    check_args(b->fn, args, nargs);
    bool fits = op_result_type(b->fn, code, args, nargs, attrs ? attrs : none, &type, &why);
    ICHECK(fits, why);
    return type;
}

ir_op *ir_build(ir_builder *b, enum ir_opcode code, const ir_val *args, int nargs,
                const ir_attr *attrs, ir_type type)
{
    const ir_op_info *info = op_info(code);

    ICHECK(info->results >= 0 && info->regions == 0, "control ops have builders of their own");
    type = checked_type(b, code, args, nargs, attrs, type);
    ir_op *op = new_op(b, code, args, nargs, attrs);
    if (info->results)
        add_result(b, op, type);
    link_op(b, op);
    return op;
}

static ir_val build_value(ir_builder *b, enum ir_opcode code, const ir_val *args, int nargs,
                          const ir_attr *attrs, ir_type type)
{
    return ir_build(b, code, args, nargs, attrs, type)->res;
}

/* ---- leaves ---- */

/* The value that t holds after wrapping, in the form that ireval.h gives to elements. */
static int64_t wrapped(enum dtype t, int64_t v)
{
    int unused = 64 - dtype_bits(t);
    uint64_t high = (uint64_t)v << unused;

    return dtype_kind(t) == DTK_SINT ? (int64_t)high >> unused : (int64_t)(high >> unused);
}

ir_val ir_const_int(ir_builder *b, enum dtype t, int64_t v)
{
    ir_attr attr[] = {{.i = wrapped(t, v)}};

    return build_value(b, OP_CONST_INT, NULL, 0, attr, type_scalar(t));
}

ir_val ir_const_float(ir_builder *b, enum dtype t, double v)
{
    ir_attr attr[] = {{.f = isnan(v) ? (double)NAN : eval_round(t, (ir_scalar){.f = v}).f}};

    return build_value(b, OP_CONST_FLOAT, NULL, 0, attr, type_scalar(t));
}

ir_val ir_program_id(ir_builder *b, int axis)
{
    return build_value(b, OP_PROGRAM_ID, NULL, 0, (ir_attr[]){{.i = axis}}, (ir_type){0});
}

ir_val ir_num_programs(ir_builder *b, int axis)
{
    return build_value(b, OP_NUM_PROGRAMS, NULL, 0, (ir_attr[]){{.i = axis}}, (ir_type){0});
}

ir_val ir_arange_as(ir_builder *b, int64_t start, ir_type tile)
{
    return build_value(b, OP_ARANGE, NULL, 0, (ir_attr[]){{.i = start}}, tile);
}

ir_val ir_arange(ir_builder *b, int64_t start, int32_t n)
{
    return ir_arange_as(b, start, type_tile(DT_I32, 1, &n));
}

/* ---- shape and elementwise ---- */

ir_val ir_splat(ir_builder *b, ir_val scalar, ir_type tile)
{
    return build_value(b, OP_SPLAT, &scalar, 1, NULL, tile);
}

ir_val ir_expand_as(ir_builder *b, ir_val v, int axis, uint16_t layout)
{
    return build_value(b, OP_EXPAND, &v, 1, (ir_attr[]){{.i = axis}}, (ir_type){.layout = layout});
}

ir_val ir_expand(ir_builder *b, ir_val v, int axis)
{
    return ir_expand_as(b, v, axis, 0);
}

ir_val ir_broadcast(ir_builder *b, ir_val v, ir_type tile)
{
    return build_value(b, OP_BROADCAST, &v, 1, NULL, tile);
}

ir_val ir_trans(ir_builder *b, ir_val v, const int *perm)
{
    int64_t entry[TILE_MAX_RANK];
    ir_type ty = ir_type_of(b->fn, v);
    int rank = ty.rank;

    ICHECK(rank <= TILE_MAX_RANK, "trans takes a tile");
    for (int i = 0; i < rank; i++)
        entry[i] = perm[i];
    if (ty.layout)
        layout_trans(b->fn, ty.layout, rank, perm); /* the layout of the result */
    ir_attr attr[] = {{.ints = {(uint32_t)rank, entry}}};
    return build_value(b, OP_TRANS, &v, 1, attr, (ir_type){0});
}

ir_val ir_cast(ir_builder *b, ir_val v, enum dtype to)
{
    return build_value(b, OP_CAST, &v, 1, NULL, type_with_dtype(ir_type_of(b->fn, v), to));
}

ir_val ir_unary(ir_builder *b, enum ir_opcode code, ir_val x)
{
    return build_value(b, code, &x, 1, NULL, (ir_type){0});
}

ir_val ir_binary(ir_builder *b, enum ir_opcode code, ir_val x, ir_val y)
{
    return build_value(b, code, (ir_val[]){x, y}, 2, NULL, (ir_type){0});
}

ir_val ir_where(ir_builder *b, ir_val c, ir_val x, ir_val y)
{
    return build_value(b, OP_WHERE, (ir_val[]){c, x, y}, 3, NULL, (ir_type){0});
}

ir_val ir_fma(ir_builder *b, ir_val x, ir_val y, ir_val z)
{
    return build_value(b, OP_FMA, (ir_val[]){x, y, z}, 3, NULL, (ir_type){0});
}

ir_val ir_dot(ir_builder *b, ir_val x, ir_val y, ir_val acc)
{
    return build_value(b, OP_DOT, (ir_val[]){x, y, acc}, 3, NULL, (ir_type){0});
}

/* The layout of what a reduction gives is one of the function. */
static void slice_of(ir_builder *b, ir_val x, int axis)
{
    ir_type ty = ir_type_of(b->fn, x);

    if (ty.layout && ty.rank > 1)
        layout_slice(b->fn, ty.layout, axis);
}

ir_val ir_reduce(ir_builder *b, enum ir_opcode code, ir_val x, int axis)
{
    slice_of(b, x, axis);
    return build_value(b, code, &x, 1, (ir_attr[]){{.i = axis}}, (ir_type){0});
}

/* ---- memory ---- */

/* v: what is stored, n values. */
static ir_op *build_access(ir_builder *b, enum ir_opcode code, ir_val view, const ir_val *index,
                           const int32_t *extent, const ir_val *v, int n)
{
    ir_val args[VIEW_MAX_RANK + 3];
    int64_t wide[VIEW_MAX_RANK];
    int rank = ir_type_of(b->fn, view).rank, nargs = 0;

    ICHECK(rank <= VIEW_MAX_RANK, "a view has rank 1 to 8");
    args[nargs++] = view;
    for (int i = 0; i < rank; i++) {
        args[nargs++] = index[i];
        wide[i] = extent[i];
    }
    for (int i = 0; i < n; i++)
        args[nargs++] = v[i];
    ir_attr attr[] = {{.ints = {(uint32_t)rank, wide}}, {.i = 0}};
    return ir_build(b, code, args, nargs, attr, (ir_type){0});
}

ir_val ir_load(ir_builder *b, ir_val view, const ir_val *index, const int32_t *extent)
{
    return build_access(b, OP_LOAD, view, index, extent, NULL, 0)->res;
}

void ir_store(ir_builder *b, ir_val view, const ir_val *index, const int32_t *extent, ir_val v)
{
    ICHECK(v, "a store has a value");
    build_access(b, OP_STORE, view, index, extent, &v, 1);
}

ir_val ir_atomic(ir_builder *b, enum ir_opcode code, ir_val view, const ir_val *index,
                 const int32_t *extent, const ir_val *v)
{
    return build_access(b, code, view, index, extent, v, code == OP_ATOMIC_CAS ? 2 : 1)->res;
}

void ir_assert(ir_builder *b, ir_val cond, const char *text)
{
    ir_build(b, OP_ASSERT, &cond, 1, (ir_attr[]){{.s = text}}, (ir_type){0});
}

void ir_assert_values(ir_builder *b, ir_val cond, const ir_val *value, int n, const char *text)
{
    ir_val args[1 + ASSERT_MAX_VALUES] = {cond};

    ICHECK(n <= ASSERT_MAX_VALUES, "an assert shows few values");
    for (int i = 0; i < n; i++)
        args[1 + i] = value[i];
    ir_build(b, OP_ASSERT, args, 1 + n, (ir_attr[]){{.s = text}}, (ir_type){0});
}

void ir_print_value(ir_builder *b, ir_val v, const char *text)
{
    ir_build(b, OP_PRINT, &v, 1, (ir_attr[]){{.s = text}}, (ir_type){0});
}

/* ---- control ---- */

/* An op with empty blocks and, for now, no results. */
static ir_op *build_control_with(ir_builder *b, enum ir_opcode code, const ir_val *args, int nargs,
                                 int nregions, const ir_attr *attrs)
{
    checked_type(b, code, args, nargs, attrs, (ir_type){0});
    ir_op *op = new_op(b, code, args, nargs, attrs);
    op->nregions = (uint16_t)nregions;
    op->regions = ARENA_ARRAY(arena_of(b), ir_block *, (size_t)nregions);
    for (int i = 0; i < nregions; i++)
        op->regions[i] = new_block(b->fn, op);
    link_op(b, op);
    return op;
}

static ir_op *build_control(ir_builder *b, enum ir_opcode code, const ir_val *args, int nargs,
                            int nregions)
{
    return build_control_with(b, code, args, nargs, nregions, NULL);
}

static void carry(ir_builder *b, ir_op *op, int region, const ir_val *init, int n)
{
    for (int i = 0; i < n; i++)
        add_block_arg(b->fn, op->regions[region], ir_type_of(b->fn, init[i]), NULL);
}

static void add_results_like(ir_builder *b, ir_op *op, const ir_val *init, int n)
{
    for (int i = 0; i < n; i++)
        add_result(b, op, ir_type_of(b->fn, init[i]));
}

ir_op *ir_for(ir_builder *b, ir_val lo, ir_val hi, ir_val step, const ir_val *init, int n)
{
    ir_val *args = ARENA_ARRAY(arena_of(b), ir_val, (size_t)n + 3);

    args[0] = lo;
    args[1] = hi;
    args[2] = step;
    for (int i = 0; i < n; i++)
        args[3 + i] = init[i];
    ir_op *op = build_control(b, OP_FOR, args, n + 3, 1);
    add_results_like(b, op, init, n);
    add_block_arg(b->fn, op->regions[0], type_scalar(DT_I32), NULL);
    carry(b, op, 0, init, n);
    return op;
}

ir_op *ir_while(ir_builder *b, const ir_val *init, int n)
{
    ir_op *op = build_control(b, OP_WHILE, init, n, 2);

    add_results_like(b, op, init, n);
    carry(b, op, 0, init, n);
    carry(b, op, 1, init, n);
    return op;
}

ir_op *ir_if(ir_builder *b, ir_val cond, const ir_type *types, int n)
{
    ir_op *op = build_control(b, OP_IF, &cond, 1, 2);

    ir_if_results(b, op, types, n);
    return op;
}

void ir_if_results(ir_builder *b, ir_op *op, const ir_type *types, int n)
{
    ICHECK(op->code == OP_IF && !op->nres, "results are given once, to an if");
    for (int i = 0; i < n; i++)
        add_result(b, op, types[i]);
}

ir_op *ir_role(ir_builder *b, int first, int warps, int registers)
{
    ir_attr attrs[] = {{.i = first}, {.i = warps}, {.i = registers}};

    return build_control_with(b, OP_ROLE, NULL, 0, 1, attrs);
}

ir_op *ir_wgmma_wait(ir_builder *b, int pending, const ir_val *v, int n)
{
    ir_op *op = build_control_with(b, OP_WGMMA_WAIT, v, n, 0, (ir_attr[]){{.i = pending}});

    add_results_like(b, op, v, n);
    return op;
}

ir_op *ir_fold(ir_builder *b, enum ir_opcode code, ir_val x, int axis)
{
    ir_attr attr[] = {{.i = axis}};

    if (code == OP_REDUCE)
        slice_of(b, x, axis);
    ir_op *op = build_control_with(b, code, &x, 1, 1, attr);
    ir_type element = type_scalar((enum dtype)ir_type_of(b->fn, x).dtype);

    add_result(b, op, checked_type(b, code, &x, 1, attr, (ir_type){0}));
    for (int i = 0; i < 2; i++)
        add_block_arg(b->fn, op->regions[0], element, NULL);
    return op;
}

void ir_yield(ir_builder *b, const ir_val *v, int n)
{
    ir_build(b, OP_YIELD, v, n, NULL, (ir_type){0});
}

void ir_condition(ir_builder *b, ir_val cond, const ir_val *pass, int n)
{
    ir_val *args = ARENA_ARRAY(arena_of(b), ir_val, (size_t)n + 1);

    args[0] = cond;
    for (int i = 0; i < n; i++)
        args[1 + i] = pass[i];
    ir_build(b, OP_CONDITION, args, n + 1, NULL, (ir_type){0});
}

void ir_return(ir_builder *b, const ir_val *v, int n)
{
    ir_build(b, OP_RETURN, v, n, NULL, (ir_type){0});
    b->fn->nresults = n;
}

void ir_name(ir_fn *fn, ir_val v, const char *name)
{
    ICHECK(v > 0 && v < fn->values.n, "a name belongs to a value of the function");
    fn->values.at[v].name = name ? intern_str(fn->module->names, name) : NULL;
}
