/* The loops of one nest. The last lanes of a dimension that is no multiple of the vector are always
 * reached by a constant index, so that masks for them are constants. */
#include "compiler/base/check.h"
#include "compiler/target/cpu/cpu_nests.h"

/* Indices of the reduced tile: those of the space without the axis. */
cpu_at cpu_without(const cpu_nesting *s, cpu_at at, int axis)
{
    cpu_at res = {.lane = -1};
    int k = 0;

    for (int d = 0; d < s->n->space.rank; d++) {
        if (d == axis)
            continue;
        if (d == at.lane)
            res.lane = k;
        res.i[k++] = at.i[d];
    }
    return res;
}

cpu_at cpu_vector_at(const cpu_nesting *s, int j)
{
    cpu_at at = s->at;

    at.i[s->n->lane].off += (int64_t)j * s->e->isa->lanes;
    return at;
}

/* ---- one iteration --------------------------------------------------------------------------- */

typedef struct pending {
    const cpu_item *item;
    cpu_got *got; /* by unit */
} pending;

static ir_val before_rounding(const cpu_emit *e, ir_val v)
{
    const ir_op *op = ir_def(e->fn, v);

    return op->code == OP_CAST && ir_type_of(e->fn, op->args[0]).dtype == DT_F32 ? op->args[0] : v;
}

/* What only dots of pairs or tiles read is rounded as it is stored. */
static bool rounds_as_stored(const cpu_emit *e, const cpu_item *item)
{
    const cpu_value *v = &e->plan->value.at[item->v];

    return !item->buf && (v->pairs || v->narrow) && before_rounding(e, item->v) != item->v;
}

/* Does the item compute its value, or copy it from where it lies? */
static bool computes(const cpu_emit *e, const cpu_item *item)
{
    return item->kind == ITEM_BUFFER &&
           (!item->buf || item->buf == e->plan->value.at[item->v].direct_buf);
}

static cpu_got item_value(cpu_emit *e, const cpu_item *item, const cpu_at *at)
{
    if (!computes(e, item))
        return cpu_eval(e, item->v, at);
    return rounds_as_stored(e, item) ? cpu_eval(e, before_rounding(e, item->v), at)
                                     : cpu_eval_item(e, item->v, at);
}

/* Rows next to each other, of which there is an even number. */
static void flush_pairs(cpu_nesting *s, const pending *p, const cpu_at *at, int mr, int nr)
{
    cpu_emit *e = s->e;
    ir_val v = p->item->v;
    bool exact = !rounds_as_stored(e, p->item);

    ICHECK(mr % 2 == 0, "rows come in pairs");
    for (int r = 0; r < mr; r += 2) {
        for (int u = r * nr; u < (r + 1) * nr; u++)
            cpu_store_pairs(e, e->plan->value.at[v].buf, &at[u], cpu_vector(e, p->got[u]),
                            cpu_vector(e, p->got[u + nr]), exact);
    }
}

static void flush_store(cpu_nesting *s, const pending *p, const cpu_at *at, int mr, int nr)
{
    cpu_emit *e = s->e;
    const ir_op *op = p->item->op;

    if (s->n->blocks && cpu_contiguous_dim(e->plan, op) == s->n->inner) {
        cpu_store_block(e, op, at, p->got, s->n->inner);
        return;
    }
    for (int u = 0; u < mr * nr; u++)
        cpu_store_tensor(e, op, &at[u], p->got[u]);
}

/* Everything is evaluated before anything is stored: results may take their operands' place. */
static void flush(cpu_nesting *s, const pending *p, uint32_t n, const cpu_at *at, int mr, int nr)
{
    cpu_emit *e = s->e;

    for (; n > 0; n--, p++) {
        const cpu_value *v = &e->plan->value.at[p->item->v];
        uint32_t buf = p->item->buf ? p->item->buf : v->buf;
        if (p->item->kind == ITEM_STORE) {
            flush_store(s, p, at, mr, nr);
        } else if (buf && !p->item->buf && v->pairs) {
            flush_pairs(s, p, at, mr, nr);
        } else {
            void (*store)(cpu_emit *, uint32_t, const cpu_at *, cpu_got) =
                rounds_as_stored(e, p->item) ? cpu_store_narrow : cpu_store_buf;
            for (int u = 0; u < mr * nr && buf; u++)
                store(e, buf, &at[u], p->got[u]);
        }
    }
}

