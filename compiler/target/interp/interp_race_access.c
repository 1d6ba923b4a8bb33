/* Is an access ordered behind those before it? */
#include "compiler/base/mem.h"
#include "compiler/target/interp/interp_race_core.h"
#include <string.h>

static bool found(race_report *report, enum race_kind kind, race_record w, bool wrote)
{
    *report = (race_report){kind, record_op(w), record_warp(w), wrote, -1};
    return false;
}

/* A record of a warp's own access, read or write. */
static bool behind(const race *r, const race_access *x, race_record w, bool wrote,
                   race_report *report)
{
    int warp = record_warp(w);

    if (warp != x->warp)
        return record_clock(w) <= known_of(r, x->warp)[warp] || found(report, RACE_ORDER, w, wrote);
    return record_clock(w) <= r->warp[warp].floor ||
           (record_lane(w) == x->lane && x->lane != HOLD_MANY && !x->proxy) ||
           found(report, RACE_LANES, w, wrote);
}

/* Do the engines see what the record wrote? */
static bool fenced(const race *r, const race_access *x, race_record w, race_report *report)
{
    const uint32_t *known = r->fenced + (size_t)x->warp * (size_t)r->agents;

    return !x->proxy || record_clock(w) <= known[record_warp(w)] ||
           found(report, RACE_FENCE, w, true);
}

/* Has the copy landed, and does the warp know? */
static bool landed(const race *r, const race_access *x, race_copy *c, race_report *report)
{
    const uint32_t *known = known_of(r, x->warp);
    const uint32_t *proxy = r->fenced + (size_t)x->warp * (size_t)r->agents;
    uint32_t *seen = x->proxy ? &c->seen_proxy : &c->seen;
    bool ok = !c->to_issue, visible = true;

    if (*seen >> x->warp & 1)
        return true;
    if (c->mbarrier >= 0)
        ok &= c->group[0] <= known[3 * r->shape.warps + c->mbarrier];
    for (int w = 0; w < r->shape.warps && c->mbarrier < 0 && ok; w++) {
        if (!(c->warps >> w & 1))
            continue;
        ok &= c->group[w] <= known[r->shape.warps + w];
        visible &= !x->proxy || c->group[w] <= proxy[r->shape.warps + w];
    }
    if (ok && visible) {
        *seen |= 1u << x->warp;
        return true;
    }
    *report = (race_report){ok ? RACE_FENCE : RACE_LANDING, c->op, -1, true, -1};
    return false;
}

static bool behind_write(race *r, const race_access *x, race_record w, race_report *report)
{
    if (w & RECORD_COPY)
        return landed(r, x, r->copy[record_clock(w)], report);
    return behind(r, x, w, true, report) && fenced(r, x, w, report);
}

static bool behind_reads(const race *r, const race_access *x, int64_t granule, race_report *report)
{
    size_t base = (size_t)granule * (size_t)r->shape.warps;

    for (int v = 0; v < r->shape.warps; v++) {
        race_record w = r->read[base + (size_t)v];
        if (w && !behind(r, x, w, false, report))
            return false;
        w = r->products ? r->products[base + (size_t)v] : 0;
        if (w && record_clock(w) > known_of(r, x->warp)[2 * r->shape.warps + v])
            return found(report, RACE_ENGINE, w, false);
    }
    return true;
}

/* The read of a warp: two lanes with nothing between that orders them become "several". */
static void note_read(const race *r, race_record *at, const race_access *x)
{
    race_access both = *x;

    if (*at && record_clock(*at) > r->warp[x->warp].floor && record_lane(*at) != x->lane)
        both.lane = HOLD_MANY;
    *at = record_of(&both, race_now(r, x->warp));
}

typedef struct granule_range {
    int64_t lo, hi;
} granule_range;

static granule_range granules_of(const race *r, int64_t at, int64_t bytes)
{
    return (granule_range){at / r->shape.granule, (at + bytes - 1) / r->shape.granule};
}

static bool at_byte(const race *r, int64_t granule, race_report *report)
{
    report->byte = granule * r->shape.granule;
    return false;
}

static bool may_read(race *r, const race_access *x, int64_t g, race_report *report)
{
    race_record w = r->write[g];

    if (!w && r->unwritten.kind == RACE_NONE)
        r->unwritten = (race_report){RACE_UNWRITTEN, x->op, x->warp, false, g * r->shape.granule};
    return !w || behind_write(r, x, w, report) || at_byte(r, g, report);
}

bool race_read(race *r, const race_access *x, int64_t at, int bytes, race_report *report)
{
    granule_range range = granules_of(r, at, bytes);

    for (int64_t g = range.lo; g <= range.hi; g++) {
        if (!may_read(r, x, g, report))
            return false;
        note_read(r, &r->read[g * r->shape.warps + x->warp], x);
    }
    return true;
}

