/* Result types: what each op accepts and gives. The table of docs/IR.md as code; the builder and
 * the verifier both ask here. */
#include "compiler/base/check.h"
#include "compiler/ir/ireval.h"
#include "compiler/ir/irtyping.h"
#include "compiler/ir/layout.h"
#include <math.h>

static bool is_value(ir_type t)
{
    return t.kind == TYPE_SCALAR || t.kind == TYPE_TILE;
}

bool typing_tile_in_limits(ir_type t)
{
    int64_t n = 1;

    if (t.kind != TYPE_TILE || t.rank < 1 || t.rank > TILE_MAX_RANK)
        return false;
    for (int i = 0; i < t.rank; i++) {
        if (t.shape[i] < 1 || t.shape[i] > TILE_MAX_ELEMENTS)
            return false;
        n *= t.shape[i];
        if (n > TILE_MAX_ELEMENTS)
            return false;
    }
    return true;
}

/* All 64-bit integers fit u64: it is held as the same bits. */
static bool int_fits(enum dtype d, int64_t v)
{
    int bits = dtype_bits(d);

    if (bits == 64)
        return true;
    if (dtype_kind(d) == DTK_SINT)
        return v >= -((int64_t)1 << (bits - 1)) && v < (int64_t)1 << (bits - 1);
    return v >= 0 && v < (int64_t)1 << bits;
}

/* ---- leaves ---- */

static bool const_int(const typing *t)
{
    if (t->want.kind != TYPE_SCALAR || dtype_is_float(t->want.dtype))
        return refuse(t, "an integer constant is a scalar of an integer type or i1");
    if (!int_fits(t->want.dtype, t->attrs[0].i))
        return refuse(t, "the value does not fit the type");
    return give(t, type_scalar(t->want.dtype));
}

static bool const_float(const typing *t)
{
    double x = t->attrs[0].f;

    if (t->want.kind != TYPE_SCALAR || !dtype_is_float(t->want.dtype))
        return refuse(t, "a float constant is a scalar of a float type");
    if (!isnan(x) && eval_round(t->want.dtype, (ir_scalar){.f = x}).f != x)
        return refuse(t, "the value is one that the type holds");
    return give(t, type_scalar(t->want.dtype));
}

static bool grid_axis(const typing *t)
{
    if (t->attrs[0].i < 0 || t->attrs[0].i > 2)
        return refuse(t, "the grid has axes 0, 1 and 2");
    return give(t, type_scalar(DT_I32));
}

static bool arange(const typing *t)
{
    int64_t start = t->attrs[0].i;

    if (!typing_tile_in_limits(t->want) || t->want.rank != 1 || t->want.dtype != DT_I32)
        return refuse(t, "arange gives i32[n]");
    if (start < INT32_MIN || start > (int64_t)INT32_MAX + 1 - t->want.shape[0])
        return refuse(t, "the values of arange fit i32");
    return give(t, t->want);
}

/* ---- shape ---- */

static bool splat(const typing *t)
{
    ir_type x = arg_type(t, 0);

    if (x.kind != TYPE_SCALAR)
        return refuse(t, "splat takes a scalar");
    if (!typing_tile_in_limits(t->want))
        return refuse(t, "splat gives a tile within the limits");
    return give(t, type_with_dtype(t->want, x.dtype));
}

static bool expand(const typing *t)
{
    ir_type x = arg_type(t, 0), y = x;
    int64_t axis = t->attrs[0].i;

    if (x.kind != TYPE_TILE || x.rank == TILE_MAX_RANK)
        return refuse(t, "expand_dims takes a tile of rank 1 to 3");
    if (axis < 0 || axis > x.rank)
        return refuse(t, "the axis lies between 0 and the rank");
    for (int i = x.rank; i > axis; i--)
        y.shape[i] = x.shape[i - 1];
    y.shape[axis] = 1;
    y.rank++;
    return give(t, y);
}

static bool broadcast(const typing *t)
{
    ir_type x = arg_type(t, 0);

    if (x.kind != TYPE_TILE || !typing_tile_in_limits(t->want) || x.rank != t->want.rank)
        return refuse(t, "broadcast takes a tile and gives a tile of the same rank");
    for (int i = 0; i < x.rank; i++) {
        if (x.shape[i] != 1 && x.shape[i] != t->want.shape[i])
            return refuse(t, "broadcast widens only extents of 1");
    }
    return give(t, type_with_dtype(t->want, x.dtype));
}

