#include "compiler/ir/cbuild.h"
#include "compiler/base/check.h"
#include "compiler/base/guard.h"
#include <string.h>

/* ---- calls ---- */

static tw_status run_guarded(void *arg)
{
    call *c = arg;
    tw_ir *b = c->b;

    if (b->calls++ == CBUILD_MAX_CALLS)
        call_bad(c, DIAG_LIMIT, "more than %u calls build a kernel", CBUILD_MAX_CALLS);
    else if (!b->b.fn)
        call_bad(c, DIAG_IR_SCOPE, "nothing is built where a configuration is judged");
    else if (b->done)
        call_bad(c, DIAG_IR_TERMINATOR, "the grid is the last that a launch function gives");
    else if (c->nargs > CBUILD_MAX_LIST || c->nout > CBUILD_MAX_LIST)
        call_bad(c, DIAG_LIMIT, "more than %d values", CBUILD_MAX_LIST);
    else if ((c->nargs && !c->args) || (c->nout && !c->out))
        call_bad(c, DIAG_IR_OP, "an array is NULL though its count is not 0");
    else
        c->build(c);
    return b->st;
}

ir_val call_run(call c)
{
    for (size_t i = 0; c.out && i < c.nout && i < CBUILD_MAX_LIST; i++)
        c.out[i] = 0;
    if (!c.b || c.b->st != TW_OK)
        return 0;
    tw_status st = guard_run(run_guarded, &c);
    if (c.b->st == TW_OK)
        c.b->st = st; /* thrown */
    return c.b->st == TW_OK ? c.res : 0;
}

bool call_ok(const call *c)
{
    return c->b->st == TW_OK;
}

static const char *part_name(const tw_ir *b)
{
    return b->is_launch ? "the launch function" : b->b.fn ? "the body" : "refuse";
}

void call_bad(call *c, enum diag_id id, const char *fmt, ...)
{
    tw_ir *b = c->b;
    arena *a = b->diags->a;
    va_list ap;

    if (b->st != TW_OK)
        return;
    b->st = id == DIAG_LIMIT ? TW_E_LIMIT : id == DIAG_BAD_BINDING ? TW_E_ARG : TW_E_SOURCE;
    va_start(ap, fmt);
    const char *text = arena_vprintf(a, fmt, ap);
    va_end(ap);
    const char *place = b->file ? arena_printf(a, " at %s:%d", b->file, b->line) : "";
    diag_add(b->diags, id, (span){0}, "kernel '%s', %s, call %u, '%s'%s: %s", b->sig->name,
             part_name(b), b->calls, c->name, place, text);
}

/* ---- operands ---- */

static const ir_block *block_of(const ir_value *v)
{
    return v->def ? v->def->parent : v->block;
}

static bool in_sight(const tw_ir *b, tw_ir_val v)
{
    const ir_block *at = block_of(ir_value_of(b->b.fn, v));

    if (at == b->b.fn->body)
        return true;
    for (uint32_t i = 0; i < b->open.n; i++) {
        if (b->open.at[i].op->regions[b->open.at[i].region] == at)
            return true;
    }
    return false;
}

bool call_see(call *c, const tw_ir_val *args, size_t n)
{
    const ir_fn *fn = c->b->b.fn;

    for (size_t i = 0; i < n && call_ok(c); i++) {
        if (args[i] == 0 || args[i] >= fn->values.n)
            call_bad(c, DIAG_IR_SCOPE, "operand %zu is no value", i + 1);
        else if (!in_sight(c->b, args[i]))
            call_bad(c, DIAG_IR_SCOPE,
                     "operand %zu is not in sight: the region that it was built in has ended",
                     i + 1);
        else if (c->b->is_launch && ir_type_of(fn, args[i]).kind == TYPE_VIEW)
            call_bad(c, DIAG_IR_HOST, "a launch function does not use tensors");
    }
    return call_ok(c);
}

bool cbuild_folds(const tw_ir *b)
{
    return b->open.n && op_is_fold((enum ir_opcode)b->open.at[b->open.n - 1].op->code);
}

