#include "compiler/ir/csource.h"
#include "compiler/base/check.h"
#include "compiler/base/error.h"
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "compiler/ir/cbuild.h"
#include "compiler/ir/irlex.h"
#include "compiler/ir/irsig.h"
#include "compiler/ir/irtext.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ENTRIES                                                                                \
    32 /* parameters, compile-time values, tune parameters, dimensions: each, as in text */
#define MAX_SET 256 /* values of a set */

typedef struct c_source {
    kernel_source base; /* first: the two have one address */
    arena a;
    tw_ir_kernel def; /* its functions and user */
    bool owns_user;
} c_source;

typedef struct reading {
    const tw_ir_kernel *def;
    c_source *s;
} reading;

/* ---- the signature --------------------------------------------------------------------------- */

/* "kernel 'f', parameter 'q': ..." */
static tw_status bad(const reading *r, const char *what, const char *name, const char *text)
{
    return error_diag(TW_E_ARG, DIAG_BAD_SIGNATURE, NULL, "kernel '%.60s', %s '%.60s': %s",
                      r->def->name, what, name ? name : "", text);
}

static bool is_plain_name(const char *s)
{
    return s && ir_is_name(s) && !strchr(s, '.') && strlen(s) < 128;
}

static int32_t const_named(const kernel_sig *sig, const char *name)
{
    for (uint32_t i = 0; i < sig->nconsts; i++) {
        if (strcmp(sig->cons[i].name, name) == 0)
            return (int32_t)i;
    }
    return -1;
}

static bool name_taken(const kernel_sig *sig, const char *name)
{
    bool taken = const_named(sig, name) >= 0;

    for (uint32_t i = 0; i < sig->ntunes && !taken; i++)
        taken = strcmp(sig->tune[i].name, name) == 0;
    for (uint32_t i = 0; i < sig->nparams && !taken; i++)
        taken = strcmp(sig->param[i].name, name) == 0;
    for (uint32_t i = 0; i < sig->nsymbols && !taken; i++)
        taken = strcmp(sig->symbol[i], name) == 0;
    return taken || dtype_parse(name) != DT_NONE;
}

static tw_status new_name(const reading *r, const char *what, const char *name, const char **out)
{
    if (!is_plain_name(name))
        return bad(r, what, name, "a name is a letter or _, then letters, digits and _");
    if (name_taken(&r->s->base.sig, name))
        return bad(r, what, name, "something else has that name");
    *out = arena_strdup(&r->s->a, name);
    return TW_OK;
}

static tw_status check_count(const reading *r, const char *what, const void *at, size_t n)
{
    if (n > MAX_ENTRIES)
        return error_diag(TW_E_LIMIT, DIAG_LIMIT, NULL, "kernel '%.60s' has %zu %s; at most %d",
                          r->def->name, n, what, MAX_ENTRIES);
    return at || !n ? TW_OK : bad(r, what, "", "the array is NULL though its count is not 0");
}

static bool read_int(const char *text, int64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoll(text, &end, 10);
    return end != text && !*end && errno == 0;
}

/* ---- compile-time values ---- */

static tw_status read_members(const reading *r, const tw_ir_const *x, sig_const *c)
{
    char *text = arena_strdup(&r->s->a, x->members), *rest = text, *name;
    const char **member = ARENA_ARRAY(&r->s->a, const char *, strlen(text) / 2 + 1);

    while ((name = strtok_r(rest, " ", &rest)) != NULL) {
        for (uint32_t i = 0; i < c->nmembers; i++) {
            if (strcmp(member[i], name) == 0)
                return bad(r, "compile-time value", x->name, "two members have one name");
        }
        if (!is_plain_name(name))
            return bad(r, "compile-time value", x->name,
                       "members are names with a space between them");
        member[c->nmembers++] = name;
    }
    c->kind = BIND_ENUM;
    c->member = member;
    c->type = arena_strdup(&r->s->a, x->type);
    if (c->nmembers && is_plain_name(x->type))
        return TW_OK;
    return bad(r, "compile-time value", x->name, "an enumeration has a name and members");
}