bool typing_is_permutation(const ir_attr *perm, int rank)
{
    unsigned seen = 0;

    for (int i = 0; i < rank; i++) {
        int64_t from = perm->ints.at[i];
        if (from < 0 || from >= rank || (seen & 1u << from))
            return false;
        seen |= 1u << from;
    }
    return true;
}

static bool trans(const typing *t)
{
    ir_type x = arg_type(t, 0), y = x;

    if (x.kind != TYPE_TILE || t->attrs[0].ints.n != x.rank)
        return refuse(t, "trans takes a tile and one entry of perm for each dimension");
    if (!typing_is_permutation(&t->attrs[0], x.rank))
        return refuse(t, "perm is a permutation of the dimensions");
    for (int i = 0; i < x.rank; i++)
        y.shape[i] = x.shape[t->attrs[0].ints.at[i]];
    return give(t, y);
}

static bool reshape(const typing *t)
{
    ir_type x = arg_type(t, 0);

    if (x.kind != TYPE_TILE || !typing_tile_in_limits(t->want))
        return refuse(t, "reshape takes a tile and gives a tile within the limits");
    if (type_elements(x) != type_elements(t->want))
        return refuse(t, "reshape keeps the number of elements");
    return give(t, type_with_dtype(t->want, x.dtype));
}

static bool cast(const typing *t)
{
    ir_type x = arg_type(t, 0);

    if (!is_value(x) || !type_same_shape(x, t->want))
        return refuse(t, "cast takes a scalar or a tile and keeps its shape");
    return give(t, type_with_dtype(x, t->want.dtype));
}

static bool bitcast(const typing *t)
{
    ir_type x = arg_type(t, 0);

    if (!is_value(x) || !type_same_shape(x, t->want))
        return refuse(t, "bitcast takes a scalar or a tile and keeps its shape");
    if (dtype_bits(x.dtype) != dtype_bits(t->want.dtype))
        return refuse(t, "bitcast keeps the number of bits");
    return give(t, type_with_dtype(x, t->want.dtype));
}

/* ---- elementwise ---- */

enum wanted { WANT_ANY, WANT_NUMBER, WANT_FLOAT, WANT_INT, WANT_BITS };

static const char *wanted_text(enum wanted w)
{
    static const char *const text[] = {
        "operands are scalars or tiles", "operands are of an integer or a float type",
        "operands are of a float type", "operands are of an integer type",
        "operands are of an integer type or i1"};

    return text[w];
}

static bool dtype_meets(enum dtype d, enum wanted w)
{
    switch (w) {
    case WANT_ANY:
        return true;
    case WANT_NUMBER:
        return d != DT_I1;
    case WANT_FLOAT:
        return dtype_is_float(d);
    case WANT_INT:
        return dtype_is_int(d);
    case WANT_BITS:
        return !dtype_is_float(d);
    }
    return false;
}

/* All operands have one type, which meets w. */
static bool alike(const typing *t, int first, enum wanted w)
{
    ir_type x = arg_type(t, first);

    if (!is_value(x))
        return refuse(t, wanted_text(WANT_ANY));
    for (int i = first + 1; i < t->nargs; i++) {
        if (!type_equal(x, arg_type(t, i)))
            return refuse(t, "operands have one type");
    }
    return dtype_meets(x.dtype, w) || refuse(t, wanted_text(w));
}

static bool ewise(const typing *t, enum wanted w)
{
    return alike(t, 0, w) && give(t, arg_type(t, 0));
}

static bool compare(const typing *t, enum wanted w)
{
    return alike(t, 0, w) && give(t, type_with_dtype(arg_type(t, 0), DT_I1));
}

static bool where(const typing *t)
{
    ir_type c = arg_type(t, 0);

    if (!alike(t, 1, WANT_ANY))
        return false;
    if (c.dtype != DT_I1 || !type_same_shape(c, arg_type(t, 1)))
        return refuse(t, "the condition is i1 and has the shape of the other operands");
    return give(t, arg_type(t, 1));
}

/* ---- whole tiles ---- */

