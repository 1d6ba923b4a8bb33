/* Whatever facts.h claims of random integer programs must hold in every run of them.
 *
 * A program has two i8 parameters, restricted by random requires, then random ops of several types
 * (so that sums wrap), a loop around half of them, an if, and tiles of 4 x 4. Every claim is
 * compared with what eval_op computes for many pairs of arguments. */
#include "compiler/base/guard.h"
#include "compiler/ir/irbuild.h"
#include "compiler/ir/iredit.h"
#include "compiler/ir/ireval.h"
#include "compiler/passes/facts.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRAMS = 250, SIDE = 4, ELEMENTS = SIDE * SIDE, MAX_VALUES = 200, OPS = 14 };

static const enum dtype types[] = {DT_I8, DT_U8, DT_I16, DT_I32, DT_I64, DT_U64};
enum { TYPES = sizeof types / sizeof *types };

static uint64_t seed, first_seed;

static int pick(int n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)n);
}

/* ---- a random program ------------------------------------------------------------------------ */

typedef struct program {
    ir_module *m;
    ir_fn *fn;
    ir_val value[MAX_VALUES]; /* what a later op may use */
    int n;
} program;

static void offer(program *p, ir_val v)
{
    if (p->n < MAX_VALUES)
        p->value[p->n++] = v;
}

static bool has_type(const ir_fn *fn, ir_val v, ir_type t)
{
    return type_equal(ir_type_of(fn, v), t);
}

static ir_val some_constant(ir_builder *b, ir_type t)
{
    static const int64_t few[] = {0, 1, 2, 3, 4, 7, 8, 16, -1, -2, 100, 127};
    ir_val c = ir_const_int(b, t.dtype, few[pick(12)]);

    return t.kind == TYPE_TILE ? ir_splat(b, c, t) : c;
}

static ir_val some_value(program *p, ir_builder *b, ir_type t)
{
    for (int tries = 0; tries < 12 && p->n; tries++) {
        ir_val v = p->value[pick(p->n)];
        if (has_type(p->fn, v, t))
            return v;
    }
    return some_constant(b, t);
}

static ir_type tile_type(void)
{
    static const int32_t shape[] = {SIDE, SIDE};

    return type_tile(DT_I32, 2, shape);
}

static ir_val some_condition(program *p, ir_builder *b, ir_type t)
{
    static const enum ir_opcode code[] = {OP_CMP_LT, OP_CMP_LE, OP_CMP_EQ, OP_CMP_NE};

    return ir_binary(b, code[pick(4)], some_value(p, b, t), some_value(p, b, t));
}

static ir_val some_range(ir_builder *b)
{
    ir_val line = ir_arange(b, pick(5) - 1, SIDE);

    return ir_broadcast(b, ir_expand(b, line, pick(2)), tile_type());
}

static ir_val some_op(program *p, ir_builder *b, ir_type t)
{
    static const enum ir_opcode binary[] = {OP_ADD, OP_ADD, OP_ADD, OP_SUB, OP_SUB, OP_MUL,
                                            OP_MUL, OP_DIV, OP_DIV, OP_REM, OP_MAX, OP_MIN,
                                            OP_AND, OP_OR,  OP_XOR, OP_SHL, OP_SHR};
    static const enum ir_opcode unary[] = {OP_NEG, OP_NOT, OP_ABS};
    static const int turn[] = {1, 0};

    switch (pick(t.kind == TYPE_TILE ? 9 : 8)) {
    case 0:
        return ir_unary(b, t.dtype == DT_U64 ? OP_NOT : unary[pick(3)], some_value(p, b, t));
    case 1:
        return ir_where(b, some_condition(p, b, t), some_value(p, b, t), some_value(p, b, t));
    case 2:
        if (t.kind == TYPE_TILE)
            return ir_splat(b, some_value(p, b, type_scalar(DT_I32)), t);
        return ir_cast(b, some_value(p, b, type_scalar(types[pick(TYPES)])), t.dtype);
    case 8:
        return pick(2) ? some_range(b) : ir_trans(b, some_value(p, b, t), turn);
    default:
        return ir_binary(b, binary[pick(17)], some_value(p, b, t), some_value(p, b, t));
    }
}

/* Something near another value, in a type where it seldom wraps: where proofs succeed. */
static ir_val related(program *p, ir_builder *b)
{
    static const enum ir_opcode code[] = {OP_ADD, OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_REM,
                                          OP_SHR, OP_SHL, OP_MIN, OP_MAX, OP_AND, OP_MUL};
    ir_type t = pick(5) ? type_scalar(DT_I32) : tile_type();
    ir_val x = some_value(p, b, t);
    int which = pick(14);

    if (which >= 12)
        return ir_unary(b, which == 12 ? OP_ABS : OP_NEG, x);
    ir_val y = code[which] == OP_MIN || pick(4) == 0 ? some_value(p, b, t) : some_constant(b, t);
    return ir_binary(b, code[which], x, y);
}

