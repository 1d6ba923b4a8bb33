/* What stands between braces: ops and their regions. */
#include "compiler/base/check.h"
#include "compiler/ir/ireval.h"
#include "compiler/ir/irparse.h"
#include <math.h>

typedef VEC(ir_val) val_list;
typedef VEC(binding) binding_list;
typedef VEC(ir_type) type_list;

/* ---- attributes ---- */

static bool parse_ints(ir_parser *p, ir_attr *x)
{
    int64_t *at = ARENA_ARRAY(p->lx.a, int64_t, VIEW_MAX_RANK);
    uint32_t n = 0;

    if (!irp_need_punct(p, '['))
        return false;
    do {
        if (n == VIEW_MAX_RANK)
            return irp_fail(p, p->t.where, DIAG_IR_SYNTAX,
                            "a list of integers has at most 8 entries");
        if (!irp_need_int(p, INT64_MIN, INT64_MAX, &at[n++]))
            return false;
    } while (irp_take_punct(p, ','));
    x->ints.n = n;
    x->ints.at = at;
    return irp_need_punct(p, ']');
}

static bool parse_float(ir_parser *p, ir_attr *x)
{
    if (p->t.kind == IRT_FLOAT || p->t.kind == IRT_INT)
        x->f = p->t.f;
    else if (irp_at_word(p, "inf"))
        x->f = (double)INFINITY;
    else if (irp_at_word(p, "nan"))
        x->f = (double)NAN;
    else
        return irp_expected(p, "a number");
    irp_advance(p);
    return true;
}

static bool parse_string(ir_parser *p, ir_attr *x)
{
    if (p->t.kind != IRT_TEXT)
        return irp_expected(p, "a text in quotes");
    x->s = p->t.s;
    irp_advance(p);
    return true;
}

static bool parse_attr(ir_parser *p, enum ir_attr_kind kind, ir_attr *x)
{
    enum dtype d;

    switch (kind) {
    case ATTR_NONE:
        return true;
    case ATTR_I64:
        return irp_need_int(p, INT64_MIN, INT64_MAX, &x->i);
    case ATTR_F64:
        return parse_float(p, x);
    case ATTR_INTS:
        return parse_ints(p, x);
    case ATTR_STR:
        return parse_string(p, x);
    case ATTR_DTYPE:
        if (!irp_need_dtype(p, &d))
            return false;
        x->i = d;
        return true;
    }
    return false;
}

static bool parse_attrs(ir_parser *p, const ir_op_info *info, ir_attr *attrs)
{
    for (int i = 0; i < OP_MAX_ATTRS && info->attr[i].kind; i++) {
        if (!ir_attr_is_bare(info, i) &&
            (!irp_need_word(p, info->attr[i].name) || !irp_need_punct(p, '=')))
            return false;
        if (!parse_attr(p, info->attr[i].kind, &attrs[i]))
            return false;
    }
    return true;
}

/* ---- ops ---- */

static bool parse_values(ir_parser *p, val_list *list)
{
    ir_val v;

    do {
        if (irp_too_many(p, list->n) || !irp_need_value(p, &v))
            return false;
        vec_push(list, p->lx.a, v);
    } while (irp_take_punct(p, ','));
    return true;
}

typedef struct statement {
    enum ir_opcode code;
    span where; /* the op's name */
    binding_list results;
} statement;

static ir_builder builder_at(ir_parser *p, ir_block *blk, span where)
{
    ir_builder b = ir_at_end(p->fn, blk);

    b.where = where;
    return b;
}

static bool count_results(ir_parser *p, const statement *s, uint32_t n)
{
    if (s->results.n == n)
        return true;
    diag_add(p->lx.diags, DIAG_IR_OP, s->where, "'%s' has %u results, but %u are named",
             op_info(s->code)->name, n, s->results.n);
    return false;
}

static bool bind_results(ir_parser *p, const statement *s, const ir_op *op)
{
    if (!count_results(p, s, op->nres))
        return false;
    for (uint32_t i = 0; i < s->results.n; i++) {
        if (!irp_bind(p, &s->results.at[i], op->res + i))
            return false;
    }
    return true;
}

