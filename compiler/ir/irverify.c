/* Every invariant of docs/IR.md, one function each. Reads IR that may be damaged: ids and links are
 * checked before they are followed. */
#include "compiler/ir/irbuild.h"
#include "compiler/ir/iredit.h"
#include "compiler/ir/irlex.h"
#include "compiler/ir/irsched.h"
#include "compiler/ir/irtext.h"
#include <string.h>

#define MAX_DEPTH 64

typedef struct verifier {
    const ir_module *m;
    const ir_fn *fn;
    bool is_launch;
    diag_list *diags;
    bool *visible; /* per value */
    int depth;
    int warps; /* level 2: of the group that runs the op; in a role those of the role */
    const ir_op *role;
} verifier;

static bool check_block(verifier *v, const ir_block *blk, const ir_op *owner);

static bool reject(verifier *v, enum diag_id id, const ir_op *op, const char *text)
{
    if (op)
        diag_add(v->diags, id, op->where, "'%s' breaks a rule: %s", op_info(op->code)->name, text);
    else
        diag_add(v->diags, id, (span){0}, "the %s function breaks a rule: %s",
                 v->is_launch ? "launch" : "kernel", text);
    return false;
}

/* ---- values ---- */

static bool type_in_level(const verifier *v, ir_type t, const char **why)
{
    if (v->m->level == 2)
        return sched_type_fits(v->fn, t, v->warps, why);
    *why = "a value has no type of level 1";
    return t.layout == 0 && (t.kind == TYPE_SCALAR || t.kind == TYPE_TILE || t.kind == TYPE_VIEW) &&
           t.dtype < DT_COUNT;
}

static bool define(verifier *v, ir_val first, int n, const ir_op *op, const ir_block *blk)
{
    for (int i = 0; i < n; i++) {
        ir_val id = first + (ir_val)i;
        if (id == 0 || id >= v->fn->values.n)
            return reject(v, DIAG_IR_LINKS, op ? op : blk->owner, "a value's id is out of range");
        const ir_value *val = ir_value_of(v->fn, id);
        if (val->def != op || val->block != blk || val->index != (uint32_t)i || v->visible[id])
            return reject(v, DIAG_IR_LINKS, op ? op : blk->owner,
                          "a value does not belong to what defines it");
        const char *why;
        if (!type_in_level(v, val->type, &why))
            return reject(v, v->m->level == 2 ? DIAG_IR_LAYOUT : DIAG_IR_OP, op ? op : blk->owner,
                          why);
        v->visible[id] = true;
    }
    return true;
}

static void hide(verifier *v, ir_val first, int n)
{
    for (int i = 0; i < n; i++) {
        if (first + (ir_val)i < v->fn->values.n)
            v->visible[first + (ir_val)i] = false;
    }
}

static bool check_args(verifier *v, const ir_op *op)
{
    for (int i = 0; i < op->nargs; i++) {
        if (op->args[i] == 0 || op->args[i] >= v->fn->values.n)
            return reject(v, DIAG_IR_LINKS, op, "an operand's id is out of range");
        if (!v->visible[op->args[i]])
            return reject(v, DIAG_IR_SCOPE, op, "an operand is not defined before its use");
        if (v->role && ir_type_of(v->fn, op->args[i]).kind == TYPE_TILE &&
            ir_defined_outside(v->fn, op->args[i], v->role))
            return reject(v, DIAG_IR_REGION, op, "a role does not use tiles from outside of it");
        if (v->is_launch && ir_type_of(v->fn, op->args[i]).kind == TYPE_VIEW)
            return reject(v, DIAG_IR_HOST, op, "a launch function does not use tensors");
    }
    return true;
}

static bool check_types(verifier *v, const ir_op *op)
{
    const char *why = "";
    bool one = op_info(op->code)->results == 1;
    ir_type declared = one ? ir_type_of(v->fn, op->res) : (ir_type){0}, inferred = declared;

    if (!op_result_type(v->fn, op->code, op->args, op->nargs, op->attr, &inferred, &why) ||
        (one && !type_equal(inferred, declared) && (why = "the result has the wrong type"))) {
        diag_add(v->diags, DIAG_IR_OP, op->where, "'%s' breaks a rule: %s%s",
                 op_info(op->code)->name, why,
                 op_operand_types(v->diags->a, v->fn, op->args, op->nargs));
        return false;
    }
    return true;
}

/* ---- regions ---- */

static int region_extra(const ir_op *op) /* block arguments before the carried values */
{
    return op->code == OP_FOR ? 1 : 0;
}