bool typing_dot(const typing *t, ir_type x, ir_type y, ir_type acc)
{
    if (x.kind != TYPE_TILE || y.kind != TYPE_TILE || acc.kind != TYPE_TILE || x.rank != 2 ||
        y.rank != 2 || acc.rank != 2)
        return refuse(t, "dot takes three tiles of rank 2");
    if (x.dtype != y.dtype || x.dtype == DT_I1)
        return refuse(t, "the factors of dot have one integer or float type");
    if (x.shape[1] != y.shape[0])
        return refuse(t, "the inner extents of dot agree");
    if (acc.shape[0] != x.shape[0] || acc.shape[1] != y.shape[1])
        return refuse(t, "the accumulator has the rows of the first and the columns of the second");
    if (acc.dtype != dtype_accumulator(x.dtype))
        return refuse(t, "the accumulator is f32, f64 for f64, i32 for integers");
    return give(t, acc);
}

static ir_type without_axis(ir_type t, int64_t axis)
{
    for (int i = (int)axis; i + 1 < t.rank; i++)
        t.shape[i] = t.shape[i + 1];
    t.shape[--t.rank] = 0;
    return t.rank ? t : type_scalar(t.dtype);
}

/* With a function of two elements. */
static bool fold(const typing *t, bool is_scan)
{
    ir_type x = arg_type(t, 0);
    int64_t axis = t->attrs[0].i;

    if (x.kind != TYPE_TILE)
        return refuse(t, "reductions and scans take a tile");
    if (axis < 0 || axis >= x.rank)
        return refuse(t, "the axis is one of the tile's");
    return give(t, is_scan ? x : without_axis(x, axis));
}

static bool reduce(const typing *t, bool is_sum)
{
    ir_type x = arg_type(t, 0);
    int64_t axis = t->attrs[0].i;

    if (x.kind != TYPE_TILE || (x.dtype == DT_I1 && !is_sum))
        return refuse(t, "a reduction takes a tile of numbers (a sum also of i1)");
    if (axis < 0 || axis >= x.rank)
        return refuse(t, "the axis is one of the tile's");
    if (is_sum)
        x.dtype = (uint8_t)dtype_sum((enum dtype)x.dtype);
    return give(t, without_axis(x, axis));
}

static bool estimate(const typing *t)
{
    ir_type x = arg_type(t, 0);

    if (x.kind != TYPE_TILE || x.dtype != DT_I1)
        return refuse(t, "a tile of i1 is needed");
    return give(t, type_scalar(DT_I1));
}

static bool scan(const typing *t, bool is_sum)
{
    ir_type x = arg_type(t, 0);
    int64_t axis = t->attrs[0].i;

    if (x.kind != TYPE_TILE || (x.dtype == DT_I1 && !is_sum))
        return refuse(t, "a scan takes a tile of numbers (a sum also of i1)");
    if (axis < 0 || axis >= x.rank)
        return refuse(t, "the axis is one of the tile's");
    return give(t, type_with_dtype(x, dtype_sum((enum dtype)x.dtype)));
}

/* ---- memory ---- */

static bool is_index(ir_type t, int64_t extent)
{
    return is_scalar(t, DT_I32) ||
           (t.kind == TYPE_TILE && t.dtype == DT_I32 && t.rank == 1 && t.shape[0] == extent);
}

bool typing_slice(const typing *t, int nindex, ir_type *out)
{
    ir_type view = arg_type(t, 0);
    ir_type res = {.kind = TYPE_TILE, .dtype = view.dtype};

    if (view.kind != TYPE_VIEW)
        return refuse(t, "the first operand is a view");
    if (nindex != view.rank || t->attrs[0].ints.n != view.rank)
        return refuse(t, "there is one index and one extent for each dimension of the view");
    for (int i = 0; i < view.rank; i++) {
        int64_t extent = t->attrs[0].ints.at[i];
        if (!is_index(arg_type(t, 1 + i), extent))
            return refuse(t,
                          "indices are i32 scalars, or i32 tiles of one dimension and its extent");
        if (extent < 0 || extent > TILE_MAX_ELEMENTS || (extent && res.rank == TILE_MAX_RANK))
            return refuse(t, "extents are 0 or a tile's, at most 4 of them above 0");
        if (extent)
            res.shape[res.rank++] = (int32_t)extent;
    }
    if (t->attrs[1].i < 0 || t->attrs[1].i >> view.rank)
        return refuse(t, "inside has one bit for each dimension of the view");
    *out = res.rank ? res : type_scalar(view.dtype);
    return !res.rank || typing_tile_in_limits(res) ||
           refuse(t, "the slice is too large for a tile");
}

static bool load(const typing *t)
{
    ir_type res;

    return typing_slice(t, t->nargs - 1, &res) && give(t, res);
}

