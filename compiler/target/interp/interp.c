#include "compiler/target/interp/interp.h"
#include "compiler/base/mem.h"
#include "compiler/ir/irbuild.h"
#include "compiler/target/interp/interp_agent.h"
#include "compiler/target/interp/interp_block.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- preparation ---- */

typedef struct pending_block {
    const ir_block *block;
    uint32_t depth;
    int first, warps; /* level 2: of the group that runs it */
} pending_block;
typedef VEC(pending_block) pending_blocks;

static void give_cells(interp_program *p, arena *a, const pending_block *b, ir_val first,
                       uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        p->type[first + i] = ir_type_of(p->fn, first + i);
        if (p->scheduled)
            interp_prepare_value(p, a, first + i, b->first, b->warps);
        ir_type ty = p->type[first + i];
        bool has_elements = ty.kind == TYPE_SCALAR || ty.kind == TYPE_TILE;

        p->slot[first + i] = p->cells;
        p->length[first + i] = has_elements ? (uint64_t)type_elements(ty) : 1;
        p->cells += p->length[first + i];
    }
}

static uint64_t cells_read(const interp_program *p, const ir_op *op)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < op->nargs; i++)
        n += p->length[op->args[i]];
    return n;
}

static void place_block(interp_program *p, arena *a, pending_block b, pending_blocks *pending)
{
    if (b.depth > p->depth)
        p->depth = b.depth;
    give_cells(p, a, &b, b.block->arg, b.block->nargs);
    for IR_EACH_OP (op, b.block) {
        pending_block in = {NULL, b.depth + 1, b.first, b.warps};
        if (op->code == OP_ROLE) {
            in.first = (int)op->attr[0].i;
            in.warps = (int)op->attr[1].i;
        }
        give_cells(p, a, &b, op->res, op->nres);
        if (!op->next && cells_read(p, op) > p->stage)
            p->stage = cells_read(p, op);
        for (uint32_t i = 0; i < op->nregions; i++) {
            in.block = op->regions[i];
            vec_push(pending, a, in);
        }
    }
}

interp_program *interp_prepare(arena *a, const ir_module *m)
{
    interp_program *p = ARENA_NEW(a, interp_program);
    pending_blocks pending = {0};

    p->fn = m->kernel;
    p->slot = ARENA_ARRAY(a, uint64_t, m->kernel->values.n);
    p->length = ARENA_ARRAY(a, uint64_t, m->kernel->values.n);
    p->type = ARENA_ARRAY(a, ir_type, m->kernel->values.n);
    p->scheduled = m->level == 2;
    p->hold = ARENA_ARRAY(a, const interp_hold *, p->scheduled ? m->kernel->values.n : 1);
    p->offset = ARENA_ARRAY(a, const int32_t *, p->scheduled ? m->kernel->values.n : 1);
    vec_push(&pending, a, ((pending_block){m->kernel->body, 1, 0, m->kernel->warps}));
    /* A block before those inside it: what a terminator reads has its length by then. */
    for (uint32_t i = 0; i < pending.n; i++)
        place_block(p, a, pending.at[i], &pending);
    uint64_t room = p->stage;
    p->stage = p->cells;
    p->cells += room;
    if (p->scheduled)
        interp_prepare_ops(p, a);
    return p;
}

/* ---- agents ---- */

interp_agent *interp_agent_create(const interp_program *p, const interp_launch *l)
{
    interp_agent *ag = mem_zalloc(sizeof *ag);

    if (!ag)
        return NULL;
    ag->p = p;
    ag->launch = *l;
    ag->frame = mem_zalloc(p->depth * sizeof *ag->frame);
    ag->cell = p->cells < SIZE_MAX / sizeof *ag->cell ? mem_alloc(p->cells * sizeof *ag->cell)
                                                      : NULL;
    if (!ag->frame || !ag->cell) {
        interp_agent_destroy(ag);
        return NULL;
    }
    return ag;
}

void interp_agent_destroy(interp_agent *ag)
{
    if (!ag)
        return;
    mem_free(ag->frame);
    mem_free(ag->cell);
    mem_free(ag->count);
    mem_free(ag->flight);
    mem_free(ag);
}

void interp_agent_start(interp_agent *ag, const int64_t program[3])
{
    const ir_fn *fn = ag->p->fn;

    memcpy(ag->id, program, sizeof ag->id);
    for (uint32_t i = 0; i < fn->params.n; i++) {
        ir_scalar *cell = cells_of(ag, ir_param_value(fn, (int)i));

        if (fn->params.at[i].kind == PARAM_TENSOR)
            cell->i = i;
        else
            *cell = ag->launch.arg[i].scalar;
    }
    ag->steps = 0;
    ag->fault.status = TW_OK;
    ag->nframes = 1;
    ag->frame[0] = (interp_frame){.next = fn->body->first};
}