/* Where vector u of the units lies in the stage. */
static LLVMValueRef stage_place(cpu_nesting *s, int u, int nr)
{
    cpu_emit *e = s->e;
    cpu_term t = {s->stage_row, ll_i64(e->cx, s->stage.stride)};
    int64_t lane = (int64_t)(u % nr) * e->isa->lanes;

    t.i.off += u / nr;
    LLVMValueRef p = cpu_address(e, e->cx->f32, s->stage.p, &t, 1, e->depth);
    return ll_gep(e->cx, e->cx->f32, p, ll_i64(e->cx, lane));
}

static void remember_tiles(cpu_nesting *s, const cpu_at *at, int mr, int nr)
{
    cpu_emit *e = s->e;
    LLVMTypeRef type = ll_type(e->cx, DT_F32, e->isa->lanes);

    for (int u = 0; u < mr * nr; u++) {
        LLVMValueRef v = ll_load(e->cx, type, stage_place(s, u, nr), 64);
        cpu_remember(e, s->n->dot->res, &at[u], (cpu_got){v, e->depth});
    }
}

/* The indices of mr rows of nr vectors. */
static cpu_at *units_at(cpu_nesting *s, int mr, int nr, cpu_index row)
{
    cpu_at *at = ARENA_ARRAY(s->e->a, cpu_at, (size_t)(mr * nr));

    for (int u = 0; u < mr * nr; u++) {
        at[u] = cpu_vector_at(s, u % nr);
        if (s->n->inner >= 0) {
            at[u].i[s->n->inner] = row;
            at[u].i[s->n->inner].off += u / nr;
        }
    }
    return at;
}

static void emit_units(cpu_nesting *s, int mr, int nr, cpu_index row)
{
    cpu_emit *e = s->e;
    cpu_at *at = units_at(s, mr, nr, row);
    pending *p = ARENA_ARRAY(e->a, pending, s->n->items.n);
    uint32_t np = 0;

    e->block_base = row.base;
    e->block_off = row.off;
    e->block_rows = s->n->blocks ? mr : 0;
    if (s->n->dot && cpu_dot_kind(e->plan, s->n->dot) == CPU_DOT_TILES)
        remember_tiles(s, at, mr, nr);
    else if (s->n->dot)
        cpu_emit_dot(e, s->n, at, mr, nr);
    for (uint32_t i = 0; i < s->n->items.n; i++) {
        const cpu_item *item = &s->n->items.at[i];
        if (item->kind == ITEM_DOT && s->in_place)
            continue;
        if (item->kind == ITEM_REDUCE) {
            cpu_reduce_units(s, item, at, mr, nr);
            continue;
        }
        if (item->kind == ITEM_FOLD) {
            cpu_fold_units(s, item, at, mr, nr);
            continue;
        }
        p[np].item = item;
        p[np].got = ARENA_ARRAY(e->a, cpu_got, (size_t)(mr * nr));
        if (item->kind == ITEM_SCAN)
            cpu_scan_units(s, item, at, mr, nr, p[np].got);
        for (int u = 0; u < mr * nr && item->kind != ITEM_SCAN; u++)
            p[np].got[u] = item->kind == ITEM_ATOMIC ? cpu_atomic(e, item->op, &at[u])
                                                     : item_value(e, item, &at[u]);
        np++;
    }
    flush(s, p, np, at, mr, nr);
    e->block_rows = 0;
}

/* ---- dots of tiles --------------------------------------------------------------------------- */

static cpu_index index_sum(cpu_emit *e, cpu_index x, cpu_index y)
{
    if (!x.base || !y.base)
        return (cpu_index){x.base ? x.base : y.base, x.off + y.off, x.base ? x.depth : y.depth};
    int depth = x.depth > y.depth ? x.depth : y.depth;
    return (cpu_index){cpu_add(e, x.base, y.base, depth), x.off + y.off, depth};
}

/* What the dot starts from. */
static void start_units(cpu_nesting *s, int mr, int nr, cpu_index row)
{
    cpu_emit *e = s->e;
    const cpu_at *at = units_at(s, mr, nr, row);

    for (int u = 0; u < mr * nr; u++) {
        LLVMValueRef v = cpu_vector(e, cpu_eval(e, s->n->dot->args[2], &at[u]));
        ll_store(e->cx, v, stage_place(s, u, nr), 64);
    }
}

/* All units of `rows` rows from row on, which stand in the stage. */
static void each_unit(cpu_nesting *s, int nr, cpu_index row, int rows,
                      void (*fn)(cpu_nesting *s, int mr, int nr, cpu_index row))
{
    int mr = s->n->mr < rows ? s->n->mr : rows, whole = rows / mr * mr;
    int carried = fn == emit_units ? s->ncarried : 0;
    cpu_loop l;

    s->stage_row = cpu_loop_open(s->e, &l, whole, mr, s->carried, carried);
    fn(s, mr, nr, index_sum(s->e, row, s->stage_row));
    cpu_loop_close(s->e, &l, s->carried);
    s->stage_row = (cpu_index){.off = whole};
    if (rows > whole)
        fn(s, rows - whole, nr, index_sum(s->e, row, s->stage_row));
}