static bool check_region_args(verifier *v, const ir_op *op, const ir_block *blk)
{
    int extra = region_extra(op), carried = op->code == OP_IF ? 0 : op->nres;

    if (blk->nargs != (uint32_t)(extra + carried))
        return reject(v, DIAG_IR_REGION, op, "a region takes the carried values");
    for (uint32_t i = 0; i < blk->nargs; i++) {
        if (blk->arg + i == 0 || blk->arg + i >= v->fn->values.n)
            return reject(v, DIAG_IR_LINKS, op, "a value's id is out of range");
        ir_type want = i < (uint32_t)extra ? type_scalar(DT_I32)
                                           : ir_type_of(v->fn, op->res + i - (ir_val)extra);
        if (!type_equal(ir_type_of(v->fn, blk->arg + i), want))
            return reject(v, DIAG_IR_REGION, op, "a region takes the carried values");
    }
    return true;
}

static bool check_carried(verifier *v, const ir_op *op)
{
    int first = op->code == OP_FOR ? 3 : 0;

    if (op->code == OP_IF)
        first = op->nargs;
    else if (op->nargs - first != op->nres)
        return reject(v, DIAG_IR_REGION, op, "there is one result for each carried value");
    for (int i = 0; i < op->nres; i++) {
        ir_type res = ir_type_of(v->fn, op->res + (ir_val)i);
        if (res.kind != TYPE_SCALAR && res.kind != TYPE_TILE)
            return reject(v, DIAG_IR_REGION, op, "results are scalars or tiles");
        if (first + i < op->nargs && !type_equal(res, ir_type_of(v->fn, op->args[first + i])))
            return reject(v, DIAG_IR_REGION, op, "a result has the type of its carried value");
    }
    return true;
}

static bool same_types(verifier *v, const ir_op *end, int skip, const ir_op *op)
{
    if (end->nargs - skip != op->nres)
        return false;
    for (int i = 0; i < op->nres; i++) {
        if (!type_equal(ir_type_of(v->fn, end->args[skip + i]),
                        ir_type_of(v->fn, op->res + (ir_val)i)))
            return false;
    }
    return true;
}

static bool check_region_end(verifier *v, const ir_op *op, int region)
{
    const ir_op *end = op->regions[region]->last;
    bool tests = op->code == OP_WHILE && region == 0;

    if (end->code != (tests ? OP_CONDITION : OP_YIELD))
        return reject(v, DIAG_IR_TERMINATOR, end,
                      tests ? "the first region of while ends with condition"
                            : "a region of for, while, if or role ends with yield");
    if (!same_types(v, end, tests ? 1 : 0, op))
        return reject(v, DIAG_IR_REGION, end, "one value of its type for each result");
    return true;
}

/* reduce and scan: what is computed with two elements */
static bool check_fold(verifier *v, const ir_op *op)
{
    const ir_block *blk = op->regions[0];
    ir_type element = type_scalar((enum dtype)ir_type_of(v->fn, op->args[0]).dtype);

    if (blk->nargs != 2 || blk->arg == 0 || blk->arg + 1 >= v->fn->values.n ||
        !type_equal(ir_type_of(v->fn, blk->arg), element) ||
        !type_equal(ir_type_of(v->fn, blk->arg + 1), element))
        return reject(v, DIAG_IR_REGION, op, "the region takes two elements of the operand");
    if (!check_block(v, blk, op))
        return false;
    for IR_EACH_OP(in, blk) {
        bool scalar = in->nres == 1 && ir_type_of(v->fn, in->res).kind == TYPE_SCALAR;
        if (in != blk->last && !(op_folds((enum ir_opcode)in->code) && scalar))
            return reject(v, DIAG_IR_REGION, in,
                          "the region of a reduction holds elementwise operations on scalars");
    }
    if (blk->last->code != OP_YIELD || blk->last->nargs != 1 ||
        !type_equal(ir_type_of(v->fn, blk->last->args[0]), element))
        return reject(v, DIAG_IR_REGION, blk->last, "the region yields one element");
    return true;
}

static bool check_role(verifier *v, const ir_op *op)
{
    const ir_block *blk = op->regions[0];
    int warps = v->warps;

    if (v->role)
        return reject(v, DIAG_IR_REGION, op, "roles are not nested");
    v->role = op;
    v->warps = (int)op->attr[1].i;
    bool ok = check_region_args(v, op, blk) && check_block(v, blk, op) &&
              check_region_end(v, op, 0);
    v->role = NULL;
    v->warps = warps;
    return ok;
}