bool call_fits(call *c, enum ir_opcode code, const tw_ir_val *args, size_t n, const ir_attr *attrs,
               ir_type *type)
{
    const ir_fn *fn = c->b->b.fn;
    const char *why = "";

    if (!call_see(c, args, n))
        return false;
    if (c->b->is_launch && !(op_info(code)->traits & OPT_HOST))
        call_bad(c, DIAG_IR_HOST, "a launch function holds only operations that the host runs");
    else if (cbuild_folds(c->b) && !op_folds(code))
        call_bad(c, DIAG_IR_REGION, "the function of a reduction is of elementwise operations");
    else if (!op_result_type(fn, code, args, (int)n, attrs, type, &why))
        call_bad(c, DIAG_IR_OP, "%s%s", why, op_operand_types(c->b->diags->a, fn, args, (int)n));
    return call_ok(c);
}

ir_val call_emit(call *c, enum ir_opcode code, const tw_ir_val *args, size_t n,
                 const ir_attr *attrs, ir_type type)
{
    static const ir_attr none[OP_MAX_ATTRS];
    ir_type res = type;

    if (!call_ok(c) || !call_fits(c, code, args, n, attrs ? attrs : none, &res))
        return 0;
    return ir_build(&c->b->b, code, args, (int)n, attrs ? attrs : none, type)->res;
}

enum dtype call_dtype(call *c, tw_ir_dtype dtype)
{
    if ((unsigned)dtype < DT_COUNT)
        return (enum dtype)dtype;
    call_bad(c, DIAG_IR_OP, "%d is no element type", (int)dtype);
    return DT_NONE;
}

/* ---- functions ---- */

void cbuild_begin(tw_ir *b, ir_fn *fn, bool is_launch)
{
    b->b = ir_at_end(fn, fn->body);
    b->is_launch = is_launch;
    b->done = false;
    b->calls = 0;
    b->file = NULL;
    b->scalar = ARENA_ARRAY(fn->module->a, ir_val, b->sig->nparams);
    for (uint32_t i = 0; i < b->sig->nparams; i++)
        b->scalar[i] = ir_param_value(fn, (int)i);
}

tw_status cbuild_end(tw_ir *b)
{
    call c = {.b = b, .name = "end"};

    if (b->st != TW_OK)
        return b->st;
    if (b->open.n)
        call_bad(&c, DIAG_IR_TERMINATOR, "'%s' has no end",
                 op_info(b->open.at[b->open.n - 1].op->code)->name);
    else if (b->is_launch && !b->done)
        call_bad(&c, DIAG_IR_TERMINATOR, "no grid was given");
    else if (!b->is_launch)
        ir_return(&b->b, NULL, 0);
    return b->st;
}

/* ---- asking ---- */

static bool same_name(const char *name, const char *asked)
{
    return asked && strcmp(name, asked) == 0;
}

static const char *binding_text(enum binding_kind kind)
{
    static const char *const text[] = {"dtype", "int", "bool", "member of an enumeration",
                                       "function"};
    return text[kind];
}

static const ir_binding *binding_of(call *c, const char *name, enum binding_kind kind)
{
    const ir_binding *x = name ? binding_find(c->b->binding, c->b->nbinding, name) : NULL;

    if (x && x->kind == kind)
        return x;
    if (x)
        call_bad(c, DIAG_IR_OP, "'%s' is no %s", name, binding_text(kind));
    else
        call_bad(c, DIAG_UNKNOWN_NAME, "the kernel has no compile-time value '%.60s'",
                 name ? name : "");
    return NULL;
}

typedef struct question {
    call c;
    const char *name;
    enum binding_kind kind;
} question;

static tw_status miss(void *arg)
{
    question *q = arg;

    (void)binding_of(&q->c, q->name, q->kind);
    return q->c.b->st;
}

/* Answered also after a wrong call: what a function does with it may not end otherwise. */
static int64_t ask(tw_ir *b, const char *call_name, const char *name, enum binding_kind kind)
{
    const ir_binding *x = b && name ? binding_find(b->binding, b->nbinding, name) : NULL;
    question q = {{.b = b, .name = call_name}, name, kind};

    if (x && x->kind == kind)
        return x->value;
    if (b && b->st == TW_OK) {
        b->calls++;
        tw_status st = guard_run(miss, &q);
        b->st = b->st ? b->st : st;
    }
    return 0;
}

