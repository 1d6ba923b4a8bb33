/* Which tiles are computed once, by a nest, and which again wherever they are used.
 *
 * A tile is an item when it is a dot, a reduction or a scan, an operand that a dot reads many
 * times, what a loop carries on, or when it is dear and used twice or in a deeper loop. Everything
 * else is virtual: aranges, masks, broadcasts, casts cost no memory. A load that dots only read one
 * element at a time is direct: it stays in the tensor; floats of 16 bits are converted first, by an
 * item. Where the machine multiplies pairs or tiles of bf16, operands of their dots are stored as
 * it wants them, or read in place when the tensor's order is that.
 */
#include "compiler/base/check.h"
#include "compiler/ir/irbuild.h"
#include "compiler/ir/iredit.h"
#include "compiler/target/cpu/cpu_plan.h"

/* What computing a virtual tile again would repeat. */
enum dear {
    DEAR_DOT = 1,      /* a dot used only here */
    DEAR_MATH = 2,     /* exp2, division and the like */
    DEAR_SCATTERED = 4 /* a load against its tensor's order */
};

/* Virtual expressions are evaluated by recursion, once for each use: beyond this depth a value
 * becomes an item. */
enum { MAX_HEIGHT = 48 };

typedef struct place {
    cpu_plan *p;
    uint8_t *dear;   /* by value */
    uint8_t *height; /* of the virtual expression of a value */
    VEC(ir_op *) dots;
} place;

static cpu_value *value_of(const place *c, ir_val v)
{
    return &c->p->value.at[v];
}

static bool writable(const place *c, const ir_op *load)
{
    return c->p->fn->params.at[cpu_view_param(c->p, load->args[0])].direction != DIR_IN;
}

/* ---- where values start ---------------------------------------------------------------------- */

static void set_block(const place *c, const ir_block *blk)
{
    for (uint32_t i = 0; i < blk->nargs; i++)
        value_of(c, blk->arg + i)->place =
            cpu_is_tile(c->p, blk->arg + i) ? CPU_CARRIED : CPU_SCALAR;
}

static void set_first(ir_op *op, void *arg)
{
    place *c = arg;
    bool item = op->code == OP_DOT || op->code == OP_REDUCE_MAX || op->code == OP_REDUCE_MIN ||
                op->code == OP_REDUCE_SUM || op->code == OP_SCAN_SUM || op->code == OP_SCAN_PROD ||
                op->code == OP_REDUCE || op->code == OP_SCAN ||
                op_is_atomic((enum ir_opcode)op->code) || (op->code == OP_LOAD && writable(c, op));

    for (int i = 0; i < op->nres; i++) {
        cpu_value *v = value_of(c, op->res + (ir_val)i);
        if (!cpu_is_tile(c->p, op->res + (ir_val)i))
            v->place = CPU_SCALAR;
        else
            v->place = item ? CPU_ITEM : op->nregions ? CPU_CARRIED : CPU_VIRTUAL;
    }
    for (int r = 0; r < op->nregions; r++)
        set_block(c, op->regions[r]);
    if (op->code == OP_DOT)
        vec_push(&c->dots, c->p->a, op);
}

/* ---- operands of dots ------------------------------------------------------------------------ */

/* Do only dots use v (through trans), all as vector operand with lanes along dimension lane? */
static bool only_vectors(const place *c, ir_val v, int lane)
{
    const cpu_uses *uses = &value_of(c, v)->uses;

    for (uint32_t i = 0; i < uses->n; i++) {
        const ir_op *op = uses->at[i].op;
        if (op->code == OP_TRANS) {
            int to = 0;
            while (op->attr[0].ints.at[to] != lane)
                to++;
            if (!only_vectors(c, op->res, to))
                return false;
        } else if (op->code != OP_DOT || uses->at[i].arg != cpu_dot_vector(c->p, op) ||
                   lane != uses->at[i].arg) {
            return false;
        }
    }
    return true;
}

/* How an operand of a dot is kept; see cpu_value. */
typedef struct form {
    int lane, pairs;
    bool narrow;
} form;

static void set_form(cpu_value *v, form f)
{
    v->place = CPU_ITEM;
    v->lane = (uint8_t)f.lane;
    v->pairs = (uint8_t)f.pairs;
    v->narrow = f.narrow;
}

/* Gives the dot a copy of base in that form, turned as the operand is. */
static void copy_operand(place *c, ir_op *dot, int arg, ir_val base, const int *dim, form f)
{
    ir_op *def = ir_def(c->p->fn, base);
    ir_block *blk = ir_value_of(c->p->fn, base)->block;
    ir_op *before = def ? def->next : blk->first;
    ir_val copy = cpu_insert_copy(c->p, base, NULL, before);

    set_form(value_of(c, copy), f);
    if (dim[0] == 1) {
        ir_builder b = ir_before(c->p->fn, dot);
        copy = ir_trans(&b, copy, (int[]){1, 0});
        cpu_value entry = {.place = CPU_VIRTUAL};
        vec_push(&c->p->value, c->p->a, entry);
        ICHECK(c->p->value.n == copy + 1, "values are numbered in order");
    }
    dot->args[arg] = copy;
}