/* The factor by which the dot's start differs from what lies in buf, the place of its result: x of
 * x * acc, where acc lies there and x is the same in all inner rows. 0: it is not known to be so.
 */
static ir_val factor_of_start(const cpu_nesting *s, uint32_t buf)
{
    const cpu_plan *p = s->e->plan;
    const ir_op *start = ir_def(s->e->fn, s->n->dot->args[2]);

    if (!start || start->code != OP_MUL || p->value.at[start->res].place != CPU_VIRTUAL)
        return 0;
    for (int i = 0; i < 2; i++) {
        const cpu_value *acc = &p->value.at[start->args[i]];
        const ir_op *x = ir_def(s->e->fn, start->args[1 - i]);
        if (acc->buf && cpu_buf_root(p, acc->buf) == cpu_buf_root(p, buf) &&
            acc->lane == s->n->lane && x && x->code == OP_BROADCAST &&
            ir_type_of(s->e->fn, x->args[0]).shape[s->n->inner] == 1)
            return start->args[1 - i];
    }
    return 0;
}

/* Is the factor other than 1 in any lane? */
static LLVMValueRef is_scaled(cpu_nesting *s, ir_val factor, int nr, cpu_index row)
{
    cpu_emit *e = s->e;
    const cpu_at *at = units_at(s, 1, nr, row);
    LLVMValueRef any = NULL;

    for (int j = 0; j < nr; j++) {
        LLVMValueRef x = cpu_vector(e, cpu_eval(e, factor, &at[j]));
        LLVMValueRef one = LLVMConstReal(LLVMTypeOf(x), 1.0);
        LLVMValueRef other = LLVMBuildFCmp(e->cx->b, LLVMRealUNE, x, one, "");
        any = any ? LLVMBuildOr(e->cx->b, any, other, "") : other;
    }
    LLVMTypeRef bits = LLVMIntTypeInContext(e->cx->context, (unsigned)e->isa->lanes);
    any = LLVMBuildBitCast(e->cx->b, any, bits, "");
    return LLVMBuildICmp(e->cx->b, LLVMIntNE, any, LLVMConstNull(bits), "");
}

/* What the dot starts from, into the stage; where that is the place of the result and a factor of
 * 1 leaves what lies there, nothing. */
static void emit_start(cpu_nesting *s, uint32_t buf, int nr, cpu_index row, int rows)
{
    ir_val factor = buf ? factor_of_start(s, buf) : 0;

    if (!factor) {
        each_unit(s, nr, row, rows, start_units);
        return;
    }
    LLVMBasicBlockRef after = cpu_when_open(s->e, is_scaled(s, factor, nr, row));
    each_unit(s, nr, row, rows, start_units);
    cpu_when_close(s->e, after);
}

/* The buffer of the dot's results, if nothing but what they start from is read before they are all
 * known: the rest of the nest reduces them. 0: there is none. */
static uint32_t place_of_results(const cpu_nesting *s)
{
    for (uint32_t i = 0; i < s->n->items.n; i++) {
        const cpu_item *item = &s->n->items.at[i];
        if (item->kind != ITEM_DOT &&
            (item->kind != ITEM_REDUCE || item->op->args[0] != s->n->dot->res))
            return 0;
    }
    return s->e->plan->value.at[s->n->dot->res].buf;
}

/* Results are summed where they stay if they can be: what the dot starts from is read at the same
 * places first. */
static void emit_tile_rows(cpu_nesting *s, int nr, cpu_index row, int rows)
{
    cpu_emit *e = s->e;
    uint32_t buf = place_of_results(s);
    cpu_at at = s->at;

    at.i[s->n->inner] = row;
    s->in_place = buf != 0;
    if (buf) {
        const cpu_buf *b = &e->plan->bufs.at[cpu_buf_root(e->plan, buf)];
        s->stage = (cpu_stage){cpu_buf_address(e, b, &at, e->depth), b->stride[s->n->inner]};
    } else {
        LLVMValueRef p = ll_gep(e->cx, e->cx->i8, e->arg_scratch, ll_i64(e->cx, e->plan->stage));
        s->stage = (cpu_stage){p, (int64_t)nr * e->isa->lanes};
    }
    if (!cpu_dot_starts_at_zero(e, s->n->dot))
        emit_start(s, buf, nr, row, rows);
    cpu_emit_tiles(e, s->n, &at, rows, nr, s->stage);
    if (!buf || s->n->items.n > 1)
        each_unit(s, nr, row, rows, emit_units);
}

