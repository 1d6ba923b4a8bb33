#include "compiler/base/check.h"
#include "compiler/ir/irbuild.h"
#include "compiler/ir/irtext.h"
#include "compiler/target/artifact.h"

static ir_fn *without_body(ir_module *m, const ir_fn *kernel)
{
    ir_fn *fn = ir_fn_new(m, kernel->name);

    for (uint32_t i = 0; i < kernel->dims.n; i++)
        vec_push(&fn->dims, m->a, kernel->dims.at[i]);
    for (uint32_t i = 0; i < kernel->params.n; i++)
        ir_add_param(fn, kernel->params.at[i]);
    ir_fn_begin(fn);
    ir_builder b = ir_at_end(fn, fn->body);
    ir_return(&b, NULL, 0);
    return fn;
}

const char *artifact_launch_text(arena *a, const ir_module *m)
{
    ir_module *shell = ir_module_new(a, m->names);
    strbuf text;

    shell->kernel = without_body(shell, m->kernel);
    shell->launch = m->launch;
    sb_init(&text, a);
    ir_print(&text, shell, 0);
    return text.s;
}

artifact *artifact_of_code(arena *a, const ir_module *m, enum object_kind kind, const char *data,
                           size_t size)
{
    artifact *art = ARENA_NEW(a, artifact);

    ICHECK(size <= UINT32_MAX, "an object is small");
    art->nobjects = 1;
    art->object = ARENA_NEW(a, code_object);
    *art->object = (code_object){kind, (uint32_t)size, (const uint8_t *)data};
    art->nsteps = 1;
    art->step = ARENA_NEW(a, recipe_step);
    art->step->symbol = arena_strdup(a, m->kernel->name);
    for (int d = 0; d < 3; d++)
        art->step->grid_map[d] = (uint8_t)d;
    art->launch_text = artifact_launch_text(a, m);
    return art;
}

const char *artifact_assert_text(arena *a, const ir_op *op)
{
    const source *src = op->where.src;

    if (!src)
        return arena_strdup(a, op->attr[0].s);
    return arena_printf(a, "%s (%s:%d)", op->attr[0].s, src->name, source_line(src, op->where.lo));
}

artifact_print artifact_print_of(arena *a, const ir_fn *fn, const ir_op *op)
{
    ir_type t = ir_type_of(fn, op->args[0]);
    artifact_print p = {.text = artifact_assert_text(a, op), .dtype = t.dtype, .held = t.dtype};
    int64_t step = 1;

    p.rank = t.kind == TYPE_TILE ? t.rank : 0;
    for (int d = p.rank - 1; d >= 0; d--) {
        p.shape[d] = t.shape[d];
        p.stride[d] = step;
        step *= t.shape[d];
    }
    return p;
}
