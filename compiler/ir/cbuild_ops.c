/* cbuild_ops: the operations without regions. */
#include "compiler/base/check.h"
#include "compiler/ir/cbuild.h"
#include <string.h>

/* ---- types ---- */

#define SAME_DTYPE(id) _Static_assert((int)TW_IR_##id == (int)DT_##id, "dtype.def and the header")
SAME_DTYPE(I1);
SAME_DTYPE(I8);
SAME_DTYPE(I16);
SAME_DTYPE(I32);
SAME_DTYPE(I64);
SAME_DTYPE(U8);
SAME_DTYPE(U16);
SAME_DTYPE(U32);
SAME_DTYPE(U64);
SAME_DTYPE(F16);
SAME_DTYPE(BF16);
SAME_DTYPE(F32);
SAME_DTYPE(F64);
_Static_assert((int)TW_IR_F64 + 1 == (int)DT_COUNT, "dtype.def and the header");

tw_ir_type tw_ir_scalar(tw_ir_dtype dtype)
{
    return (tw_ir_type){.dtype = dtype};
}

/* An extent that no tile has stays one. */
static int32_t narrow(int64_t extent)
{
    return extent < 0 || extent > INT32_MAX ? -1 : (int32_t)extent;
}

tw_ir_type tw_ir_tile(tw_ir_dtype dtype, int rank, const int64_t *shape)
{
    tw_ir_type t = {.dtype = dtype, .rank = shape && rank > 0 ? rank : -1};

    for (int i = 0; i < t.rank && i < TILE_MAX_RANK; i++)
        t.shape[i] = narrow(shape[i]);
    return t;
}

/* TYPE_NONE for what is no type: the rules of docs/IR.md then refuse it. */
static ir_type type_in(const tw_ir_type *t)
{
    if ((unsigned)t->dtype >= DT_COUNT || t->rank < 0 || t->rank > TILE_MAX_RANK)
        return (ir_type){0};
    return t->rank ? type_tile((enum dtype)t->dtype, t->rank, t->shape)
                   : type_scalar((enum dtype)t->dtype);
}

static ir_type tile_in(int rank, const int64_t *shape)
{
    tw_ir_type t = tw_ir_tile(TW_IR_I1, rank, shape);

    return type_in(&t);
}

tw_ir_type tw_ir_type_of(tw_ir *b, tw_ir_val v)
{
    tw_ir_type t = {.rank = -1};

    if (!b || !b->b.fn || v == 0 || v >= b->b.fn->values.n)
        return t;
    ir_type x = ir_type_of(b->b.fn, v);
    t.dtype = (tw_ir_dtype)x.dtype;
    t.rank = x.rank;
    for (int i = 0; x.kind == TYPE_TILE && i < x.rank; i++)
        t.shape[i] = x.shape[i];
    return t;
}

/* ---- by name ---- */