int64_t tw_ir_int(tw_ir *b, const char *name)
{
    return ask(b, "tw_ir_int", name, BIND_INT);
}

bool tw_ir_bool(tw_ir *b, const char *name)
{
    return ask(b, "tw_ir_bool", name, BIND_BOOL) != 0;
}

tw_ir_dtype tw_ir_dtype_of(tw_ir *b, const char *name)
{
    return (tw_ir_dtype)ask(b, "tw_ir_dtype_of", name, BIND_DTYPE);
}

const char *tw_ir_member(tw_ir *b, const char *name)
{
    int64_t at = ask(b, "tw_ir_member", name, BIND_ENUM);

    for (uint32_t i = 0; b && i < b->sig->nconsts; i++) {
        const sig_const *k = &b->sig->cons[i];
        if (k->kind == BIND_ENUM && same_name(k->name, name) && at >= 0 && at < k->nmembers)
            return k->member[at];
    }
    return "";
}

const char *tw_ir_target(tw_ir *b)
{
    return b && b->target ? b->target : "";
}

tw_status tw_ir_status(const tw_ir *b)
{
    return b ? b->st : TW_E_ARG;
}

static void build_fail(call *c)
{
    call_bad(c, DIAG_BAD_BINDING, "%s", c->text ? c->text : "");
}

void tw_ir_fail(tw_ir *b, const char *text)
{
    call_run((call){.b = b, .name = "tw_ir_fail", .build = build_fail, .text = text});
}

static void build_at(call *c)
{
    c->b->calls--; /* it builds nothing: numbers are those of the calls that do */
    c->b->file = c->text ? arena_printf(c->b->diags->a, "%.200s", c->text) : NULL;
}

void tw_ir_at(tw_ir *b, const char *file, int line)
{
    call_run((call){.b = b, .name = "tw_ir_at", .build = build_at, .text = file});
    if (b)
        b->line = line;
}

static void build_name(call *c)
{
    if (call_see(c, c->args, c->nargs))
        ir_name(c->b->b.fn, c->args[0], c->text);
}

void tw_ir_name(tw_ir *b, tw_ir_val v, const char *name)
{
    call_run((call){
        .b = b, .name = "tw_ir_name", .build = build_name, .args = &v, .nargs = 1, .text = name});
}

/* ---- parameters ---- */

static void build_param(call *c)
{
    const kernel_sig *sig = c->b->sig;

    for (uint32_t i = 0; i < sig->nparams; i++) {
        if (!same_name(sig->param[i].name, c->text))
            continue;
        c->res = c->b->scalar[i];
        call_see(c, &c->res, 1);
        return;
    }
    call_bad(c, DIAG_UNKNOWN_NAME, "the kernel has no parameter '%.60s'", c->text ? c->text : "");
}

tw_ir_val tw_ir_param_value(tw_ir *b, const char *name)
{
    return call_run(
        (call){.b = b, .name = "tw_ir_param_value", .build = build_param, .text = name});
}

static void build_dim(call *c)
{
    const kernel_sig *sig = c->b->sig;

    for (uint32_t i = 0; i < sig->nsymbols; i++) {
        if (same_name(sig->symbol[i], c->text)) {
            c->res = ir_dim_value(&c->b->b, (int)i);
            return;
        }
    }
    const ir_binding *x = binding_of(c, c->text, BIND_INT);
    if (x && (x->value < INT32_MIN || x->value > INT32_MAX))
        call_bad(c, DIAG_IR_OP, "'%s' is %lld, which is no i32", x->name, (long long)x->value);
    else if (x)
        c->res = ir_const_int(&c->b->b, DT_I32, x->value);
}

tw_ir_val tw_ir_dim(tw_ir *b, const char *name)
{
    return call_run((call){.b = b, .name = "tw_ir_dim", .build = build_dim, .text = name});
}
