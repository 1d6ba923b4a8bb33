/* Any bytes as the text of tile IR: what the parser accepts verifies, prints and parses to the same
 * text, and keeps both properties through every pass. */
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "compiler/ir/irtext.h"
#include "compiler/passes/pipeline.h"
#include "tests/fuzz/fuzz.h"
#include <string.h>

typedef struct run {
    const char *text;
    size_t size;
    arena a;
    diag_list diags;
} run;

static ir_module *parse(run *r, const char *text, size_t size)
{
    intern names;

    intern_init(&names, &r->a);
    diag_init(&r->diags, &r->a);
    return ir_parse(&r->a, &names, source_new(&r->a, "f.tir", text, size), &r->diags);
}

static const char *print(run *r, const ir_module *m)
{
    strbuf out;

    sb_init(&out, &r->a);
    ir_print(&out, m, 0);
    return out.s;
}

static void round_trip(run *r, const ir_module *m)
{
    const char *once = print(r, m);
    ir_module *again = parse(r, once, strlen(once));

    FUZZ_MUST(again, "%s\n%s\n", r->diags.all.n ? r->diags.all.at[0]->text : "", once);
    const char *twice = print(r, again);
    FUZZ_MUST(!strcmp(once, twice), "%s\n%s\n", once, twice);
    FUZZ_MUST(hash_equal(ir_hash(m), ir_hash(again)), "%s\n", once);
}

static tw_status run_body(void *arg)
{
    run *r = arg;
    const pipeline_options verify = {.verify_each = true};
    strbuf out;
    ir_module *m = parse(r, r->text, r->size);

    if (!m) {
        FUZZ_MUST(r->diags.errors > 0, "no module and no error\n");
        sb_init(&out, &r->a);
        diag_render(&r->diags, &out, 0);
        return TW_OK;
    }
    round_trip(r, m);
    tw_status st = pipeline_run(m, &r->diags, &verify);
    FUZZ_MUST(st == TW_OK || st == TW_E_LIMIT, "%s\n", tw_status_name(st));
    if (st == TW_OK)
        round_trip(r, m);
    return TW_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    run r = {.text = (const char *)data, .size = size};
    long before = mem_live();

    arena_init(&r.a);
    FUZZ_MUST(guard_run(run_body, &r) == TW_OK, "thrown out of a parse\n");
    arena_release(&r.a);
    FUZZ_MUST(mem_live() == before, "%ld blocks are lost\n", mem_live() - before);
    return 0;
}
