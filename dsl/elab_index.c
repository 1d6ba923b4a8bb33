/* elab_index: what stands in brackets: slices of tensors, None and : of tiles, shapes of types.
 *
 * Tiles of indices with more than one dimension run along one of them each. What they pick is read
 * in the order of the tensor's dimensions and then turned and widened to the dimensions that they
 * run along:
 *
 *   x[col[None, :], row[:, None]]     trans (load %x, %col, %row extent=[N, M])
 *   y[col[None, :]]                   expand_dims (load %y, %col extent=[N]) axis=0
 *
 * A tile of indices that has several dimensions itself picks an element for each of its own:
 *
 *   y[row + col]                      reshape (load %y, (reshape %sum) extent=[M * N])
 */
#include "dsl/elaborate.h"

/* ---- slices of tensors ---- */

static const char *axis_text(elab *cx, const decl *tensor, uint32_t i)
{
    return arena_printf(cx->a, "index %u of '%s'", i, tensor->name);
}

static bool place_span(elab *cx, place *p, const expr *e, uint32_t i)
{
    value from = elab_expr(cx, e->a), n = elab_expr(cx, e->b);
    int64_t extent = 0;
    bool good = elab_need_int(cx, &n, e->b, "the length of a slice", 1, TILE_MAX_ELEMENTS, &extent);

    if (from.kind == VAL_RUN && val_run_type(cx, &from).kind == TYPE_TILE) {
        diag *d = elab_error(cx, DIAG_TYPE_MISMATCH, e->a->where,
                             "%s begins at an i32 scalar, not %s", axis_text(cx, p->tensor, i),
                             val_text(cx, &from));
        diag_hint(cx->diags, d, "a tile of indices stands alone: %s[..., %s, ...]", p->tensor->name,
                  ast_source_text(e->a, cx->diags->a, 40));
        return false;
    }
    p->index[i] = elab_need_index(cx, &from, e->a, axis_text(cx, p->tensor, i));
    p->extent[i] = (int32_t)extent;
    return good && p->index[i];
}

/* `:` takes the whole dimension, which must be known at compile time. */
static bool place_all(elab *cx, place *p, const expr *e, uint32_t i)
{
    const expr *dim = p->tensor->type->list.at[i];
    value n = elab_expr(cx, dim);
    int64_t extent = 0;

    if (n.kind == VAL_RUN) {
        const char *text = ast_source_text(dim, cx->diags->a, 40);
        diag *d = elab_error(cx, DIAG_NOT_CONSTANT, e->where,
                             "':' needs a dimension known at compile time; '%s' is not", text);
        diag_hint(cx->diags, d, "write start :+ length, or make it a parameter: [%s: int]", text);
        return false;
    }
    if (!elab_need_int(cx, &n, dim, "the whole dimension", 1, TILE_MAX_ELEMENTS, &extent))
        return false;
    p->index[i] = ir_const_int(&cx->b, DT_I32, 0);
    p->extent[i] = (int32_t)extent;
    return true;
}

/* The one dimension along which v varies; -1 when all extents are 1, -2 when there are several. */
static int axis_of_line(ir_type t)
{
    int axis = -1;

    for (int d = 0; d < t.rank; d++) {
        if (t.shape[d] == 1)
            continue;
        if (axis >= 0)
            return -2;
        axis = d;
    }
    return axis;
}

/* v without its extents of 1: i32[n]. */
static ir_val line_of(elab *cx, ir_val v, int32_t n)
{
    ir_type t = {.kind = TYPE_TILE, .dtype = DT_I32, .rank = 1, .shape = {n}};
    const ir_op *def = ir_def(cx->b.fn, v);

    while (def && def->code == OP_EXPAND && ir_type_of(cx->b.fn, v).rank > 1) {
        v = def->args[0];
        def = ir_def(cx->b.fn, v);
    }
    return ir_type_of(cx->b.fn, v).rank == 1 ? v
                                             : ir_build(&cx->b, OP_RESHAPE, &v, 1, NULL, t)->res;
}

static ir_val reshaped(elab *cx, ir_val v, ir_type t)
{
    return ir_build(&cx->b, OP_RESHAPE, &v, 1, NULL, t)->res;
}

static bool place_block(elab *cx, place *p, uint32_t i, ir_val v)
{
    ir_type line = {.kind = TYPE_TILE, .dtype = DT_I32, .rank = 1};

    p->block = ir_type_of(cx->b.fn, v);
    line.shape[0] = p->extent[i] = (int32_t)type_elements(p->block);
    p->index[i] = reshaped(cx, v, line);
    return true;
}