static bool store(const typing *t)
{
    ir_type written, value = arg_type(t, t->nargs - 1);

    if (!typing_slice(t, t->nargs - 2, &written))
        return false;
    if (!type_same_shape(written, value) || written.dtype != value.dtype)
        return refuse(t, "the value has the type of the slice");
    return give(t, (ir_type){0});
}

static bool atomic(const typing *t, int values)
{
    ir_type res;

    if (!typing_slice(t, t->nargs - 1 - values, &res))
        return false;
    res.layout = arg_type(t, t->nargs - 1).layout;
    for (int i = t->nargs - values; i < t->nargs; i++) {
        if (!type_equal(res, arg_type(t, i)))
            return refuse(t, "the value has the type of the slice");
    }
    if (dtype_bits((enum dtype)res.dtype) < 32)
        return refuse(t, "atomic operations are on elements of 32 and 64 bits");
    return give(t, res);
}

/* ---- control ---- */

static bool carried(const typing *t, int first)
{
    for (int i = first; i < t->nargs; i++) {
        if (!is_value(arg_type(t, i)))
            return refuse(t, "carried values are scalars or tiles");
    }
    return give(t, (ir_type){0});
}

static bool loop_bounds(const typing *t)
{
    for (int i = 0; i < 3; i++) {
        if (!is_scalar(arg_type(t, i), DT_I32))
            return refuse(t, "the bounds and the step of a loop are i32 scalars");
    }
    return carried(t, 3);
}

static bool on_condition(const typing *t)
{
    if (!is_scalar(arg_type(t, 0), DT_I1))
        return refuse(t, "the condition is an i1 scalar");
    return carried(t, 1);
}

static bool assertion(const typing *t)
{
    for (int i = 1; i < t->nargs; i++) {
        if (!is_scalar(arg_type(t, i), DT_I32))
            return refuse(t, "what the text of an assert shows are i32 scalars");
    }
    return on_condition(t);
}

static bool result_of(const typing *t, enum ir_opcode code)
{
    switch (code) {
    case OP_CONST_INT:
        return const_int(t);
    case OP_CONST_FLOAT:
        return const_float(t);
    case OP_PROGRAM_ID:
    case OP_NUM_PROGRAMS:
        return grid_axis(t);
    case OP_ARANGE:
        return arange(t);
    case OP_SPLAT:
        return splat(t);
    case OP_EXPAND:
        return expand(t);
    case OP_BROADCAST:
        return broadcast(t);
    case OP_TRANS:
        return trans(t);
    case OP_RESHAPE:
        return reshape(t);
    case OP_CAST:
        return cast(t);
    case OP_BITCAST:
        return bitcast(t);
    case OP_NEG:
    case OP_ABS:
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_DIV:
    case OP_REM:
    case OP_MAX:
    case OP_MIN:
        return ewise(t, WANT_NUMBER);
    case OP_EXP:
    case OP_EXP2:
    case OP_LOG:
    case OP_LOG2:
    case OP_SIN:
    case OP_COS:
    case OP_TANH:
    case OP_ERF:
    case OP_SQRT:
    case OP_RSQRT:
    case OP_FLOOR:
    case OP_CEIL:
    case OP_RUNNING_MAX:
    case OP_FMA:
        return ewise(t, WANT_FLOAT);
    case OP_SHL:
    case OP_SHR:
        return ewise(t, WANT_INT);
    case OP_NOT:
    case OP_AND:
    case OP_OR:
    case OP_XOR:
        return ewise(t, WANT_BITS);
    case OP_CMP_EQ:
    case OP_CMP_NE:
        return compare(t, WANT_ANY);
    case OP_CMP_LT:
    case OP_CMP_LE:
        return compare(t, WANT_NUMBER);
    case OP_WHERE:
        return where(t);
    case OP_DOT:
        return typing_dot(t, arg_type(t, 0), arg_type(t, 1), arg_type(t, 2));
    case OP_REDUCE_MAX:
    case OP_REDUCE_MIN:
        return reduce(t, false);
    case OP_REDUCE_SUM:
        return reduce(t, true);
    case OP_SOME:
    case OP_EVERY:
        return estimate(t);
    case OP_SCAN_SUM:
        return scan(t, true);
    case OP_SCAN_PROD:
        return scan(t, false);
    case OP_REDUCE:
        return fold(t, false);
    case OP_SCAN:
        return fold(t, true);
    case OP_LOAD:
        return load(t);
    case OP_STORE:
        return store(t);
    case OP_ATOMIC_ADD:
    case OP_ATOMIC_MAX:
    case OP_ATOMIC_MIN:
    case OP_ATOMIC_XCHG:
        return atomic(t, 1);
    case OP_ATOMIC_CAS:
        return atomic(t, 2);
    case OP_FOR:
        return loop_bounds(t);
    case OP_IF:
    case OP_CONDITION:
        return on_condition(t);
    case OP_ASSERT:
        return assertion(t);
    case OP_WHILE:
    case OP_YIELD:
    case OP_RETURN:
    case OP_PRINT:
        return carried(t, 0);
    case OP_CONVERT:
    case OP_ALLOC:
    case OP_BUFFER_SLOT:
    case OP_BUFFER_TRANS:
    case OP_BUFFER_VIEW:
    case OP_BUFFER_LOAD:
    case OP_BUFFER_STORE:
    case OP_COPY_ASYNC:
    case OP_COPY_COMMIT:
    case OP_COPY_WAIT:
    case OP_BARRIER:
    case OP_BARRIER_WARP:
    case OP_MMA:
    case OP_MMA_SUM:
    case OP_PARTIAL_SUM:
    case OP_VOTE_ANY:
    case OP_MBAR_ALLOC:
    case OP_MBAR_ARRIVE:
    case OP_MBAR_EXPECT:
    case OP_MBAR_WAIT:
    case OP_COPY_BULK:
    case OP_FENCE_ASYNC:
    case OP_WGMMA:
    case OP_WGMMA_COMMIT:
    case OP_WGMMA_WAIT:
    case OP_ROLE:
        return typing_scheduled(t, code);
    case OP_COUNT:
        break;
    }
    return refuse(t, "an opcode is one of ops.def");
}

