#include "compiler/base/check.h"
#include "compiler/ir/iredit.h"
#include "compiler/ir/irtext.h"
#include "compiler/target/target.h"

/* The interpreter as a target: its code is the printed IR, and its one step takes everything that
 * the parameters of the kernel function are made of, then the grid. */

typedef VEC(recipe_slot) slot_list;
/* What a launch may have to say. */
typedef struct texts {
    arena *a;
    const ir_fn *fn;
    VEC(const char *) asserts;
    VEC(artifact_print) prints;
} texts;

static void add_slot(slot_list *l, arena *a, enum slot_kind kind, uint32_t param, int index)
{
    recipe_slot s = {(uint8_t)kind, (uint8_t)index, (uint16_t)param};

    vec_push(l, a, s);
}

static void add_param(slot_list *l, arena *a, const ir_param *p, uint32_t i)
{
    if (p->kind == PARAM_SCALAR)
        add_slot(l, a, SLOT_SCALAR, i, 0);
    else if (p->kind == PARAM_DIM)
        add_slot(l, a, SLOT_DIM, 0, p->symbol);
    if (p->kind != PARAM_TENSOR)
        return;
    add_slot(l, a, SLOT_POINTER, i, 0);
    for (int d = 0; d < p->type.rank; d++)
        add_slot(l, a, SLOT_STRIDE, i, d);
}

static recipe_step *only_step(arena *a, const ir_fn *fn)
{
    recipe_step *s = ARENA_NEW(a, recipe_step);
    slot_list slots = {0};

    for (uint32_t i = 0; i < fn->params.n; i++)
        add_param(&slots, a, &fn->params.at[i], i);
    for (int d = 0; d < 3; d++) {
        add_slot(&slots, a, SLOT_GRID, 0, d);
        s->grid_map[d] = (uint8_t)d;
    }
    s->symbol = arena_strdup(a, fn->name);
    s->nslots = slots.n;
    s->slot = slots.at;
    return s;
}

static void collect(ir_op *op, void *arg)
{
    texts *t = arg;

    if (op->code == OP_ASSERT)
        vec_push(&t->asserts, t->a, artifact_assert_text(t->a, op));
    else if (op->code == OP_PRINT)
        vec_push(&t->prints, t->a, artifact_print_of(t->a, t->fn, op));
}

static code_object *printed(arena *a, const ir_module *m)
{
    code_object *o = ARENA_NEW(a, code_object);
    strbuf text;

    sb_init(&text, a);
    ir_print(&text, m, 0);
    ICHECK(text.n <= UINT32_MAX, "printed IR is small");
    o->kind = OBJECT_TIR;
    o->size = (uint32_t)text.n;
    o->bytes = (const uint8_t *)text.s;
    return o;
}

static tw_status interp_compile(const target *t, const target_input *in, arena *a, artifact **out)
{
    const ir_fn *fn = in->module->kernel;
    artifact *art = ARENA_NEW(a, artifact);
    texts said = {.a = a, .fn = fn};

    (void)t;
    ir_walk(fn->body, collect, &said);
    art->nobjects = 1;
    art->object = printed(a, in->module);
    art->nsteps = 1;
    art->step = only_step(a, fn);
    art->nasserts = said.asserts.n;
    art->assert_text = said.asserts.at;
    art->nprints = said.prints.n;
    art->print = said.prints.at;
    art->launch_text = artifact_launch_text(a, in->module);
    art->ir_ops = ir_op_count(fn);
    art->code_bytes = art->object->size;
    *out = art;
    return TW_OK;
}

static tw_status interp_emit(const target *t, const target_input *in, const char *kind, arena *a,
                             const char **data, size_t *size)
{
    (void)t, (void)in, (void)kind, (void)a, (void)data, (void)size;
    return TW_E_UNSUPPORTED; /* it has no stage after "tir" */
}

static bool always(const target *t)
{
    (void)t;
    return true;
}

static const char *no_features(const target *t)
{
    (void)t;
    return "";
}

static const char *const nothing[] = {NULL};

const target interp_target = {
    .name = "interp",
    .family = "interp",
    .help = "runs tile IR op by op: slow, and the reference for every other target",
    .emits = nothing,
    .usable = always,
    .features = no_features,
    .compile = interp_compile,
    .emit = interp_emit,
};