static tw_status read_kind(const reading *r, const tw_ir_const *x, sig_const *c)
{
    const char *type = x->type ? x->type : "";

    if (x->members)
        return x->type ? read_members(r, x, c)
                       : bad(r, "compile-time value", x->name, "an enumeration has a name");
    if (strcmp(type, "int") == 0)
        c->kind = BIND_INT;
    else if (strcmp(type, "bool") == 0)
        c->kind = BIND_BOOL;
    else if (strcmp(type, "dtype") == 0 || strcmp(type, "float") == 0)
        c->kind = BIND_DTYPE;
    else
        return bad(r, "compile-time value", x->name,
                   "its type is \"dtype\", \"float\", \"int\", \"bool\", or an enumeration with "
                   "members");
    if (c->kind == BIND_DTYPE)
        c->dtypes =
            *type == 'f' ? 1u << DT_F16 | 1u << DT_BF16 | 1u << DT_F32 : (1u << DT_COUNT) - 1;
    return TW_OK;
}

static bool read_value(const sig_const *c, const char *text, int64_t *out)
{
    enum dtype t = dtype_parse(text);
    bool yes = strcmp(text, "true") == 0;

    *out = c->kind == BIND_DTYPE ? (int64_t)t : yes;
    switch (c->kind) {
    case BIND_DTYPE:
        return t != DT_NONE && (c->dtypes >> t & 1);
    case BIND_BOOL:
        return yes || strcmp(text, "false") == 0;
    case BIND_INT:
        return read_int(text, out);
    case BIND_ENUM:
        for (*out = 0; *out < c->nmembers; ++*out) {
            if (strcmp(c->member[*out], text) == 0)
                return true;
        }
        return false;
    case BIND_FN:
        break;
    }
    return false;
}

static tw_status read_consts(const reading *r)
{
    kernel_sig *sig = &r->s->base.sig;
    sig_const *c = ARENA_ARRAY(&r->s->a, sig_const, r->def->const_count);

    sig->cons = c;
    for (size_t i = 0; i < r->def->const_count; i++, c++) {
        const tw_ir_const *x = &r->def->consts[i];
        TRY(new_name(r, "compile-time value", x->name, &c->name));
        TRY(read_kind(r, x, c));
        c->has_default = x->value != NULL;
        if (x->value && !read_value(c, x->value, &c->default_value))
            return bad(r, "compile-time value", x->name, "its default is no value of its type");
        sig->nconsts++;
    }
    return TW_OK;
}

/* ---- tune parameters ---- */

static sig_tune *tune_named(const reading *r, sig_tune *tune, const char *name)
{
    for (uint32_t i = 0; name && i < r->s->base.sig.ntunes; i++) {
        if (strcmp(tune[i].name, name) == 0)
            return &tune[i];
    }
    return NULL;
}

static tw_status add_set(const reading *r, sig_tune *t, const tw_ir_tune *x)
{
    const char *target = x->target ? x->target : "";

    if (x->count < 1 || x->count > MAX_SET || !x->values)
        return bad(r, "tune parameter", x->name, "a set has 1 to 256 values");
    for (uint32_t i = 0; i < t->nsets; i++) {
        if (strcmp(t->set[i].target, target) == 0)
            return bad(r, "tune parameter", x->name, "two sets are for one target");
    }
    for (size_t i = 0; i < x->count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (x->values[i] == x->values[k])
                return bad(r, "tune parameter", x->name, "a set has a value twice");
        }
    }
    t->set[t->nsets++] =
        (struct sig_set){arena_strdup(&r->s->a, target), (uint32_t)x->count,
                         arena_dup(&r->s->a, x->values, x->count * sizeof *x->values)};
    return TW_OK;
}

static bool has_general_set(const sig_tune *t)
{
    for (uint32_t i = 0; i < t->nsets; i++) {
        if (!*t->set[i].target)
            return true;
    }
    return false;
}

static tw_status read_tunes(const reading *r)
{
    kernel_sig *sig = &r->s->base.sig;
    sig_tune *tune = ARENA_ARRAY(&r->s->a, sig_tune, r->def->tune_count);

    sig->tune = tune;
    for (size_t i = 0; i < r->def->tune_count; i++) {
        const tw_ir_tune *x = &r->def->tunes[i];
        sig_tune *t = tune_named(r, tune, x->name);
        if (!t) {
            t = &tune[sig->ntunes];
            TRY(new_name(r, "tune parameter", x->name, &t->name));
            t->set = ARENA_ARRAY(&r->s->a, struct sig_set, r->def->tune_count);
            sig->ntunes++;
        }
        TRY(add_set(r, t, x));
    }
    for (uint32_t i = 0; i < sig->ntunes; i++) {
        if (!has_general_set(&tune[i]))
            return bad(r, "tune parameter", tune[i].name, "it needs a set for any target");
    }
    return TW_OK;
}

/* ---- parameters ---- */