static bool fits(ir_parser *p, const statement *s, const val_list *args, const ir_attr *attrs,
                 ir_type *type)
{
    const char *why = "";

    if (op_result_type(p->fn, s->code, args->at, (int)args->n, attrs, type, &why))
        return true;
    diag_add(p->lx.diags, DIAG_IR_OP, s->where, "'%s' breaks a rule: %s%s", op_info(s->code)->name,
             why, op_operand_types(p->lx.a, p->fn, args->at, (int)args->n));
    return false;
}

static bool parse_carried(ir_parser *p, binding_list *names, val_list *init, type_list *types);
static bool parse_region(ir_parser *p, ir_block *blk, ir_val first, const binding_list *names);

/* "(%a : t, %b : t) { ... }" behind the type of a reduce or a scan */
static bool parse_fold(ir_parser *p, ir_block *blk, const statement *s, const val_list *args,
                       const ir_attr *attrs)
{
    binding_list names = {0};
    type_list types = {0};
    ir_builder b = builder_at(p, blk, s->where);
    ir_op *op = ir_fold(&b, s->code, args->at[0], (int)attrs[0].i);
    span at = p->t.where;

    if (!irp_need_punct(p, '(') || !parse_carried(p, &names, NULL, &types))
        return false;
    for (uint32_t i = 0; i < types.n; i++) {
        if (types.n != 2 || !type_equal(types.at[i], ir_type_of(p->fn, op->regions[0]->arg)))
            return irp_fail(p, at, DIAG_IR_REGION, "the region takes two elements of the operand");
    }
    return parse_region(p, op->regions[0], op->regions[0]->arg, &names) && bind_results(p, s, op);
}

/* "%a, %b = wgmma.wait %x, %y pending=0 : type, type" */
static bool parse_wgmma_wait(ir_parser *p, ir_block *blk, const statement *s)
{
    ir_attr attrs[OP_MAX_ATTRS] = {0};
    val_list args = {0};
    ir_type t;

    if ((p->t.kind == IRT_VALUE && !parse_values(p, &args)) ||
        !parse_attrs(p, op_info(s->code), attrs) || !fits(p, s, &args, attrs, &(ir_type){0}))
        return false;
    for (uint32_t i = 0; i < args.n; i++) {
        span where = p->t.where;
        if (!irp_need_punct(p, i ? ',' : ':') || !irp_type(p, &t))
            return false;
        if (!type_equal(t, ir_type_of(p->fn, args.at[i])))
            return irp_fail(p, where, DIAG_IR_OP, "a result has the type of its operand");
    }
    ir_builder b = builder_at(p, blk, s->where);
    return bind_results(p, s, ir_wgmma_wait(&b, (int)attrs[0].i, args.at, (int)args.n));
}

static bool parse_plain_op(ir_parser *p, ir_block *blk, const statement *s)
{
    const ir_op_info *info = op_info(s->code);
    ir_attr attrs[OP_MAX_ATTRS] = {0};
    ir_type want = {0}, got;
    val_list args = {0};

    if (info->max_args && p->t.kind == IRT_VALUE && !parse_values(p, &args))
        return false;
    if (!parse_attrs(p, info, attrs))
        return false;
    span type_at = p->t.where;
    if (info->results && (!irp_need_punct(p, ':') || !irp_type(p, &want)))
        return false;
    if (s->code == OP_CONST_FLOAT && want.kind == TYPE_SCALAR && dtype_is_float(want.dtype))
        attrs[0].f = eval_round(want.dtype, (ir_scalar){.f = attrs[0].f}).f;
    got = want;
    if (!fits(p, s, &args, attrs, &got))
        return false;
    if (info->results && !type_equal(got, want)) {
        diag_add(p->lx.diags, DIAG_IR_OP, type_at, "'%s' gives %s here, not %s", info->name,
                 ir_type_text(p->lx.a, p->fn, got), ir_type_text(p->lx.a, p->fn, want));
        return false;
    }
    if (op_is_fold(s->code))
        return parse_fold(p, blk, s, &args, attrs);
    ir_builder b = builder_at(p, blk, s->where);
    ir_op *op = ir_build(&b, s->code, args.at, (int)args.n, attrs, want);
    if (s->code == OP_RETURN)
        p->fn->nresults = op->nargs;
    return bind_results(p, s, op);
}

