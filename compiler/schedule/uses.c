#include "compiler/schedule/uses.h"
#include "compiler/ir/iredit.h"

static void count(ir_op *op, void *arg)
{
    uses *u = arg;

    for (int i = 0; i < op->nargs; i++)
        u->first[op->args[i] + 1]++;
}

typedef struct filling {
    uses *u;
    uint32_t *next;
} filling;

static void fill(ir_op *op, void *arg)
{
    filling *f = arg;

    for (int i = 0; i < op->nargs; i++)
        f->u->at[f->next[op->args[i]]++] = (use){op, i};
}

uses uses_of(arena *a, const ir_fn *fn)
{
    uses u = {.nvals = fn->values.n};

    u.first = ARENA_ARRAY(a, uint32_t, (size_t)u.nvals + 1);
    ir_walk(fn->body, count, &u);
    for (uint32_t v = 0; v < u.nvals; v++)
        u.first[v + 1] += u.first[v];
    u.at = ARENA_ARRAY(a, use, u.first[u.nvals]);
    filling f = {&u, arena_dup(a, u.first, (u.nvals + 1) * sizeof *u.first)};
    ir_walk(fn->body, fill, &f);
    return u;
}
