#include "cli/value.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- memory ---------------------------------------------------------------------------------- */

static void set_view(tensor *t, int rank, bool fortran)
{
    int64_t stride = 1;

    for (int i = 0; i < rank; i++) {
        int at = fortran ? i : rank - 1 - i;
        t->stride[at] = stride;
        stride *= t->shape[at] > 0 ? t->shape[at] : 1;
    }
    t->view = (DLTensor){.data = t->memory,
                         .device = {kDLCPU, 0},
                         .ndim = rank,
                         .dtype = elemtype_dlpack(t->type),
                         .shape = t->shape,
                         .strides = t->stride};
}

static bool count_bytes(const elemtype *type, int rank, const int64_t *shape, size_t *out)
{
    size_t n = (size_t)type->bytes;

    for (int i = 0; i < rank; i++)
        if (shape[i] == 0)
            return *out = 0, true;
    for (int i = 0; i < rank; i++)
        if (shape[i] < 0 || __builtin_mul_overflow(n, (size_t)shape[i], &n) || n > PTRDIFF_MAX / 2)
            return false;
    *out = n;
    return true;
}

/* More than the machine has would be granted, and then kill the process when it is touched. */
static bool is_plausible(size_t bytes)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    return pages <= 0 || page <= 0 || bytes / (size_t)page < (size_t)pages;
}

int tensor_allocate(cli *c, const char *name, tensor *t, const elemtype *type, int rank,
                    const int64_t *shape)
{
    size_t bytes = 0, rounded;

    if (!count_bytes(type, rank, shape, &bytes))
        return cli_fail(c, TW_E_LIMIT, "'%s': its size is beyond what can be addressed", name);
    rounded = (bytes + NPY_ALIGN) / NPY_ALIGN * NPY_ALIGN;
    t->memory = is_plausible(bytes) ? aligned_alloc(NPY_ALIGN, rounded) : NULL;
    if (!t->memory)
        return cli_fail(c, TW_E_NOMEM, "'%s' needs %s, more than there is", name,
                        text_bytes((double)bytes).s);
    memset(t->memory, 0, rounded);
    t->type = type;
    t->bytes = bytes;
    memcpy(t->shape, shape, (size_t)rank * sizeof *shape);
    set_view(t, rank, false);
    return CLI_OK;
}

void tensor_free(tensor *t)
{
    free(t->memory);
    t->memory = NULL;
}

char *tensor_text(const tensor *t)
{
    char *text = cli_format("%s[", t->type->name);

    for (int i = 0; i < t->view.ndim; i++) {
        char *longer = cli_format("%s%s%lld", text, i ? "," : "", (long long)t->shape[i]);
        free(text);
        text = longer;
    }
    char *whole = cli_format("%s]", text);
    free(text);
    return whole;
}

/* ---- random numbers -------------------------------------------------------------------------- */

/* splitmix64, as published by Steele, Lea and Flood (2014) */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* In (0, 1]. */
static double next_unit(uint64_t *state)
{
    return (double)((next_random(state) >> 11) + 1) * 0x1p-53;
}

/* So that each argument has numbers of its own, whatever the order of the arguments. */
static uint64_t stream_of(int64_t seed, const char *name)
{
    uint64_t state = (uint64_t)seed;

    for (; *name; name++) {
        state ^= (unsigned char)*name;
        state = next_random(&state);
    }
    return state;
}

/* Pairs of normal numbers by the method of Box and Muller. */
static void fill_normal(tensor *t, uint64_t state)
{
    size_t step = (size_t)t->type->bytes;
    char *at = t->memory, *end = at + t->bytes;

    for (; at < end; at += 2 * step) {
        double radius = sqrt(-2.0 * log(next_unit(&state)));
        double angle = 2.0 * M_PI * next_unit(&state);
        elemtype_put(t->type, radius * cos(angle), at);
        if (at + step < end)
            elemtype_put(t->type, radius * sin(angle), at + step);
    }
}

static void fill_with(tensor *t, const void *element)
{
    size_t step = (size_t)t->type->bytes;

    for (size_t i = 0; i < t->bytes; i += step)
        memcpy((char *)t->memory + i, element, step);
}

/* ---- DTYPE[dims] ----------------------------------------------------------------------------- */

typedef struct made {
    const elemtype *type;
    int rank;
    int64_t shape[NPY_MAX_RANK];
} made;

static int parse_dims(cli *c, const char *name, const char *text, made *out)
{
    const char *at = text;

    do {
        char *end;
        errno = 0;
        long long extent = strtoll(at, &end, 10);
        if (end == at || errno || extent < 0)
            return cli_fail(c, TW_E_ARG, "'%s': '[%s' is not a shape, as [1,4,1024,64] is", name,
                            text);
        if (out->rank == NPY_MAX_RANK)
            return cli_fail(c, TW_E_ARG, "'%s': more than %d dimensions", name, NPY_MAX_RANK);
        out->shape[out->rank++] = extent;
        at = end + strspn(end, " ");
    } while (*at++ == ',');
    if (at[-1] != ']' || *at)
        return cli_fail(c, TW_E_ARG, "'%s': '[%s' is not a shape, as [1,4,1024,64] is", name, text);
    return CLI_OK;
}