/* "iter (%a = %init : type, ...)" or nothing; for the second region of while "(%a : type, ...)" */
static bool parse_carried(ir_parser *p, binding_list *names, val_list *init, type_list *types)
{
    binding b;
    ir_val v;
    ir_type t;

    do {
        if (irp_too_many(p, names->n) || !irp_need_name(p, &b))
            return false;
        if (init) {
            if (!irp_need_punct(p, '=') || !irp_need_value(p, &v))
                return false;
            vec_push(init, p->lx.a, v);
        }
        if (!irp_need_punct(p, ':') || !irp_type(p, &t))
            return false;
        if (init && !type_equal(t, ir_type_of(p->fn, v)))
            return irp_fail(p, b.where, DIAG_IR_OP, "the carried value has the type of its start");
        vec_push(names, p->lx.a, b);
        vec_push(types, p->lx.a, t);
    } while (irp_take_punct(p, ','));
    return irp_need_punct(p, ')');
}

static bool parse_iter(ir_parser *p, binding_list *names, val_list *init)
{
    type_list types = {0};

    if (!irp_take_word(p, "iter"))
        return true;
    return irp_need_punct(p, '(') && parse_carried(p, names, init, &types);
}

/* The region with its arguments named, up to its closing brace. */
static bool parse_region(ir_parser *p, ir_block *blk, ir_val first, const binding_list *names)
{
    uint32_t mark = p->open.n;

    for (uint32_t i = 0; i < names->n; i++) {
        if (!irp_bind(p, &names->at[i], first + i))
            return false;
    }
    bool ok = irp_block(p, blk);
    irp_leave_scope(p, mark);
    return ok;
}

static bool parse_for(ir_parser *p, ir_block *blk, const statement *s)
{
    val_list args = {0};
    binding_list names = {0};
    binding counter;
    ir_val lo, hi, step;

    if (!irp_need_name(p, &counter) || !irp_need_punct(p, '=') || !irp_need_value(p, &lo) ||
        !irp_need_word(p, "to") || !irp_need_value(p, &hi) || !irp_need_word(p, "step") ||
        !irp_need_value(p, &step))
        return false;
    vec_push(&args, p->lx.a, lo);
    vec_push(&args, p->lx.a, hi);
    vec_push(&args, p->lx.a, step);
    vec_push(&names, p->lx.a, counter);
    if (!parse_iter(p, &names, &args) || !fits(p, s, &args, NULL, &(ir_type){0}))
        return false;
    ir_builder b = builder_at(p, blk, s->where);
    ir_op *op = ir_for(&b, lo, hi, step, args.at + 3, (int)args.n - 3);
    return parse_region(p, op->regions[0], op->regions[0]->arg, &names) && bind_results(p, s, op);
}

static bool parse_while_args(ir_parser *p, const ir_op *op, binding_list *names)
{
    type_list types = {0};

    if (!irp_need_word(p, "do"))
        return false;
    if (irp_take_punct(p, '(') && !parse_carried(p, names, NULL, &types))
        return false;
    if (names->n != op->nres)
        return irp_fail(p, op->where, DIAG_IR_REGION,
                        "both regions of while take the carried values");
    for (uint32_t i = 0; i < types.n; i++) {
        if (!type_equal(types.at[i], ir_type_of(p->fn, op->res + i)))
            return irp_fail(p, names->at[i].where, DIAG_IR_REGION,
                            "both regions of while take the carried values");
    }
    return true;
}

static bool parse_while(ir_parser *p, ir_block *blk, const statement *s)
{
    val_list init = {0};
    binding_list before = {0}, body = {0};

    if (!parse_iter(p, &before, &init) || !fits(p, s, &init, NULL, &(ir_type){0}))
        return false;
    ir_builder b = builder_at(p, blk, s->where);
    ir_op *op = ir_while(&b, init.at, (int)init.n);
    return parse_region(p, op->regions[0], op->regions[0]->arg, &before) &&
           parse_while_args(p, op, &body) &&
           parse_region(p, op->regions[1], op->regions[1]->arg, &body) && bind_results(p, s, op);
}

