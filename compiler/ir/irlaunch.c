/* Launch functions as a flat program over numbered slots:
 *   parameters, "was it given" flags, constants, then one slot an op. */
#include "compiler/base/check.h"
#include "compiler/base/guard.h"
#include "compiler/ir/ireval.h"
#include <string.h>

typedef struct launch_op {
    uint8_t code, from, to;
    uint8_t spare; /* 64 - bits of the result when run_signed may take it, else 0xff */
    uint16_t arg[3];
    uint16_t dst; /* assert: index of its text */
} launch_op;

struct launch_program {
    uint32_t nparams, ngiven, nconstants, nops, ndefaults;
    uint16_t *given_param; /* of each flag: the parameter it speaks of */
    ir_scalar *constant;
    launch_op *op;
    uint16_t grid[3];       /* slots */
    uint16_t *default_slot; /* of each scalar parameter ... */
    uint16_t *default_param;
    const char **text; /* of asserts */
};

typedef struct preparation {
    arena *a;
    const ir_fn *fn;
    launch_program *p;
    uint16_t *slot; /* of each value */
    uint32_t nslots, ntexts;
} preparation;

static uint16_t take_slot(preparation *s)
{
    if (s->nslots == LAUNCH_MAX_SLOTS)
        guard_throw(TW_E_LIMIT);
    return (uint16_t)s->nslots++;
}

static bool is_constant(const ir_op *op)
{
    return op->code == OP_CONST_INT || op->code == OP_CONST_FLOAT;
}

static void place_parameters(preparation *s)
{
    const ir_fn *fn = s->fn;
    launch_program *p = s->p;

    p->given_param = ARENA_ARRAY(s->a, uint16_t, fn->params.n);
    for (uint32_t i = 0; i < fn->params.n; i++) {
        const ir_param *param = &fn->params.at[i];
        s->slot[fn->body->arg + i] = take_slot(s);
        if (param->kind == PARAM_GIVEN)
            p->given_param[p->ngiven++] = (uint16_t)param->symbol;
        else
            ICHECK(p->ngiven == 0, "the flags of a launch function come last");
    }
    p->nparams = fn->params.n - p->ngiven;
}

static void place_constants(preparation *s, uint32_t nops)
{
    launch_program *p = s->p;

    p->constant = ARENA_ARRAY(s->a, ir_scalar, nops);
    for IR_EACH_OP(op, s->fn->body) {
        if (!is_constant(op))
            continue;
        ir_scalar v = {.i = op->attr[0].i};
        if (op->code == OP_CONST_FLOAT)
            v.f = op->attr[0].f;
        p->constant[p->nconstants++] = eval_round(ir_type_of(s->fn, op->res).dtype, v);
        s->slot[op->res] = take_slot(s);
    }
}

static uint8_t spare_bits(enum dtype from, enum dtype to)
{
    bool is_signed = dtype_kind(from) == DTK_SINT && dtype_kind(to) != DTK_FLOAT;

    return (uint8_t)(is_signed ? 64 - dtype_bits(to) : 0xff);
}

static void add_op(preparation *s, const ir_op *op)
{
    launch_program *p = s->p;
    launch_op *out = &p->op[p->nops++];

    out->code = (uint8_t)op->code;
    for (int i = 0; i < op->nargs; i++)
        out->arg[i] = s->slot[op->args[i]];
    if (op->code == OP_ASSERT) {
        out->dst = (uint16_t)s->ntexts;
        p->text[s->ntexts++] = arena_strdup(s->a, op->attr[0].s);
        return;
    }
    out->from = ir_type_of(s->fn, op->args[op->code == OP_WHERE ? 1 : 0]).dtype;
    out->to = ir_type_of(s->fn, op->res).dtype;
    out->spare = spare_bits((enum dtype)out->from, (enum dtype)out->to);
    out->dst = s->slot[op->res] = take_slot(s);
}

