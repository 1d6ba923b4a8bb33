/* pipeline_loops: what a loop copies is copied ahead of its use, in num_stages stages.
 *
 * Two stages and more, a ring of S slots: one wait and one barrier an iteration.
 *
 *   copies of iterations 0 .. S-2 to slots 0 .. S-2, each followed by copy.commit
 *   for ... iter (%read = 0, %write = S - 1) {
 *     copy.wait pending=S-2         # this iteration's copies have landed
 *     barrier                       # for all warps; and all have read the slot of the last one
 *     if (there is an iteration S-1 ahead)
 *       its copies to slot %write   # or behind the first product, if what follows it is long
 *     copy.commit                   # empty or not: as many groups in each iteration
 *     ... slot %read ...
 *     yield %read + 1 modulo S, %read
 *   }
 *
 * With stage_blocks B a stage holds the copies of B iterations, the ring has S * B slots, and wait,
 * barrier and copies stand under a condition: every B-th iteration, that of the first slot of a
 * stage, makes the copies of B iterations. A block of B times as many columns waits as rarely, but
 * has B times as many scores in registers at once.
 *
 * One stage: the copy of what is read next begins when what was read before in its place is done
 * with (K of the next iteration under the product with V of this one):
 *
 *   copy K of iteration 0
 *   for ... {
 *     wait, barrier, copy V;  ... read K
 *     wait, barrier, if there is a next iteration copy its K;  ... read V ...
 *   }
 *
 * The second wait stands right behind the reading of K, in front of what is computed of it: a
 * barrier before the product with V would keep that product apart from the exponentials.
 *
 * If the iteration does this under a condition, then otherwise it copies the next one's K at once.
 *
 * Loops that pass_join_loops made one chain are one: slots and copies run on from loop to loop, and
 * an iteration ahead may be in a later loop. Copies keep their `inside` bits: where an early copy
 * may be of this loop or a later one, only what is true of both. What is copied in front of the
 * chain and read in it needs no wait of its own; read into registers in front of it, it is waited
 * for after the chain's first copies have begun.
 *
 * needs: place_operands, join_loops. leaves: single buffers that it does not touch
 * (pass_place_barriers). worth, on one H200, in a prototype written by hand: one barrier an
 * iteration 1-5 %, a second stage nothing at D = 128 and up to 5 % elsewhere.
 */
#include "compiler/base/check.h"
#include "compiler/ir/iredit.h"
#include "compiler/schedule/loop_edit.h"
#include "compiler/schedule/schedule_pass.h"
#include "compiler/schedule/segments.h"
#include "compiler/schedule/shared_slot.h"
#include "compiler/schedule/slot_readers.h"

enum { MAX_COPIES = 32, STEP_PRODUCTS = 16 * 8 * 16 };
enum { STEPS_TO_HIDE = 128 }; /* measured on one H200: 128 gain 1 to 3 %, 64 lose up to 3 % */

typedef struct piping {
    ir_fn *fn;
    arena *a;
    int stages;
    int blocks;      /* iterations whose copies share a stage */
    bool wait_first; /* for what is read into registers: its place is wanted */
    loop_chain chain;
    loop_copies loops[MAX_SEGMENTS];
    uint32_t ncopies;
    int group[MAX_COPIES]; /* one stage: copies that are waited for together, in order of reading */
    int ngroups;
    bool in_turn; /* groups are read one after the other */
    uint32_t changes;
} piping;

static ir_val buffer_of(const piping *p, uint32_t i)
{
    return p->loops[0].at.at[i].alloc->res;
}

/* ---- the chain ---- */

static bool same_buffers(const loop_copies *x, const loop_copies *y)
{
    if (x->at.n != y->at.n)
        return false;
    for (uint32_t i = 0; i < x->at.n; i++) {
        if (x->at.at[i].alloc != y->at.at[i].alloc)
            return false;
    }
    return true;
}

/* The chain that begins with this loop; false when its copies cannot be made early. */
static bool find_chain(piping *p, ir_op *first)
{
    p->chain = (loop_chain){0, p->loops};
    for (ir_op *loop = first; loop && p->chain.n < MAX_SEGMENTS; loop = loop_after(p->fn, loop)) {
        loop_copies *l = &p->loops[p->chain.n];
        if (!loop_copies_of(p->a, p->fn, loop, l) || l->at.n > MAX_COPIES ||
            (p->chain.n && !same_buffers(&p->loops[0], l)))
            break;
        p->chain.n++;
    }
    p->ncopies = p->chain.n ? p->loops[0].at.n : 0;
    return p->chain.n > 0;
}