static void emit_tile_group(cpu_nesting *s, int nr)
{
    cpu_emit *e = s->e;
    int rows = s->n->space.shape[s->n->inner], most = e->plan->tile_block.rows * CPU_TILE_ROWS;
    int whole = rows / most * most;
    cpu_loop l;

    cpu_reduce_begin(s, nr);
    if (whole) {
        cpu_index row = cpu_loop_open(e, &l, whole, most, s->carried, s->ncarried);
        cpu_emit_ahead(s, most, nr, row);
        emit_tile_rows(s, nr, row, most);
        cpu_loop_close(e, &l, s->carried);
    }
    if (rows > whole)
        emit_tile_rows(s, nr, (cpu_index){.off = whole}, rows - whole);
    cpu_reduce_end(s);
}

/* ---- the loops of a nest --------------------------------------------------------------------- */

/* Rows of a dot's block when only nr vectors are left: enough to keep the multipliers busy. */
static int rows_of_block(const cpu_nesting *s, int nr)
{
    const cpu_isa *isa = s->e->isa;
    int rows = s->n->space.shape[s->n->inner], mr = s->n->mr;

    while (s->n->dot && mr * nr < isa->mr * isa->nr && mr < 2 * isa->mr)
        mr += s->n->pairs ? 2 : 1;
    return mr < rows ? mr : rows;
}

static void emit_group(cpu_nesting *s, int nr)
{
    cpu_emit *e = s->e;
    int inner = s->n->inner, rows = inner >= 0 ? s->n->space.shape[inner] : 1;
    int mr = inner >= 0 ? rows_of_block(s, nr) : 1, whole = rows / mr * mr;
    cpu_loop l;

    if (s->n->horizontal) { /* the rows are outside, and their indices in s->at */
        emit_units(s, 1, nr, inner >= 0 ? s->at.i[inner] : (cpu_index){0});
        return;
    }
    if (s->n->dot && cpu_dot_kind(e->plan, s->n->dot) == CPU_DOT_TILES) {
        emit_tile_group(s, nr);
        return;
    }
    cpu_reduce_begin(s, nr);
    cpu_index row = cpu_loop_open(e, &l, whole, mr, s->carried, s->ncarried);
    cpu_emit_ahead(s, mr, nr, row);
    emit_units(s, mr, nr, row);
    cpu_loop_close(e, &l, s->carried);
    if (rows > whole)
        emit_units(s, rows - whole, nr, (cpu_index){.off = whole});
    cpu_reduce_end(s);
}

/* Groups of nr vectors: a loop over those that are whole, then what is left. */
static void emit_groups(cpu_nesting *s)
{
    cpu_emit *e = s->e;
    int lane = s->n->lane, lanes = e->isa->lanes, extent = s->n->space.shape[lane];
    int chunks = (extent + lanes - 1) / lanes, nr = s->n->nr;
    int looped = chunks / nr, rest = chunks % nr;
    cpu_loop l;

    if (rest == 0 && extent % lanes)
        looped--;
    rest = chunks - looped * nr;
    s->at.i[lane] = (cpu_index){0};
    if (s->n->horizontal)
        cpu_reduce_begin(s, nr);
    if (looped) {
        int carried = s->n->horizontal ? s->ncarried : 0;
        s->at.i[lane] =
            cpu_loop_open(e, &l, (int64_t)looped * nr * lanes, nr * lanes, s->carried, carried);
        emit_group(s, nr);
        cpu_loop_close(e, &l, s->carried);
    }
    s->at.i[lane] = (cpu_index){.off = (int64_t)looped * nr * lanes};
    if (rest)
        emit_group(s, rest);
    if (s->n->horizontal)
        cpu_reduce_end(s);
}

static void emit_rows(cpu_nesting *s, int d)
{
    cpu_loop l;

    if (d == s->n->space.rank) {
        emit_groups(s);
        return;
    }
    if (d == s->n->lane || (d == s->n->inner && !s->n->horizontal)) {
        emit_rows(s, d + 1);
        return;
    }
    s->at.i[d] = cpu_loop_open(s->e, &l, s->n->space.shape[d], 1, NULL, 0);
    emit_rows(s, d + 1);
    cpu_loop_close(s->e, &l, NULL);
}

void cpu_emit_nest(cpu_emit *e, const cpu_nest *n)
{
    cpu_nesting s = {.e = e, .n = n, .at = {.lane = n->lane}};

    cpu_memo_clear(e);
    if (n->turned)
        cpu_emit_turned(e, n);
    else
        emit_rows(&s, 0);
    cpu_memo_clear(e);
}
