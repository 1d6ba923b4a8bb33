#include "compiler/ir/tirsource.h"
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "compiler/ir/iredit.h"
#include "compiler/ir/irtext.h"

typedef struct tir_source {
    kernel_source base; /* first: the two have one address */
    arena a;
    intern names;
    ir_module *m;
} tir_source;

typedef struct loading {
    tir_source *s;
    const char *name, *text;
    size_t len;
    diag_list *diags;
    source *src;
} loading;

/* ---- kernel_source ---- */

static tw_status lower(const kernel_source *base, arena *a, intern *names,
                       const ir_binding *binding, uint32_t nbinding, const char *target,
                       diag_list *diags, ir_module **out)
{
    (void)names, (void)binding, (void)nbinding, (void)target, (void)diags;
    *out = ir_clone(((const tir_source *)base)->m, a);
    return TW_OK;
}

static bool valid(const kernel_source *base, const ir_binding *binding, uint32_t nbinding,
                  const char *target, const char **why)
{
    (void)base, (void)binding, (void)nbinding, (void)target, (void)why;
    return true;
}

static const char *print_ast(const kernel_source *base, arena *a)
{
    (void)base, (void)a;
    return NULL;
}

static void destroy(kernel_source *base)
{
    tir_source *s = (tir_source *)base;

    if (!s)
        return;
    arena_release(&s->a);
    mem_free(s);
}

/* ---- signature ---- */

/* Run-time dimensions become symbols; at[] gives each dimension's index among them. */
static void make_symbols(tir_source *s, int32_t *at)
{
    const ir_fn *fn = s->m->kernel;
    const char **symbol = ARENA_ARRAY(&s->a, const char *, fn->dims.n);
    uint32_t n = 0;

    for (uint32_t i = 0; i < fn->dims.n; i++) {
        if (fn->dims.at[i].is_const)
            continue;
        at[i] = (int32_t)n;
        symbol[n++] = fn->dims.at[i].name;
    }
    s->base.sig.symbol = symbol;
    s->base.sig.nsymbols = n;
}

static sig_dim make_dim(const ir_fn *fn, int32_t dim, const int32_t *symbol_of)
{
    const ir_dim *d = &fn->dims.at[dim];

    if (d->is_const)
        return (sig_dim){.kind = SIG_DIM_LITERAL, .literal = d->value};
    return (sig_dim){.kind = SIG_DIM_SYMBOL, .index = symbol_of[dim]};
}

static sig_param make_param(const ir_fn *fn, const ir_param *p, const int32_t *symbol_of)
{
    sig_param q = {.name = p->name,
                   .is_tensor = p->kind == PARAM_TENSOR,
                   .direction = p->direction,
                   .dtype = p->type.dtype,
                   .dtype_const = -1,
                   .has_default = p->has_default};

    for (; q.is_tensor && q.rank < p->type.rank; q.rank++)
        q.dim[q.rank] = make_dim(fn, p->dim[q.rank], symbol_of);
    return q;
}

static void make_sig(tir_source *s, int lines)
{
    const ir_fn *fn = s->m->kernel;
    kernel_sig *sig = &s->base.sig;
    int32_t *symbol_of = ARENA_ARRAY(&s->a, int32_t, fn->dims.n);
    sig_param *param = ARENA_ARRAY(&s->a, sig_param, fn->params.n);

    sig->name = fn->name;
    sig->text_lines = lines;
    make_symbols(s, symbol_of);
    for (uint32_t i = 0; i < fn->params.n; i++) {
        if (fn->params.at[i].kind != PARAM_DIM)
            param[sig->nparams++] = make_param(fn, &fn->params.at[i], symbol_of);
    }
    sig->param = param;
}

/* ---- loading ---- */

/* Targets trust inside bits, so those that a text claims are dropped: a pass proves them again. */
static void drop_proof(ir_op *op, void *arg)
{
    (void)arg;
    if (op_is_access((enum ir_opcode)op->code) || op->code == OP_COPY_ASYNC ||
        op->code == OP_COPY_BULK)
        op->attr[1].i = 0;
}

static tw_status load(void *arg)
{
    loading *l = arg;
    tir_source *s = l->s;

    if (l->len > SOURCE_MAX_BYTES) {
        diag_add(l->diags, DIAG_LIMIT, (span){0}, "%s is longer than 1 MiB", l->name);
        return TW_E_LIMIT;
    }
    l->src = source_new(&s->a, l->name, l->text, l->len);
    intern_init(&s->names, &s->a);
    s->m = ir_parse(&s->a, &s->names, l->src, l->diags);
    if (!s->m)
        return TW_E_SOURCE;
    if (!s->m->launch) {
        diag *d = diag_add(l->diags, DIAG_IR_SIGNATURE, (span){l->src, 0, 0},
                           "a kernel that is to run has a launch function");
        diag_hint(l->diags, d, "add 'launch() { ... return %%x, %%y, %%z }' with the grid");
        return TW_E_SOURCE;
    }
    ir_walk(s->m->kernel->body, drop_proof, NULL);
    make_sig(s, (int)l->src->nlines);
    return TW_OK;
}

/* Diagnostics outlive the source they point into. */
static tw_status keep_text(void *arg)
{
    loading *l = arg;
    const source *copy = source_new(l->diags->a, l->name, l->text, l->len);

    for (uint32_t i = 0; i < l->diags->all.n; i++) {
        diag *d = l->diags->all.at[i];
        if (d->where.src == l->src)
            d->where.src = copy;
        for (uint32_t k = 0; k < d->notes.n; k++) {
            if (d->notes.at[k].where.src == l->src)
                d->notes.at[k].where.src = copy;
        }
    }
    return TW_OK;
}

static void drop_positions(loading *l)
{
    for (uint32_t i = 0; i < l->diags->all.n; i++) {
        diag *d = l->diags->all.at[i];
        if (d->where.src == l->src)
            d->where = (span){0};
        d->notes.n = 0;
    }
}

tw_status tir_source_new(const char *name, const char *text, size_t len, diag_list *diags,
                         kernel_source **out)
{
    tir_source *s = mem_zalloc(sizeof *s);
    loading l = {s, name, text, len, diags, NULL};

    *out = NULL;
    if (!s)
        return TW_E_NOMEM;
    s->base.lower = lower;
    s->base.valid = valid;
    s->base.print_ast = print_ast;
    s->base.destroy = destroy;
    arena_init(&s->a);
    tw_status st = guard_run(load, &l);
    if (st == TW_OK) {
        *out = &s->base;
        return TW_OK;
    }
    if (l.src && guard_run(keep_text, &l) != TW_OK)
        drop_positions(&l);
    destroy(&s->base);
    return st;
}