/* Are the chain's buffers its own? */
static bool owns_buffers(const piping *p)
{
    for (uint32_t i = 0; i < p->ncopies; i++) {
        if (ir_count_uses(p->fn, buffer_of(p, i)) != (int)p->chain.n)
            return false;
    }
    return true;
}

/* Bits that hold for copy i in loop number seg and in all later ones. */
static int64_t inside_from(const piping *p, uint32_t seg, uint32_t i)
{
    int64_t bits = -1;

    for (uint32_t k = seg; k < p->chain.n; k++)
        bits &= p->loops[k].at.at[i].copy->attr[1].i;
    return bits;
}

/* Copy i of the iteration, into a slot. */
static void build_copy(piping *p, ir_builder *b, uint32_t i, const ahead *at, ir_val slot,
                       int64_t inside)
{
    const ir_op *op = p->loops[at->first].at.at[i].copy;
    ir_val args[VIEW_MAX_RANK + 2];
    ir_attr attrs[] = {op->attr[0], {.i = inside}, op->attr[2]};

    b->where = op->where;
    args[0] = op->args[0];
    for (int k = 1; k + 1 < op->nargs; k++)
        args[k] = segments_operand(b, &p->chain, at, i, k);
    args[op->nargs - 1] = slot;
    ir_build(b, OP_COPY_ASYNC, args, op->nargs, attrs, (ir_type){0});
}

/* The copies of a group (-1: all) of an iteration, if there is one that copies, into slot number
 * `index`. */
static void build_guarded(piping *p, ir_builder *b, int group, ahead at, ir_val index)
{
    ir_op *guard = ir_if(b, segments_copies(b, &p->chain, &at), NULL, 0);
    ir_builder inner = ir_at_end(p->fn, guard->regions[0]);
    ir_builder other = ir_at_end(p->fn, guard->regions[1]);

    for (uint32_t i = 0; i < p->ncopies; i++) {
        if (group < 0 || p->group[i] == group)
            build_copy(p, &inner, i, &at, ir_buffer_slot(&inner, buffer_of(p, i), index),
                       inside_from(p, at.first, i));
    }
    ir_yield(&inner, NULL, 0);
    ir_yield(&other, NULL, 0);
}

/* The copies of a group of the iteration at hand. */
static void build_now(piping *p, ir_builder *b, uint32_t seg, int group, ir_val index)
{
    for (uint32_t i = 0; i < p->ncopies; i++) {
        if (p->group[i] != group)
            continue;
        const ir_op *op = p->loops[seg].at.at[i].copy;
        ir_val args[VIEW_MAX_RANK + 2], slot = ir_buffer_slot(b, buffer_of(p, i), index);
        for (int k = 0; k + 1 < op->nargs; k++)
            args[k] = loop_value_at(b, &p->loops[seg], op->args[k],
                                    p->loops[seg].loop->regions[0]->arg);
        args[op->nargs - 1] = slot;
        ir_build(b, OP_COPY_ASYNC, args, op->nargs, op->attr, (ir_type){0});
    }
    ir_copy_commit(b);
}

/* The copies as they were are gone; who read their slots reads those of `slot`. */
static void drop_copies(piping *p, uint32_t seg, const ir_val *slot)
{
    for (uint32_t i = 0; i < p->ncopies; i++) {
        const loop_copy *c = &p->loops[seg].at.at[i];
        ir_name(p->fn, slot[i], ir_value_of(p->fn, c->slot->res)->name);
        ir_replace_uses(p->fn, c->slot->res, slot[i]);
        ir_unlink(c->slot);
        ir_unlink(c->copy);
        ir_unlink(c->commit);
        ir_unlink(c->wait);
    }
}

/* ---- what is copied in front of the chain ---- */

static bool in_chain(const piping *p, const ir_op *op)
{
    for (uint32_t k = 0; k < p->chain.n; k++) {
        if (op == p->loops[k].loop || ir_inside(op->parent, p->loops[k].loop))
            return true;
    }
    return false;
}

typedef struct read_check {
    const piping *p;
    ir_val v;
    bool only; /* so far read in the chain alone */
} read_check;