static bool place_indices(elab *cx, place *p, const expr *e, uint32_t i, ir_val v)
{
    ir_type t = ir_type_of(cx->b.fn, v);
    int axis = axis_of_line(t);

    if (t.dtype != DT_I32) {
        diag *d =
            elab_error(cx, DIAG_TYPE_MISMATCH, e->where, "%s is an i32 scalar or tile, not %s",
                       axis_text(cx, p->tensor, i), elab_type_text(cx, t));
        if (dtype_is_int((enum dtype)t.dtype))
            diag_hint(cx->diags, d, "write cast(%s, i32)", ast_source_text(e, cx->diags->a, 40));
        return false;
    }
    if (t.rank > 1 && axis == -2)
        return place_block(cx, p, i, v);
    p->extent[i] = axis < 0 ? 1 : t.shape[axis];
    p->index[i] = line_of(cx, v, p->extent[i]);
    if (t.rank == 1)
        return true;
    p->axis[i] = axis;
    if (p->lines && p->lines != t.rank) {
        elab_error(cx, DIAG_SHAPE_MISMATCH, e->where,
                   "%s has %d dimensions, but another index has %d", axis_text(cx, p->tensor, i),
                   t.rank, p->lines);
        return false;
    }
    p->lines = t.rank;
    return true;
}

/* The type of a slice whose indices are lines: extents where one runs, else 1. */
static bool place_lines(elab *cx, place *p, const expr *e)
{
    ir_type t = {.kind = TYPE_TILE, .dtype = p->type.dtype, .rank = (uint8_t)p->lines};
    unsigned seen = 0;

    for (int d = 0; d < t.rank; d++)
        t.shape[d] = 1;
    for (uint32_t i = 0; i < e->list.n; i++) {
        bool is_line = p->extent[i] && p->axis[i] != NO_LINE;
        if (p->extent[i] && !is_line) {
            diag *d = elab_error(cx, DIAG_BAD_OPERAND, e->list.at[i]->where,
                                 "index %u and the tiles of %d dimensions do not go together", i,
                                 p->lines);
            diag_hint(cx->diags, d, "take all of them as i32[n], or all with None");
            return false;
        }
        if (!is_line || p->axis[i] < 0)
            continue;
        if (seen & 1u << p->axis[i]) {
            elab_error(cx, DIAG_SHAPE_MISMATCH, e->list.at[i]->where,
                       "two indices run along dimension %d", p->axis[i]);
            return false;
        }
        seen |= 1u << p->axis[i];
        t.shape[p->axis[i]] = p->extent[i];
    }
    p->stored = p->type;
    p->type = t;
    return true;
}

/* The type of a slice of which one index picks a block; nothing else gives dimensions to that. */
static bool place_whole_block(elab *cx, place *p, const expr *e)
{
    if (p->type.rank > 1) {
        diag *d = elab_error(cx, DIAG_BAD_OPERAND, e->where,
                             "an index of '%s' is %s, so all others are scalars",
                             p->tensor->name, elab_type_text(cx, p->block));
        diag_hint(cx->diags, d, "tiles that run along different dimensions go together: "
                                "x[row[:, None], col[None, :]]");
        return false;
    }
    p->stored = p->type;
    p->type = p->block;
    p->type.dtype = p->stored.dtype;
    return true;
}

static bool place_item(elab *cx, place *p, const expr *e, uint32_t i)
{
    if (e->kind == EXPR_SPAN)
        return place_span(cx, p, e, i);
    if (e->kind == EXPR_ALL)
        return place_all(cx, p, e, i);
    if (e->kind == EXPR_NONE) {
        diag *d = elab_error(cx, DIAG_BAD_OPERAND, e->where,
                             "None adds a dimension to a tile, not "
                             "to a tensor");
        diag_hint(cx->diags, d, "load first: load(x[...])[:, None]");
        return false;
    }
    value v = elab_expr(cx, e);
    if (v.kind == VAL_RUN && val_run_type(cx, &v).kind == TYPE_TILE)
        return place_indices(cx, p, e, i, v.as.run);
    p->index[i] = elab_need_index(cx, &v, e, axis_text(cx, p->tensor, i));
    return p->index[i] != 0;
}

static value index_view(elab *cx, const expr *e, const decl *tensor)
{
    place *p = ARENA_NEW(cx->a, place);
    uint32_t rank = tensor->type->list.n;
    bool good = true;

    for (uint32_t i = 0; i < VIEW_MAX_RANK; i++)
        p->axis[i] = NO_LINE;
    p->tensor = tensor;
    p->view = ir_param_value(cx->b.fn, tensor->id);
    p->type = (ir_type){.kind = TYPE_TILE, .dtype = ir_type_of(cx->b.fn, p->view).dtype};
    if (e->list.n != rank) {
        diag *d = elab_error(cx, DIAG_SHAPE_MISMATCH, e->where, "'%s' has %u dimensions, not %u",
                             tensor->name, rank, e->list.n);
        diag_note(cx->diags, d, tensor->type->where, "its shape");
        return val_bad();
    }
    for (uint32_t i = 0; i < rank; i++) {
        good = place_item(cx, p, e->list.at[i], i) && good;
        if (!p->extent[i])
            continue;
        if (p->type.rank == TILE_MAX_RANK) {
            elab_error(cx, DIAG_BAD_VALUE, e->where, "a tile has at most %d dimensions",
                       TILE_MAX_RANK);
            return val_bad();
        }
        p->type.shape[p->type.rank++] = p->extent[i];
    }
    if (!p->type.rank)
        p->type = type_scalar((enum dtype)p->type.dtype);
    if (p->block.rank)
        good = good && place_whole_block(cx, p, e);
    else if (p->lines)
        good = good && place_lines(cx, p, e);
    if (!good || !elab_check_tile(cx, p->type, e->where))
        return val_bad();
    return (value){.kind = VAL_PLACE, .as.place = p};
}

