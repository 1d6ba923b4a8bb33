/* The bytes of an artifact: a header, then every field in the order of artifact.h, little-endian,
 * without padding. Counts come before what they count; a string is its length and its bytes.
 *
 *   "TWART" 0 0 0 | u32 version | u32 0 | u64 size of what follows | 16 bytes hash of it | ... */
#include "compiler/target/artifact.h"
#include "compiler/base/check.h"
#include "compiler/base/strbuf.h"
#include <string.h>

static const char magic[8] = "TWART";
enum { FORMAT_VERSION = 5, MAX_COUNT = 1 << 16 };

/* ---- writing ---- */

static void put(strbuf *b, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        sb_char(b, (char)(v >> 8 * i & 0xff));
}

static void put_bytes(strbuf *b, const void *p, uint32_t n)
{
    put(b, n, 4);
    sb_mem(b, p, n);
}

static void put_text(strbuf *b, const char *s)
{
    put_bytes(b, s, (uint32_t)strlen(s));
}

static void put_count(strbuf *b, const recipe_count *c)
{
    put(b, (uint64_t)c->factor, 8);
    put(b, (uint64_t)c->more, 8);
    put(b, c->nterms, 1);
    for (int i = 0; i < c->nterms; i++) {
        put(b, c->dim[i], 1);
        put(b, (uint32_t)c->per[i], 4);
    }
}

static void put_step(strbuf *b, const recipe_step *s)
{
    put(b, s->object, 4);
    put_text(b, s->symbol);
    put(b, s->nslots, 4);
    for (uint32_t i = 0; i < s->nslots; i++) {
        put(b, s->slot[i].kind, 1);
        put(b, s->slot[i].index, 1);
        put(b, s->slot[i].param, 2);
    }
    put_count(b, &s->programs);
    for (int i = 0; i < 3; i++)
        put(b, s->grid_map[i], 1);
    put(b, s->reversed, 1);
    put(b, (uint32_t)s->block_threads, 4);
    put(b, (uint32_t)s->shared_bytes, 4);
    put(b, (uint64_t)s->scratch_bytes, 8);
}

static void put_print(strbuf *b, const artifact_print *p)
{
    put_text(b, p->text);
    put(b, p->dtype, 1);
    put(b, p->held, 1);
    put(b, p->rank, 1);
    for (int d = 0; d < p->rank; d++) {
        put(b, (uint32_t)p->shape[d], 4);
        put(b, (uint64_t)p->stride[d], 8);
    }
}

static void put_artifact(strbuf *b, const artifact *art)
{
    put(b, art->nobjects, 4);
    for (uint32_t i = 0; i < art->nobjects; i++) {
        put(b, art->object[i].kind, 1);
        put_bytes(b, art->object[i].bytes, art->object[i].size);
    }
    put(b, art->nworkspaces, 4);
    for (uint32_t i = 0; i < art->nworkspaces; i++)
        put_count(b, &art->workspace[i]);
    put(b, art->ncounters, 4);
    put(b, art->nsteps, 4);
    for (uint32_t i = 0; i < art->nsteps; i++)
        put_step(b, &art->step[i]);
    put(b, art->nasserts, 4);
    for (uint32_t i = 0; i < art->nasserts; i++)
        put_text(b, art->assert_text[i]);
    put(b, art->nprints, 4);
    for (uint32_t i = 0; i < art->nprints; i++)
        put_print(b, &art->print[i]);
    put_text(b, art->launch_text);
    put(b, (uint32_t)art->ir_ops, 4);
    put(b, (uint32_t)art->registers, 4);
    put(b, (uint32_t)art->spill_bytes, 4);
    put(b, art->code_bytes, 4);
}