static void place_vector_operand(place *c, ir_op *dot)
{
    int dim[TILE_MAX_RANK], arg = cpu_dot_vector(c->p, dot);
    ir_val base = cpu_strip(c->p, dot->args[arg], dim);
    int lane = dim[arg];
    cpu_value *v = value_of(c, base);

    if (v->place == CPU_VIRTUAL && v->lane != lane && only_vectors(c, base, lane))
        v->lane = (uint8_t)lane;
    if (v->lane != lane || v->pairs || v->narrow)
        copy_operand(c, dot, arg, base, dim, (form){.lane = lane});
    else if (v->place == CPU_VIRTUAL)
        v->place = CPU_ITEM;
}

static void place_scalar_operand(place *c, ir_op *dot)
{
    int dim[TILE_MAX_RANK], arg = 1 - cpu_dot_vector(c->p, dot);
    ir_val base = cpu_strip(c->p, dot->args[arg], dim);
    cpu_value *v = value_of(c, base);

    if (v->pairs || v->narrow || (v->direct && !cpu_may_be_direct(c->p, dot, arg, base, dim)))
        copy_operand(c, dot, arg, base, dim, (form){.lane = v->lane});
    else if (v->place != CPU_VIRTUAL)
        return;
    else if (cpu_may_be_direct(c->p, dot, arg, base, dim))
        v->direct = true;
    else
        v->place = CPU_ITEM;
}

/* What a dot of pairs or tiles wants of v, which its operand arg is but for views. */
static form form_wanted(const place *c, const ir_op *dot, int arg, const int *dim)
{
    bool tiles = cpu_dot_kind(c->p, dot) == CPU_DOT_TILES;

    if (tiles && arg != cpu_dot_vector(c->p, dot))
        return (form){.lane = dim[1 - arg], .narrow = true};
    return (form){.lane = dim[arg], .pairs = 1 + dim[1 - arg]};
}

static bool same_form(form x, form y)
{
    return x.lane == y.lane && x.pairs == y.pairs && x.narrow == y.narrow;
}

/* Do only dots use v, a view of what dim tells (see cpu_strip), and want that in this form? */
static bool only_in_form(const place *c, ir_val v, const int *dim, form f)
{
    const cpu_uses *uses = &value_of(c, v)->uses;

    for (uint32_t i = 0; i < uses->n; i++) {
        const ir_op *op = uses->at[i].op;
        int arg = uses->at[i].arg;
        if (op->code == OP_TRANS) {
            bool turned = op->attr[0].ints.at[0] == 1;
            if (!only_in_form(c, op->res, (int[]){dim[turned], dim[!turned]}, f))
                return false;
        } else if (op->code != OP_DOT || arg > 1 || cpu_dot_kind(c->p, op) == CPU_DOT_ELEMENTS ||
                   !same_form(form_wanted(c, op, arg, dim), f)) {
            return false;
        }
    }
    return true;
}

/* An operand of a dot of pairs or tiles: read in place, or stored in that form, by its own item if
 * that has no other use. */
static void place_in_form(place *c, ir_op *dot, int arg)
{
    int dim[TILE_MAX_RANK];
    ir_val base = cpu_strip(c->p, dot->args[arg], dim);
    form f = form_wanted(c, dot, arg, dim);
    cpu_value *v = value_of(c, base);

    if (v->place == CPU_ITEM && same_form((form){v->lane, v->pairs, v->narrow}, f))
        return;
    if (v->place == CPU_VIRTUAL && arg != cpu_dot_vector(c->p, dot) &&
        cpu_may_be_direct(c->p, dot, arg, base, dim))
        v->direct = true;
    else if (v->place == CPU_VIRTUAL && !v->direct && only_in_form(c, base, (int[]){0, 1}, f))
        set_form(v, f);
    else
        copy_operand(c, dot, arg, base, dim, f);
}

static void place_operands(place *c, ir_op *dot)
{
    if (cpu_dot_kind(c->p, dot) != CPU_DOT_ELEMENTS) {
        place_in_form(c, dot, cpu_dot_vector(c->p, dot));
        place_in_form(c, dot, 1 - cpu_dot_vector(c->p, dot));
    } else {
        place_vector_operand(c, dot);
        place_scalar_operand(c, dot);
    }
}

/* ---- what is dear ---------------------------------------------------------------------------- */

static int own_price(const place *c, const ir_op *op)
{
    switch (op->code) {
    case OP_EXP:
    case OP_EXP2:
    case OP_LOG:
    case OP_LOG2:
    case OP_SIN:
    case OP_COS:
    case OP_TANH:
    case OP_ERF:
    case OP_SQRT:
    case OP_RSQRT:
    case OP_DIV:
    case OP_REM:
    case OP_RESHAPE:
        return DEAR_MATH;
    case OP_LOAD:
        return cpu_contiguous_dim(c->p, op) != value_of(c, op->res)->lane ? DEAR_SCATTERED : 0;
    default:
        return 0;
    }
}

static bool is_view(const ir_op *op)
{
    return op->code == OP_EXPAND || op->code == OP_BROADCAST || op->code == OP_TRANS ||
           op->code == OP_SPLAT || op->code == OP_RESHAPE;
}

