/* cbuild_control: regions, and what a launch function gives. */
#include "compiler/base/check.h"
#include "compiler/ir/cbuild.h"
#include <string.h>

/* ---- the regions that are open ---- */

static void enter(call *c, ir_op *op)
{
    tw_ir *b = c->b;
    open_region r = {.op = op, .outer = b->b.block};

    vec_push(&b->open, b->b.fn->module->a, r);
    b->b.block = op->regions[0];
}

static open_region *innermost(call *c, enum ir_opcode code)
{
    tw_ir *b = c->b;
    open_region *r = b->open.n ? &b->open.at[b->open.n - 1] : NULL;

    if (r && r->op->code == code)
        return r;
    if (r)
        call_bad(c, DIAG_IR_REGION, "the region that is open here belongs to '%s'",
                 op_info(r->op->code)->name);
    else
        call_bad(c, DIAG_IR_REGION, "no '%s' is open here", op_info(code)->name);
    return NULL;
}

static void leave(call *c, open_region *r)
{
    c->b->b.block = r->outer;
    c->b->open.n--;
}

static void give(call *c, ir_val first)
{
    for (size_t i = 0; i < c->nout; i++)
        c->out[i] = first + (ir_val)i;
}

static bool may_open(call *c)
{
    if (c->b->open.n >= CBUILD_MAX_DEPTH)
        call_bad(c, DIAG_LIMIT, "blocks are nested at most %d deep", CBUILD_MAX_DEPTH + 1);
    else if (c->b->is_launch)
        call_bad(c, DIAG_IR_HOST, "a launch function is a straight line");
    else if (cbuild_folds(c->b))
        call_bad(c, DIAG_IR_REGION, "the function of a reduction is a straight line");
    return call_ok(c);
}

/* The n values are as many, and of the types, as want says. */
static bool match(call *c, const tw_ir_val *v, size_t n, const ir_type *want, size_t nwant)
{
    const ir_fn *fn = c->b->b.fn;

    if (n != nwant)
        call_bad(c, DIAG_IR_REGION, "%zu values where %zu are carried", n, nwant);
    else if (call_see(c, v, n)) {
        for (size_t i = 0; i < n && call_ok(c); i++) {
            if (!type_equal(ir_type_of(fn, v[i]), want[i]))
                call_bad(c, DIAG_IR_REGION, "value %zu is %s and should be %s", i + 1,
                         type_text(c->b->diags->a, ir_type_of(fn, v[i])),
                         type_text(c->b->diags->a, want[i]));
        }
    }
    return call_ok(c);
}

static const ir_type *types_of(call *c, ir_val first, size_t n)
{
    ir_type *t = ARENA_ARRAY(c->b->b.fn->module->a, ir_type, n);

    for (size_t i = 0; i < n; i++)
        t[i] = ir_type_of(c->b->b.fn, first + (ir_val)i);
    return t;
}

static bool match_results(call *c, const ir_op *op, const tw_ir_val *v, size_t n)
{
    return match(c, v, n, types_of(c, op->res, op->nres), op->nres);
}

/* ---- for ---- */

static void build_for(call *c)
{
    ir_type none = {0};

    if (!may_open(c) || !call_fits(c, OP_FOR, c->args, c->nargs, c->attr, &none))
        return;
    ir_op *op =
        ir_for(&c->b->b, c->args[0], c->args[1], c->args[2], c->args + 3, (int)c->nargs - 3);
    enter(c, op);
    c->res = op->regions[0]->arg;
    give(c, c->res + 1);
}

tw_ir_val tw_ir_for_begin(tw_ir *b, tw_ir_val lo, tw_ir_val hi, tw_ir_val step,
                          const tw_ir_val *init, size_t count, tw_ir_val *carried)
{
    tw_ir_val args[CBUILD_MAX_LIST + 3] = {lo, hi, step};
    size_t n = init && count < CBUILD_MAX_LIST ? count : 0; /* call_run refuses the others */

    for (size_t i = 0; i < n; i++)
        args[3 + i] = init[i];
    return call_run((call){.b = b,
                           .name = "for",
                           .build = build_for,
                           .args = init || !count ? args : NULL,
                           .nargs = 3 + count,
                           .out = carried,
                           .nout = count});
}