static void place_results(preparation *s, const ir_op *ret)
{
    const ir_fn *fn = s->fn;
    launch_program *p = s->p;

    ICHECK(ret && ret->code == OP_RETURN && ret->nargs >= 3, "a launch function returns the grid");
    for (int i = 0; i < 3; i++)
        p->grid[i] = s->slot[ret->args[i]];
    p->default_slot = ARENA_ARRAY(s->a, uint16_t, ret->nargs);
    p->default_param = ARENA_ARRAY(s->a, uint16_t, ret->nargs);
    for (uint32_t i = 0; i < fn->params.n; i++) {
        if (fn->params.at[i].kind != PARAM_SCALAR)
            continue;
        ICHECK(3 + p->ndefaults < ret->nargs, "a launch function returns every scalar");
        p->default_slot[p->ndefaults] = s->slot[ret->args[3 + p->ndefaults]];
        p->default_param[p->ndefaults++] = (uint16_t)i;
    }
}

launch_program *launch_prepare(arena *a, const ir_fn *launch)
{
    preparation s = {.a = a, .fn = launch, .p = ARENA_NEW(a, launch_program)};
    uint32_t nops = 0;

    for IR_EACH_OP(op, launch->body)
        nops++;
    s.slot = ARENA_ARRAY(a, uint16_t, launch->values.n);
    s.p->op = ARENA_ARRAY(a, launch_op, nops);
    s.p->text = ARENA_ARRAY(a, const char *, nops);
    place_parameters(&s);
    place_constants(&s, nops);
    for IR_EACH_OP(op, launch->body) {
        if (!is_constant(op) && op->code != OP_RETURN)
            add_op(&s, op);
    }
    place_results(&s, launch->body->last);
    return s.p;
}

/* What most launch functions are made of, without eval_op's dispatch over types; false: not one of
 * these. The results of eval_op, which check_irlaunch compares. */
static bool run_signed(const launch_op *op, int64_t x, int64_t y, ir_scalar *res)
{
    uint64_t sum;

    switch (op->code) {
    case OP_ADD:
        sum = (uint64_t)x + (uint64_t)y;
        break;
    case OP_SUB:
        sum = (uint64_t)x - (uint64_t)y;
        break;
    case OP_MUL:
        sum = (uint64_t)x * (uint64_t)y;
        break;
    case OP_MAX:
        res->i = x < y ? y : x;
        return true;
    case OP_MIN:
        res->i = y < x ? y : x;
        return true;
    case OP_CMP_EQ:
        res->i = x == y;
        return true;
    case OP_CMP_LT:
        res->i = x < y;
        return true;
    case OP_CMP_LE:
        res->i = x <= y;
        return true;
    default:
        return false;
    }
    res->i = (int64_t)(sum << op->spare) >> op->spare;
    return true;
}

static void run_op(const launch_op *op, ir_scalar *slot)
{
    const ir_scalar in[3] = {slot[op->arg[0]], slot[op->arg[1]], slot[op->arg[2]]};

    if (op->spare == 0xff || !run_signed(op, in[0].i, in[1].i, &slot[op->dst]))
        slot[op->dst] =
            eval_op((enum ir_opcode)op->code, (enum dtype)op->from, (enum dtype)op->to, in, false);
}

/* The index of the text of the assert that fails, or -1. */
static int run_ops(const launch_program *p, ir_scalar *slot)
{
    for (uint32_t i = 0; i < p->nops; i++) {
        const launch_op *op = &p->op[i];
        if (op->code != OP_ASSERT)
            run_op(op, slot);
        else if (!slot[op->arg[0]].i)
            return op->dst;
    }
    return -1;
}

tw_status launch_eval(const launch_program *p, ir_scalar *in, uint64_t given, int64_t grid[3],
                      const char **failed)
{
    ir_scalar slot[LAUNCH_MAX_SLOTS]; /* filled front to back, each before it is read */
    ir_scalar *next = slot + p->nparams;

    if (p->nparams)
        memcpy(slot, in, p->nparams * sizeof *slot);
    for (uint32_t i = 0; i < p->ngiven; i++)
        (next++)->i = (int64_t)(given >> p->given_param[i] & 1);
    if (p->nconstants)
        memcpy(next, p->constant, p->nconstants * sizeof *slot);
    int text = run_ops(p, slot);
    if (text >= 0) {
        *failed = p->text[text];
        return TW_E_ARG;
    }
    for (uint32_t i = 0; i < p->ndefaults; i++)
        in[p->default_param[i]] = slot[p->default_slot[i]];
    for (int i = 0; i < 3; i++)
        grid[i] = slot[p->grid[i]].i > 0 ? slot[p->grid[i]].i : 0;
    return TW_OK;
}