static int dear_of(const place *c, const ir_op *op)
{
    int dear = own_price(c, op);

    if (op->code == OP_LOAD || op->code == OP_SPLAT)
        return dear;
    for (int i = 0; i < op->nargs; i++) {
        ir_val v = op->args[i];
        const ir_op *def = ir_def(c->p->fn, v);
        if (value_of(c, v)->place == CPU_VIRTUAL)
            dear |= c->dear[v];
        else if (def && def->code == OP_DOT && value_of(c, v)->uses.n == 1)
            dear |= DEAR_DOT;
    }
    return is_view(op) ? dear & ~DEAR_DOT : dear;
}

/* Do only dots use v (through trans), one element at a time? */
static bool only_direct(const place *c, ir_val v)
{
    const cpu_uses *uses = &value_of(c, v)->uses;

    for (uint32_t i = 0; i < uses->n; i++) {
        const ir_op *op = uses->at[i].op;
        bool fits = op->code == OP_TRANS
                        ? value_of(c, op->res)->place == CPU_VIRTUAL && only_direct(c, op->res)
                        : op->code == OP_DOT && uses->at[i].arg == 1 - cpu_dot_vector(c->p, op);
        if (!fits)
            return false;
    }
    return true;
}

static int height_of(const place *c, const ir_op *op)
{
    int height = 0;

    for (int i = 0; i < op->nargs; i++)
        height = c->height[op->args[i]] > height ? c->height[op->args[i]] : height;
    return height + 1;
}

static bool used_deeper(const cpu_uses *uses, const ir_op *def)
{
    for (uint32_t i = 0; i < uses->n; i++) {
        if (ir_depth(uses->at[i].op->parent) > ir_depth(def->parent))
            return true;
    }
    return false;
}

static bool used_by(const cpu_uses *uses, enum ir_opcode code)
{
    for (uint32_t i = 0; i < uses->n; i++) {
        if (uses->at[i].op->code == code)
            return true;
    }
    return false;
}

static bool carried_on(const cpu_uses *uses, const ir_op *def)
{
    for (uint32_t i = 0; i < uses->n; i++) {
        const ir_op *op = uses->at[i].op;
        if ((op->code == OP_YIELD || op->code == OP_CONDITION) && op->parent == def->parent)
            return def->code != OP_SPLAT;
    }
    return false;
}

static void place_result(ir_op *op, void *arg)
{
    place *c = arg;

    if (op->nres != 1 || !cpu_is_tile(c->p, op->res))
        return;
    cpu_value *v = value_of(c, op->res);
    int dear = v->place == CPU_VIRTUAL ? dear_of(c, op) : 0;
    bool widened = used_by(&v->uses, OP_EXPAND) || used_by(&v->uses, OP_BROADCAST);

    if (v->place != CPU_VIRTUAL || (v->direct && only_direct(c, op->res)))
        return;
    if ((dear && (v->uses.n > 1 || used_deeper(&v->uses, op))) ||
        ((dear & DEAR_MATH) && widened && !is_view(op)) || carried_on(&v->uses, op) ||
        used_by(&v->uses, OP_RESHAPE) || used_by(&v->uses, OP_PRINT) ||
        height_of(c, op) > MAX_HEIGHT) {
        v->place = CPU_ITEM;
    } else {
        c->dear[op->res] = (uint8_t)dear;
        c->height[op->res] = (uint8_t)height_of(c, op);
    }
}

/* ---- what loops carry ------------------------------------------------------------------------ */

static void separate(place *c, ir_block *blk, ir_val first, int from)
{
    ir_op *end = blk->last;

    for (int i = from; i < end->nargs; i++) {
        ir_val y = end->args[i], own = first + (ir_val)(i - from);
        bool sibling = ir_value_of(c->p->fn, y)->block == blk;
        if (sibling && y != own && cpu_is_tile(c->p, y))
            end->args[i] = cpu_insert_copy(c->p, y, NULL, end);
    }
}

/* A loop that carries on an argument of its own in another place (a swap) gets a copy: the copies
 * at the end of its body may then run one after the other. */
static void separate_swaps(ir_op *op, void *arg)
{
    if (op->code == OP_FOR) {
        separate(arg, op->regions[0], op->regions[0]->arg + 1, 0);
    } else if (op->code == OP_WHILE) {
        separate(arg, op->regions[0], op->regions[0]->arg, 1);
        separate(arg, op->regions[1], op->regions[1]->arg, 0);
    }
}

void cpu_place(cpu_plan *p)
{
    place c = {.p = p};

    ir_walk(p->fn->body, separate_swaps, &c);
    set_block(&c, p->fn->body);
    ir_walk(p->fn->body, set_first, &c);
    for (uint32_t i = 0; i < c.dots.n; i++)
        place_operands(&c, c.dots.at[i]);
    cpu_collect_uses(p);
    c.dear = ARENA_ARRAY(p->a, uint8_t, p->value.n);
    c.height = ARENA_ARRAY(p->a, uint8_t, p->value.n);
    ir_walk(p->fn->body, place_result, &c);
}
