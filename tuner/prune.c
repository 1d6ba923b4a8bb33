/* Limits known before compiling: what a program keeps at hand must fit the caches it is meant for.
 * The bound is loose: it drops what would be far too large, the search finds the rest. */
#include "runtime/lower.h"
#include "tuner/session.h"
#include <stdio.h>
#include <string.h>

/* A program's tiles may exceed the level-2 cache this many times before it is hopeless. */
#define L2_EXCESS 4

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
    for
        IR_EACH_OP(op, b)
        {
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

bool prune(const tw_kernel *k, const tw_device *dev, const problem *p, const config *cfg, char *why,
           size_t size)
{
    lowering l;
    bool drop = false;

    why[0] = '\0';
    if (dev->l2_bytes == 0)
        return false;
    lowering_begin(&l, k, dev->target);
    /* What does not lower does not compile either: that error says more. */
    if (lowering_run(&l, p, cfg) == TW_OK)
        drop = too_large(dev, block_bytes(l.module->kernel, l.module->kernel->body), why, size);
    lowering_end(&l);
    return drop;
}