static void build_for_end(call *c)
{
    open_region *r = innermost(c, OP_FOR);

    if (!r || !match_results(c, r->op, c->args, c->nargs))
        return;
    ir_yield(&c->b->b, c->args, (int)c->nargs);
    give(c, r->op->res);
    leave(c, r);
}

void tw_ir_for_end(tw_ir *b, const tw_ir_val *next, size_t count, tw_ir_val *results)
{
    call_run((call){.b = b,
                    .name = "end of for",
                    .build = build_for_end,
                    .args = next,
                    .nargs = count,
                    .out = results,
                    .nout = count});
}

/* ---- while ---- */

static void build_while(call *c)
{
    ir_type none = {0};

    if (!may_open(c) || !call_fits(c, OP_WHILE, c->args, c->nargs, c->attr, &none))
        return;
    ir_op *op = ir_while(&c->b->b, c->args, (int)c->nargs);
    enter(c, op);
    give(c, op->regions[0]->arg);
}

void tw_ir_while_begin(tw_ir *b, const tw_ir_val *init, size_t count, tw_ir_val *carried)
{
    call_run((call){.b = b,
                    .name = "while",
                    .build = build_while,
                    .args = init,
                    .nargs = count,
                    .out = carried,
                    .nout = count});
}

/* args: the condition, then what is passed on */
static void build_while_do(call *c)
{
    open_region *r = innermost(c, OP_WHILE);
    ir_type none = {0};

    if (r && r->region != 0)
        call_bad(c, DIAG_IR_REGION, "this 'while' has its test already");
    if (!r || !call_ok(c) || !match_results(c, r->op, c->args + 1, c->nargs - 1) ||
        !call_fits(c, OP_CONDITION, c->args, c->nargs, c->attr, &none))
        return;
    ir_condition(&c->b->b, c->args[0], c->args + 1, (int)c->nargs - 1);
    r->region = 1;
    c->b->b.block = r->op->regions[1];
    give(c, r->op->regions[1]->arg);
}

void tw_ir_while_do(tw_ir *b, tw_ir_val cond, const tw_ir_val *pass, size_t count,
                    tw_ir_val *carried)
{
    tw_ir_val args[CBUILD_MAX_LIST + 1] = {cond};
    size_t n = pass && count < CBUILD_MAX_LIST ? count : 0;

    for (size_t i = 0; i < n; i++)
        args[1 + i] = pass[i];
    call_run((call){.b = b,
                    .name = "do of while",
                    .build = build_while_do,
                    .args = pass || !count ? args : NULL,
                    .nargs = 1 + count,
                    .out = carried,
                    .nout = count});
}

static void build_while_end(call *c)
{
    open_region *r = innermost(c, OP_WHILE);

    if (r && r->region != 1)
        call_bad(c, DIAG_IR_REGION, "this 'while' has no test yet");
    if (!r || !call_ok(c) || !match_results(c, r->op, c->args, c->nargs))
        return;
    ir_yield(&c->b->b, c->args, (int)c->nargs);
    give(c, r->op->res);
    leave(c, r);
}

void tw_ir_while_end(tw_ir *b, const tw_ir_val *next, size_t count, tw_ir_val *results)
{
    call_run((call){.b = b,
                    .name = "end of while",
                    .build = build_while_end,
                    .args = next,
                    .nargs = count,
                    .out = results,
                    .nout = count});
}

/* ---- if ---- */

static void build_if(call *c)
{
    ir_type none = {0};

    if (may_open(c) && call_fits(c, OP_IF, c->args, c->nargs, c->attr, &none))
        enter(c, ir_if(&c->b->b, c->args[0], NULL, 0));
}