static void check_read(ir_op *op, void *arg)
{
    read_check *c = arg;

    for (int i = 0; i < op->nargs; i++) {
        if (op->args[i] != c->v)
            continue;
        if (op->code == OP_BUFFER_TRANS) {
            read_check view = {c->p, op->res, true};
            ir_walk(c->p->fn->body, check_read, &view);
            c->only &= view.only;
        } else if (op->code != OP_COPY_ASYNC)
            c->only &= in_chain(c->p, op);
    }
}

static bool read_in_chain_only(const piping *p, ir_val v)
{
    read_check c = {p, v, true};

    ir_walk(p->fn->body, check_read, &c);
    return c.only;
}

/* A load of the slot in front of the chain that nobody needs before it, or NULL. */
static ir_op *early_load(const piping *p, const ir_op *wait, ir_val slot)
{
    ir_op *load = wait->next;

    while (load && load->code == OP_BUFFER_TRANS)
        load = load->next;
    return load && load->code == OP_BUFFER_LOAD && load->args[0] == slot &&
                   ir_count_uses(p->fn, slot) == 2 && read_in_chain_only(p, load->res)
               ? load
               : NULL;
}

/* groups: those committed after what stands in front of the chain, before its first loop. */
static void delay_waits(piping *p, ir_op *head, int groups)
{
    bool waits = false; /* one wait serves all */

    for (ir_op *op = head->parent->first, *nx; op && op != head; op = nx) {
        nx = op->next;
        if (op->code != OP_COPY_ASYNC || op->next->code != OP_COPY_COMMIT ||
            op->next->next->code != OP_COPY_WAIT)
            continue;
        ir_op *commit = op->next, *wait = commit->next;
        ir_val slot = op->args[op->nargs - 1];
        ir_op *load = early_load(p, wait, slot);
        nx = wait->next;
        if (load && p->wait_first)
            continue;
        if (load) {
            nx = load->next;
            if (waits)
                ir_unlink(wait);
            else
                ir_move_before(wait, head);
            ir_move_before(load, head);
            wait->attr[0].i = groups;
            waits = true;
        } else if (read_in_chain_only(p, slot)) {
            ir_unlink(commit);
            ir_unlink(wait);
        }
    }
}

/* ---- what is read in turn ---- */

static int place_in_block(const ir_op *op)
{
    int n = 0;

    for (; op; op = op->prev)
        n++;
    return n;
}

/* Where the loop's copies stand, and with them all who read them. */
static const ir_block *block_of(const loop_copies *l)
{
    return (l->guard ? l->guard : l->loop)->regions[0];
}

static int read_at(const piping *p, uint32_t seg, uint32_t i, bool last)
{
    const loop_copies *l = &p->loops[seg];
    const ir_block *blk = block_of(l);
    ir_val slot = l->at.at[i].slot->res;

    return place_in_block(last ? last_reader(p->fn, blk, slot) : first_reader(p->fn, blk, slot));
}

/* The group of copy i in a loop: how many different places of first reading come before its own. */
static int group_in(const piping *p, uint32_t seg, uint32_t i)
{
    int seen[MAX_COPIES], n = 0, mine = read_at(p, seg, i, false);

    for (uint32_t k = 0; k < p->ncopies; k++) {
        int at = read_at(p, seg, k, false);
        bool known = at >= mine;
        for (int s = 0; s < n; s++)
            known |= seen[s] == at;
        if (!known)
            seen[n++] = at;
    }
    return n;
}

/* Groups that are alike in all loops, of which the first is done with before the last is read. */
static bool find_groups(piping *p)
{
    p->ngroups = 0;
    for (uint32_t i = 0; i < p->ncopies; i++) {
        p->group[i] = group_in(p, 0, i);
        p->ngroups = p->group[i] >= p->ngroups ? p->group[i] + 1 : p->ngroups;
        for (uint32_t seg = 0; seg < p->chain.n; seg++) {
            if (group_in(p, seg, i) != p->group[i] || !read_at(p, seg, i, false))
                return false;
        }
    }
    for (uint32_t seg = 0; seg < p->chain.n; seg++) {
        int done = 0, last = 0;
        for (uint32_t i = 0; i < p->ncopies; i++) {
            if (p->group[i] == 0 && read_at(p, seg, i, true) > done)
                done = read_at(p, seg, i, true);
            if (p->group[i] == p->ngroups - 1)
                last = read_at(p, seg, i, false);
        }
        if (done >= last)
            return false;
    }
    return p->ngroups > 1;
}

/* Where a group is waited for: behind the last reading of the groups before it, so that nothing
 * holds up what stands between the two; at the latest where it is read itself. */
