#include "tuner/space.h"
#include "compiler/base/check.h"
#include "compiler/base/vec.h"
#include <string.h>

/* Combinations looked at one by one; of a larger product, as many random ones. */
#define MAX_LOOKS 200000

bool space_param_add(space_param *p, int64_t v)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (p->value[i] == v)
            return true;
    if (p->n == SPACE_MAX_VALUES)
        return false;
    p->value[p->n++] = v;
    return true;
}

static uint64_t combinations(const space *s)
{
    uint64_t n = 1;

    for (uint32_t i = 0; i < s->nparams && n <= MAX_LOOKS; i++)
        n *= s->param[i].n;
    return n;
}

static void values_of(const space *s, const space_point *p, int64_t *out)
{
    for (uint32_t i = 0; i < s->nparams; i++)
        out[i] = s->param[i].value[p->at[i]];
}

void space_values(const space *s, uint32_t point, int64_t *out)
{
    values_of(s, &s->point[point], out);
}

static space_point find_start(const space *s, const int64_t *start)
{
    space_point p = {{0}};

    for (uint32_t i = 0; i < s->nparams; i++) {
        uint32_t j = 0;
        while (j < s->param[i].n && s->param[i].value[j] != start[i])
            j++;
        ICHECK(j < s->param[i].n, "the start of a search space is in it");
        p.at[i] = (uint8_t)j;
    }
    return p;
}

/* The next combination, last parameter fastest; false after the last one. */
static bool advance(const space *s, space_point *p)
{
    for (uint32_t i = s->nparams; i-- > 0;) {
        if (++p->at[i] < s->param[i].n)
            return true;
        p->at[i] = 0;
    }
    return false;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

typedef VEC(space_point) point_list;

static bool same_point(const space_point *a, const space_point *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static bool is_known(const point_list *l, const space_point *p)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (same_point(&l->at[i], p))
            return true;
    return false;
}

static void add_valid(const space *s, arena *a, point_list *l, const space_point *p,
                      space_valid_fn valid, void *user)
{
    int64_t value[SPACE_MAX_PARAMS];

    values_of(s, p, value);
    if (!same_point(p, &l->at[0]) && (!valid || valid(user, value)))
        vec_push(l, a, *p);
}

static void add_all(const space *s, arena *a, point_list *l, space_valid_fn valid, void *user)
{
    space_point p = {{0}};

    do
        add_valid(s, a, l, &p, valid, user);
    while (advance(s, &p));
}

/* Always the same ones: two runs search the same space. */
static void add_random(const space *s, arena *a, point_list *l, space_valid_fn valid, void *user)
{
    uint64_t state = 0x9e3779b97f4a7c15u;

    for (int look = 0; look < MAX_LOOKS && l->n < SPACE_MAX_POINTS; look++) {
        space_point p = {{0}};
        for (uint32_t i = 0; i < s->nparams; i++)
            p.at[i] = (uint8_t)(next_random(&state) % s->param[i].n);
        if (!is_known(l, &p))
            add_valid(s, a, l, &p, valid, user);
    }
}

/* Keeps point 0 and a random choice of the others, in their order. */
static void thin_out(point_list *l)
{
    uint64_t state = 0x2545f4914f6cdd1du;
    uint32_t kept = 1, left = l->n - 1;

    for (uint32_t i = 1; i < l->n; i++, left--)
        if (next_random(&state) % left < SPACE_MAX_POINTS - kept)
            l->at[kept++] = l->at[i];
    l->n = kept;
}

void space_enumerate(space *s, arena *a, const int64_t *start, space_valid_fn valid, void *user)
{
    point_list l = {0};

    vec_push(&l, a, find_start(s, start));
    if (combinations(s) <= MAX_LOOKS)
        add_all(s, a, &l, valid, user);
    else
        add_random(s, a, &l, valid, user);
    if (l.n > SPACE_MAX_POINTS)
        thin_out(&l);
    s->point = l.at;
    s->npoints = l.n;
}
