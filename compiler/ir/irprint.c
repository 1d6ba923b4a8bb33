/* Tile IR -> text. A value gets its name when its definition is printed, in text order, so that
 * the names of the result are those of its reprint. */
#include "compiler/base/check.h"
#include "compiler/base/guard.h"
#include "compiler/ir/irbuild.h"
#include "compiler/ir/irlex.h"
#include "compiler/ir/irtext.h"
#include "compiler/ir/layout.h"
#include "compiler/ir/namemap.h"

typedef struct printer {
    strbuf *out;
    const ir_fn *fn;
    bool plain;
    int indent;
    const char **shown; /* per value */
    intern names;       /* those in use ... */
    namemap taken;      /* ... and for each the next suffix to try */
    uint32_t numbered;
    const char **layout; /* names, by number; plain: NULL when not used */
} printer;

#define INDENT 4

static void print_block(printer *p, const ir_block *blk);

/* ---- names ---- */

static const char *claim(printer *p, const char *hint)
{
    const char *base = intern_str(&p->names, hint), *name = base;

    while (*namemap_at(&p->taken, name)) {
        uint32_t suffix = (*namemap_at(&p->taken, base))++;
        name = intern_str(&p->names, arena_printf(p->out->a, "%s_%u", base, suffix));
    }
    *namemap_at(&p->taken, name) = 1;
    return name;
}

static bool is_param(const ir_value *v)
{
    return v->block && !v->block->owner;
}

static const char *new_name(printer *p, const ir_value *v)
{
    if (is_param(v))
        return p->plain ? arena_printf(p->out->a, "p%u", v->index)
                        : claim(p, p->fn->params.at[v->index].name);
    if (!p->plain && v->name && ir_is_name(v->name))
        return claim(p, v->name);
    return arena_printf(p->out->a, "%u", p->numbered++);
}

static void print_value(printer *p, ir_val v)
{
    if (v == 0 || v >= p->fn->values.n) {
        sb_fmt(p->out, "%%<bad %u>", v); /* damaged IR, shown to find out why */
        return;
    }
    if (!p->shown[v])
        p->shown[v] = new_name(p, ir_value_of(p->fn, v));
    sb_fmt(p->out, "%%%s", p->shown[v]);
}

static void print_values(printer *p, const ir_val *v, int n)
{
    for (int i = 0; i < n; i++) {
        sb_str(p->out, i ? ", " : " ");
        print_value(p, v[i]);
    }
}

static void print_type(printer *p, ir_val v)
{
    ir_type ty = v < p->fn->values.n ? ir_type_of(p->fn, v) : (ir_type){0};

    type_print(p->out, ty);
    if (ty.layout && ty.layout < p->fn->layouts.n)
        sb_fmt(p->out, " #%s", p->layout[ty.layout]);
    else if (ty.layout)
        sb_fmt(p->out, " #<bad %u>", ty.layout);
}

/* " : type, type" of consecutive values */
static void print_types(printer *p, ir_val first, int n)
{
    for (int i = 0; i < n; i++) {
        sb_str(p->out, i ? ", " : " : ");
        print_type(p, first + (ir_val)i);
    }
}

/* ---- ops ---- */

static void print_text(strbuf *out, const char *s)
{
    sb_char(out, '"');
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            sb_fmt(out, "\\%c", c);
        else if (c == '\n')
            sb_str(out, "\\n");
        else if (c < ' ' || c == 0x7f)
            sb_fmt(out, "\\x%02x", c);
        else
            sb_char(out, (char)c);
    }
    sb_char(out, '"');
}

static void print_ints(strbuf *out, const ir_attr *x)
{
    sb_char(out, '[');
    for (uint32_t i = 0; i < x->ints.n; i++)
        sb_fmt(out, "%s%lld", i ? ", " : "", (long long)x->ints.at[i]);
    sb_char(out, ']');
}

static void print_attr(printer *p, const ir_op *op, int i)
{
    const ir_attr *x = &op->attr[i];
    strbuf *out = p->out;

    switch (op_info(op->code)->attr[i].kind) {
    case ATTR_NONE:
        break;
    case ATTR_I64:
        sb_fmt(out, "%lld", (long long)x->i);
        break;
    case ATTR_F64:
        sb_float(out, x->f, op->nres && ir_type_of(p->fn, op->res).dtype != DT_F64);
        break;
    case ATTR_INTS:
        print_ints(out, x);
        break;
    case ATTR_STR:
        print_text(out, x->s ? x->s : "");
        break;
    case ATTR_DTYPE:
        sb_str(out, dtype_name((enum dtype)x->i));
        break;
    }
}

static void print_attrs(printer *p, const ir_op *op)
{
    const ir_op_info *info = op_info(op->code);

    for (int i = 0; i < OP_MAX_ATTRS && info->attr[i].kind; i++) {
        sb_char(p->out, ' ');
        if (!ir_attr_is_bare(info, i))
            sb_fmt(p->out, "%s=", info->attr[i].name);
        print_attr(p, op, i);
    }
}

