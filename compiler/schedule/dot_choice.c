/* How each dot is computed: by the matrix unit, with its warps over rows and columns of the result,
 * or in FMA. Chosen per dot:
 *
 *   its left factor comes from another dot's result    the warps of that dot, which keep the factor
 *                                                      in registers
 *   its result is reduced along a row, or becomes the  warps over rows only: a row stays in a warp
 *   left factor of another dot
 *   else                                               as square as it can be: least to read
 */
#include "compiler/ir/irbuild.h"
#include "compiler/schedule/layout_choice.h"
#include "compiler/schedule/layout_plan.h"

enum { MMA_M = 16, MMA_N = 8, MMA_K = 16, FOLLOWED = 64 };

/* Can the matrix unit compute it? */
static bool on_matrix_unit(const ir_fn *fn, const ir_op *dot)
{
    ir_type a = ir_type_of(fn, dot->args[0]), acc = ir_type_of(fn, dot->res);

    return (a.dtype == DT_F16 || a.dtype == DT_BF16) && acc.shape[0] % MMA_M == 0 &&
           acc.shape[1] % MMA_N == 0 && a.shape[1] % MMA_K == 0;
}

/* Is v reduced along dimension 1, or the left factor of a dot? Follows at most `left`
 * operations. */
static bool wants_whole_rows(const layout_plan *p, ir_val v, int *left)
{
    for EACH_USE(u, &p->uses, v) {
        const ir_op *op = u->op;
        if ((op->code == OP_DOT && u->arg == 0) ||
            (is_reduction(op) && op->attr[0].i == 1))
            return true;
        if (is_elementwise(op) && --*left > 0 && wants_whole_rows(p, op->res, left))
            return true;
    }
    return false;
}

/* The home that v has, or that what it is computed from elementwise has, on the matrix unit. */
static const ir_layout *rows_of(const layout_plan *p, ir_val v, int *left)
{
    const ir_op *def = ir_def(p->fn, v);
    uint16_t home = p->role[v] == ROLE_TILE ? plan_home(p, v) : 0;

    if (home && p->fn->layouts.at[home]->kind == LAYOUT_MMA)
        return p->fn->layouts.at[home];
    if (!def || !is_elementwise(def))
        return NULL;
    for (int i = 0; i < def->nargs && --*left > 0; i++) {
        const ir_layout *lay = rows_of(p, def->args[i], left);
        if (lay)
            return lay;
    }
    return NULL;
}

typedef struct spread {
    int wm, wn;
} spread;

static spread by_rows(const ir_fn *fn, ir_type acc)
{
    spread s = {1, 1};

    while (2 * s.wm <= fn->warps && acc.shape[0] % (2 * s.wm * MMA_M) == 0)
        s.wm *= 2;
    return s;
}

/* Each warp reads the rows of one factor and the columns of the other that it multiplies. Columns
 * in sixteens, for ldmatrix reads four 8 x 8 matrices at once. */
static spread most_square(const ir_fn *fn, ir_type acc)
{
    spread best = by_rows(fn, acc);
    int most = 1, least = 0;

    for (int wm = 1; wm <= fn->warps && acc.shape[0] % (wm * MMA_M) == 0; wm *= 2) {
        for (int wn = 1; wm * wn <= fn->warps && acc.shape[1] % (wn * MMA_N) == 0; wn *= 2) {
            bool odd = wn > 1 && acc.shape[1] / wn % 16;
            int cost = acc.shape[0] / wm + acc.shape[1] / wn;
            if (odd || wm * wn < most || (wm * wn == most && cost > least && least))
                continue;
            if (wm * wn > most || !least || cost < least || wm > best.wm)
                best = (spread){wm, wn};
            most = wm * wn;
            least = cost;
        }
    }
    return best;
}

static uint16_t accumulator(layout_plan *p, const ir_op *dot)
{
    ir_type acc = ir_type_of(p->fn, dot->res);
    int follow_back = FOLLOWED, follow = FOLLOWED;
    uint16_t home = plan_home(p, dot->res);
    enum layout_kind kind = on_matrix_unit(p->fn, dot) ? LAYOUT_MMA : LAYOUT_BLOCKED;

    if (home && p->fn->layouts.at[home]->kind == kind)
        return home; /* what it is added to has it already */
    if (kind == LAYOUT_BLOCKED)
        return choose_fma(p->fn, acc);
    const ir_layout *rows = rows_of(p, dot->args[0], &follow_back);
    if (rows && rows->warps[1] == 1 && acc.shape[0] % (MMA_M * rows->warps[0]) == 0)
        return layout_mma(p->fn, rows->warps[0], 1);
    spread s = wants_whole_rows(p, dot->res, &follow) ? by_rows(p->fn, acc)
                                                      : most_square(p->fn, acc);
    return layout_mma(p->fn, s.wm, s.wn);
}

void choose_dots(layout_plan *p)
{
    for (uint32_t i = 0; i < p->dots.n; i++) {
        uint16_t lay = accumulator(p, p->dots.at[i]);
        p->dots.at[i]->mark = lay;
        plan_assign(p, p->dots.at[i]->res, lay);
        plan_propagate(p);
    }
}