void tw_ir_if_begin(tw_ir *b, tw_ir_val cond)
{
    call_run((call){.b = b, .name = "if", .build = build_if, .args = &cond, .nargs = 1});
}

/* Ends the arm that is taken when the condition holds. */
static void end_first_arm(call *c, open_region *r, const tw_ir_val *v, size_t n)
{
    ir_type none = {0}, *types = ARENA_ARRAY(c->b->b.fn->module->a, ir_type, n);

    if (!call_fits(c, OP_YIELD, v, n, c->attr, &none))
        return;
    for (size_t i = 0; i < n; i++)
        types[i] = ir_type_of(c->b->b.fn, v[i]);
    ir_yield(&c->b->b, v, (int)n);
    r->region = 1;
    r->count = (int)n;
    r->types = types;
    c->b->b.block = r->op->regions[1];
}

static void build_else(call *c)
{
    open_region *r = innermost(c, OP_IF);

    if (r && r->region != 0)
        call_bad(c, DIAG_IR_REGION, "this 'if' has its else already");
    else if (r)
        end_first_arm(c, r, c->args, c->nargs);
}

void tw_ir_else(tw_ir *b, const tw_ir_val *values, size_t count)
{
    call_run((call){.b = b, .name = "else", .build = build_else, .args = values, .nargs = count});
}

static void build_if_end(call *c)
{
    open_region *r = innermost(c, OP_IF);

    if (!r)
        return;
    if (r->region == 0 && c->nargs) {
        call_bad(c, DIAG_IR_REGION, "an 'if' with values needs an else");
        return;
    }
    if (r->region == 0)
        end_first_arm(c, r, NULL, 0);
    if (!call_ok(c) || !match(c, c->args, c->nargs, r->types, (size_t)r->count))
        return;
    ir_yield(&c->b->b, c->args, (int)c->nargs);
    leave(c, r);
    ir_if_results(&c->b->b, r->op, r->types, r->count);
    give(c, r->op->res);
}

void tw_ir_if_end(tw_ir *b, const tw_ir_val *values, size_t count, tw_ir_val *results)
{
    call_run((call){.b = b,
                    .name = "end of if",
                    .build = build_if_end,
                    .args = values,
                    .nargs = count,
                    .out = results,
                    .nout = count});
}

/* ---- reductions with a function ---- */

static void build_fold(call *c)
{
    int code = c->text ? op_parse(c->text) : -1;
    ir_type res = {0};

    if (code < 0 || !op_is_fold((enum ir_opcode)code)) {
        call_bad(c, DIAG_IR_OP, "'%.60s' is neither reduce nor scan", c->text ? c->text : "");
        return;
    }
    c->name = op_info((enum ir_opcode)code)->name;
    if (!may_open(c) || !call_fits(c, (enum ir_opcode)code, c->args, 1, c->attr, &res))
        return;
    ir_op *op = ir_fold(&c->b->b, (enum ir_opcode)code, c->args[0], (int)c->attr[0].i);
    enter(c, op);
    give(c, op->regions[0]->arg);
}

void tw_ir_fold_begin(tw_ir *b, const char *op, tw_ir_val x, int axis, tw_ir_val element[2])
{
    call_run((call){.b = b,
                    .name = "tw_ir_fold_begin",
                    .build = build_fold,
                    .text = op,
                    .args = &x,
                    .nargs = 1,
                    .attr = {{.i = axis}},
                    .out = element,
                    .nout = 2});
}

static void build_fold_end(call *c)
{
    open_region *r = cbuild_folds(c->b) ? &c->b->open.at[c->b->open.n - 1] : NULL;

    if (!r) {
        call_bad(c, DIAG_IR_REGION, "no reduce or scan is open here");
        return;
    }
    const ir_type element = type_scalar(ir_type_of(c->b->b.fn, r->op->args[0]).dtype);
    if (!match(c, c->args, 1, &element, 1))
        return;
    ir_yield(&c->b->b, c->args, 1);
    c->res = r->op->res;
    leave(c, r);
}

