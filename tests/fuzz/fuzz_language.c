/* Any bytes as kernel text: a load and a lowering end in a status, leak nothing and, when they
 * succeed, give IR that verifies, survives every pass and a round trip through text. */
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "compiler/ir/irtext.h"
#include "compiler/passes/pipeline.h"
#include "dsl/dsl.h"
#include "tests/fuzz/fuzz.h"
#include <string.h>

enum { MAX_BINDINGS = 64 };

typedef struct run {
    const char *text;
    size_t size;
    arena a;
    dsl_unit *unit;
    diag_list diags;
} run;

static const char *first_error(const diag_list *l)
{
    return l->all.n ? l->all.at[0]->text : "";
}

/* TW_E_ARG: a `require` that these values break. */
static bool is_answer(tw_status st)
{
    return st == TW_OK || st == TW_E_SOURCE || st == TW_E_LIMIT || st == TW_E_UNSUPPORTED ||
           st == TW_E_ARG;
}

static void check_module(run *r, ir_module *m)
{
    const pipeline_options verify = {.verify_each = true};
    diag_list broken;
    strbuf once, twice;
    intern names;

    diag_init(&broken, &r->a);
    FUZZ_MUST(ir_verify(m, &broken), "%s\n", first_error(&broken));
    sb_init(&once, &r->a);
    sb_init(&twice, &r->a);
    ir_print(&once, m, 0);
    intern_init(&names, &r->a);
    ir_module *again = ir_parse(&r->a, &names, source_new(&r->a, "t", once.s, once.n), &broken);
    FUZZ_MUST(again, "%s\n%s\n", first_error(&broken), once.s);
    ir_print(&twice, again, 0);
    FUZZ_MUST(!strcmp(once.s, twice.s), "%s\n%s\n", once.s, twice.s);
    tw_status st = pipeline_run(m, &broken, &verify);
    FUZZ_MUST(st == TW_OK || st == TW_E_LIMIT, "%s\n%s\n", tw_status_name(st), once.s);
}

/* Values for the compile-time parameters; false when one of them has none that fits. */
static bool bind(const kernel_sig *sig, int64_t extent, ir_binding *b, uint32_t *n)
{
    if (sig->nconsts + sig->ntunes > MAX_BINDINGS)
        return false;
    for (uint32_t i = 0; i < sig->nconsts; i++) {
        const sig_const *c = &sig->cons[i];
        int64_t value = c->kind == BIND_DTYPE ? DT_F32 : extent;
        if (c->kind == BIND_FN && !c->has_default)
            return false;
        if (c->kind == BIND_FN || c->kind == BIND_ENUM)
            value = c->has_default ? c->default_value : 0;
        b[(*n)++] = (ir_binding){c->name, c->kind, value};
    }
    for (uint32_t i = 0; i < sig->ntunes; i++)
        b[(*n)++] = (ir_binding){sig->tune[i].name, BIND_INT, sig->tune[i].set[0].value[0]};
    return true;
}

static void lower(run *r, const kernel_source *s)
{
    ir_binding b[MAX_BINDINGS];
    uint32_t n = 0, before = r->diags.errors;
    const char *why = NULL;
    intern names;
    ir_module *m = NULL;

    if (!bind(&s->sig, (int64_t)(r->size % 3) * 32, b, &n))
        return;
    s->valid(s, b, n, "cpu-generic", &why);
    intern_init(&names, &r->a);
    tw_status st = s->lower(s, &r->a, &names, b, n, "cpu-generic", &r->diags, &m);
    FUZZ_MUST(is_answer(st), "%s\n", tw_status_name(st));
    FUZZ_MUST((st == TW_OK) == (r->diags.errors == before), "%s\n", first_error(&r->diags));
    if (st == TW_OK)
        check_module(r, m);
}

static tw_status run_body(void *arg)
{
    run *r = arg;
    strbuf out;

    diag_init(&r->diags, &r->a);
    tw_status st = dsl_load("f.tw", r->text, r->size, &r->diags, &r->unit);
    FUZZ_MUST(is_answer(st), "%s\n", tw_status_name(st));
    FUZZ_MUST((st == TW_OK) == (r->diags.errors == 0), "%s\n", first_error(&r->diags));
    for (size_t i = 0; st == TW_OK && i < dsl_kernel_count(r->unit); i++)
        lower(r, dsl_kernel(r->unit, i));
    sb_init(&out, &r->a);
    diag_render(&r->diags, &out, (int)(r->size % 2));
    return TW_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    run r = {.text = (const char *)data, .size = size};
    long before = mem_live();

    arena_init(&r.a);
    FUZZ_MUST(guard_run(run_body, &r) == TW_OK, "thrown out of a load\n");
    dsl_unit_destroy(r.unit);
    arena_release(&r.a);
    FUZZ_MUST(mem_live() == before, "%ld blocks are lost\n", mem_live() - before);
    return 0;
}