bool race_read_product(race *r, const race_access *x, int64_t at, int bytes, race_report *report)
{
    granule_range range = granules_of(r, at, bytes);

    for (int64_t g = range.lo; g <= range.hi; g++) {
        if (!may_read(r, x, g, report))
            return false;
        r->products[g * r->shape.warps + x->warp] = record_of(x, race_product_group(r, x->warp));
    }
    return true;
}

bool race_write(race *r, const race_access *x, int64_t at, int bytes, race_report *report)
{
    granule_range range = granules_of(r, at, bytes);
    uint32_t clock = race_now(r, x->warp);

    for (int64_t g = range.lo; g <= range.hi; g++) {
        race_record w = r->write[g];
        if ((w && !behind_write(r, x, w, report)) || !behind_reads(r, x, g, report))
            return at_byte(r, g, report);
        r->write[g] = record_of(x, clock);
    }
    return true;
}

/* ---- copies ---- */

static bool keep_before(race *r, race_copy *c, granule_range range)
{
    size_t bytes = (size_t)(range.hi - range.lo + 1) * sizeof *c->before;

    c->before = mem_alloc(bytes);
    if (!c->before)
        return false;
    c->first = range.lo;
    c->n = range.hi - range.lo + 1;
    memcpy(c->before, r->write + range.lo, bytes);
    for (int64_t g = range.lo; g <= range.hi; g++)
        r->write[g] = (uint64_t)c->number << 32 | RECORD_COPY | c->op;
    return true;
}

bool race_copy_issue(race *r, race_copy *c, const race_access *x, int64_t at, int64_t n,
                     race_report *report)
{
    granule_range range = granules_of(r, at, n);

    if (!c->before && !keep_before(r, c, range)) {
        *report = (race_report){.kind = RACE_NONE};
        return false;
    }
    if (c->mbarrier >= 0)
        c->group[0] = ++r->engine[c->mbarrier];
    else
        c->group[x->warp] = r->warp[x->warp].committed + 1;
    c->to_issue &= c->mbarrier >= 0 ? 0 : ~(1u << x->warp);
    for (int64_t g = range.lo; g <= range.hi; g++) {
        race_record w = c->before[g - c->first];
        if ((w && !behind_write(r, x, w, report)) || !behind_reads(r, x, g, report))
            return at_byte(r, g, report);
    }
    if (!c->to_issue) {
        mem_free(c->before);
        c->before = NULL;
    }
    return true;
}

/* ---- elements of tensors ---- */

static uint64_t *find_element(const race *r, uint64_t *table, uint32_t cap, uint64_t address)
{
    uint64_t hash = address * UINT64_C(0x9E3779B97F4A7C15);

    for (uint32_t i = (uint32_t)(hash >> 32) & (cap - 1);; i = (i + 1) & (cap - 1)) {
        uint64_t *e = table + (size_t)i * r->element_words;
        if (!e[0] || e[0] == address)
            return e;
    }
}

static bool grow_elements(race *r)
{
    uint32_t cap = r->elements_cap ? 2 * r->elements_cap : 1024;

    r->element_words = (size_t)r->shape.warps + 2;
    uint64_t *table = mem_zalloc((size_t)cap * r->element_words * sizeof *table);
    if (!table)
        return false;
    for (uint32_t i = 0; i < r->elements_cap; i++) {
        const uint64_t *e = r->element + (size_t)i * r->element_words;
        if (e[0])
            memcpy(find_element(r, table, cap, e[0]), e, r->element_words * sizeof *e);
    }
    mem_free(r->element);
    r->element = table;
    r->elements_cap = cap;
    return true;
}

/* Its address, its last write, then the last read of each warp. NULL: no memory. */
static uint64_t *element_at(race *r, const void *p)
{
    if (2 * r->nelements >= r->elements_cap && !grow_elements(r))
        return NULL;
    uint64_t *e = find_element(r, r->element, r->elements_cap, (uint64_t)(uintptr_t)p);
    if (!e[0]) {
        e[0] = (uint64_t)(uintptr_t)p;
        r->nelements++;
    }
    return e;
}

bool race_read_element(race *r, const race_access *x, const void *p, race_report *report)
{
    uint64_t *e = element_at(r, p);

    *report = (race_report){.kind = RACE_NONE, .byte = -1};
    if (!e || (e[1] && !behind(r, x, e[1], true, report)))
        return false;
    note_read(r, &e[2 + x->warp], x);
    return true;
}

bool race_write_element(race *r, const race_access *x, const void *p, bool atomic,
                        race_report *report)
{
    uint64_t *e = element_at(r, p);

    *report = (race_report){.kind = RACE_NONE, .byte = -1};
    if (!e)
        return false;
    bool both = atomic && (e[1] & RECORD_ATOMIC);
    if (e[1] && !both && !behind(r, x, e[1], true, report))
        return false;
    for (int v = 0; v < r->shape.warps; v++) {
        if (e[2 + v] && !behind(r, x, e[2 + v], false, report))
            return false;
    }
    e[1] = record_of(x, race_now(r, x->warp)) | (atomic ? RECORD_ATOMIC : 0);
    return true;
}