void artifact_write(const artifact *art, arena *a, const uint8_t **bytes, size_t *size)
{
    strbuf body, all;

    sb_init(&body, a);
    put_artifact(&body, art);
    hash128 h = hash_mem(body.s, body.n);
    sb_init(&all, a);
    sb_mem(&all, magic, sizeof magic);
    put(&all, FORMAT_VERSION, 4);
    put(&all, 0, 4);
    put(&all, body.n, 8);
    put(&all, h.lo, 8);
    put(&all, h.hi, 8);
    sb_mem(&all, body.s, body.n);
    *bytes = (const uint8_t *)all.s;
    *size = all.n;
}

/* ---- reading ---- */

/* Once bad, a reader gives zeros and empty arrays: callers need not ask after each field. */
typedef struct reader {
    arena *a;
    const uint8_t *at;
    size_t left;
    bool bad;
} reader;

static const uint8_t *take(reader *r, size_t n)
{
    const uint8_t *p = r->at;

    if (r->bad || n > r->left) {
        r->bad = true;
        return NULL;
    }
    r->at += n;
    r->left -= n;
    return p;
}

static uint64_t get(reader *r, int bytes)
{
    const uint8_t *p = take(r, (size_t)bytes);
    uint64_t v = 0;

    for (int i = 0; p && i < bytes; i++)
        v |= (uint64_t)p[i] << 8 * i;
    return v;
}

/* A number below limit. */
static uint32_t get_below(reader *r, int bytes, uint32_t limit)
{
    uint64_t v = get(r, bytes);

    r->bad |= v >= limit;
    return r->bad ? 0 : (uint32_t)v;
}

/* How many things of at least `least` bytes follow: never more than the bytes left can hold. */
static uint32_t get_count(reader *r, size_t least)
{
    uint32_t n = get_below(r, 4, MAX_COUNT);

    r->bad |= n > r->left / least;
    return r->bad ? 0 : n;
}

static int32_t get_size(reader *r)
{
    return (int32_t)get_below(r, 4, (uint32_t)INT32_MAX);
}

static int64_t get_amount(reader *r)
{
    uint64_t v = get(r, 8);

    r->bad |= v > INT64_MAX / 2;
    return r->bad ? 0 : (int64_t)v;
}

static const char *get_text(reader *r)
{
    uint32_t n = (uint32_t)get(r, 4);
    const uint8_t *p = take(r, n);

    if (!p || memchr(p, 0, n)) {
        r->bad = true;
        return "";
    }
    return arena_strndup(r->a, (const char *)p, n);
}

static void get_object(reader *r, code_object *o)
{
    o->kind = (enum object_kind)get_below(r, 1, OBJECT_CUBIN + 1);
    o->size = (uint32_t)get(r, 4);
    const uint8_t *p = take(r, o->size);
    if (p)
        o->bytes = arena_dup(r->a, p, o->size);
}

static void get_launch_count(reader *r, recipe_count *c)
{
    c->factor = get_amount(r);
    c->more = get_amount(r);
    c->nterms = (uint8_t)get_below(r, 1, VIEW_MAX_RANK + 1);
    for (int i = 0; i < c->nterms; i++) {
        c->dim[i] = (uint8_t)get(r, 1);
        c->per[i] = get_size(r);
        r->bad |= c->per[i] == 0;
    }
}

/* How many values `index` of a slot may have. */
static uint32_t slot_index_limit(const artifact *art, uint8_t kind)
{
    switch ((enum slot_kind)kind) {
    case SLOT_STRIDE:
        return VIEW_MAX_RANK;
    case SLOT_DIM:
        return UINT8_MAX + 1;
    case SLOT_GRID:
    case SLOT_FIRST:
        return 3;
    case SLOT_WORKSPACE:
        return art->nworkspaces;
    case SLOT_COUNTER:
        return art->ncounters;
    case SLOT_POINTER:
    case SLOT_SCALAR:
    case SLOT_ASSERT:
    case SLOT_CALLS:
        break;
    }
    return 1;
}