static void print_results(printer *p, const ir_op *op)
{
    for (int i = 0; i < op->nres; i++) {
        sb_str(p->out, i ? ", " : "");
        print_value(p, op->res + (ir_val)i);
    }
    if (op->nres)
        sb_str(p->out, " = ");
}

/* " word (%a = %init : type, ...)"; without inits "(%a : type, ...)"; nothing when n is 0 */
static void print_carried(printer *p, const char *word, ir_val arg, const ir_val *init, int n)
{
    for (int i = 0; i < n; i++) {
        sb_fmt(p->out, i ? ", " : " %s(", word);
        print_value(p, arg + (ir_val)i);
        if (init) {
            sb_str(p->out, " = ");
            print_value(p, init[i]);
        }
        print_types(p, arg + (ir_val)i, 1);
    }
    if (n > 0)
        sb_char(p->out, ')');
}

static void print_for(printer *p, const ir_op *op)
{
    const ir_block *body = op->regions[0];

    sb_str(p->out, "for ");
    print_value(p, body->arg);
    sb_str(p->out, " = ");
    print_value(p, op->args[0]);
    sb_str(p->out, " to ");
    print_value(p, op->args[1]);
    sb_str(p->out, " step ");
    print_value(p, op->args[2]);
    print_carried(p, "iter ", body->arg + 1, op->args + 3, op->nargs - 3);
    print_block(p, body);
}

static void print_while(printer *p, const ir_op *op)
{
    sb_str(p->out, "while");
    print_carried(p, "iter ", op->regions[0]->arg, op->args, op->nargs);
    print_block(p, op->regions[0]);
    sb_str(p->out, " do");
    print_carried(p, "", op->regions[1]->arg, NULL, (int)op->regions[1]->nargs);
    print_block(p, op->regions[1]);
}

static void print_if(printer *p, const ir_op *op)
{
    sb_str(p->out, "if");
    print_values(p, op->args, op->nargs);
    print_types(p, op->res, op->nres);
    print_block(p, op->regions[0]);
    sb_str(p->out, " else");
    print_block(p, op->regions[1]);
}

static void print_plain_op(printer *p, const ir_op *op)
{
    sb_str(p->out, op_info(op->code)->name);
    print_values(p, op->args, op->nargs);
    print_attrs(p, op);
    print_types(p, op->res, op->nres);
    if (op->code == OP_ROLE)
        print_block(p, op->regions[0]);
}

/* name %x axis=1 : type (%a : t, %b : t) { ... } */
static void print_fold(printer *p, const ir_op *op)
{
    print_plain_op(p, op);
    print_carried(p, "", op->regions[0]->arg, NULL, 2);
    print_block(p, op->regions[0]);
}

static void print_op(printer *p, const ir_op *op)
{
    sb_pad(p->out, ' ', p->indent);
    print_results(p, op);
    if (op->code == OP_FOR)
        print_for(p, op);
    else if (op->code == OP_WHILE)
        print_while(p, op);
    else if (op->code == OP_IF)
        print_if(p, op);
    else if (op_is_fold((enum ir_opcode)op->code))
        print_fold(p, op);
    else
        print_plain_op(p, op);
    sb_char(p->out, '\n');
}

static void print_block(printer *p, const ir_block *blk)
{
    sb_str(p->out, " {\n");
    p->indent += INDENT;
    for IR_EACH_OP(op, blk)
        print_op(p, op);
    p->indent -= INDENT;
    sb_pad(p->out, ' ', p->indent);
    sb_char(p->out, '}');
}

/* ---- functions ---- */

static void print_dim_name(printer *p, int i)
{
    const ir_dim *d = &p->fn->dims.at[i];

    if (p->plain)
        sb_fmt(p->out, "d%d", i);
    else if (d->name)
        sb_str(p->out, d->name);
    else
        sb_fmt(p->out, "%lld", (long long)d->value);
}

static void print_dims(printer *p)
{
    for (uint32_t i = 0; i < p->fn->dims.n; i++) {
        const ir_dim *d = &p->fn->dims.at[i];
        sb_str(p->out, i ? ", " : "<");
        print_dim_name(p, (int)i);
        if (d->is_const && (d->name || p->plain))
            sb_fmt(p->out, " = %lld", (long long)d->value);
    }
    if (p->fn->dims.n)
        sb_char(p->out, '>');
}

static void print_tensor_tail(printer *p, const ir_param *q)
{
    for (int i = 0; i < q->type.rank; i++) {
        sb_str(p->out, i ? ", " : "[");
        print_dim_name(p, q->dim[i]);
    }
    sb_char(p->out, ']');
    if (q->unit_inner)
        sb_str(p->out, " unit");
    if (q->align)
        sb_fmt(p->out, " align=%u", q->align);
}