static bool check_regions(verifier *v, const ir_op *op)
{
    if (op_is_fold((enum ir_opcode)op->code))
        return check_fold(v, op);
    if (op->code == OP_ROLE)
        return check_role(v, op);
    if (!check_carried(v, op))
        return false;
    for (int i = 0; i < op->nregions; i++) {
        const ir_block *blk = op->regions[i];
        if (!check_region_args(v, op, blk) || !check_block(v, blk, op) ||
            !check_region_end(v, op, i))
            return false;
    }
    return true;
}

/* ---- ops and blocks ---- */

static bool check_op(verifier *v, const ir_op *op)
{
    const ir_op_info *info = op_info(op->code);

    if (op->nregions != info->regions || (info->results >= 0 && op->nres != info->results))
        return reject(v, DIAG_IR_LINKS, op, "the op has the regions and results of its row");
    if (v->is_launch && !(info->traits & OPT_HOST))
        return reject(v, DIAG_IR_HOST, op, "a launch function holds only ops that the host runs");
    if (!check_args(v, op))
        return false;
    for (int i = 0; i < op->nres; i++) {
        if (op->res + (ir_val)i == 0 || op->res + (ir_val)i >= v->fn->values.n)
            return reject(v, DIAG_IR_LINKS, op, "a value's id is out of range");
    }
    if (!check_types(v, op) || (op->nregions && !check_regions(v, op)))
        return false;
    if (op->code == OP_WGMMA_WAIT && !check_carried(v, op))
        return false;
    return define(v, op->res, op->nres, op, NULL);
}

static bool check_links(verifier *v, const ir_block *blk, const ir_op *prev, const ir_op *op)
{
    if (op->code >= OP_COUNT) {
        diag_add(v->diags, DIAG_IR_LINKS, op->where, "an op's code is out of range");
        return false;
    }
    if (op->parent != blk || op->prev != prev || (!op->next && blk->last != op))
        return reject(v, DIAG_IR_LINKS, op, "the op is not linked into its block");
    if (!op->next != !!(op_info(op->code)->traits & OPT_TERM))
        return reject(v, DIAG_IR_TERMINATOR, op, "a block has one terminator, its last op");
    return true;
}

static bool check_ops(verifier *v, const ir_block *blk)
{
    const ir_op *prev = NULL;

    for IR_EACH_OP(op, blk) {
        if (!check_links(v, blk, prev, op) || !check_op(v, op))
            return false;
        prev = op;
    }
    return prev || reject(v, DIAG_IR_TERMINATOR, blk->owner, "a block is not empty");
}

static bool check_block(verifier *v, const ir_block *blk, const ir_op *owner)
{
    if (blk->owner != owner)
        return reject(v, DIAG_IR_LINKS, owner, "a region names the op that owns it");
    if (v->depth == MAX_DEPTH)
        return reject(v, DIAG_LIMIT, owner, "blocks are nested at most 64 deep");
    v->depth++;
    bool ok = define(v, blk->arg, (int)blk->nargs, NULL, blk) && check_ops(v, blk);
    v->depth--;
    hide(v, blk->arg, (int)blk->nargs);
    for IR_EACH_OP(op, blk) {
        if (!ok)
            break; /* links may be damaged, and nothing more is checked */
        hide(v, op->res, op->nres);
    }
    return ok;
}

/* ---- signature ---- */

static bool check_name(verifier *v, const char *name)
{
    return (name && ir_is_name(name)) ||
           reject(v, DIAG_IR_SIGNATURE, NULL, "a parameter or dimension has no proper name");
}

static bool check_dims(verifier *v)
{
    const ir_fn *fn = v->fn;

    for (uint32_t i = 0; i < fn->dims.n; i++) {
        const ir_dim *d = &fn->dims.at[i];
        if ((d->name || !d->is_const) && !check_name(v, d->name))
            return false;
        if (d->is_const && (d->value < 0 || d->value > INT32_MAX))
            return reject(v, DIAG_IR_SIGNATURE, NULL, "a dimension lies between 0 and 2^31 - 1");
        for (uint32_t j = 0; j < i; j++) {
            if (d->name && fn->dims.at[j].name && strcmp(d->name, fn->dims.at[j].name) == 0)
                return reject(v, DIAG_IR_SIGNATURE, NULL, "two dimensions have one name");
        }
    }
    return true;
}

static bool check_tensor(verifier *v, const ir_param *p)
{
    if (p->type.kind != TYPE_VIEW || p->type.rank < 1 || p->type.rank > VIEW_MAX_RANK)
        return reject(v, DIAG_IR_SIGNATURE, NULL, "a tensor parameter is a view");
    for (int i = 0; i < p->type.rank; i++) {
        if (p->dim[i] < 0 || (uint32_t)p->dim[i] >= v->fn->dims.n)
            return reject(v, DIAG_IR_SIGNATURE, NULL, "a tensor's dimension is not declared");
    }
    if (p->align & (p->align - 1))
        return reject(v, DIAG_IR_SIGNATURE, NULL, "an alignment is a power of two");
    return true;
}