static void get_step(reader *r, const artifact *art, recipe_step *s)
{
    s->object = get_below(r, 4, art->nobjects);
    s->symbol = get_text(r);
    s->nslots = get_count(r, 4);
    s->slot = ARENA_ARRAY(r->a, recipe_slot, s->nslots);
    for (uint32_t i = 0; i < s->nslots; i++) {
        s->slot[i].kind = (uint8_t)get_below(r, 1, SLOT_FIRST + 1);
        s->slot[i].index = (uint8_t)get_below(r, 1, slot_index_limit(art, s->slot[i].kind));
        s->slot[i].param = (uint16_t)get(r, 2);
    }
    get_launch_count(r, &s->programs);
    for (int i = 0; i < 3; i++)
        s->grid_map[i] = (uint8_t)get_below(r, 1, 3);
    s->reversed = (uint8_t)get_below(r, 1, 8);
    s->block_threads = get_size(r);
    s->shared_bytes = get_size(r);
    s->scratch_bytes = get_amount(r);
}

static void get_print(reader *r, artifact_print *p)
{
    p->text = get_text(r);
    p->dtype = (uint8_t)get_below(r, 1, DT_COUNT);
    p->held = (uint8_t)get_below(r, 1, DT_COUNT);
    p->rank = (uint8_t)get_below(r, 1, TILE_MAX_RANK + 1);
    for (int d = 0; d < p->rank; d++) {
        p->shape[d] = (int32_t)get_below(r, 4, TILE_MAX_ELEMENTS + 1);
        p->stride[d] = get_amount(r);
    }
}

static void get_artifact(reader *r, artifact *art)
{
    art->nobjects = get_count(r, 5);
    art->object = ARENA_ARRAY(r->a, code_object, art->nobjects);
    for (uint32_t i = 0; i < art->nobjects; i++)
        get_object(r, &art->object[i]);
    art->nworkspaces = get_count(r, 17);
    art->workspace = ARENA_ARRAY(r->a, recipe_count, art->nworkspaces);
    for (uint32_t i = 0; i < art->nworkspaces; i++)
        get_launch_count(r, &art->workspace[i]);
    art->ncounters = get_below(r, 4, MAX_COUNT);
    art->nsteps = get_count(r, 49);
    art->step = ARENA_ARRAY(r->a, recipe_step, art->nsteps);
    for (uint32_t i = 0; i < art->nsteps; i++)
        get_step(r, art, &art->step[i]);
    art->nasserts = get_count(r, 4);
    art->assert_text = ARENA_ARRAY(r->a, const char *, art->nasserts);
    for (uint32_t i = 0; i < art->nasserts; i++)
        art->assert_text[i] = get_text(r);
    art->nprints = get_count(r, 7);
    art->print = ARENA_ARRAY(r->a, artifact_print, art->nprints);
    for (uint32_t i = 0; i < art->nprints; i++)
        get_print(r, &art->print[i]);
    art->launch_text = get_text(r);
    art->ir_ops = get_size(r);
    art->registers = get_size(r);
    art->spill_bytes = get_size(r);
    art->code_bytes = (uint32_t)get(r, 4);
}

static bool header_holds(reader *r)
{
    const uint8_t *p = take(r, sizeof magic);
    hash128 h;

    if (!p || memcmp(p, magic, sizeof magic) != 0 || get(r, 4) != FORMAT_VERSION || get(r, 4) != 0)
        return false;
    uint64_t size = get(r, 8);
    h.lo = get(r, 8);
    h.hi = get(r, 8);
    return !r->bad && size == r->left && hash_equal(h, hash_mem(r->at, r->left));
}

tw_status artifact_read(arena *a, const uint8_t *bytes, size_t size, artifact **out)
{
    reader r = {a, bytes, size, false};
    artifact *art = ARENA_NEW(a, artifact);

    if (!header_holds(&r))
        return TW_E_STORE;
    get_artifact(&r, art);
    if (r.bad || r.left)
        return TW_E_STORE;
    *out = art;
    return TW_OK;
}