static tw_status read_type(const reading *r, const tw_ir_param *x, sig_param *p)
{
    const kernel_sig *sig = &r->s->base.sig;
    int32_t at = x->type ? const_named(sig, x->type) : -1;

    p->dtype = x->type ? dtype_parse(x->type) : DT_NONE;
    p->dtype_const = -1;
    if (at >= 0 && sig->cons[at].kind == BIND_DTYPE)
        p->dtype_const = at;
    if (p->dtype == DT_NONE && p->dtype_const < 0)
        return bad(r, "parameter", x->name,
                   "its type is an element type, or a dtype among the compile-time values");
    return TW_OK;
}

static int32_t symbol_named(const kernel_sig *sig, const char *name)
{
    for (uint32_t i = 0; i < sig->nsymbols; i++) {
        if (strcmp(sig->symbol[i], name) == 0)
            return (int32_t)i;
    }
    return -1;
}

static tw_status read_dim(const reading *r, const tw_ir_param *x, const char *text,
                          const char **symbol, sig_dim *dim)
{
    kernel_sig *sig = &r->s->base.sig;
    int32_t cons = const_named(sig, text), known = symbol_named(sig, text);

    if (read_int(text, &dim->literal)) {
        dim->kind = SIG_DIM_LITERAL;
        return dim->literal >= 0 && dim->literal <= INT32_MAX
                   ? TW_OK
                   : bad(r, "parameter", x->name, "a dimension lies between 0 and 2^31 - 1");
    }
    dim->kind = cons >= 0 ? SIG_DIM_CONST : SIG_DIM_SYMBOL;
    dim->index = cons >= 0 ? cons : known >= 0 ? known : (int32_t)sig->nsymbols;
    if (cons >= 0)
        return sig->cons[cons].kind == BIND_INT ? TW_OK
                                                : bad(r, "parameter", x->name,
                                                      "a dimension is an int, and this is another "
                                                      "compile-time value");
    if (known >= 0)
        return TW_OK;
    if (sig->nsymbols == MAX_ENTRIES)
        return error_diag(TW_E_LIMIT, DIAG_LIMIT, NULL,
                          "kernel '%.60s' has more than %d dimensions", r->def->name, MAX_ENTRIES);
    TRY(new_name(r, "dimension", text, &symbol[sig->nsymbols]));
    sig->nsymbols++;
    return TW_OK;
}

static tw_status read_tensor(const reading *r, const tw_ir_param *x, const char **symbol,
                             sig_param *p)
{
    static const enum ir_direction direction[] = {
        [TW_IN] = DIR_IN, [TW_OUT] = DIR_OUT, [TW_INOUT] = DIR_INOUT};

    if ((unsigned)x->direction > TW_INOUT)
        return bad(r, "parameter", x->name, "its direction is none");
    p->is_tensor = true;
    p->direction = direction[x->direction];
    for (; p->rank < VIEW_MAX_RANK && x->dims[p->rank]; p->rank++)
        TRY(read_dim(r, x, x->dims[p->rank], symbol, &p->dim[p->rank]));
    if (p->rank == 0 || x->has_default)
        return bad(r, "parameter", x->name, "a tensor has dimensions, and no default");
    return TW_OK;
}

static tw_status read_params(const reading *r)
{
    kernel_sig *sig = &r->s->base.sig;
    sig_param *p = ARENA_ARRAY(&r->s->a, sig_param, r->def->param_count);
    const char **symbol = ARENA_ARRAY(&r->s->a, const char *, MAX_ENTRIES);

    sig->param = p;
    sig->symbol = symbol;
    for (size_t i = 0; i < r->def->param_count; i++, p++) {
        const tw_ir_param *x = &r->def->params[i];
        TRY(new_name(r, "parameter", x->name, &p->name));
        TRY(read_type(r, x, p));
        if (x->kind == TW_PARAM_TENSOR)
            TRY(read_tensor(r, x, symbol, p));
        else if (x->kind != TW_PARAM_SCALAR || x->dims[0])
            return bad(r, "parameter", x->name, "it is a tensor, or a scalar without dimensions");
        p->has_default = x->has_default;
        sig->nparams++;
    }
    return TW_OK;
}

static tw_status read_def(void *arg)
{
    const reading *r = arg;

    TRY(check_count(r, "parameters", r->def->params, r->def->param_count));
    TRY(check_count(r, "compile-time values", r->def->consts, r->def->const_count));
    TRY(check_count(r, "rows of tune parameters", r->def->tunes, r->def->tune_count));
    r->s->base.sig.name = arena_strdup(&r->s->a, r->def->name);
    TRY(read_consts(r));
    TRY(read_tunes(r));
    return read_params(r);
}