static bool parse_if(ir_parser *p, ir_block *blk, const statement *s)
{
    val_list args = {0};
    type_list types = {0};
    binding_list none = {0};
    ir_type t;

    if (!parse_values(p, &args) || !fits(p, s, &args, NULL, &(ir_type){0}))
        return false;
    if (irp_take_punct(p, ':')) {
        do {
            if (irp_too_many(p, types.n) || !irp_type(p, &t))
                return false;
            vec_push(&types, p->lx.a, t);
        } while (irp_take_punct(p, ','));
    }
    ir_builder b = builder_at(p, blk, s->where);
    ir_op *op = ir_if(&b, args.at[0], types.at, (int)types.n);
    return parse_region(p, op->regions[0], 0, &none) && irp_need_word(p, "else") &&
           parse_region(p, op->regions[1], 0, &none) && bind_results(p, s, op);
}

static bool parse_role(ir_parser *p, ir_block *blk, const statement *s)
{
    ir_attr attrs[OP_MAX_ATTRS] = {0};
    val_list none = {0};
    binding_list no_names = {0};

    if (!parse_attrs(p, op_info(s->code), attrs) || !fits(p, s, &none, attrs, &(ir_type){0}))
        return false;
    ir_builder b = builder_at(p, blk, s->where);
    ir_op *op = ir_role(&b, (int)attrs[0].i, (int)attrs[1].i, (int)attrs[2].i);
    return parse_region(p, op->regions[0], 0, &no_names) && bind_results(p, s, op);
}

static bool parse_op_name(ir_parser *p, statement *s)
{
    const char *names[OP_COUNT];
    int code = p->t.kind == IRT_WORD ? op_parse(p->t.s) : -1;

    s->where = p->t.where;
    if (code >= 0) {
        s->code = (enum ir_opcode)code;
        irp_advance(p);
        return true;
    }
    if (p->t.kind != IRT_WORD)
        return irp_expected(p, "an operation or '}'");
    for (int i = 0; i < OP_COUNT; i++)
        names[i] = op_info((enum ir_opcode)i)->name;
    const char *near = diag_nearest(p->t.s, names, OP_COUNT);
    diag *d =
        diag_add(p->lx.diags, DIAG_IR_SYNTAX, p->t.where, "no operation is called '%s'", p->t.s);
    if (near)
        diag_hint(p->lx.diags, d, "did you mean '%s'?", near);
    return false;
}

static bool parse_statement(ir_parser *p, ir_block *blk)
{
    statement s = {0};
    binding b;

    if (p->t.kind == IRT_VALUE) {
        do {
            if (irp_too_many(p, s.results.n) || !irp_need_name(p, &b))
                return false;
            vec_push(&s.results, p->lx.a, b);
        } while (irp_take_punct(p, ','));
        if (!irp_need_punct(p, '='))
            return false;
    }
    if (!parse_op_name(p, &s))
        return false;
    if (blk->last && op_info(blk->last->code)->traits & OPT_TERM)
        return irp_fail(p, s.where, DIAG_IR_TERMINATOR, "nothing follows a terminator");
    if (s.code == OP_FOR)
        return parse_for(p, blk, &s);
    if (s.code == OP_WHILE)
        return parse_while(p, blk, &s);
    if (s.code == OP_IF)
        return parse_if(p, blk, &s);
    if (s.code == OP_ROLE)
        return parse_role(p, blk, &s);
    if (s.code == OP_WGMMA_WAIT)
        return parse_wgmma_wait(p, blk, &s);
    return parse_plain_op(p, blk, &s);
}

bool irp_block(ir_parser *p, ir_block *blk)
{
    if (p->depth == IRP_MAX_DEPTH)
        return irp_fail(p, p->t.where, DIAG_LIMIT, "blocks are nested at most 64 deep");
    if (!irp_need_punct(p, '{'))
        return false;
    p->depth++;
    while (!irp_at_punct(p, '}')) {
        if (!parse_statement(p, blk))
            return false;
    }
    p->depth--;
    irp_advance(p);
    return true;
}