bool interp_fail(interp_agent *ag, tw_status st, const ir_op *op, const char *fmt, ...)
{
    va_list ap;

    ag->fault.status = st;
    ag->fault.op = op;
    ag->fault.other = NULL;
    va_start(ap, fmt);
    vsnprintf(ag->fault.text, sizeof ag->fault.text, fmt, ap);
    va_end(ap);
    ag->nframes = 0;
    return false;
}

const ir_op *interp_agent_next(const interp_agent *ag)
{
    return ag->nframes ? ag->frame[ag->nframes - 1].next : NULL;
}

const ir_scalar *interp_agent_value(const interp_agent *ag, ir_val v)
{
    return cells_of(ag, v);
}

/* ---- control ---- */

static uint64_t copy_value(interp_agent *ag, ir_scalar *to, const ir_scalar *from, ir_val shape)
{
    uint64_t n = ag->p->length[shape];

    memcpy(to, from, n * sizeof *to);
    return n;
}

/* What wgmmas still make moves with its value. */
static void move_flights(interp_agent *ag, ir_val dst, const ir_val *src, uint32_t n)
{
    uint32_t *stage = ag->flight + ag->p->fn->values.n;

    for (uint32_t i = 0; i < n; i++)
        stage[i] = ag->flight[src[i]];
    for (uint32_t i = 0; i < n; i++)
        ag->flight[dst + i] = stage[i];
}

/* dst, dst + 1, ... = src[0..n) all at once: a yield may permute the values it replaces. */
static void move_values(interp_agent *ag, ir_val dst, const ir_val *src, uint32_t n)
{
    ir_scalar *stage = ag->cell + ag->p->stage;
    bool overlap = false;

    if (ag->flight)
        move_flights(ag, dst, src, n);
    for (uint32_t i = 0; i < n; i++)
        overlap |= src[i] >= dst && src[i] < dst + n;
    for (uint32_t i = 0; i < n; i++) {
        if (overlap)
            stage += copy_value(ag, stage, cells_of(ag, src[i]), src[i]);
        else
            copy_value(ag, cells_of(ag, dst + i), cells_of(ag, src[i]), src[i]);
    }
    stage = ag->cell + ag->p->stage;
    for (uint32_t i = 0; overlap && i < n; i++)
        stage += copy_value(ag, cells_of(ag, dst + i), stage, src[i]);
}

static void enter_block(interp_agent *ag, const ir_op *owner, const ir_block *block)
{
    ag->frame[ag->nframes++] = (interp_frame){.next = block->first, .owner = owner};
}

static bool another_turn(const interp_frame *f)
{
    return f->step > 0 ? f->i < f->hi : f->step < 0 && f->i > f->hi;
}

static void enter_for(interp_agent *ag, const ir_op *op)
{
    const ir_block *body = op->regions[0];
    uint32_t n = op->nargs - 3u;

    enter_block(ag, op, body);
    interp_frame *f = &ag->frame[ag->nframes - 1];
    f->i = cells_of(ag, op->args[0])->i;
    f->hi = cells_of(ag, op->args[1])->i;
    f->step = cells_of(ag, op->args[2])->i;
    if (!another_turn(f)) {
        ag->nframes--;
        move_values(ag, op->res, op->args + 3, n);
        return;
    }
    cells_of(ag, body->arg)->i = f->i;
    move_values(ag, body->arg + 1, op->args + 3, n);
}

static void next_turn(interp_agent *ag, interp_frame *f, const ir_op *yield)
{
    const ir_block *body = f->owner->regions[0];

    /* A bound near the end of the type must not wrap back into the range. */
    if (__builtin_add_overflow(f->i, f->step, &f->i) || !another_turn(f)) {
        move_values(ag, f->owner->res, yield->args, yield->nargs);
        ag->nframes--;
        return;
    }
    move_values(ag, body->arg + 1, yield->args, yield->nargs);
    cells_of(ag, body->arg)->i = f->i;
    f->next = body->first;
}

static void leave_block(interp_agent *ag, const ir_op *yield)
{
    interp_frame *f = &ag->frame[ag->nframes - 1];
    const ir_op *owner = f->owner;

    switch (owner->code) {
    case OP_FOR:
        next_turn(ag, f, yield);
        break;
    case OP_WHILE:
        move_values(ag, owner->regions[0]->arg, yield->args, yield->nargs);
        f->next = owner->regions[0]->first;
        break;
    default:
        move_values(ag, owner->res, yield->args, yield->nargs);
        ag->nframes--;
        if (owner->code == OP_ROLE) {
            ag->first = 0;
            ag->warps = ag->p->fn->warps;
        }
    }
}

