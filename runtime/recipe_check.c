/* Does a recipe fit its kernel, and what a launch has room for? Artifacts come from a file, too. */
#include "runtime/launch.h"

static bool slot_fits(const executable *exe, recipe_slot s)
{
    const kernel_sig *sig = &exe->kernel->source->sig;
    const sig_param *p = s.param < sig->nparams ? &sig->param[s.param] : NULL;

    switch ((enum slot_kind)s.kind) {
    case SLOT_POINTER:
        return p && p->is_tensor;
    case SLOT_STRIDE:
        return p && p->is_tensor && s.index < p->rank;
    case SLOT_SCALAR:
        return p && !p->is_tensor;
    case SLOT_DIM:
        return s.index < exe->plan.ndims;
    case SLOT_GRID:
    case SLOT_FIRST:
        return s.index < 3;
    case SLOT_WORKSPACE:
        return s.index < exe->art->nworkspaces;
    case SLOT_COUNTER:
        return s.index < exe->art->ncounters;
    case SLOT_ASSERT:
        return exe->device->drv->assert_record != NULL;
    case SLOT_CALLS:
        return exe->device->drv->calls;
    }
    return false;
}

static bool count_fits(const executable *exe, const recipe_count *c)
{
    if (c->nterms > VIEW_MAX_RANK)
        return false;
    for (int i = 0; i < c->nterms; i++)
        if (c->dim[i] >= exe->plan.ndims || c->per[i] < 1)
            return false;
    return true;
}

static bool step_fits(const executable *exe, const recipe_step *s)
{
    if (s->nslots > RUNTIME_MAX_SLOTS || s->scratch_bytes < 0 || !count_fits(exe, &s->programs))
        return false;
    for (uint32_t i = 0; i < s->nslots; i++)
        if (!slot_fits(exe, s->slot[i]))
            return false;
    unsigned axes = 0; /* a permutation of the grid's dimensions */
    for (int d = 0; d < 3; d++)
        axes |= s->grid_map[d] < 3 ? 1u << s->grid_map[d] : 0;
    return axes == 7;
}

tw_status recipe_check(const executable *exe)
{
    const artifact *art = exe->art;
    bool fits = art->nworkspaces <= RUNTIME_MAX_WORKSPACES;

    for (uint32_t i = 0; i < art->nworkspaces && fits; i++)
        fits = count_fits(exe, &art->workspace[i]);
    for (uint32_t i = 0; i < art->nsteps && fits; i++)
        fits = step_fits(exe, &art->step[i]);
    if (fits)
        return TW_OK;
    return error_set(
        TW_E_LIMIT,
        "the launch recipe of kernel '%s' does not fit: at most %d slots a step and %d "
        "workspaces, each of something that the kernel has",
        exe->kernel->source->sig.name, RUNTIME_MAX_SLOTS, RUNTIME_MAX_WORKSPACES);
}
