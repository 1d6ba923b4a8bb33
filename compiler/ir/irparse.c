/* Text -> tile IR, by recursive descent over the grammar of docs/IR.md, through the builder only.
 */
#include "compiler/ir/irparse.h"
#include "compiler/ir/irtext.h"
#include <string.h>

#define OUT_OF_SCOPE UINT32_MAX

/* ---- tokens ---- */

void irp_advance(ir_parser *p)
{
    p->t = ir_lex(&p->lx);
}

bool irp_fail(ir_parser *p, span where, enum diag_id id, const char *text)
{
    diag_add(p->lx.diags, id, where, "%s", text);
    return false;
}

bool irp_expected(ir_parser *p, const char *what)
{
    if (p->t.kind == IRT_BAD)
        return false;
    diag *d = diag_add(p->lx.diags, DIAG_IR_SYNTAX, p->t.where, "%s is expected here", what);
    if (p->t.kind == IRT_LAYOUT)
        diag_hint(p->lx.diags, d, "'#' and a space start a comment");
    return false;
}

bool irp_at_punct(const ir_parser *p, char c)
{
    return p->t.kind == IRT_PUNCT && p->t.i == c;
}

bool irp_at_word(const ir_parser *p, const char *word)
{
    return p->t.kind == IRT_WORD && strcmp(p->t.s, word) == 0;
}

bool irp_take_punct(ir_parser *p, char c)
{
    bool here = irp_at_punct(p, c);

    if (here)
        irp_advance(p);
    return here;
}

bool irp_take_word(ir_parser *p, const char *word)
{
    bool here = irp_at_word(p, word);

    if (here)
        irp_advance(p);
    return here;
}

bool irp_need_punct(ir_parser *p, char c)
{
    char what[] = "'?'";

    what[1] = c;
    return irp_take_punct(p, c) || irp_expected(p, what);
}

bool irp_need_word(ir_parser *p, const char *word)
{
    char what[32] = "'";

    if (irp_take_word(p, word))
        return true;
    strncat(what, word, sizeof what - 3);
    return irp_expected(p, strcat(what, "'"));
}

bool irp_need_int(ir_parser *p, int64_t least, int64_t most, int64_t *out)
{
    if (p->t.kind != IRT_INT)
        return irp_expected(p, "an integer");
    if (p->t.i < least || p->t.i > most) {
        diag_add(p->lx.diags, DIAG_IR_SYNTAX, p->t.where,
                 "an integer from %lld to %lld is expected here", (long long)least,
                 (long long)most);
        return false;
    }
    *out = p->t.i;
    irp_advance(p);
    return true;
}

/* ---- names of values ---- */

bool irp_need_name(ir_parser *p, binding *b)
{
    if (p->t.kind != IRT_VALUE)
        return irp_expected(p, "a value (%name)");
    *b = (binding){p->t.s, p->t.where};
    irp_advance(p);
    return true;
}

bool irp_bind(ir_parser *p, const binding *b, ir_val v)
{
    uint32_t *at = namemap_at(&p->scope, b->name);

    if (*at && *at != OUT_OF_SCOPE) {
        diag_add(p->lx.diags, DIAG_IR_NAME, b->where, "'%%%s' is defined already", b->name);
        return false;
    }
    *at = v;
    vec_push(&p->open, p->lx.a, b->name);
    if (ir_is_name(b->name))
        ir_name(p->fn, v, b->name);
    return true;
}

void irp_leave_scope(ir_parser *p, uint32_t mark)
{
    while (p->open.n > mark)
        *namemap_at(&p->scope, p->open.at[--p->open.n]) = OUT_OF_SCOPE;
}

bool irp_need_value(ir_parser *p, ir_val *v)
{
    binding b;

    if (!irp_need_name(p, &b))
        return false;
    *v = *namemap_at(&p->scope, b.name);
    if (*v == 0 || *v == OUT_OF_SCOPE) {
        diag_add(p->lx.diags, DIAG_IR_NAME, b.where, "'%%%s' is not defined %s", b.name,
                 *v ? "here: its block has ended" : "before this");
        return false;
    }
    return true;
}