static int named_op(call *c, const char *name)
{
    const char *known[OP_COUNT];
    int code = name ? op_parse(name) : -1;
    size_t n = 0;

    if (code >= 0 && op_info((enum ir_opcode)code)->results >= 0 &&
        !op_info((enum ir_opcode)code)->regions &&
        !(op_info((enum ir_opcode)code)->traits & OPT_TERM))
        return code;
    if (code >= 0) {
        call_bad(c, DIAG_IR_OP, "'%s' has calls of its own", name);
        return -1;
    }
    for (int i = 0; i < OP_COUNT; i++)
        known[n++] = op_info((enum ir_opcode)i)->name;
    const char *near = name ? diag_nearest(name, known, n) : NULL;
    call_bad(c, DIAG_IR_OP, "there is no operation '%.60s'%s%s%s", name ? name : "",
             near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return -1;
}

static const tw_ir_attr *given_attr(const call *c, const char *name)
{
    for (size_t i = 0; i < c->nattrs; i++) {
        if (c->attrs[i].name && strcmp(c->attrs[i].name, name) == 0)
            return &c->attrs[i];
    }
    return NULL;
}

static void check_attr_names(call *c, const ir_op_info *info)
{
    for (size_t i = 0; i < c->nattrs && call_ok(c); i++) {
        const char *name = c->attrs[i].name ? c->attrs[i].name : "";
        bool known = false;
        for (int k = 0; k < OP_MAX_ATTRS && info->attr[k].kind; k++)
            known = known || strcmp(info->attr[k].name, name) == 0;
        if (!known)
            call_bad(c, DIAG_IR_OP, "'%s' has no attribute '%.60s'", info->name, name);
    }
}

static ir_attr attr_value(call *c, enum ir_attr_kind kind, const tw_ir_attr *x)
{
    switch (kind) {
    case ATTR_F64:
        return (ir_attr){.f = x->f};
    case ATTR_STR:
        return (ir_attr){.s = x->text};
    case ATTR_INTS:
        if (x->count > CBUILD_MAX_LIST || (x->count && !x->ints)) {
            call_bad(c, DIAG_IR_OP, "attribute '%s' is a list of at most %d integers", x->name,
                     CBUILD_MAX_LIST);
            return (ir_attr){0};
        }
        return (ir_attr){.ints = {(uint32_t)x->count, x->ints}};
    case ATTR_NONE:
    case ATTR_I64:
    case ATTR_DTYPE:
        break;
    }
    return (ir_attr){.i = x->i};
}

static void take_attrs(call *c, const ir_op_info *info)
{
    check_attr_names(c, info);
    for (int i = 0; i < OP_MAX_ATTRS && info->attr[i].kind && call_ok(c); i++) {
        bool is_proof = strcmp(info->attr[i].name, "inside") == 0; /* passes alone prove */
        const tw_ir_attr *x = is_proof ? NULL : given_attr(c, info->attr[i].name);
        if (x)
            c->attr[i] = attr_value(c, info->attr[i].kind, x);
        else if (!is_proof)
            call_bad(c, DIAG_IR_OP, "'%s' needs the attribute '%s'", info->name,
                     info->attr[i].name);
    }
}

static void build_named(call *c)
{
    int code = named_op(c, c->text);

    if (code < 0)
        return;
    c->name = op_info((enum ir_opcode)code)->name;
    if (c->nattrs > CBUILD_MAX_LIST || (c->nattrs && !c->attrs)) {
        call_bad(c, DIAG_IR_OP, "the attributes are NULL, or too many");
        return;
    }
    take_attrs(c, op_info((enum ir_opcode)code));
    c->res = call_emit(c, (enum ir_opcode)code, c->args, c->nargs, c->attr, c->type);
}

tw_ir_val tw_ir_op(tw_ir *b, const char *op, const tw_ir_val *args, size_t count,
                   const tw_ir_attr *attrs, size_t attr_count, const tw_ir_type *type)
{
    return call_run((call){.b = b,
                           .name = "tw_ir_op",
                           .build = build_named,
                           .text = op,
                           .args = args,
                           .nargs = count,
                           .attrs = attrs,
                           .nattrs = attr_count,
                           .type = type ? type_in(type) : (ir_type){0}});
}

/* ---- spelled out ---- */

static void build_op(call *c)
{
    c->res = call_emit(c, c->code, c->args, c->nargs, c->attr, c->type);
}

static tw_ir_val run_op(tw_ir *b, enum ir_opcode code, const tw_ir_val *args, size_t n, ir_attr x,
                        ir_type type)
{
    return call_run((call){.b = b,
                           .name = op_info(code)->name,
                           .build = build_op,
                           .code = code,
                           .args = args,
                           .nargs = n,
                           .attr = {x},
                           .type = type});
}

static void build_const(call *c)
{
    enum dtype t = call_dtype(c, (tw_ir_dtype)c->type.dtype);
    bool is_float = c->code == OP_CONST_FLOAT;

    if (t == DT_NONE)
        return;
    if (dtype_is_float(t) != is_float)
        call_bad(c, DIAG_IR_OP, "%s is no %s type", dtype_name(t), is_float ? "float" : "integer");
    else
        c->res = is_float ? ir_const_float(&c->b->b, t, c->attr[0].f)
                          : ir_const_int(&c->b->b, t, c->attr[0].i);
}

static uint8_t dtype_in(tw_ir_dtype dtype)
{
    return (unsigned)dtype < DT_COUNT ? (uint8_t)dtype : (uint8_t)DT_NONE;
}

tw_ir_val tw_ir_const_int(tw_ir *b, tw_ir_dtype dtype, int64_t v)
{
    return call_run((call){.b = b,
                           .name = "const.i",
                           .build = build_const,
                           .code = OP_CONST_INT,
                           .attr = {{.i = v}},
                           .type = {.dtype = dtype_in(dtype)}});
}

tw_ir_val tw_ir_const_float(tw_ir *b, tw_ir_dtype dtype, double v)
{
    return call_run((call){.b = b,
                           .name = "const.f",
                           .build = build_const,
                           .code = OP_CONST_FLOAT,
                           .attr = {{.f = v}},
                           .type = {.dtype = dtype_in(dtype)}});
}

tw_ir_val tw_ir_program_id(tw_ir *b, int axis)
{
    return run_op(b, OP_PROGRAM_ID, NULL, 0, (ir_attr){.i = axis}, (ir_type){0});
}

tw_ir_val tw_ir_num_programs(tw_ir *b, int axis)
{
    return run_op(b, OP_NUM_PROGRAMS, NULL, 0, (ir_attr){.i = axis}, (ir_type){0});
}

tw_ir_val tw_ir_arange(tw_ir *b, int64_t start, int64_t n)
{
    ir_type t = tile_in(1, &n);

    t.dtype = DT_I32;
    return run_op(b, OP_ARANGE, NULL, 0, (ir_attr){.i = start}, t);
}

static tw_ir_val run_named(tw_ir *b, const char *op, const tw_ir_val *args, size_t n,
                           const tw_ir_attr *attrs, size_t nattrs)
{
    return tw_ir_op(b, op, args, n, attrs, nattrs, NULL);
}

tw_ir_val tw_ir_unary(tw_ir *b, const char *op, tw_ir_val x)
{
    return run_named(b, op, &x, 1, NULL, 0);
}

tw_ir_val tw_ir_binary(tw_ir *b, const char *op, tw_ir_val x, tw_ir_val y)
{
    return run_named(b, op, (tw_ir_val[]){x, y}, 2, NULL, 0);
}

tw_ir_val tw_ir_reduce(tw_ir *b, const char *op, tw_ir_val x, int axis)
{
    return run_named(b, op, &x, 1, &(tw_ir_attr){.name = "axis", .i = axis}, 1);
}

tw_ir_val tw_ir_where(tw_ir *b, tw_ir_val c, tw_ir_val x, tw_ir_val y)
{
    return run_op(b, OP_WHERE, (tw_ir_val[]){c, x, y}, 3, (ir_attr){0}, (ir_type){0});
}

tw_ir_val tw_ir_fma(tw_ir *b, tw_ir_val x, tw_ir_val y, tw_ir_val z)
{
    return run_op(b, OP_FMA, (tw_ir_val[]){x, y, z}, 3, (ir_attr){0}, (ir_type){0});
}

tw_ir_val tw_ir_dot(tw_ir *b, tw_ir_val x, tw_ir_val y, tw_ir_val acc)
{
    return run_op(b, OP_DOT, (tw_ir_val[]){x, y, acc}, 3, (ir_attr){0}, (ir_type){0});
}

static void build_cast(call *c)
{
    enum dtype t = call_dtype(c, (tw_ir_dtype)c->type.dtype);

    if (t != DT_NONE && call_see(c, c->args, c->nargs))
        c->res = call_emit(c, c->code, c->args, c->nargs, NULL,
                           type_with_dtype(ir_type_of(c->b->b.fn, c->args[0]), t));
}

static tw_ir_val run_cast(tw_ir *b, enum ir_opcode code, tw_ir_val x, tw_ir_dtype dtype)
{
    return call_run((call){.b = b,
                           .name = op_info(code)->name,
                           .build = build_cast,
                           .code = code,
                           .args = &x,
                           .nargs = 1,
                           .type = {.dtype = dtype_in(dtype)}});
}

tw_ir_val tw_ir_cast(tw_ir *b, tw_ir_val x, tw_ir_dtype dtype)
{
    return run_cast(b, OP_CAST, x, dtype);
}

tw_ir_val tw_ir_bitcast(tw_ir *b, tw_ir_val x, tw_ir_dtype dtype)
{
    return run_cast(b, OP_BITCAST, x, dtype);
}

tw_ir_val tw_ir_splat(tw_ir *b, tw_ir_val scalar, int rank, const int64_t *shape)
{
    return run_op(b, OP_SPLAT, &scalar, 1, (ir_attr){0}, tile_in(rank, shape));
}

tw_ir_val tw_ir_broadcast(tw_ir *b, tw_ir_val x, int rank, const int64_t *shape)
{
    return run_op(b, OP_BROADCAST, &x, 1, (ir_attr){0}, tile_in(rank, shape));
}

tw_ir_val tw_ir_reshape(tw_ir *b, tw_ir_val x, int rank, const int64_t *shape)
{
    return run_op(b, OP_RESHAPE, &x, 1, (ir_attr){0}, tile_in(rank, shape));
}

tw_ir_val tw_ir_expand_dims(tw_ir *b, tw_ir_val x, int axis)
{
    return run_op(b, OP_EXPAND, &x, 1, (ir_attr){.i = axis}, (ir_type){0});
}

tw_ir_val tw_ir_trans(tw_ir *b, tw_ir_val x, int rank, const int64_t *perm)
{
    ir_attr attr = {.ints = {perm && rank > 0 && rank <= TILE_MAX_RANK ? (uint32_t)rank : 0, perm}};

    return run_op(b, OP_TRANS, &x, 1, attr, (ir_type){0});
}

static void build_like(call *c)
{
    if (!call_see(c, c->args, c->nargs))
        return;
    ir_type x = ir_type_of(c->b->b.fn, c->args[0]), y = ir_type_of(c->b->b.fn, c->args[1]);
    if (type_same_shape(x, y))
        c->res = c->args[0];
    else
        c->res = call_emit(c, x.kind == TYPE_SCALAR ? OP_SPLAT : OP_BROADCAST, c->args, 1, NULL, y);
}

tw_ir_val tw_ir_like(tw_ir *b, tw_ir_val x, tw_ir_val y)
{
    return call_run((call){.b = b,
                           .name = "tw_ir_like",
                           .build = build_like,
                           .args = (tw_ir_val[]){x, y},
                           .nargs = 2});
}

/* ---- memory and effects ---- */

typedef struct access {
    tw_ir_val args[VIEW_MAX_RANK + 2];
    size_t nargs;
    tw_ir_attr extent;
} access;

/* view, indices and, when it is not NULL, the value to store. Without a view no index is read. */
static void fill_access(access *x, tw_ir *b, tw_ir_val view, const tw_ir_val *index,
                        const int64_t *extent, const tw_ir_val *v)
{
    bool is_view = b && b->b.fn && view > 0 && view < b->b.fn->values.n &&
                   ir_type_of(b->b.fn, view).kind == TYPE_VIEW;
    size_t rank = is_view && index && extent ? ir_type_of(b->b.fn, view).rank : 0;

    *x = (access){.args = {view}, .nargs = 1};
    for (size_t i = 0; i < rank; i++)
        x->args[x->nargs++] = index[i];
    if (v)
        x->args[x->nargs++] = *v;
    x->extent = (tw_ir_attr){.name = "extent", .ints = extent, .count = rank};
}

tw_ir_val tw_ir_load(tw_ir *b, tw_ir_val view, const tw_ir_val *index, const int64_t *extent)
{
    access x;

    fill_access(&x, b, view, index, extent, NULL);
    return run_named(b, "load", x.args, x.nargs, &x.extent, 1);
}

void tw_ir_store(tw_ir *b, tw_ir_val view, const tw_ir_val *index, const int64_t *extent,
                 tw_ir_val v)
{
    access x;

    fill_access(&x, b, view, index, extent, &v);
    run_named(b, "store", x.args, x.nargs, &x.extent, 1);
}

void tw_ir_assert(tw_ir *b, tw_ir_val cond, const char *text)
{
    run_op(b, OP_ASSERT, &cond, 1, (ir_attr){.s = text}, (ir_type){0});
}