/* The only hidden parameter of a dimension that has no constant value. */
static bool check_dim_param(verifier *v, uint32_t at)
{
    const ir_param *p = &v->fn->params.at[at];

    if (!type_equal(p->type, type_scalar(DT_I32)) || p->symbol < 0 ||
        (uint32_t)p->symbol >= v->fn->dims.n || v->fn->dims.at[p->symbol].is_const)
        return reject(v, DIAG_IR_SIGNATURE, NULL,
                      "a hidden parameter is the i32 value of a run-time dimension");
    for (uint32_t i = 0; i < at; i++) {
        if (v->fn->params.at[i].kind == PARAM_DIM && v->fn->params.at[i].symbol == p->symbol)
            return reject(v, DIAG_IR_SIGNATURE, NULL, "a dimension has two hidden parameters");
    }
    return true;
}

static bool check_given(verifier *v, uint32_t at)
{
    const ir_param *p = &v->fn->params.at[at];

    if (!v->is_launch || !type_equal(p->type, type_scalar(DT_I1)) || p->symbol < 0 ||
        (uint32_t)p->symbol >= at || v->fn->params.at[p->symbol].kind != PARAM_SCALAR)
        return reject(v, DIAG_IR_SIGNATURE, NULL,
                      "a given parameter is i1, of a launch function, about a scalar");
    return true;
}

static bool check_param(verifier *v, uint32_t at)
{
    const ir_param *p = &v->fn->params.at[at];
    int order[] = {[PARAM_TENSOR] = 0, [PARAM_SCALAR] = 0, [PARAM_DIM] = 1, [PARAM_GIVEN] = 2,
                   [PARAM_WORKSPACE] = 2};

    if (!check_name(v, p->name))
        return false;
    for (uint32_t i = 0; i < at; i++) {
        if (strcmp(v->fn->params.at[i].name, p->name) == 0)
            return reject(v, DIAG_IR_SIGNATURE, NULL, "two parameters have one name");
    }
    if (at && order[p->kind] < order[v->fn->params.at[at - 1].kind])
        return reject(v, DIAG_IR_SIGNATURE, NULL,
                      "parameters come in the order: visible, dimensions, given or workspaces");
    switch (p->kind) {
    case PARAM_TENSOR:
    case PARAM_WORKSPACE:
        return check_tensor(v, p);
    case PARAM_SCALAR:
        return p->type.kind == TYPE_SCALAR ||
               reject(v, DIAG_IR_SIGNATURE, NULL, "a scalar parameter has a scalar type");
    case PARAM_DIM:
        return check_dim_param(v, at);
    case PARAM_GIVEN:
        return check_given(v, at);
    }
    return false;
}

static bool check_hidden(verifier *v)
{
    uint32_t run_time = 0, hidden = 0;

    for (uint32_t i = 0; i < v->fn->dims.n; i++)
        run_time += !v->fn->dims.at[i].is_const;
    for (uint32_t i = 0; i < v->fn->params.n; i++)
        hidden += v->fn->params.at[i].kind == PARAM_DIM;
    return run_time == hidden ||
           reject(v, DIAG_IR_SIGNATURE, NULL, "a run-time dimension has a hidden parameter");
}

static bool check_signature(verifier *v)
{
    const ir_block *body = v->fn->body;

    if (!check_dims(v))
        return false;
    for (uint32_t i = 0; i < v->fn->params.n; i++) {
        if (!check_param(v, i))
            return false;
    }
    if (!check_hidden(v))
        return false;
    if (!body || body->nargs != v->fn->params.n)
        return reject(v, DIAG_IR_SIGNATURE, NULL, "the body has one argument for each parameter");
    for (uint32_t i = 0; i < body->nargs; i++) {
        if (body->arg + i >= v->fn->values.n ||
            !type_equal(ir_type_of(v->fn, body->arg + i), v->fn->params.at[i].type))
            return reject(v, DIAG_IR_SIGNATURE, NULL, "an argument has its parameter's type");
    }
    return true;
}

/* ---- what a function returns ---- */

static ir_type launch_result(const ir_fn *fn, int i)
{
    if (i < 3)
        return type_scalar(DT_I64);
    for (uint32_t k = 0; k < fn->params.n; k++) {
        if (fn->params.at[k].kind == PARAM_SCALAR && i-- == 3)
            return fn->params.at[k].type;
    }
    return (ir_type){0};
}