bool irp_too_many(ir_parser *p, uint32_t n)
{
    return n >= IRP_MAX_LIST &&
           !irp_fail(p, p->t.where, DIAG_LIMIT, "a list has at most 1024 entries");
}

/* ---- types ---- */

bool irp_need_dtype(ir_parser *p, enum dtype *d)
{
    *d = p->t.kind == IRT_WORD ? dtype_parse(p->t.s) : DT_NONE;
    if (*d == DT_NONE)
        return irp_expected(p, "a type");
    irp_advance(p);
    return true;
}

static bool parse_layout_name(ir_parser *p, ir_type *out)
{
    if (p->fn->module->level == 2)
        return irp_layout(p, &out->layout);
    if (p->t.kind != IRT_LAYOUT)
        return true;
    return irp_fail(p, p->t.where, DIAG_IR_SYNTAX, "level 1 has no layouts");
}

/* Extents up to the closing bracket, at most `most` of them. */
static bool parse_extents(ir_parser *p, int most, ir_type *out)
{
    int64_t elements = 1, extent;
    span where = p->t.where;

    do {
        if (out->rank == most)
            return irp_fail(p, p->t.where, DIAG_LIMIT, "a tile has at most 4 dimensions");
        if (!irp_need_int(p, 1, TILE_MAX_ELEMENTS, &extent))
            return false;
        out->shape[out->rank++] = (int32_t)extent;
        elements *= extent;
        if (elements > TILE_MAX_ELEMENTS)
            return irp_fail(p, where, DIAG_LIMIT, "a tile has at most 1048576 elements");
    } while (irp_take_punct(p, ','));
    return irp_need_punct(p, ']');
}

static bool parse_tile(ir_parser *p, enum dtype d, ir_type *out)
{
    *out = (ir_type){.kind = TYPE_TILE, .dtype = (uint8_t)d};
    return parse_extents(p, TILE_MAX_RANK, out) && parse_layout_name(p, out);
}

static bool parse_buffer(ir_parser *p, ir_type *out)
{
    enum dtype d;

    if (!irp_need_punct(p, '<') || !irp_need_dtype(p, &d) || !irp_need_punct(p, ',') ||
        !irp_need_punct(p, '['))
        return false;
    *out = (ir_type){.kind = TYPE_BUFFER, .dtype = (uint8_t)d};
    return parse_extents(p, TILE_MAX_RANK + 1, out) && irp_need_punct(p, '>') &&
           irp_layout(p, &out->layout);
}

static bool parse_view(ir_parser *p, ir_type *out)
{
    enum dtype d;
    int64_t rank;

    if (!irp_need_punct(p, '<') || !irp_need_dtype(p, &d) || !irp_need_punct(p, ',') ||
        !irp_need_int(p, 1, VIEW_MAX_RANK, &rank) || !irp_need_punct(p, '>'))
        return false;
    *out = type_view(d, (int)rank);
    return true;
}

bool irp_type(ir_parser *p, ir_type *out)
{
    enum dtype d;

    if ((irp_at_word(p, "buf") || irp_at_word(p, "mbar")) && p->fn->module->level == 1)
        return irp_fail(p, p->t.where, DIAG_IR_SYNTAX, "level 1 has no type of this name");
    if (irp_take_word(p, "view"))
        return parse_view(p, out);
    if (irp_take_word(p, "buf"))
        return parse_buffer(p, out);
    if (irp_take_word(p, "mbar")) {
        *out = (ir_type){.kind = TYPE_MBAR};
        return true;
    }
    if (!irp_need_dtype(p, &d))
        return false;
    *out = type_scalar(d);
    return !irp_take_punct(p, '[') || parse_tile(p, d, out);
}

/* ---- functions ---- */

