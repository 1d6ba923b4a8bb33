/* The head of a module of level 2: its warps and layouts. And the names of layouts in types. */
#include "compiler/ir/irparse.h"
#include "compiler/ir/layout.h"

typedef struct int_list {
    int n;
    int32_t at[TILE_MAX_RANK];
} int_list;

static bool parse_numbers(ir_parser *p, const char *name, int_list *list)
{
    int64_t v;

    list->n = 0;
    if (!irp_need_word(p, name) || !irp_need_punct(p, '=') || !irp_need_punct(p, '['))
        return false;
    do {
        if (list->n == TILE_MAX_RANK)
            return irp_fail(p, p->t.where, DIAG_LIMIT, "a tile has at most 4 dimensions");
        if (!irp_need_int(p, 0, TILE_MAX_ELEMENTS, &v))
            return false;
        list->at[list->n++] = (int32_t)v;
    } while (irp_take_punct(p, ','));
    return irp_need_punct(p, ']');
}

static bool parse_number(ir_parser *p, const char *name, int64_t most, int64_t *v)
{
    return irp_need_word(p, name) && irp_need_punct(p, '=') && irp_need_int(p, 0, most, v);
}

bool irp_layout(ir_parser *p, uint16_t *lay)
{
    if (p->t.kind != IRT_LAYOUT)
        return irp_expected(p, "a layout (#name)");
    for (uint32_t i = 1; i < p->fn->layouts.n; i++) {
        if (p->fn->layouts.at[i]->name == p->t.s) {
            *lay = (uint16_t)i;
            irp_advance(p);
            return true;
        }
    }
    diag_add(p->lx.diags, DIAG_IR_NAME, p->t.where, "there is no layout '#%s'", p->t.s);
    return false;
}

/* ---- one kind each, after the opening parenthesis ---- */

static bool parse_blocked(ir_parser *p, ir_layout *lay)
{
    int_list list[4];
    static const char *const name[] = {"regs", "lanes", "warps", "order"};

    for (int i = 0; i < 4; i++) {
        if ((i && !irp_need_punct(p, ',')) || !parse_numbers(p, name[i], &list[i]))
            return false;
        if (list[i].n != list[0].n)
            return irp_expected(p, "a number for each dimension");
    }
    lay->rank = (uint8_t)list[0].n;
    for (int d = 0; d < list[0].n; d++) {
        lay->regs[d] = list[0].at[d];
        lay->lanes[d] = list[1].at[d];
        lay->warps[d] = list[2].at[d];
        lay->order[d] = list[3].at[d] < TILE_MAX_RANK ? (uint8_t)list[3].at[d] : TILE_MAX_RANK;
    }
    return true;
}

static bool parse_mma(ir_parser *p, ir_layout *lay)
{
    int_list warps;

    if (!parse_numbers(p, "warps", &warps))
        return false;
    if (warps.n != 2)
        return irp_expected(p, "a number for each dimension");
    lay->rank = 2;
    lay->warps[0] = warps.at[0];
    lay->warps[1] = warps.at[1];
    return true;
}

static bool parse_along(ir_parser *p, ir_layout *lay)
{
    int64_t dim;

    if (!irp_layout(p, &lay->parent) || !irp_need_punct(p, ',') ||
        !parse_number(p, "dim", TILE_MAX_RANK - 1, &dim))
        return false;
    lay->dim = (uint8_t)dim;
    lay->rank = p->fn->layouts.at[lay->parent]->rank;
    return true;
}

static bool parse_slice(ir_parser *p, ir_layout *lay)
{
    if (!parse_along(p, lay))
        return false;
    lay->rank = (uint8_t)(lay->rank - (lay->rank > 0));
    return true;
}

static bool parse_trans(ir_parser *p, ir_layout *lay)
{
    int_list perm;

    if (!irp_layout(p, &lay->parent) || !irp_need_punct(p, ',') || !parse_numbers(p, "perm", &perm))
        return false;
    lay->rank = (uint8_t)perm.n;
    for (int i = 0; i < perm.n; i++)
        lay->perm[i] = perm.at[i] < TILE_MAX_RANK ? (uint8_t)perm.at[i] : TILE_MAX_RANK;
    return true;
}

static bool parse_shared(ir_parser *p, ir_layout *lay)
{
    int64_t row;

    if (!parse_number(p, "row", 128, &row))
        return false;
    lay->row = (int32_t)row;
    return true;
}

static bool parse_kind(ir_parser *p, ir_layout *lay)
{
    static const struct {
        const char *name;
        bool (*parse)(ir_parser *p, ir_layout *lay);
    } kind[] = {
        [LAYOUT_BLOCKED] = {"blocked", parse_blocked}, [LAYOUT_MMA] = {"mma", parse_mma},
        [LAYOUT_MMA_A] = {"mma_a", parse_mma},         [LAYOUT_SLICE] = {"slice", parse_slice},
        [LAYOUT_TRANS] = {"trans", parse_trans},       [LAYOUT_LANES] = {"lanes", parse_along},
        [LAYOUT_SHARED] = {"shared", parse_shared},
    };

    for (int i = 0; i <= LAYOUT_SHARED; i++) {
        if (!irp_take_word(p, kind[i].name))
            continue;
        lay->kind = (enum layout_kind)i;
        return irp_need_punct(p, '(') && kind[i].parse(p, lay) && irp_need_punct(p, ')');
    }
    return irp_expected(p, "blocked, mma, mma_a, slice, trans, lanes or shared");
}

static bool parse_layout(ir_parser *p)
{
    ir_layout lay = {.name = p->t.s};
    span where = p->t.where;
    const char *why;

    irp_advance(p);
    if (!irp_need_punct(p, '=') || !parse_kind(p, &lay))
        return false;
    if (!layout_is_sound(p->fn, &lay, &why))
        return irp_fail(p, where, DIAG_IR_LAYOUT, why);
    for (uint32_t i = 1; i < p->fn->layouts.n; i++) {
        if (p->fn->layouts.at[i]->name == lay.name)
            return irp_fail(p, where, DIAG_IR_NAME, "two layouts have one name");
    }
    if (layout_find(p->fn, &lay))
        return irp_fail(p, where, DIAG_IR_LAYOUT, "two layouts are equal");
    if (irp_too_many(p, p->fn->layouts.n))
        return false;
    layout_add(p->fn, lay);
    return true;
}

bool irp_schedule(ir_parser *p)
{
    int64_t warps;

    if (!irp_need_word(p, "warps") || !irp_need_punct(p, '=') ||
        !irp_need_int(p, 1, IR_MAX_WARPS, &warps))
        return false;
    p->fn->warps = (int)warps;
    while (p->t.kind == IRT_LAYOUT) {
        if (!parse_layout(p))
            return false;
    }
    return true;
}
