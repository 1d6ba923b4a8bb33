/* Limits known before compiling. On a CPU, what a program keeps at hand must fit the caches it is
 * meant for; on a GPU, its schedule must fit the limits of a block, without more spills than ever
 * paid. The bounds are loose: they drop what would be far too large, the search finds the rest. */
#include "compiler/base/check.h"
#include "compiler/base/guard.h"
#include "compiler/passes/pipeline.h"
#include "runtime/lower.h"
#include "tuner/session.h"
#include <stdio.h>
#include <string.h>

/* A program's tiles may exceed the level-2 cache this many times before it is hopeless. */
#define L2_EXCESS 4
/* Estimated registers above what a thread can have, from which on a configuration is not compiled.
 * Of attention on sm_80, 89 and 120, ptxas spilled 88 to 432 bytes a thread from 32 above on; one
 * in twenty of 759 that are less above spilled more than 64, and one of 6452 that fit. */
#define SPILLED_REGISTERS 31
#define REGISTER_UNIT 8 /* of a thread, as gpu_blocks_per_sm's 256 of a warp */

static int64_t tile_bytes(const ir_fn *fn, ir_val v)
{
    ir_type t = ir_type_of(fn, v);

    return t.kind == TYPE_TILE ? type_elements(t) * dtype_bytes((enum dtype)t.dtype) : 0;
}

static int64_t op_bytes(const ir_fn *fn, const ir_op *op)
{
    int64_t n = 0;

    for (uint32_t i = 0; i < op->nargs; i++)
        n += tile_bytes(fn, op->args[i]);
    for (uint32_t i = 0; i < op->nres; i++)
        n += tile_bytes(fn, op->res + i);
    return n;
}

/* Bytes that are certainly in use at once: what the loops around carry, and the operands and
 * results of the one op that has most of them. Blocks nest as deep as the language allows: bounded.
 */
static int64_t block_bytes(const ir_fn *fn, const ir_block *b)
{
    int64_t most = 0, carried = 0;

    for (uint32_t i = 0; i < b->nargs; i++)
        carried += b->owner ? tile_bytes(fn, b->arg + i) : 0;
    for IR_EACH_OP(op, b) {
        int64_t n = op->nregions ? 0 : op_bytes(fn, op);
        for (uint32_t i = 0; i < op->nregions; i++) {
            int64_t inner = block_bytes(fn, op->regions[i]);
            n = inner > n ? inner : n;
        }
        most = n > most ? n : most;
    }
    return carried + most;
}

static bool too_large(const tw_device *dev, int64_t bytes, char *why, size_t size)
{
    int64_t limit = (int64_t)dev->l2_bytes * L2_EXCESS;

    if (limit == 0 || bytes <= limit)
        return false;
    snprintf(why, size, "a program needs %lld KiB at once, %d times the level-2 cache is %lld KiB",
             (long long)(bytes >> 10), L2_EXCESS, (long long)(limit >> 10));
    return true;
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

typedef struct needs_job {
    lowering *l;
    const tw_device *dev;
    const problem *p;
    const config *cfg;
    target_needs needs;
} needs_job;

static tw_status needs_guarded(void *arg)
{
    needs_job *j = arg;
    const gpu_limits *gpu = &j->dev->gpu.limits;
    const target_input in = {.module = j->l->module,
                             .config = j->cfg->value,
                             .nconfig = j->cfg->n,
                             .diags = &j->l->diags,
                             .gpu = gpu->capability ? gpu : NULL};

    set_facts(j->l->module, &j->l->k->source->sig, j->p->facts);
    TRY(pipeline_run(j->l->module, &j->l->diags, NULL));
    return j->l->t->needs(j->l->t, &in, &j->needs);
}

/* Registers that each thread of a block of so many can have, in the units they come in. */
static int register_room(const gpu_limits *gpu, int threads)
{
    int share = gpu->registers_per_sm / threads / REGISTER_UNIT * REGISTER_UNIT;

    return share < gpu->registers_per_thread ? share : gpu->registers_per_thread;
}

static bool exceeds(const gpu_limits *gpu, const target_needs *n, char *why, size_t size)
{
    if (n->threads > gpu->threads_per_block)
        snprintf(why, size, "a block of %d threads; the GPU has at most %d", n->threads,
                 (int)gpu->threads_per_block);
    else if (n->shared_bytes > gpu->shared_per_block)
        snprintf(why, size, "%d bytes of shared memory a block; the GPU has at most %d",
                 (int)n->shared_bytes, (int)gpu->shared_per_block);
    else if (n->registers > register_room(gpu, n->threads) + SPILLED_REGISTERS)
        snprintf(why, size,
                 "about %d registers a thread, of which one of %d threads can have %d: the rest "
                 "would spill",
                 n->registers, n->threads, register_room(gpu, n->threads));
    return why[0] != 0;
}

/* What schedules cannot be made at all is refused by its limit; any other failure is left to the
 * compiler. */
static bool beyond_limits(needs_job *j, char *why, size_t size)
{
    tw_status st = guard_run(needs_guarded, j);

    if (st == TW_OK)
        return j->dev->gpu.limits.capability && exceeds(&j->dev->gpu.limits, &j->needs, why, size);
    if (diags_failed(&j->l->diags, st) == TW_E_LIMIT)
        copy_reason(why, size);
    return st == TW_E_LIMIT;
}

bool prune(const tw_kernel *k, const tw_device *dev, const problem *p, const config *cfg,
           target_needs *needs, char *why, size_t size)
{
    lowering l;
    needs_job j = {.l = &l, .dev = dev, .p = p, .cfg = cfg};
    bool drop = false;

    why[0] = '\0';
    *needs = (target_needs){0};
    if (!dev->target->needs && dev->l2_bytes == 0)
        return false;
    lowering_begin(&l, k, dev->target);
    /* What does not lower does not compile either: that error says more. */
    if (lowering_run(&l, p, cfg) == TW_OK) {
        const ir_fn *fn = l.module->kernel;
        bool on_gpu = dev->gpu.limits.capability > 0;
        drop = (!on_gpu && too_large(dev, block_bytes(fn, fn->body), why, size)) ||
               (dev->target->needs && beyond_limits(&j, why, size));
    }
    lowering_end(&l);
    *needs = j.needs;
    return drop;
}