/* A dimension as referred to: by name, or by value when it has none. -1 after an error. */
static int need_dim(ir_parser *p)
{
    const ir_fn *fn = p->fn;

    for (uint32_t i = 0; i < fn->dims.n; i++) {
        const ir_dim *d = &fn->dims.at[i];
        bool same = d->name ? p->t.kind == IRT_WORD && d->name == p->t.s
                            : p->t.kind == IRT_INT && d->value == p->t.i;
        if (same) {
            irp_advance(p);
            return (int)i;
        }
    }
    if (p->t.kind == IRT_WORD || p->t.kind == IRT_INT)
        irp_fail(p, p->t.where, DIAG_IR_NAME, "the kernel declares no such dimension");
    else
        irp_expected(p, "a dimension");
    return -1;
}

static bool parse_dim(ir_parser *p)
{
    const char *name = NULL;
    bool is_const = p->t.kind == IRT_INT;
    int64_t value = 0;

    if (irp_too_many(p, p->fn->dims.n))
        return false;
    if (!is_const) {
        if (p->t.kind != IRT_WORD)
            return irp_expected(p, "the name of a dimension, or its value");
        name = p->t.s;
        irp_advance(p);
        is_const = irp_take_punct(p, '=');
    }
    if (is_const && !irp_need_int(p, 0, INT32_MAX, &value))
        return false;
    ir_add_dim(p->fn, name, is_const, value);
    return true;
}

static bool parse_dims(ir_parser *p)
{
    if (!irp_take_punct(p, '<'))
        return true;
    do {
        if (!parse_dim(p))
            return false;
    } while (irp_take_punct(p, ','));
    return irp_need_punct(p, '>');
}

static bool parse_facts(ir_parser *p, ir_param *q)
{
    int64_t align = 0;

    q->unit_inner = irp_take_word(p, "unit");
    if (irp_take_word(p, "align") &&
        (!irp_need_punct(p, '=') || !irp_need_int(p, 1, UINT16_MAX, &align)))
        return false;
    q->align = (uint16_t)align;
    return true;
}

static bool parse_tensor(ir_parser *p, ir_param *q)
{
    span where = p->t.where;

    if (!irp_type(p, &q->type))
        return false;
    if (q->type.kind != TYPE_VIEW)
        return irp_fail(p, where, DIAG_IR_SIGNATURE, "a tensor parameter is a view");
    if (!irp_need_punct(p, '['))
        return false;
    for (int i = 0; i < q->type.rank; i++) {
        if (i && !irp_need_punct(p, ','))
            return false;
        q->dim[i] = need_dim(p);
        if (q->dim[i] < 0)
            return false;
    }
    return irp_need_punct(p, ']') && parse_facts(p, q);
}

static bool parse_scalar(ir_parser *p, ir_param *q)
{
    span where = p->t.where;

    if (!irp_type(p, &q->type))
        return false;
    if (q->type.kind != TYPE_SCALAR)
        return irp_fail(p, where, DIAG_IR_SIGNATURE, "a parameter without a direction is a scalar");
    if (q->kind == PARAM_SCALAR) {
        q->has_default = irp_take_word(p, "default");
        return true;
    }
    if (!irp_need_punct(p, '='))
        return false;
    q->symbol = need_dim(p);
    return q->symbol >= 0;
}

static bool parse_param(ir_parser *p)
{
    static const char *const direction[] = {"in", "out", "inout"};
    ir_param q = {.kind = PARAM_SCALAR};
    binding b;

    if (irp_too_many(p, p->fn->params.n))
        return false;
    for (int i = 0; i < 3 && q.kind == PARAM_SCALAR; i++) {
        if (irp_take_word(p, direction[i])) {
            q.kind = PARAM_TENSOR;
            q.direction = (enum ir_direction)i;
        }
    }
    if (q.kind == PARAM_SCALAR && irp_take_word(p, "dim"))
        q.kind = PARAM_DIM;
    if (!irp_need_name(p, &b) || !irp_need_punct(p, ':'))
        return false;
    q.name = b.name;
    if (!(q.kind == PARAM_TENSOR ? parse_tensor(p, &q) : parse_scalar(p, &q)))
        return false;
    ir_add_param(p->fn, q);
    return true;
}