static ir_op *turn_at(const piping *p, uint32_t seg, int group)
{
    const loop_copies *l = &p->loops[seg];
    ir_op *reader = NULL, *done = NULL;

    for (uint32_t i = 0; i < p->ncopies; i++) {
        ir_val slot = l->at.at[i].slot->res;
        if (p->group[i] == group)
            reader = first_reader(p->fn, block_of(l), slot);
        if (p->group[i] >= group)
            continue;
        ir_op *last = last_reader(p->fn, block_of(l), slot);
        if (!done || place_in_block(last) > place_in_block(done))
            done = last;
    }
    return done && place_in_block(done) < place_in_block(reader) ? done->next : reader;
}

/* ---- two stages and more ---- */

/* The copies of a stage, whose first iteration is `distance` ahead of the one at hand or (seg < 0)
 * of the chain's first, into the slots from `index` on; then a commit. */
static void build_stage(piping *p, ir_builder *b, int seg, ir_val counter, int distance,
                        ir_val index)
{
    for (int i = 0; i < p->blocks; i++) {
        ahead at = seg < 0 ? segments_from_start(b, &p->chain, distance + i)
                           : segments_ahead(b, &p->chain, (uint32_t)seg, counter, distance + i);
        ir_val slot = i ? ir_binary(b, OP_ADD, index, ir_const_int(b, DT_I32, i)) : index;
        build_guarded(p, b, -1, at, slot);
    }
    ir_copy_commit(b);
}

static void begin_ring(piping *p, ir_op *head, ir_val *state)
{
    ir_builder b = ir_before(p->fn, head);

    for (uint32_t i = 0; i < p->ncopies; i++)
        set_shared_slots(p->fn, buffer_of(p, i), p->stages * p->blocks);
    if (ir_depth(head->parent) > 0) /* slots that the last time round is still being read from */
        ir_barrier(&b, 0, 0);
    for (int i = 0; i < p->stages - 1; i++)
        build_stage(p, &b, -1, 0, i * p->blocks, ir_const_int(&b, DT_I32, i * p->blocks));
    state[0] = ir_const_int(&b, DT_I32, 0);
    if (p->blocks == 1)
        state[1] = ir_const_int(&b, DT_I32, p->stages - 1);
}

/* Slot numbers of the next iteration: it writes what this one has read. With several blocks a stage
 * only the first of them writes, and finds out where. */
static void turn_ring(piping *p, ir_op *loop, const ir_val *now)
{
    ir_builder b = ir_before(p->fn, loop->regions[0]->last);
    int slots = p->stages * p->blocks;
    ir_val next = now[1]; /* of two slots, the other */

    if (slots > 2) {
        ir_val one = ir_const_int(&b, DT_I32, 1), all = ir_const_int(&b, DT_I32, slots);
        ir_val up = ir_binary(&b, OP_ADD, now[0], one);
        next = ir_where(&b, ir_binary(&b, OP_CMP_EQ, up, all), ir_const_int(&b, DT_I32, 0), up);
    }
    loop_yield_more(p->fn, loop, (ir_val[]){next, now[0]}, p->blocks == 1 ? 2 : 1);
}

/* The copies of a stage have landed, all threads have read the stage before it, and that is where
 * those of the last stage ahead go, `later`, from slot number `write` on. */
static void turn_stage(piping *p, ir_builder *b, ir_builder *later, uint32_t seg, ir_val write)
{
    ir_val counter = p->loops[seg].loop->regions[0]->arg;

    ir_copy_wait(b, p->stages - 2);
    ir_barrier(b, 0, 0);
    build_stage(p, later, (int)seg, counter, (p->stages - 1) * p->blocks, write);
}

/* The same, in the iteration that reads the first slot of a stage. */
static void turn_first(piping *p, ir_builder *b, uint32_t seg, ir_val read)
{
    ir_val zero = ir_const_int(b, DT_I32, 0), blocks = ir_const_int(b, DT_I32, p->blocks);
    ir_val part = ir_binary(b, OP_AND, read, ir_const_int(b, DT_I32, p->blocks - 1));
    ir_op *first = ir_if(b, ir_binary(b, OP_CMP_EQ, part, zero), NULL, 0);
    ir_builder inner = ir_at_end(p->fn, first->regions[0]);
    ir_builder other = ir_at_end(p->fn, first->regions[1]);
    ir_val last = ir_const_int(&inner, DT_I32, (p->stages - 1) * p->blocks);

    turn_stage(p, &inner, &inner, seg,
               ir_where(&inner, ir_binary(&inner, OP_CMP_EQ, read, zero), last,
                        ir_binary(&inner, OP_SUB, read, blocks)));
    ir_yield(&inner, NULL, 0);
    ir_yield(&other, NULL, 0);
}