/* Views are tensor parameters and nothing else, so each has a direction. What level 2 writes is a
 * slot, never the view that it copies from. */
static bool direction_allows(const typing *t, unsigned traits)
{
    const ir_value *view = t->nargs ? ir_value_of(t->fn, t->args[0]) : NULL;

    if (!(traits & (OPT_READ | OPT_WRITE)) || !view || view->type.kind != TYPE_VIEW)
        return true;
    if (!t->fn->body || view->block != t->fn->body || view->index >= t->fn->params.n)
        return refuse(t, "a view is a tensor parameter");
    enum ir_direction is = t->fn->params.at[view->index].direction;
    if ((traits & OPT_READ) && is == DIR_OUT)
        return refuse(t, "an 'out' tensor is not read");
    if ((traits & OPT_WRITE) && !(traits & OPT_SCHED) && is == DIR_IN)
        return refuse(t, "an 'in' tensor is not written");
    return true;
}

bool op_result_type(const ir_fn *fn, enum ir_opcode code, const ir_val *args, int nargs,
                    const ir_attr *attrs, ir_type *type, const char **why)
{
    const ir_op_info *info = op_info(code);
    typing t = {fn, args, nargs, attrs, *type, type, why};

    if (nargs < info->min_args || (info->max_args >= 0 && nargs > info->max_args))
        return refuse(&t, "the op does not take this number of operands");
    for (int i = 0; i < OP_MAX_ATTRS; i++) {
        if (info->attr[i].kind == ATTR_STR && !attrs[i].s)
            return refuse(&t, "the text attribute is missing");
    }
    if (!direction_allows(&t, info->traits))
        return false;
    if (fn->module->level == 2)
        return (code == OP_DOT || result_of(&t, code)) && typing_layouts(&t, code);
    if (info->traits & OPT_SCHED)
        return refuse(&t, "the op is one of level 2");
    return result_of(&t, code);
}

const char *ir_type_text(arena *a, const ir_fn *fn, ir_type t)
{
    const char *text = type_text(a, t);

    return t.layout && t.layout < fn->layouts.n
               ? arena_printf(a, "%s #%s", text, fn->layouts.at[t.layout]->name)
               : text;
}

const char *op_operand_types(arena *a, const ir_fn *fn, const ir_val *args, int nargs)
{
    const int shown = 8; /* more would hide the reason */
    strbuf text;

    sb_init(&text, a);
    for (int i = 0; i < nargs && i < shown; i++) {
        sb_str(&text, i ? ", " : "; operands: ");
        sb_str(&text, ir_type_text(a, fn, ir_type_of(fn, args[i])));
    }
    if (nargs > shown)
        sb_str(&text, ", ...");
    return text.s;
}
