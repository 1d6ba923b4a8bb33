/* Which dots are multiplied in tiles, and in blocks of how many.
 *
 * The tile registers are configured once a function, so each of the eight has one shape in all of
 * it: rows that are no multiple of 16 or a K that is none of 32 take registers of their own, which
 * nothing else can use. LLVM spills no tile either; where they do not suffice it gives up. So what
 * the blocks of cpu_tiles.c hold at once is counted here for each shape. Blocks are the largest of
 * the list with which all fits; a dot that fits with none is left to the loops over elements. */
#include "compiler/base/check.h"
#include "compiler/ir/iredit.h"
#include "compiler/target/cpu/cpu_plan.h"

enum { REGISTERS = 8, ROW_BYTES = 64, STEP = 32 };

typedef struct budget {
    struct need {
        int rows, bytes, now, most;
    } shape[REGISTERS];
    int n;
    bool over; /* more shapes than registers */
} budget;

static void hold(budget *b, int rows, int bytes, int registers)
{
    int i = 0;

    while (i < b->n && (b->shape[i].rows != rows || b->shape[i].bytes != bytes))
        i++;
    if (i == REGISTERS) {
        b->over = true;
        return;
    }
    if (i == b->n)
        b->shape[b->n++] = (struct need){rows, bytes, 0, 0};
    b->shape[i].now += registers;
}

static void let_go(budget *b)
{
    for (int i = 0; i < b->n; i++) {
        struct need *s = &b->shape[i];
        s->most = s->now > s->most ? s->now : s->most;
        s->now = 0;
    }
}

static bool within(const budget *b)
{
    int sum = 0;

    for (int i = 0; i < b->n; i++)
        sum += b->shape[i].most;
    return !b->over && sum <= REGISTERS;
}

/* One block: `full` tiles of 16 rows and perhaps one of fewer, by nr vectors. */
typedef struct block {
    int full, part, nr;
} block;

/* What is held while x, a tile of that many rows, is multiplied at a step of K. */
static void hold_step(budget *b, block k, int x_rows, int depth)
{
    bool one_x = k.full + (k.part != 0) == 1;

    if (k.full)
        hold(b, CPU_TILE_ROWS, ROW_BYTES, k.full * k.nr);
    if (k.part)
        hold(b, k.part, ROW_BYTES, k.nr);
    hold(b, x_rows, 2 * depth, 1);
    hold(b, depth / 2, ROW_BYTES, one_x ? 1 : k.nr);
    let_go(b);
}

static void hold_block(budget *b, block k, int depth)
{
    int rest = depth % STEP;

    if (k.full && depth >= STEP)
        hold_step(b, k, CPU_TILE_ROWS, STEP);
    if (k.part && depth >= STEP)
        hold_step(b, k, k.part, STEP);
    if (k.full && rest)
        hold_step(b, k, CPU_TILE_ROWS, rest);
    if (k.part && rest)
        hold_step(b, k, k.part, rest);
}

static void hold_dot(budget *b, const cpu_plan *p, const ir_op *dot, cpu_tile_block most)
{
    ir_type t = ir_type_of(p->fn, dot->res);
    int lane = p->value.at[dot->res].lane, depth = ir_type_of(p->fn, dot->args[0]).shape[1];
    int rows = t.shape[1 - lane], group = most.rows * CPU_TILE_ROWS, rest = rows % group;
    int chunks = (t.shape[lane] + CPU_TILE_ROWS - 1) / CPU_TILE_ROWS;
    int nr = chunks < most.vectors ? chunks : most.vectors;

    if (rows >= group)
        hold_block(b, (block){most.rows, 0, nr}, depth);
    if (rest)
        hold_block(b, (block){rest / CPU_TILE_ROWS, rest % CPU_TILE_ROWS, nr}, depth);
}

typedef struct fit {
    cpu_plan *p;
    VEC(const ir_op *) dots;
} fit;

/* Sets the largest blocks with which all dots fit. */
static bool choose_block(fit *f)
{
    static const cpu_tile_block blocks[] = {{2, 2}, {2, 1}, {1, 2}, {1, 1}};

    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        budget b = {0};
        for (uint32_t k = 0; k < f->dots.n; k++)
            hold_dot(&b, f->p, f->dots.at[k], blocks[i]);
        if (within(&b)) {
            f->p->tile_block = blocks[i];
            return true;
        }
    }
    return false;
}

static void fit_dot(ir_op *op, void *arg)
{
    fit *f = arg;

    if (op->code != OP_DOT || cpu_dot_kind(f->p, op) != CPU_DOT_TILES)
        return;
    vec_push(&f->dots, f->p->a, op);
    if (choose_block(f))
        return;
    f->dots.n--;
    f->p->value.at[op->res].untiled = true;
}

void cpu_fit_tiles(cpu_plan *p)
{
    fit f = {.p = p};

    ICHECK(choose_block(&f), "no dot fits");
    ir_walk(p->fn->body, fit_dot, &f);
    ICHECK(choose_block(&f), "dots that fitted one after the other");
}