/* ---- kernel_source --------------------------------------------------------------------------- */

static tw_status check_extents(const kernel_sig *sig, const ir_binding *binding, uint32_t n,
                               diag_list *diags)
{
    for (uint32_t i = 0; i < sig->nparams; i++) {
        for (int32_t k = 0; k < sig->param[i].rank; k++) {
            const sig_dim *dim = &sig->param[i].dim[k];
            int64_t extent;
            if (dim->kind == SIG_DIM_SYMBOL || sig_extent(sig, dim, binding, n, &extent))
                continue;
            diag_add(diags, DIAG_BAD_BINDING, (span){0},
                     "the dimension '%s' is %lld; it lies between 0 and 2^31 - 1",
                     sig->cons[dim->index].name, (long long)extent);
            return TW_E_ARG;
        }
    }
    return TW_OK;
}

static tw_status lower(const kernel_source *src, arena *a, intern *names, const ir_binding *binding,
                       uint32_t nbinding, const char *target, diag_list *diags, ir_module **out)
{
    const c_source *s = (const c_source *)src;
    tw_ir b = {.sig = &src->sig,
               .binding = binding,
               .nbinding = nbinding,
               .target = target,
               .diags = diags};

    TRY(check_extents(&src->sig, binding, nbinding, diags));
    ir_module *m = sig_module(&src->sig, a, names, binding, nbinding);
    cbuild_begin(&b, m->launch, true);
    s->def.launch(s->def.user, &b);
    TRY(cbuild_end(&b));
    cbuild_begin(&b, m->kernel, false);
    s->def.body(s->def.user, &b);
    TRY(cbuild_end(&b));
    if (!ir_verify(m, diags))
        return TW_E_SOURCE;
    *out = m;
    return TW_OK;
}

static bool valid(const kernel_source *src, const ir_binding *binding, uint32_t nbinding,
                  const char *target, const char **why)
{
    const c_source *s = (const c_source *)src;
    const char *text = NULL;
    diag_list diags;
    arena a;
    tw_ir b = {.sig = &src->sig,
               .binding = binding,
               .nbinding = nbinding,
               .target = target,
               .diags = &diags};

    if (!s->def.refuse)
        return true;
    arena_init(&a);
    diag_init(&diags, &a);
    text = s->def.refuse(s->def.user, &b);
    arena_release(&a);
    if (b.st != TW_OK)
        text = "its refuse function makes a wrong call";
    if (text && why)
        *why = text;
    return !text;
}

static const char *print_ast(const kernel_source *src, arena *a)
{
    (void)src, (void)a;
    return NULL;
}

static void destroy(kernel_source *src)
{
    c_source *s = (c_source *)src;

    if (s->owns_user && s->def.destroy)
        s->def.destroy(s->def.user);
    arena_release(&s->a);
    mem_free(s);
}

void csource_owns_user(kernel_source *src)
{
    ((c_source *)src)->owns_user = true;
}

static void copy_def(const tw_ir_kernel *def, tw_ir_kernel *copy)
{
    *copy = (tw_ir_kernel)TW_IR_KERNEL_INIT;
    memcpy(copy, def, def->size < sizeof *copy ? def->size : sizeof *copy);
}

tw_status csource_new(const tw_ir_kernel *def, kernel_source **out)
{
    *out = NULL;
    if (def->size < sizeof def->size || def->size > 4096)
        return error_set(TW_E_ARG, "tw_ir_kernel_create: def has no size; see TW_IR_KERNEL_INIT");
    c_source *s = mem_zalloc(sizeof *s);
    if (!s)
        return error_set(TW_E_NOMEM, "no memory for a kernel");
    copy_def(def, &s->def);
    reading r = {&s->def, s};
    s->base.lower = lower;
    s->base.valid = valid;
    s->base.print_ast = print_ast;
    s->base.destroy = destroy;
    arena_init(&s->a);
    tw_status st = TW_OK;
    if (!is_plain_name(s->def.name) || !s->def.launch || !s->def.body)
        st = error_set(TW_E_ARG, "tw_ir_kernel_create: a kernel has a name, launch and body");
    else
        st = error_thrown(guard_run(read_def, &r));
    if (st == TW_OK)
        *out = &s->base;
    else
        destroy(&s->base);
    return st;
}