static int launch_results(const ir_fn *fn)
{
    int n = 3;

    for (uint32_t i = 0; i < fn->params.n; i++)
        n += fn->params.at[i].kind == PARAM_SCALAR;
    return n;
}

static bool check_return(verifier *v)
{
    const ir_op *end = v->fn->body->last;
    int want = v->is_launch ? launch_results(v->fn) : 0;

    if (end->code != OP_RETURN)
        return reject(v, DIAG_IR_TERMINATOR, end, "a function ends with return");
    bool fits = end->nargs == want && v->fn->nresults == want;
    for (int i = 0; fits && i < want; i++)
        fits = type_equal(ir_type_of(v->fn, end->args[i]), launch_result(v->fn, i));
    return fits || reject(v, DIAG_IR_SIGNATURE, end,
                          v->is_launch ? "a launch function returns the grid (three i64) and one "
                                         "value for each scalar parameter"
                                       : "a kernel returns nothing");
}

/* Warps and layouts: what a kernel of level 2 has, and no other function. */
static bool check_head(verifier *v)
{
    const char *why;

    if (v->m->level == 2 && !v->is_launch)
        return sched_head_is_sound(v->fn, &why) || reject(v, DIAG_IR_LAYOUT, NULL, why);
    return (v->fn->layouts.n <= 1 && v->fn->warps == 0) ||
           reject(v, DIAG_IR_LAYOUT, NULL, "only a kernel of level 2 has layouts and warps");
}

static bool check_fn(verifier *v)
{
    v->visible = ARENA_ARRAY(v->diags->a, bool, v->fn->values.n);
    v->warps = v->fn->warps;
    return check_head(v) && check_signature(v) && check_block(v, v->fn->body, NULL) &&
           check_return(v);
}

static bool check_meetings(verifier *v)
{
    const ir_op *op = v->m->level == 2 ? sched_find_varying(v->fn, v->diags->a) : NULL;

    return !op || reject(v, DIAG_IR_VARYING, op,
                         "it stands under a condition that follows from vote.any, so not all warps "
                         "need come here");
}

/* ---- module ---- */

static bool same_param(const ir_param *x, const ir_param *y)
{
    return x->kind == y->kind && strcmp(x->name, y->name) == 0 && type_equal(x->type, y->type) &&
           x->direction == y->direction && x->has_default == y->has_default &&
           (x->kind != PARAM_DIM || x->symbol == y->symbol) &&
           (x->kind != PARAM_TENSOR || memcmp(x->dim, y->dim, sizeof x->dim) == 0);
}

/* What a kernel has without the workspaces, and constants that only they need. */
static uint32_t params_of_launch(const ir_fn *kernel)
{
    uint32_t n = kernel->params.n;

    while (n && kernel->params.at[n - 1].kind == PARAM_WORKSPACE)
        n--;
    return n;
}

static bool same_dims(const ir_fn *kernel, const ir_fn *launch)
{
    bool more = params_of_launch(kernel) < kernel->params.n;
    bool same = more ? kernel->dims.n >= launch->dims.n : kernel->dims.n == launch->dims.n;

    for (uint32_t i = 0; same && i < launch->dims.n; i++) {
        const ir_dim *a = &kernel->dims.at[i], *b = &launch->dims.at[i];
        same = a->is_const == b->is_const && a->value == b->value && !a->name == !b->name &&
               (!a->name || strcmp(a->name, b->name) == 0);
    }
    return same;
}

static bool check_pair(verifier *v)
{
    const ir_fn *k = v->m->kernel, *l = v->m->launch;
    uint32_t n = params_of_launch(k);
    bool same = same_dims(k, l) && l->params.n >= n;

    for (uint32_t i = 0; same && i < n; i++)
        same = same_param(&k->params.at[i], &l->params.at[i]);
    for (uint32_t i = n; same && i < l->params.n; i++)
        same = l->params.at[i].kind == PARAM_GIVEN;
    return same || reject(v, DIAG_IR_SIGNATURE, NULL, "its parameters are those of the kernel");
}

bool ir_verify(const ir_module *m, diag_list *diags)
{
    verifier v = {.m = m, .diags = diags, .fn = m->kernel};

    if (!m->kernel || (m->level != 1 && m->level != 2))
        return reject(&v, DIAG_IR_LINKS, NULL, "a module of level 1 or 2 has a kernel");
    bool ok = check_fn(&v) && check_meetings(&v);
    if (!m->launch)
        return ok;
    v.fn = m->launch;
    v.is_launch = true;
    return check_fn(&v) && check_pair(&v) && ok;
}