/* Steps of the matrix unit that a warp takes from here to the end of the block. */
static int64_t steps_from(const piping *p, const ir_op *op)
{
    int64_t n = 0;

    for (; op; op = op->next) {
        if (op->code != OP_MMA)
            continue;
        ir_type t = ir_type_of(p->fn, op->res), b = ir_type_of(p->fn, op->args[1]);
        n += (int64_t)t.shape[0] * t.shape[1] * b.shape[b.rank - 2] / STEP_PRODUCTS;
    }
    return n / p->fn->warps;
}

/* Where an iteration begins the copies ahead: behind the readings of its first group, where a warp
 * waits for the product anyway, if what is left is long enough for memory; else at its start. */
static ir_op *copies_at(const piping *p, uint32_t seg, ir_op *start)
{
    if (!p->in_turn || p->loops[seg].guard)
        return start;
    ir_op *where = turn_at(p, seg, 1);
    return steps_from(p, where) >= STEPS_TO_HIDE ? where : start;
}

static void ring_loop(piping *p, uint32_t seg, ir_val *state)
{
    int n = p->blocks == 1 ? 2 : 1;
    ir_op *loop = loop_carry_more(p->fn, p->loops[seg].loop, state, n);
    ir_block *body = loop->regions[0];
    ir_val slot[MAX_COPIES], now[2] = {0};

    for (int i = 0; i < n; i++) {
        now[i] = body->arg + body->nargs - (uint32_t)(n - i);
        state[i] = loop->res + loop->nres - (uint32_t)(n - i);
        ir_name(p->fn, now[i], i ? "write" : "read");
    }
    p->loops[seg].loop = loop;
    ir_builder b = ir_before(p->fn, body->first), later = b;
    if (p->blocks == 1) {
        later = ir_before(p->fn, copies_at(p, seg, body->first));
        turn_stage(p, &b, &later, seg, now[1]);
    } else
        turn_first(p, &b, seg, now[0]);
    for (uint32_t i = 0; i < p->ncopies; i++)
        slot[i] = ir_buffer_slot(&b, buffer_of(p, i), now[0]);
    drop_copies(p, seg, slot);
    turn_ring(p, loop, now);
}

static void make_ring(piping *p)
{
    ir_op *head = p->loops[0].loop;
    ir_val state[2];

    p->in_turn = find_groups(p);
    begin_ring(p, head, state);
    delay_waits(p, head, p->stages - 1);
    for (uint32_t seg = 0; seg < p->chain.n; seg++)
        ring_loop(p, seg, state);
    p->changes += p->ncopies;
}

/* ---- one stage ---- */

/* The first group of the next iteration. */
static void build_next(piping *p, ir_builder *b, uint32_t seg, ir_val zero)
{
    ir_val counter = p->loops[seg].loop->regions[0]->arg;

    build_guarded(p, b, 0, segments_ahead(b, &p->chain, seg, counter, 1), zero);
    ir_copy_commit(b);
}

/* A group has landed, and what was read before is free. */
static void turn_group(piping *p, uint32_t seg, int group, ir_op *where, ir_val zero)
{
    ir_builder b = ir_before(p->fn, where);

    ir_copy_wait(&b, 0);
    ir_barrier(&b, 0, 0);
    if (group + 1 < p->ngroups)
        build_now(p, &b, seg, group + 1, zero);
    else
        build_next(p, &b, seg, zero);
}

static void single_loop(piping *p, uint32_t seg, const ir_val *slot, ir_val zero)
{
    const loop_copies *l = &p->loops[seg];
    ir_op *where[MAX_COPIES];

    for (int g = 0; g < p->ngroups; g++)
        where[g] = turn_at(p, seg, g);
    for (int g = 0; g < p->ngroups; g++)
        turn_group(p, seg, g, where[g], zero);
    if (l->guard) { /* what was in its place has been read: a barrier stands behind each reading */
        ir_builder other = ir_before(p->fn, l->guard->regions[1]->first);
        build_next(p, &other, seg, zero);
    }
    drop_copies(p, seg, slot);
}

