#include "tests/support/ir_fixture.h"
#include "compiler/base/mem.h"
#include <check.h>
#include <string.h>

arena ir_arena;
intern ir_names;
diag_list ir_diags;

void ir_fixture_setup(void)
{
    arena_init(&ir_arena);
    intern_init(&ir_names, &ir_arena);
    diag_init(&ir_diags, &ir_arena);
}

void ir_fixture_teardown(void)
{
    arena_release(&ir_arena);
    ck_assert_int_eq(mem_live(), 0);
}

ir_module *ir_try(const char *text)
{
    const source *src = source_new(&ir_arena, "test.tir", text, strlen(text));

    return ir_parse(&ir_arena, &ir_names, src, &ir_diags);
}

ir_module *ir_must(const char *text)
{
    ir_module *m = ir_try(text);

    ck_assert_msg(m != NULL, "%s", ir_messages());
    return m;
}

const char *ir_wrap(const char *statements)
{
    return arena_printf(&ir_arena,
                        "kernel @f<N>(in %%x : view<f32, 1>[N], out %%y : view<f32, 1>[N],\n"
                        "    %%s : f32, dim %%n : i32 = N) {\n%s\nreturn }\n",
                        statements);
}

const char *ir_show(const ir_module *m, unsigned flags)
{
    strbuf out;

    sb_init(&out, &ir_arena);
    ir_print(&out, m, flags);
    return out.s;
}

const char *ir_messages(void)
{
    strbuf out;

    sb_init(&out, &ir_arena);
    diag_render(&ir_diags, &out, 0);
    diag_init(&ir_diags, &ir_arena);
    return out.s;
}

typedef struct search {
    enum ir_opcode code;
    ir_op *found;
} search;

static void look(ir_op *op, void *arg)
{
    search *s = arg;

    if (!s->found && op->code == s->code)
        s->found = op;
}

ir_op *ir_first_of(const ir_module *m, enum ir_opcode code)
{
    search s = {code, NULL};

    ir_walk(m->kernel->body, look, &s);
    ck_assert_ptr_nonnull(s.found);
    return s.found;
}

void ir_refused(const ir_module *m, enum diag_id id)
{
    ck_assert(!ir_verify(m, &ir_diags));
    ck_assert_uint_ge(ir_diags.errors, 1);
    ck_assert_msg(ir_diags.all.at[0]->id == id, "wanted %s: %s", diag_name(id), ir_messages());
    diag_init(&ir_diags, &ir_arena);
}