static void print_param(printer *p, int i)
{
    static const char *const direction[] = {"in ", "out ", "inout "};
    const ir_param *q = &p->fn->params.at[i];
    ir_val v = ir_param_value(p->fn, i);

    bool is_view = q->kind == PARAM_TENSOR || q->kind == PARAM_WORKSPACE;

    if (q->kind == PARAM_WORKSPACE)
        sb_str(p->out, "workspace ");
    if (is_view)
        sb_str(p->out, direction[q->direction]);
    else if (q->kind != PARAM_SCALAR)
        sb_str(p->out, q->kind == PARAM_DIM ? "dim " : "given ");
    print_value(p, v);
    print_types(p, v, 1);
    if (is_view) {
        print_tensor_tail(p, q);
    } else if (q->kind == PARAM_DIM) {
        sb_str(p->out, " = ");
        print_dim_name(p, q->symbol);
    } else if (q->kind == PARAM_GIVEN) {
        sb_str(p->out, " = ");
        print_value(p, ir_param_value(p->fn, q->symbol));
    } else if (q->has_default) {
        sb_str(p->out, " default");
    }
}

/* The parameters of one kind of function, one a line. Those of the kernel are not repeated for the
 * launch function, but take their names first. */
static void print_params(printer *p, bool given)
{
    const char *comma = "\n";

    sb_char(p->out, '(');
    for (uint32_t i = 0; i < p->fn->params.n; i++) {
        ir_val v = ir_param_value(p->fn, (int)i);
        if ((p->fn->params.at[i].kind == PARAM_GIVEN) != given) {
            p->shown[v] = new_name(p, ir_value_of(p->fn, v));
            continue;
        }
        sb_str(p->out, comma);
        sb_pad(p->out, ' ', INDENT);
        print_param(p, (int)i);
        comma = ",\n";
    }
    sb_str(p->out, *comma == ',' ? "\n)" : ")");
}

/* ---- layouts ---- */

/* In the plain form layouts are those that are used, numbered as they come up, parents first. */
static void number_layout(printer *p, uint16_t lay, uint32_t *next)
{
    if (lay == 0 || lay >= p->fn->layouts.n || p->layout[lay])
        return;
    number_layout(p, p->fn->layouts.at[lay]->parent, next);
    p->layout[lay] = arena_printf(p->out->a, "l%u", (*next)++);
    const ir_layout *at = p->fn->layouts.at[lay];
    layout_print_as(p->out, at, p->layout[lay], at->parent ? p->layout[at->parent] : "");
    sb_char(p->out, '\n');
}

static void number_in_block(printer *p, const ir_block *blk, uint32_t *next)
{
    for (uint32_t i = 0; i < blk->nargs; i++)
        number_layout(p, ir_type_of(p->fn, blk->arg + i).layout, next);
    for IR_EACH_OP(op, blk) {
        for (int i = 0; i < op->nres; i++)
            number_layout(p, ir_type_of(p->fn, op->res + (ir_val)i).layout, next);
        for (int i = 0; i < op->nregions; i++)
            number_in_block(p, op->regions[i], next);
    }
}

/* "level 2 warps=4" and the layouts, one a line */
static void print_schedule(printer *p)
{
    uint32_t next = 0;

    sb_fmt(p->out, "level 2 warps=%d\n", p->fn->warps);
    for (uint32_t i = 1; i < p->fn->layouts.n && !p->plain; i++) {
        p->layout[i] = p->fn->layouts.at[i]->name;
        layout_print(p->out, p->fn, (uint16_t)i);
        sb_char(p->out, '\n');
    }
    if (p->plain)
        number_in_block(p, p->fn->body, &next);
    sb_char(p->out, '\n');
}

static void print_fn(strbuf *out, const ir_fn *fn, bool plain, bool launch)
{
    printer p = {.out = out, .fn = fn, .plain = plain};

    p.shown = ARENA_ARRAY(out->a, const char *, fn->values.n);
    intern_init(&p.names, out->a);
    namemap_init(&p.taken, out->a);
    p.layout = ARENA_ARRAY(out->a, const char *, fn->layouts.n);
    if (fn->module->level == 2 && !launch)
        print_schedule(&p);
    if (launch) {
        sb_str(out, "\nlaunch ");
    } else {
        sb_fmt(out, "kernel @%s", plain ? "k" : fn->name);
        print_dims(&p);
    }
    print_params(&p, launch);
    print_block(&p, fn->body);
    sb_char(out, '\n');
}

void ir_print(strbuf *out, const ir_module *m, unsigned flags)
{
    bool plain = flags & IR_PRINT_PLAIN;

    print_fn(out, m->kernel, plain, false);
    if (m->launch)
        print_fn(out, m->launch, plain, true);
}

/* ---- hash ---- */

typedef struct hashing {
    arena a;
    const ir_module *m;
    hash128 h;
} hashing;

static tw_status hash_printed(void *arg)
{
    hashing *job = arg;
    strbuf text;

    sb_init(&text, &job->a);
    ir_print(&text, job->m, IR_PRINT_PLAIN);
    job->h = hash_mem(text.s, text.n);
    return TW_OK;
}

hash128 ir_hash(const ir_module *m)
{
    hashing job = {.m = m};

    arena_init(&job.a);
    tw_status st = guard_run(hash_printed, &job);
    arena_release(&job.a);
    if (st != TW_OK)
        guard_throw(st);
    return job.h;
}
