/* cse: compute what is computed twice only once.
 *
 *   %1 = mul %a, %b                       %1 = mul %a, %b
 *   for ... {                             for ... {
 *     %2 = mul %b, %a          ->
 *     ... %2 ...                            ... %1 ...
 *   }                                     }
 *
 * Two pure ops (purity.h) are the same when opcode, operands, attributes and result type are; the
 * operands of a commutative op in any order. The earlier one must come first on every path: its
 * block is the later one's or around it.
 * cost: one walk with a hash table that forgets a block's ops at the block's end.
 */
#include "compiler/ir/iredit.h"
#include "compiler/passes/pipeline.h"
#include "compiler/passes/purity.h"
#include "compiler/passes/rename.h"
#include <string.h>

enum { BUCKETS = 256 };

typedef struct entry {
    struct entry *older; /* in the same bucket */
    uint64_t hash;
    ir_op *op;
} entry;

typedef struct merging {
    ir_fn *fn;
    arena *a;
    renames to;
    entry *bucket[BUCKETS];
    VEC(entry *) open; /* in the order they were made */
    uint32_t merged;
} merging;

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static bool is_commutative(const ir_op *op)
{
    return (op_info(op->code)->traits & OPT_COMM) != 0;
}

static uint64_t hash_ints(uint64_t h, ir_attr x)
{
    for (uint32_t i = 0; i < x.ints.n; i++)
        h = mix(h, (uint64_t)x.ints.at[i]);
    return h;
}

static uint64_t hash_op(const merging *m, const ir_op *op)
{
    const ir_op_info *info = op_info(op->code);
    uint64_t h = mix(op->code, ir_type_of(m->fn, op->res).dtype);

    if (is_commutative(op))
        h = mix(h, (uint64_t)op->args[0] + op->args[1]);
    else
        for (int i = 0; i < op->nargs; i++)
            h = mix(h, op->args[i]);
    for (int i = 0; i < OP_MAX_ATTRS && info->attr[i].kind; i++) {
        bool number = info->attr[i].kind != ATTR_INTS && info->attr[i].kind != ATTR_STR;
        h = number ? mix(h, (uint64_t)op->attr[i].i) : hash_ints(h, op->attr[i]);
    }
    return h;
}

static bool same_attr(enum ir_attr_kind kind, ir_attr x, ir_attr y)
{
    if (kind != ATTR_INTS)
        return x.i == y.i; /* floats by their bits */
    return x.ints.n == y.ints.n && !memcmp(x.ints.at, y.ints.at, x.ints.n * sizeof *x.ints.at);
}

static bool same_args(const ir_op *x, const ir_op *y)
{
    if (x->nargs != y->nargs)
        return false;
    if (is_commutative(x) && x->args[0] == y->args[1] && x->args[1] == y->args[0])
        return true;
    return !x->nargs || !memcmp(x->args, y->args, x->nargs * sizeof *x->args);
}

static bool same_op(const ir_fn *fn, const ir_op *x, const ir_op *y)
{
    if (x->code != y->code || !same_args(x, y) ||
        !type_equal(ir_type_of(fn, x->res), ir_type_of(fn, y->res)))
        return false;
    const ir_op_info *info = op_info(x->code);
    for (int i = 0; i < OP_MAX_ATTRS && info->attr[i].kind; i++) {
        if (!same_attr(info->attr[i].kind, x->attr[i], y->attr[i]))
            return false;
    }
    return true;
}

/* The earlier op that computes the same, or NULL; then op is remembered. */
static ir_op *find_or_add(merging *m, ir_op *op)
{
    uint64_t hash = hash_op(m, op);
    entry **bucket = &m->bucket[hash % BUCKETS];

    for (entry *e = *bucket; e; e = e->older) {
        if (e->hash == hash && same_op(m->fn, e->op, op))
            return e->op;
    }
    entry *e = ARENA_NEW(m->a, entry);
    *e = (entry){*bucket, hash, op};
    *bucket = e;
    vec_push(&m->open, m->a, e);
    return NULL;
}

static void forget(merging *m, uint32_t down_to)
{
    while (m->open.n > down_to) {
        entry *e = m->open.at[--m->open.n];
        m->bucket[e->hash % BUCKETS] = e->older;
    }
}

static void merge_block(merging *m, ir_block *blk)
{
    uint32_t open = m->open.n;

    for IR_EACH_OP_SAFE(op, nx, blk) {
        rename_args(&m->to, op);
        ir_op *same = op->nres == 1 && op_is_pure(m->fn, op) ? find_or_add(m, op) : NULL;
        if (same) {
            rename_set(&m->to, op->res, same->res);
            ir_unlink(op);
            m->merged++;
        }
        for (int i = 0; i < op->nregions; i++)
            merge_block(m, op->regions[i]);
    }
    forget(m, open);
}

static uint32_t merge(ir_fn *fn, arena *scratch)
{
    merging m = {.fn = fn, .a = scratch, .to = {.a = scratch}};

    merge_block(&m, fn->body);
    return m.merged;
}

tw_status pass_cse(pass_cx *cx, ir_module *m)
{
    cx->changes = merge(m->kernel, cx->scratch);
    if (m->launch)
        cx->changes += merge(m->launch, cx->scratch);
    return TW_OK;
}