static int parse_made(cli *c, const char *name, const char *text, made *out)
{
    const char *bracket = strchr(text, '[');
    size_t length = bracket ? (size_t)(bracket - text) : strlen(text);

    *out = (made){.type = elemtype_named(text, length)};
    if (!out->type)
        return cli_fail(c, TW_E_ARG, "'%s': '%.*s' is not a dtype, as f32 is", name, (int)length,
                        text);
    if (!bracket)
        return cli_fail(c, TW_E_ARG, "'%s': a shape is missing: %s[1,4,1024,64]", name, text);
    return parse_dims(c, name, bracket + 1, out);
}

static int make_rand(cli *c, const char *name, const char *text, tensor *t)
{
    made m;

    CLI_TRY(parse_made(c, name, text, &m));
    if (!m.type->is_float)
        return cli_fail(c, TW_E_ARG,
                        "'%s': rand: gives floats, not %s; use zeros:, full: or a file", name,
                        m.type->name);
    CLI_TRY(tensor_allocate(c, name, t, m.type, m.rank, m.shape));
    fill_normal(t, stream_of(c->opt.seed, name));
    return CLI_OK;
}

static int make_zeros(cli *c, const char *name, const char *text, tensor *t)
{
    made m;

    CLI_TRY(parse_made(c, name, text, &m));
    return tensor_allocate(c, name, t, m.type, m.rank, m.shape);
}

static int make_full(cli *c, const char *name, const char *text, tensor *t)
{
    const char *colon = strchr(text, ':');
    char value[64], element[8];
    made m;

    if (!colon || (size_t)(colon - text) >= sizeof value)
        return cli_fail(c, TW_E_ARG, "'%s': a dtype is missing: full:VALUE:DTYPE[dims]", name);
    memcpy(value, text, (size_t)(colon - text));
    value[colon - text] = '\0';
    CLI_TRY(parse_made(c, name, colon + 1, &m));
    if (!elemtype_parse(m.type, value, element))
        return cli_fail(c, TW_E_ARG, "'%s': '%s' is not a value of type %s", name, value,
                        m.type->name);
    CLI_TRY(tensor_allocate(c, name, t, m.type, m.rank, m.shape));
    fill_with(t, element);
    return CLI_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

static int read_file(cli *c, const char *name, const char *path, const elemtype *asked, tensor *t)
{
    npy_array a;
    npy_error error;
    tw_status st = npy_load(path, &a, &error);

    if (st == TW_E_IO && access(path, F_OK) != 0)
        return cli_fail(c, st, "'%s': %s: %s (a tensor is " VALUE_FORMS ")", name, path,
                        error.text);
    if (st)
        return cli_fail(c, st, "'%s': %s: %s", name, path, error.text);
    t->type = elemtype_of_npy(a.kind, a.bytes);
    t->memory = a.data;
    t->bytes = a.size;
    if (asked && asked->is_float && asked->bytes == 2 && a.bytes == 2)
        t->type = asked; /* the bits of whatever two-byte type the file calls them */
    if (asked && asked != t->type)
        return cli_fail(c, TW_E_ARG, "'%s': %s holds %s, not %s", name, path, t->type->name,
                        asked->name);
    memcpy(t->shape, a.shape, sizeof t->shape);
    set_view(t, a.rank, a.fortran);
    return CLI_OK;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static const struct {
    const char *prefix;
    int (*make)(cli *c, const char *name, const char *text, tensor *t);
} makers[] = {{"rand:", make_rand}, {"zeros:", make_zeros}, {"full:", make_full}};
enum { MAKERS = sizeof makers / sizeof *makers };

bool value_is_made(const char *text)
{
    for (int i = 0; i < MAKERS; i++)
        if (strncmp(text, makers[i].prefix, strlen(makers[i].prefix)) == 0)
            return true;
    return false;
}

int tensor_parse(cli *c, const char *name, const char *text, tensor *t)
{
    const char *colon = strchr(text, ':');
    const elemtype *asked = colon ? elemtype_named(text, (size_t)(colon - text)) : NULL;

    for (int i = 0; i < MAKERS; i++) {
        size_t n = strlen(makers[i].prefix);
        if (strncmp(text, makers[i].prefix, n) == 0)
            return makers[i].make(c, name, text + n, t);
    }
    return read_file(c, name, asked ? colon + 1 : text, asked, t);
}

int tensor_save(cli *c, const char *name, const tensor *t, const char *path)
{
    npy_array a = {.kind = t->type->npy,
                   .bytes = t->type->bytes,
                   .rank = t->view.ndim,
                   .size = t->bytes,
                   .data = t->memory};
    npy_error error;

    memcpy(a.shape, t->shape, sizeof a.shape);
    tw_status st = npy_save(path, &a, &error);
    return st ? cli_fail(c, st, "'%s' cannot be written to %s: %s", name, path, error.text)
              : CLI_OK;
}
