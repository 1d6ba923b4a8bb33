#include "compiler/target/interp/interp_race.h"
#include "compiler/base/mem.h"
#include "compiler/target/interp/interp_race_core.h"
#include <string.h>

/* ---- life ---- */

static bool allocate(race *r)
{
    size_t warps = (size_t)r->shape.warps, n = (size_t)r->granules;

    r->write = mem_alloc(n * sizeof *r->write);
    r->read = mem_alloc(n * warps * sizeof *r->read);
    r->products = r->shape.products ? mem_alloc(n * warps * sizeof *r->products) : NULL;
    r->known = mem_alloc(warps * (size_t)r->agents * sizeof *r->known);
    r->fenced = mem_alloc(warps * (size_t)r->agents * sizeof *r->fenced);
    r->clocks = mem_alloc((size_t)r->nclocks * 2 * (size_t)r->agents * sizeof *r->clocks);
    r->warp = mem_alloc(warps * sizeof *r->warp);
    r->engine = mem_alloc((size_t)(r->shape.mbarriers + 1) * sizeof *r->engine);
    return r->write && r->read && (r->products || !r->shape.products) && r->known && r->fenced &&
           r->clocks && r->warp && r->engine;
}

race *race_new(const race_shape *shape)
{
    race *r = mem_zalloc(sizeof *r);

    if (!r)
        return NULL;
    r->shape = *shape;
    r->granules = shape->bytes / shape->granule + 1;
    r->agents = 3 * shape->warps + shape->mbarriers;
    r->nclocks = 16 + 2 * shape->mbarriers;
    if (!allocate(r)) {
        race_free(r);
        return NULL;
    }
    race_reset(r);
    return r;
}

static void free_copies(race *r)
{
    for (uint32_t i = 0; i < r->ncopies; i++) {
        mem_free(r->copy[i]->before);
        mem_free(r->copy[i]);
    }
    r->ncopies = 0;
}

void race_free(race *r)
{
    if (!r)
        return;
    free_copies(r);
    mem_free(r->copy);
    mem_free(r->write);
    mem_free(r->read);
    mem_free(r->products);
    mem_free(r->known);
    mem_free(r->fenced);
    mem_free(r->clocks);
    mem_free(r->warp);
    mem_free(r->engine);
    mem_free(r->element);
    mem_free(r);
}

void race_reset(race *r)
{
    size_t warps = (size_t)r->shape.warps, n = (size_t)r->granules;

    free_copies(r);
    memset(r->write, 0, n * sizeof *r->write);
    memset(r->read, 0, n * warps * sizeof *r->read);
    if (r->products)
        memset(r->products, 0, n * warps * sizeof *r->products);
    memset(r->known, 0, warps * (size_t)r->agents * sizeof *r->known);
    memset(r->fenced, 0, warps * (size_t)r->agents * sizeof *r->fenced);
    memset(r->clocks, 0, (size_t)r->nclocks * 2 * (size_t)r->agents * sizeof *r->clocks);
    memset(r->warp, 0, warps * sizeof *r->warp);
    memset(r->engine, 0, (size_t)(r->shape.mbarriers + 1) * sizeof *r->engine);
    if (r->element)
        memset(r->element, 0, (size_t)r->elements_cap * r->element_words * sizeof *r->element);
    r->nelements = 0;
    r->unwritten = (race_report){.kind = RACE_NONE};
    for (int w = 0; w < r->shape.warps; w++)
        known_of(r, w)[w] = 1;
}

/* ---- order ---- */

race_clock *race_clock_at(race *r, int number)
{
    return (race_clock *)(r->clocks + (size_t)number * 2 * (size_t)r->agents);
}

void race_clock_clear(race *r, race_clock *c)
{
    memset(c, 0, 2 * (size_t)r->agents * sizeof(uint32_t));
}

void race_clock_copy(race *r, race_clock *to, const race_clock *from)
{
    memcpy(to, from, 2 * (size_t)r->agents * sizeof(uint32_t));
}