static void make_single(piping *p)
{
    ir_op *head = p->loops[0].loop;
    ir_builder b = ir_before(p->fn, head);
    ir_val slot[MAX_COPIES], zero = ir_const_int(&b, DT_I32, 0);

    for (uint32_t i = 0; i < p->ncopies; i++)
        slot[i] = ir_buffer_slot(&b, buffer_of(p, i), zero);
    build_guarded(p, &b, 0, segments_from_start(&b, &p->chain, 0), zero);
    ir_copy_commit(&b);
    delay_waits(p, head, 1);
    for (uint32_t seg = 0; seg < p->chain.n; seg++)
        single_loop(p, seg, slot, zero);
    p->changes += p->ncopies;
}

/* ---- the pass ---- */

/* Returns the op to go on behind. */
static ir_op *pipe_from(piping *p, ir_op *loop)
{
    if (!find_chain(p, loop))
        return loop;
    for (uint32_t i = 0; i < p->ncopies; i++) {
        ir_op *alloc = p->loops[0].at.at[i].alloc;
        if (ir_inside(alloc->parent, loop))
            ir_move_before(alloc, loop);
    }
    if (p->stages > 1 && owns_buffers(p))
        make_ring(p);
    while (p->stages == 1 && p->chain.n > 1 && !find_groups(p))
        p->chain.n--; /* what does not take part begins a chain of its own */
    if (p->stages == 1 && find_groups(p))
        make_single(p);
    return p->loops[p->chain.n - 1].loop;
}

static void pipe_block(piping *p, ir_block *blk)
{
    for IR_EACH_OP(op, blk) {
        for (int i = 0; i < op->nregions; i++)
            pipe_block(p, op->regions[i]);
    }
    for IR_EACH_OP(op, blk) {
        if (op->code == OP_FOR)
            op = pipe_from(p, op);
    }
}

/* Is what a commit right behind this wait would take along waited for again on the way to op? A
 * wait for all groups but n does when that commit and n later ones stand in front of it. */
static bool waits_before(const ir_op *op, const ir_op *wait)
{
    int64_t missing = INT64_MAX; /* commits that the nearest such wait still wants */

    for (;;) {
        for (const ir_op *at = op->prev; at && at != wait; at = at->prev) {
            if (at->code == OP_COPY_WAIT && at->attr[0].i < missing)
                missing = at->attr[0].i + 1;
            else if (at->code == OP_COPY_COMMIT && missing < INT64_MAX && --missing == 0)
                return true;
        }
        if (op->parent == wait->parent)
            return false;
        op = op->parent->owner;
    }
}

typedef struct waits_check {
    const ir_fn *fn;
    ir_val slot;
    const ir_op *wait;
    bool all;
} waits_check;

static void check_waits(ir_op *op, void *arg)
{
    waits_check *c = arg;

    for (int i = 0; i < op->nargs; i++) {
        if (op->args[i] != c->slot || op->code == OP_COPY_ASYNC)
            continue;
        if (op->code == OP_BUFFER_TRANS) {
            waits_check view = {c->fn, op->res, c->wait, true};
            ir_walk(c->fn->body, check_waits, &view);
            c->all &= view.all;
        } else
            c->all &= waits_before(op, c->wait);
    }
}

/* A wait for a copy after which all who read it wait again only holds up what stands between; then
 * the copy may belong to the next group as well. From the end, so that the next group is one that
 * stays. */
static void drop_early_waits(const ir_fn *fn, ir_block *blk)
{
    for (ir_op *op = blk->last; op; op = op->prev) {
        for (int i = op->nregions; i-- > 0;)
            drop_early_waits(fn, op->regions[i]);
        if (op->code != OP_COPY_ASYNC || op->next->code != OP_COPY_COMMIT ||
            op->next->next->code != OP_COPY_WAIT)
            continue;
        waits_check c = {fn, op->args[op->nargs - 1], op->next->next, true};
        ir_walk(fn->body, check_waits, &c);
        if (c.all) {
            ir_unlink(op->next->next);
            ir_unlink(op->next);
        }
    }
}

tw_status pass_pipeline_loops(pass_cx *cx, ir_module *m)
{
    piping *p = ARENA_NEW(cx->scratch, piping);

    p->fn = m->kernel;
    p->a = cx->scratch;
    p->stages = schedule_of(cx)->params.num_stages;
    p->blocks = schedule_of(cx)->params.stage_blocks;
    p->wait_first = schedule_of(cx)->params.operand_registers == 2;
    pipe_block(p, m->kernel->body);
    drop_early_waits(m->kernel, m->kernel->body);
    cx->changes = p->changes;
    return TW_OK;
}