static void some_ops(program *p, ir_builder *b, int n)
{
    for (int i = 0; i < n; i++) {
        offer(p, related(p, b));
        ir_type t = pick(4) ? type_scalar(types[pick(TYPES)]) : tile_type();
        offer(p, some_op(p, b, t));
        if (pick(3) == 0)
            offer(p, some_condition(p, b, pick(3) ? type_scalar(DT_I32) : tile_type()));
    }
}

static ir_val small(program *p, ir_builder *b)
{
    ir_val wide = ir_cast(b, some_value(p, b, type_scalar(DT_I8)), DT_I32);

    return ir_binary(b, OP_DIV, wide, ir_const_int(b, DT_I32, 4));
}

/* for %i = lo to hi step s (%c = init) { ops; yield %next } */
static void some_loop(program *p, ir_builder *b)
{
    static const int64_t steps[] = {1, 2, 4, 8, -1, -3, 0};
    ir_val step = ir_const_int(b, DT_I32, steps[pick(7)]);
    ir_val lo = pick(2) ? ir_const_int(b, DT_I32, 0) : small(p, b);
    ir_val hi = small(p, b), init = some_value(p, b, type_scalar(DT_I16));
    int outside;

    if (pick(2)) /* whole blocks */
        hi = ir_binary(b, OP_MUL, ir_binary(b, OP_DIV, hi, step), step);
    ir_op *loop = ir_for(b, lo, hi, step, &init, 1);
    ir_builder in = ir_at_end(p->fn, loop->regions[0]);
    outside = p->n;
    offer(p, loop->regions[0]->arg);
    offer(p, loop->regions[0]->arg + 1);
    offer(p, ir_binary(&in, OP_ADD, loop->regions[0]->arg, step));
    some_ops(p, &in, OPS / 2);
    ir_val next = some_value(p, &in, type_scalar(DT_I16));
    ir_yield(&in, &next, 1);
    p->n = outside;
    offer(p, hi);
    offer(p, loop->res);
}

static void some_if(program *p, ir_builder *b)
{
    ir_type t = type_scalar(DT_I32);
    ir_op *op = ir_if(b, some_condition(p, b, type_scalar(DT_I8)), &t, 1);
    int outside = p->n;

    for (int side = 0; side < 2; side++) {
        ir_builder in = ir_at_end(p->fn, op->regions[side]);
        some_ops(p, &in, 3);
        ir_val v = some_value(p, &in, t);
        ir_yield(&in, &v, 1);
        p->n = outside;
    }
    offer(p, op->res);
}

static void add_parameters(ir_fn *fn)
{
    ir_param a = {.kind = PARAM_SCALAR, .name = "a", .type = type_scalar(DT_I8)};
    ir_param b = {.kind = PARAM_SCALAR, .name = "b", .type = type_scalar(DT_I8)};

    ir_add_param(fn, a);
    ir_add_param(fn, b);
    ir_fn_begin(fn);
}

static void some_requires(program *p)
{
    ir_fn *launch = p->m->launch = ir_fn_new(p->m, "launch");
    program q = {.m = p->m, .fn = launch};

    add_parameters(launch);
    ir_builder b = ir_at_end(launch, launch->body);
    offer(&q, ir_param_value(launch, 0));
    offer(&q, ir_param_value(launch, 1));
    for (int i = 0; i < 4; i++)
        offer(&q, some_op(&q, &b, type_scalar(DT_I8)));
    for (int i = pick(3); i > 0; i--)
        ir_assert(&b, some_condition(&q, &b, type_scalar(DT_I8)), "a condition");
    if (pick(2)) {
        ir_val rem = ir_binary(&b, OP_REM, ir_param_value(launch, pick(2)),
                               pick(2) ? ir_const_int(&b, DT_I8, 1 + pick(8)) : q.value[pick(q.n)]);
        ir_assert(&b, ir_binary(&b, OP_CMP_EQ, rem, ir_const_int(&b, DT_I8, 0)), "divisible");
    }
    ir_val one = ir_const_int(&b, DT_I64, 1);
    ir_val result[5] = {one, one, one, ir_param_value(launch, 0), ir_param_value(launch, 1)};
    ir_return(&b, result, 5);
}