static void join(const race *r, uint32_t *to, const uint32_t *from)
{
    for (int i = 0; i < r->agents; i++)
        to[i] = from[i] > to[i] ? from[i] : to[i];
}

uint32_t race_now(const race *r, int warp)
{
    return known_of(r, warp)[warp];
}

bool race_knows(const race *r, int warp, int other, uint32_t clock)
{
    return clock <= (warp == other ? r->warp[warp].floor : known_of(r, warp)[other]);
}

void race_order_lanes(race *r, int warp)
{
    uint32_t *known = known_of(r, warp);

    known[r->shape.warps + warp] = r->warp[warp].waited;
    r->warp[warp].floor = known[warp]++;
}

void race_release(race *r, int warp, race_clock *c)
{
    uint32_t *to = (uint32_t *)c;

    race_order_lanes(r, warp);
    known_of(r, warp)[warp]--; /* what comes after is not released */
    join(r, to, known_of(r, warp));
    join(r, to + r->agents, r->fenced + (size_t)warp * (size_t)r->agents);
    known_of(r, warp)[warp]++;
}

void race_acquire(race *r, int warp, const race_clock *c)
{
    const uint32_t *from = (const uint32_t *)c;

    join(r, known_of(r, warp), from);
    join(r, r->fenced + (size_t)warp * (size_t)r->agents, from + r->agents);
}

/* Covers the warp's writes, and of its copies those that it has waited for. */
void race_fence(race *r, int warp)
{
    uint32_t *known = known_of(r, warp), *fenced = r->fenced + (size_t)warp * (size_t)r->agents;

    fenced[warp] = known[warp]++;
    fenced[r->shape.warps + warp] = r->warp[warp].waited;
}

void race_commit(race *r, int warp)
{
    r->warp[warp].committed++;
}

void race_wait(race *r, int warp, int pending)
{
    race_warp *w = &r->warp[warp];
    uint32_t done = w->committed > (uint32_t)pending ? w->committed - (uint32_t)pending : 0;

    w->waited = done > w->waited ? done : w->waited;
}

void race_commit_products(race *r, int warp)
{
    r->warp[warp].products++;
}

void race_wait_products(race *r, int warp, int pending)
{
    uint32_t *known = &known_of(r, warp)[2 * r->shape.warps + warp];
    uint32_t all = r->warp[warp].products;
    uint32_t done = all > (uint32_t)pending ? all - (uint32_t)pending : 0;

    *known = done > *known ? done : *known;
}

uint32_t race_product_group(const race *r, int warp)
{
    return r->warp[warp].products + 1;
}

uint32_t race_products_done(const race *r, int warp)
{
    return known_of(r, warp)[2 * r->shape.warps + warp];
}

bool race_unwritten(const race *r, race_report *report)
{
    *report = r->unwritten;
    return report->kind != RACE_NONE;
}

/* ---- copies ---- */

race_copy *race_copy_new(race *r, race_op op, uint32_t warps, int mbarrier)
{
    if (r->ncopies == r->copies_cap) {
        uint32_t cap = r->copies_cap ? 2 * r->copies_cap : 64;
        race_copy **more = mem_realloc(r->copy, cap * sizeof(race_copy *));
        if (!more)
            return NULL;
        r->copy = more;
        r->copies_cap = cap;
    }
    race_copy *c = mem_zalloc(sizeof *c);
    if (!c)
        return NULL;
    c->number = r->ncopies;
    c->op = op;
    c->warps = c->to_issue = warps;
    c->mbarrier = mbarrier;
    r->copy[r->ncopies++] = c;
    return c;
}

bool race_wait_covers(const race *r, const race_copy *c, int warp, int pending)
{
    uint32_t committed = r->warp[warp].committed;

    return !(c->to_issue >> warp & 1) && c->group[warp] + (uint32_t)pending <= committed;
}

void race_land(race *r, race_copy *c, race_clock *to)
{
    uint32_t *clock = (uint32_t *)to + 3 * r->shape.warps + c->mbarrier;

    *clock = c->group[0] > *clock ? c->group[0] : *clock;
}