static int param_called(const ir_fn *fn, const char *name)
{
    for (uint32_t i = 0; i < fn->params.n; i++) {
        if (fn->params.at[i].name == name)
            return (int)i;
    }
    return -1;
}

static bool parse_given(ir_parser *p)
{
    ir_param q = {.kind = PARAM_GIVEN};
    binding b, of;

    if (irp_too_many(p, p->fn->params.n))
        return false;
    if (!irp_need_word(p, "given") || !irp_need_name(p, &b) || !irp_need_punct(p, ':') ||
        !irp_type(p, &q.type) || !irp_need_punct(p, '=') || !irp_need_name(p, &of))
        return false;
    q.name = b.name;
    q.symbol = param_called(p->fn, of.name);
    if (q.symbol < 0)
        return irp_fail(p, of.where, DIAG_IR_NAME, "the kernel has no such parameter");
    ir_add_param(p->fn, q);
    return true;
}

static bool parse_params(ir_parser *p, bool (*parse_one)(ir_parser *))
{
    if (!irp_need_punct(p, '('))
        return false;
    if (irp_take_punct(p, ')'))
        return true;
    do {
        if (!parse_one(p))
            return false;
    } while (irp_take_punct(p, ','));
    return irp_need_punct(p, ')');
}

static bool parse_body(ir_parser *p)
{
    ir_fn *fn = p->fn;

    namemap_init(&p->scope, p->lx.a);
    p->open.n = 0;
    ir_fn_begin(fn);
    for (uint32_t i = 0; i < fn->params.n; i++) {
        binding b = {fn->params.at[i].name, p->t.where};
        if (!irp_bind(p, &b, ir_param_value(fn, (int)i)))
            return false;
    }
    return irp_block(p, fn->body);
}

static bool parse_kernel(ir_parser *p, ir_module *m)
{
    if (!irp_need_word(p, "kernel"))
        return false;
    if (p->t.kind != IRT_FUNCTION)
        return irp_expected(p, "the kernel's name (@name)");
    m->kernel->name = p->t.s;
    irp_advance(p);
    return parse_dims(p) && parse_params(p, parse_param) && parse_body(p);
}

/* The launch function has the kernel's dimensions and parameters, and its own `given` ones. */
static bool parse_launch(ir_parser *p, ir_module *m)
{
    const ir_fn *kernel = m->kernel;

    p->fn = m->launch = ir_fn_new(m, kernel->name);
    for (uint32_t i = 0; i < kernel->dims.n; i++) {
        const ir_dim *d = &kernel->dims.at[i];
        ir_add_dim(p->fn, d->name, d->is_const, d->value);
    }
    for (uint32_t i = 0; i < kernel->params.n; i++)
        ir_add_param(p->fn, kernel->params.at[i]);
    return parse_params(p, parse_given) && parse_body(p);
}

static bool parse_module(ir_parser *p, ir_module *m)
{
    int64_t level = 1;

    p->fn = m->kernel = ir_fn_new(m, "");
    if (irp_take_word(p, "level") && !irp_need_int(p, 1, 2, &level))
        return false;
    m->level = (int)level;
    if ((level == 2 && !irp_schedule(p)) || !parse_kernel(p, m))
        return false;
    if (irp_take_word(p, "launch") && !parse_launch(p, m))
        return false;
    return p->t.kind == IRT_END || irp_expected(p, "'launch' or the end of the text");
}

ir_module *ir_parse(arena *a, intern *names, const source *src, diag_list *diags)
{
    ir_parser p = {.lx = {.src = src, .a = a, .names = names, .diags = diags}};
    ir_module *m = ir_module_new(a, names);

    if (src->len > SOURCE_MAX_BYTES) {
        diag_add(diags, DIAG_LIMIT, (span){src, 0, 0}, "the text is longer than 1 MiB");
        return NULL;
    }
    irp_advance(&p);
    return parse_module(&p, m) && ir_verify(m, diags) ? m : NULL;
}