static void make_program(program *p, arena *a, intern *names)
{
    *p = (program){.m = ir_module_new(a, names)};
    p->fn = p->m->kernel = ir_fn_new(p->m, "k");
    add_parameters(p->fn);
    some_requires(p);
    ir_builder b = ir_at_end(p->fn, p->fn->body);
    offer(p, ir_param_value(p->fn, 0));
    offer(p, ir_param_value(p->fn, 1));
    for (int i = 0; i < 2; i++)
        offer(p, ir_cast(&b, ir_param_value(p->fn, i), DT_I32));
    some_ops(p, &b, OPS / 2);
    some_loop(p, &b);
    some_if(p, &b);
    some_ops(p, &b, OPS / 2);
    some_loop(p, &b);
    ir_return(&b, NULL, 0);
}

/* ---- running it ------------------------------------------------------------------------------ */

typedef struct claim {
    ir_val x, y;
    const ir_op *at;
} claim;

typedef struct run {
    const ir_fn *fn;
    const facts *f;
    int64_t (*env)[ELEMENTS];
    VEC(claim) le; /* proved */
    long held;
} run;

static int elements_of(ir_type t)
{
    return t.kind == TYPE_TILE ? (int)type_elements(t) : 1;
}

static void eval_shape(run *r, const ir_op *op, int64_t *out)
{
    const int64_t *in = r->env[op->nargs ? op->args[0] : 0];
    ir_type t = ir_type_of(r->fn, op->res);

    for (int i = 0; i < elements_of(t); i++) {
        int row = i / SIDE, col = i % SIDE;
        ir_type from = op->nargs ? ir_type_of(r->fn, op->args[0]) : t;
        switch ((int)op->code) {
        case OP_ARANGE:
            out[i] = op->attr[0].i + i;
            break;
        case OP_SPLAT:
            out[i] = in[0];
            break;
        case OP_EXPAND:
            out[i] = in[i];
            break;
        case OP_BROADCAST:
            out[i] = in[from.shape[0] == 1 ? col : row];
            break;
        default: /* trans */
            out[i] = in[col * SIDE + row];
        }
    }
}

static void eval_elements(run *r, const ir_op *op, int64_t *out)
{
    ir_type t = ir_type_of(r->fn, op->res);
    enum dtype from = ir_type_of(r->fn, op->args[op->nargs - 1]).dtype;

    for (int i = 0; i < elements_of(t); i++) {
        ir_scalar in[3] = {{0}};
        for (int k = 0; k < op->nargs; k++)
            in[k].i = r->env[op->args[k]][i];
        out[i] = eval_op(op->code, from, t.dtype, in, false).i;
    }
}

static bool unsigned_order(ir_type t)
{
    return t.dtype == DT_U64;
}

/* ck_assert writes to a file each time; this is asked some ten million times. */
static void must(bool holds, const char *what, ir_val v, int64_t x, int64_t y)
{
    if (!holds)
        ck_abort_msg("seed %llu, value %u: %s: %lld, %lld", (unsigned long long)first_seed, v, what,
                     (long long)x, (long long)y);
}

static void check_value(run *r, ir_val v)
{
    int64_t lo, hi, divisor = facts_divisor(r->f, v);
    ir_type t = ir_type_of(r->fn, v);
    int truth = facts_truth(r->f, v);

    facts_range(r->f, v, &lo, &hi);
    for (int i = 0; i < elements_of(t); i++) {
        int64_t x = r->env[v][i];
        must(x >= lo, "at least", v, x, lo);
        must(x <= hi, "at most", v, x, hi);
        must(truth < 0 || x == truth, "truth", v, x, truth);
        r->held += truth >= 0;
    }
    must(r->env[v][0] % divisor == 0, "divided by", v, r->env[v][0], divisor);
    r->held += divisor > 1;
}

static void check_order(run *r, const ir_op *op)
{
    for (uint32_t i = 0; i < r->le.n; i++) {
        const claim *c = &r->le.at[i];
        if (c->at != op)
            continue;
        must(r->env[c->x][0] <= r->env[c->y][0], "at most", c->x, r->env[c->x][0], r->env[c->y][0]);
        r->held++;
    }
}

static void eval_block(run *r, const ir_block *blk);

static void eval_loop(run *r, const ir_op *op)
{
    int64_t hi = r->env[op->args[1]][0], step = r->env[op->args[2]][0];
    const ir_block *body = op->regions[0];
    int64_t carried = r->env[op->args[3]][0];

    for (int64_t i = r->env[op->args[0]][0]; step > 0 ? i < hi : step < 0 && i > hi; i += step) {
        r->env[body->arg][0] = i;
        r->env[body->arg + 1][0] = carried;
        check_value(r, body->arg);
        eval_block(r, body);
        carried = r->env[body->last->args[0]][0];
    }
    r->env[op->res][0] = carried;
    check_value(r, op->res);
}

