#include "compiler/schedule/shared_access.h"
#include "compiler/base/check.h"
#include "compiler/ir/iredit.h"

ir_op *alloc_of(const ir_fn *fn, ir_val buffer)
{
    ir_op *def = ir_def(fn, buffer);

    while (def && def->code != OP_ALLOC) {
        ICHECK(def->code == OP_BUFFER_SLOT || def->code == OP_BUFFER_TRANS ||
                   def->code == OP_BUFFER_VIEW, "a buffer comes from alloc");
        def = ir_def(fn, def->args[0]);
    }
    ICHECK(def, "a buffer comes from alloc");
    return def;
}

static void add(shared_accesses *s, ir_op *op, shared_access x)
{
    x.op = op;
    vec_push(&s->at, s->a, x);
    if (!op->mark)
        op->mark = s->at.n;
}

static void add_slot(shared_accesses *s, ir_op *op, ir_val slot, ir_val tile, unsigned kind)
{
    add(s, op, (shared_access){.alloc = alloc_of(s->fn, slot), .slot = slot, .tile = tile,
                               .kind = kind});
}

static void add_factors(shared_accesses *s, ir_op *op)
{
    for (int i = 0; i < 2; i++) {
        ir_val v = op->args[i];
        bool left = op->code == OP_MMA && i == 0;
        if (ir_type_of(s->fn, v).kind == TYPE_BUFFER)
            add(s, op, (shared_access){.alloc = alloc_of(s->fn, v), .slot = v, .left = left,
                                       .tile = left ? op->res : 0, .kind = ACCESS_READ});
    }
}

/* Of tensors that some program may write. */
static void add_tensor(shared_accesses *s, ir_op *op, ir_val tile, unsigned kind)
{
    const ir_value *view = ir_value_of(s->fn, op->args[0]);

    if (view->block == s->fn->body && s->fn->params.at[view->index].direction != DIR_IN)
        add(s, op, (shared_access){.view = op->args[0], .tile = tile, .kind = kind});
}

static void find(ir_op *op, void *arg)
{
    shared_accesses *s = arg;
    ir_val last = op->nargs ? op->args[op->nargs - 1] : 0;

    op->mark = 0;
    switch ((unsigned)op->code) {
    case OP_ALLOC:
        vec_push(&s->allocs, s->a, op);
        break;
    case OP_BUFFER_LOAD:
        add_slot(s, op, op->args[0], op->res, ACCESS_READ);
        break;
    case OP_BUFFER_STORE:
        add_slot(s, op, op->args[0], op->args[1], ACCESS_WRITE);
        break;
    case OP_COPY_ASYNC:
        add_slot(s, op, last, 0, ACCESS_WRITE);
        break;
    case OP_MMA:
    case OP_DOT:
        add_factors(s, op);
        break;
    case OP_LOAD:
        add_tensor(s, op, op->res, ACCESS_READ);
        break;
    case OP_STORE:
        add_tensor(s, op, last, ACCESS_WRITE);
        break;
    case OP_ATOMIC_ADD:
    case OP_ATOMIC_MAX:
    case OP_ATOMIC_MIN:
    case OP_ATOMIC_XCHG:
    case OP_ATOMIC_CAS:
        add_tensor(s, op, last, ACCESS_READ | ACCESS_WRITE);
        break;
    default:
        break;
    }
}

shared_accesses shared_accesses_of(arena *a, const ir_fn *fn)
{
    shared_accesses s = {.fn = fn, .a = a};

    ir_walk(fn->body, find, &s);
    return s;
}