tw_ir_val tw_ir_fold_end(tw_ir *b, tw_ir_val value)
{
    return call_run((call){
        .b = b, .name = "tw_ir_fold_end", .build = build_fold_end, .args = &value, .nargs = 1});
}

/* ---- launch functions ---- */

static bool in_launch(call *c)
{
    if (!c->b->is_launch)
        call_bad(c, DIAG_IR_HOST, "only a launch function gives it");
    return call_ok(c);
}

static ir_val given_flag(const ir_fn *fn, int32_t param)
{
    for (uint32_t i = 0; i < fn->params.n; i++) {
        if (fn->params.at[i].kind == PARAM_GIVEN && fn->params.at[i].symbol == param)
            return ir_param_value(fn, (int)i);
    }
    return 0;
}

static void build_default(call *c)
{
    const kernel_sig *sig = c->b->sig;
    const char *name = c->text ? c->text : "";
    uint32_t i = 0;

    while (i < sig->nparams && strcmp(sig->param[i].name, name) != 0)
        i++;
    if (!in_launch(c))
        return;
    if (i == sig->nparams || sig->param[i].is_tensor || !sig->param[i].has_default) {
        call_bad(c, DIAG_UNKNOWN_NAME, "the kernel has no scalar '%.60s' that has a default", name);
        return;
    }
    ir_val passed = ir_param_value(c->b->b.fn, (int)i);
    if (c->b->scalar[i] != passed) {
        call_bad(c, DIAG_DUPLICATE_NAME, "'%s' has its default already", name);
        return;
    }
    const tw_ir_val args[] = {given_flag(c->b->b.fn, (int32_t)i), passed, c->args[0]};
    c->res = call_emit(c, OP_WHERE, args, 3, NULL, (ir_type){0});
    if (c->res)
        c->b->scalar[i] = c->res;
}

tw_ir_val tw_ir_default(tw_ir *b, const char *name, tw_ir_val otherwise)
{
    return call_run((call){.b = b,
                           .name = "tw_ir_default",
                           .build = build_default,
                           .text = name,
                           .args = &otherwise,
                           .nargs = 1});
}

static ir_val extent(call *c, tw_ir_val v)
{
    ir_builder *b = &c->b->b;

    if (v == 0)
        return ir_const_int(b, DT_I64, 1);
    if (!call_see(c, &v, 1))
        return 0;
    ir_type t = ir_type_of(b->fn, v);
    if (t.kind != TYPE_SCALAR || !dtype_is_int((enum dtype)t.dtype)) {
        call_bad(c, DIAG_IR_OP, "an extent of the grid is an integer, not %s",
                 type_text(c->b->diags->a, t));
        return 0;
    }
    return t.dtype == DT_I64 ? v : ir_cast(b, v, DT_I64);
}

static void build_grid(call *c)
{
    const kernel_sig *sig = c->b->sig;
    ir_val *res = ARENA_ARRAY(c->b->b.fn->module->a, ir_val, sig->nparams + 3);
    int n = 3;

    if (!in_launch(c))
        return;
    for (int i = 0; i < 3 && call_ok(c); i++)
        res[i] = extent(c, c->args[i]);
    for (uint32_t i = 0; i < sig->nparams && call_ok(c); i++) {
        if (sig->param[i].is_tensor)
            continue;
        res[n++] = c->b->scalar[i];
        if (sig->param[i].has_default && c->b->scalar[i] == ir_param_value(c->b->b.fn, (int)i))
            call_bad(c, DIAG_IR_SIGNATURE, "'%s' has a default, which was not given",
                     sig->param[i].name);
    }
    if (!call_ok(c))
        return;
    ir_return(&c->b->b, res, n);
    c->b->done = true;
}

void tw_ir_grid(tw_ir *b, tw_ir_val x, tw_ir_val y, tw_ir_val z)
{
    call_run((call){.b = b,
                    .name = "tw_ir_grid",
                    .build = build_grid,
                    .args = (tw_ir_val[]){x, y, z},
                    .nargs = 3});
}