static void decide_while(interp_agent *ag, const ir_op *cond)
{
    interp_frame *f = &ag->frame[ag->nframes - 1];
    const ir_block *body = f->owner->regions[1];

    if (cells_of(ag, cond->args[0])->i) {
        move_values(ag, body->arg, cond->args + 1, cond->nargs - 1u);
        f->next = body->first;
    } else {
        move_values(ag, f->owner->res, cond->args + 1, cond->nargs - 1u);
        ag->nframes--;
    }
}

static bool execute(interp_agent *ag, const ir_op *op)
{
    switch (op->code) {
    case OP_FOR:
        enter_for(ag, op);
        break;
    case OP_WHILE:
        enter_block(ag, op, op->regions[0]);
        move_values(ag, op->regions[0]->arg, op->args, op->nargs);
        break;
    case OP_IF:
        enter_block(ag, op, op->regions[cells_of(ag, op->args[0])->i ? 0 : 1]);
        break;
    case OP_YIELD:
        leave_block(ag, op);
        break;
    case OP_CONDITION:
        decide_while(ag, op);
        break;
    case OP_RETURN:
        ag->nframes = 0;
        break;
    case OP_ROLE:
        if (ag->warp < op->attr[0].i || ag->warp >= op->attr[0].i + op->attr[1].i)
            break;
        ag->first = (int)op->attr[0].i;
        ag->warps = (int)op->attr[1].i;
        enter_block(ag, op, op->regions[0]);
        break;
    default:
        return interp_exec(ag, op);
    }
    return true;
}

#define STOP_EVERY 16 /* ops: a dot takes milliseconds, reading a clock is nothing beside 16 ops */

enum interp_state interp_step(interp_agent *ag)
{
    interp_frame *f = &ag->frame[ag->nframes - 1];
    const ir_op *op = f->next;

    ag->steps++;
    if (ag->launch.step_limit && ag->steps > ag->launch.step_limit) {
        interp_fail(ag, TW_E_LIMIT, op, "one program executed more than %llu operations",
                    (unsigned long long)ag->launch.step_limit);
        return INTERP_FAILED;
    }
    if (ag->launch.stop && ag->steps % STOP_EVERY == 0 && ag->launch.stop(ag->launch.stop_user)) {
        interp_fail(ag, TW_E_CANCELLED, op, "stopped by the caller");
        return INTERP_FAILED;
    }
    f->next = op->next;
    if (ag->flight && !interp_flights_end(ag, op))
        return INTERP_FAILED;
    if (!execute(ag, op))
        return INTERP_FAILED;
    if (ag->waiting)
        return INTERP_BLOCKED;
    return ag->nframes ? INTERP_RUNNING : INTERP_DONE;
}

/* ---- whole launches ---- */

static int64_t grid_programs(const int64_t grid[3])
{
    int64_t n = 1;

    for (int d = 0; d < 3; d++) {
        if (grid[d] <= 0)
            return 0;
    }
    for (int d = 0; d < 3; d++) {
        if (__builtin_mul_overflow(n, grid[d], &n))
            return INT64_MAX;
    }
    return n;
}

tw_status interp_run(const interp_program *p, const interp_launch *l, int64_t first, int64_t count,
                     interp_fault *fault)
{
    int64_t total = grid_programs(l->grid);

    if (p->scheduled)
        return interp_run_blocks(p, l, first < 0 ? 0 : first, total, count, fault);
    interp_agent *ag = interp_agent_create(p, l);

    if (!ag) {
        if (fault)
            *fault = (interp_fault){.status = TW_E_NOMEM,
                                    .text = "no memory for an interpreted program"};
        return TW_E_NOMEM;
    }
    for (int64_t k = first < 0 ? 0 : first; k < total && k - first < count; k++) {
        int64_t id[3] = {k % l->grid[0], k / l->grid[0] % l->grid[1], k / l->grid[0] / l->grid[1]};
        enum interp_state state = INTERP_RUNNING;

        interp_agent_start(ag, id);
        while (state == INTERP_RUNNING)
            state = interp_step(ag);
        if (state == INTERP_FAILED)
            break;
    }
    tw_status st = ag->fault.status;
    if (fault)
        *fault = ag->fault;
    interp_agent_destroy(ag);
    return st;
}