/* x[:, None]: each : keeps a dimension, each None adds one. */
static value index_tile(elab *cx, const expr *e, ir_val v)
{
    int rank = ir_type_of(cx->b.fn, v).rank, kept = 0;

    for (uint32_t i = 0; i < e->list.n; i++) {
        const expr *item = e->list.at[i];
        if (item->kind == EXPR_ALL) {
            kept++;
        } else if (item->kind != EXPR_NONE) {
            diag *d = elab_error(cx, DIAG_BAD_OPERAND, item->where,
                                 "a tile is indexed with ':' and None only");
            diag_hint(cx->diags, d, "elements are taken from tensors: load(x[i, j :+ n])");
            return val_bad();
        }
    }
    if (kept != rank) {
        elab_error(cx, DIAG_SHAPE_MISMATCH, e->where, "%s has %d dimensions; the index keeps %d",
                   elab_type_text(cx, ir_type_of(cx->b.fn, v)), rank, kept);
        return val_bad();
    }
    if (e->list.n > TILE_MAX_RANK) {
        elab_error(cx, DIAG_BAD_VALUE, e->where, "a tile has at most %d dimensions", TILE_MAX_RANK);
        return val_bad();
    }
    for (uint32_t i = 0; i < e->list.n; i++) {
        if (e->list.at[i]->kind == EXPR_NONE)
            v = ir_expand(&cx->b, v, (int)i);
    }
    return val_run(v);
}

value elab_index(elab *cx, const expr *e)
{
    value v = elab_expr(cx, e->a);

    switch ((int)v.kind) {
    case VAL_BAD:
        return v;
    case VAL_VIEW:
        return index_view(cx, e, v.as.tensor);
    case VAL_DTYPE:
        return val_type(elab_shape_of(cx, v.dtype, &e->list, e->where));
    case VAL_RUN:
        if (val_run_type(cx, &v).kind == TYPE_TILE)
            return index_tile(cx, e, v.as.run);
        break;
    default:
        break;
    }
    elab_error(cx, DIAG_BAD_OPERAND, e->where, "%s has no dimensions to index", val_text(cx, &v));
    return val_bad();
}

/* ---- what a slice gives and takes ---- */

/* perm: the tensor's dimensions in the order of the dimensions along which they run; true when that
 * is another order. */
static bool order_of_lines(const place *p, int perm[TILE_MAX_RANK])
{
    int axis[TILE_MAX_RANK], n = 0;
    bool moved = false;

    for (int i = 0; i < VIEW_MAX_RANK; i++) {
        if (p->axis[i] == NO_LINE)
            continue;
        int at = n++;
        for (; at > 0 && axis[at - 1] > p->axis[i]; at--) {
            axis[at] = axis[at - 1];
            perm[at] = perm[at - 1];
            moved = true;
        }
        axis[at] = p->axis[i];
        perm[at] = n - 1;
    }
    return moved;
}

ir_val elab_as_seen(elab *cx, const place *p, ir_val v)
{
    int perm[TILE_MAX_RANK];
    bool has_points = false;

    if (p->block.rank)
        return reshaped(cx, v, p->type);
    if (!p->lines)
        return v;
    if (order_of_lines(p, perm))
        v = ir_trans(&cx->b, v, perm);
    for (int i = 0; i < VIEW_MAX_RANK; i++)
        has_points |= p->axis[i] == -1;
    if (has_points)
        return reshaped(cx, v, p->type);
    for (int d = 0; d < p->type.rank; d++) {
        if (p->type.shape[d] == 1)
            v = ir_expand(&cx->b, v, d);
    }
    return v;
}

ir_val elab_as_stored(elab *cx, const place *p, ir_val v)
{
    int perm[TILE_MAX_RANK], back[TILE_MAX_RANK];
    ir_type t = p->stored;

    if (p->block.rank)
        return reshaped(cx, v, t);
    if (!p->lines)
        return v;
    bool moved = order_of_lines(p, perm);
    for (int i = 0; i < t.rank; i++) {
        t.shape[i] = p->stored.shape[perm[i]];
        back[perm[i]] = i;
    }
    v = reshaped(cx, v, t);
    return moved ? ir_trans(&cx->b, v, back) : v;
}