static void eval_op_of(run *r, const ir_op *op)
{
    if (op->code == OP_FOR) {
        eval_loop(r, op);
        return;
    }
    if (op->code == OP_IF) {
        const ir_block *region = op->regions[r->env[op->args[0]][0] ? 0 : 1];
        eval_block(r, region);
        r->env[op->res][0] = r->env[region->last->args[0]][0];
    } else if (op->code == OP_CONST_INT) {
        r->env[op->res][0] = op->attr[0].i;
    } else if ((op_info(op->code)->traits & OPT_EWISE) || op->code == OP_CAST) {
        eval_elements(r, op, r->env[op->res]);
    } else {
        eval_shape(r, op, r->env[op->res]);
    }
    check_value(r, op->res);
}

static void eval_block(run *r, const ir_block *blk)
{
    for (const ir_op *op = blk->first; op != blk->last; op = op->next)
        eval_op_of(r, op);
    check_order(r, blk->last);
}

/* All that facts.h says of the order of scalars that can be seen at the end of a block. */
static void claim_order(run *r, arena *a, const ir_block *blk)
{
    VEC(ir_val) seen = {0};

    for (const ir_block *b = blk; b; b = b->owner ? b->owner->parent : NULL) {
        for (uint32_t i = 0; i < b->nargs; i++)
            vec_push(&seen, a, b->arg + i);
        for (const ir_op *op = b == blk ? b->first : NULL; op; op = op->next) {
            if (op->nres && ir_type_of(r->fn, op->res).kind == TYPE_SCALAR)
                vec_push(&seen, a, op->res);
        }
    }
    for (uint32_t i = 0; i < seen.n * seen.n; i++) {
        ir_val x = seen.at[i / seen.n], y = seen.at[i % seen.n];
        ir_type t = ir_type_of(r->fn, x);
        if (x != y && type_equal(t, ir_type_of(r->fn, y)) && !unsigned_order(t) &&
            facts_le(r->f, x, y, blk->last))
            vec_push(&r->le, a, ((claim){x, y, blk->last}));
    }
}

static void claim_in(run *r, arena *a, const ir_block *blk)
{
    claim_order(r, a, blk);
    for (const ir_op *op = blk->first; op; op = op->next) {
        for (int i = 0; i < op->nregions; i++)
            claim_in(r, a, op->regions[i]);
    }
}

static bool launches(const program *p, const launch_program *launch, int64_t x, int64_t y)
{
    ir_scalar in[2] = {{.i = x}, {.i = y}};
    int64_t grid[3];
    const char *failed;

    (void)p;
    return launch_eval(launch, in, 3, grid, &failed) == TW_OK;
}

static long run_program(arena *a, intern *names)
{
    program p;
    run r = {0};

    make_program(&p, a, names);
    launch_program *launch = launch_prepare(a, p.m->launch);
    r.fn = p.fn;
    r.f = facts_compute(a, p.fn);
    r.env = arena_array(a, sizeof *r.env, p.fn->values.n);
    claim_in(&r, a, p.fn->body);
    for (int64_t x = -128; x < 128; x += 1 + pick(20)) {
        for (int64_t y = -128; y < 128; y += 1 + pick(40)) {
            if (!launches(&p, launch, x, y))
                continue;
            r.env[ir_param_value(p.fn, 0)][0] = x;
            r.env[ir_param_value(p.fn, 1)][0] = y;
            check_value(&r, ir_param_value(p.fn, 0));
            check_value(&r, ir_param_value(p.fn, 1));
            eval_block(&r, p.fn->body);
        }
    }
    return r.held;
}

static tw_status run_all(void *arg)
{
    long held = 0;

    for (int i = 0; i < PROGRAMS; i++) {
        intern names;
        arena_mark m = arena_save(arg);
        intern_init(&names, arg);
        seed = first_seed = (uint64_t)i * 7919 + 1;
        pick(2);
        held += run_program(arg, &names);
        arena_rewind(arg, m);
    }
    ck_assert_msg(held > 1000000, "only %ld claims were put to the test", held);
    return TW_OK;
}

START_TEST(claims_hold_in_every_run)
{
    arena a;

    arena_init(&a);
    ck_assert_int_eq(guard_run(run_all, &a), TW_OK);
    arena_release(&a);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("facts_random");
    TCase *t = tcase_create("random");

    tcase_add_test(t, claims_hold_in_every_run);
    suite_add_tcase(s, t);
    return s;
}
