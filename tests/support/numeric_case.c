#include "tests/support/numeric_case.h"
#include "tests/support/numeric_dtype.h"
#include "tests/support/patience.h"
#include <check.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- devices and kernels ---- */

void num_say(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    fflush(stdout);
}

void num_must(tw_status st, const char *what)
{
    if (st != TW_OK)
        ck_abort_msg("%s: %s: %s", what, tw_status_name(st), tw_last_error()->text);
}

/* Tests name the code paths of x86-64. */
static bool is_elsewhere(tw_status st)
{
#if defined(__x86_64__)
    (void)st;
    return false;
#else
    return st == TW_E_ARG;
#endif
}

bool num_open(num_device *d, const char *spec, const char *target)
{
    const char *other = getenv("TW_NUMERIC_DEVICE");

    if (other && *other && strncmp(spec, "cpu", 3) == 0) {
        if (target)
            return false;
        spec = other;
        target = getenv("TW_NUMERIC_TARGET");
        target = target && *target ? target : NULL;
    }
    tw_device_info info = TW_DEVICE_INFO_INIT;

    d->label = target ? target : spec;
    num_must(tw_context_create(NULL, &d->cx), "context");
    num_must(tw_device_open(d->cx, spec, &d->dev), spec);
    num_must(tw_device_query(d->dev, &info), spec);
    d->is_gpu = info.capability > 0;
    if (!target)
        return true;
    tw_status st = tw_device_force_target(d->dev, target);
    if (st == TW_E_UNSUPPORTED || is_elsewhere(st)) {
        num_say("skipped: this machine cannot run %s\n", target);
        num_close(d);
        return false;
    }
    num_must(st, target);
    return true;
}

int num_first(int interpreters)
{
    const char *other = getenv("TW_NUMERIC_DEVICE");

    return other && *other ? interpreters : 0;
}

void num_close(num_device *d)
{
    tw_device_close(d->dev);
    tw_context_destroy(d->cx);
}

tw_kernel *num_load(num_device *d, const char *path)
{
    tw_kernel *k = NULL;

    num_must(tw_kernel_load(d->cx, path, NULL, &k), path);
    return k;
}

tw_kernel *num_load_text(num_device *d, const char *text)
{
    tw_kernel *k = NULL;

    num_must(tw_kernel_load_text(d->cx, "case.tw", text, strlen(text), NULL, &k), text);
    return k;
}

/* ---- how much runs ---- */

enum { SANITIZED = PATIENCE > 1 };

/* An odd step stays odd: tables alternate between two kinds. */
int num_thin(int usual)
{
    return getenv("TW_TEST_LONG") ? 1 : SANITIZED ? 6 * usual : usual;
}

int num_count(int usual)
{
    return getenv("TW_TEST_LONG") ? 10 * usual : SANITIZED ? (usual + 5) / 6 : usual;
}

/* ---- random numbers ---- */

static uint64_t next(num_random *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u; /* splitmix64 */

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

double num_uniform(num_random *r)
{
    return ((double)(next(r) >> 11) + 0.5) * 0x1p-53;
}

double num_normal(num_random *r)
{
    double radius = sqrt(-2.0 * log(num_uniform(r)));

    return radius * cos(2.0 * 3.14159265358979323846 * num_uniform(r));
}

int64_t num_below(num_random *r, int64_t n)
{
    return (int64_t)(next(r) % (uint64_t)n);
}

/* ---- tensors ---- */

/* A NaN of f32 and, by its upper half, of f16 and bf16. Narrower elements repeat that half. */
static const uint32_t poison = 0x7fc57fc5;

static size_t element_bytes(const num_tensor *t)
{
    return (size_t)t->type->bits / 8;
}

static void dense_strides(num_tensor *t, const int *order, int64_t inner, int64_t row_gap)
{
    int64_t step = inner;

    for (int i = t->rank - 1; i >= 0; i--) {
        t->stride[order[i]] = step;
        step *= t->extent[order[i]] > 0 ? t->extent[order[i]] : 1;
        if (i == t->rank - 1 && t->rank > 1)
            step += row_gap;
        else if (row_gap)
            step += 2 * row_gap;
    }
}

static void set_strides(num_tensor *t, enum num_layout layout)
{
    int order[NUM_MAX_RANK] = {0, 1, 2, 3}, last = t->rank - 1;

    if (layout == NUM_SWAPPED && t->rank > 2) {
        order[1] = 2;
        order[2] = 1;
    } else if (layout == NUM_TRANSPOSED && t->rank > 1) {
        order[last] = last - 1;
        order[last - 1] = last;
    }
    dense_strides(t, order, layout == NUM_SPREAD ? 3 : 1, layout == NUM_PADDED ? 5 : 0);
    if (layout == NUM_BROADCAST)
        t->stride[0] = 0;
}

/* Elements from the first to the last, both included; at least 1 so that there is an address. */
static int64_t span_of(const num_tensor *t)
{
    int64_t span = 1;

    for (int d = 0; d < t->rank; d++) {
        if (t->extent[d] == 0)
            return 1;
        span += (t->extent[d] - 1) * t->stride[d];
    }
    return span;
}

static void describe(num_tensor *t)
{
    t->dl = (DLTensor){.data = t->base,
                       .device = {kDLCPU, 0},
                       .ndim = t->rank,
                       .dtype = {t->type->code, (uint8_t)t->type->bits, 1},
                       .shape = t->extent,
                       .strides = t->stride};
}

static void poison_all(num_tensor *t)
{
    unsigned char *end = t->map + t->map_bytes - t->page;

    for (unsigned char *p = t->map + t->page; p < end; p += sizeof poison)
        memcpy(p, &poison, sizeof poison);
}

/* All that live: a launch on a device with memory of its own asks whether a tensor is one. */
static num_tensor *living;

static num_tensor *tensor_of(const DLTensor *dl)
{
    num_tensor *t = living;

    while (t && &t->dl != dl)
        t = t->next;
    return t;
}

void num_alloc_as(num_tensor *t, const char *name, const num_dtype *type, int rank,
                  const int64_t *extent, enum num_layout layout, enum num_place place)
{
    *t = (num_tensor){
        .name = name, .type = type, .rank = rank, .page = (size_t)sysconf(_SC_PAGESIZE)};
    memcpy(t->extent, extent, (size_t)rank * sizeof *extent);
    set_strides(t, layout);

    size_t bytes = (size_t)span_of(t) * element_bytes(t);
    size_t usable = (bytes + 16 + t->page - 1) / t->page * t->page;
    t->map_bytes = usable + 2 * t->page;
    t->map = mmap(NULL, t->map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(t->map, MAP_FAILED);
    unsigned char *low = t->map + t->page, *high = low + usable;
    ck_assert_int_eq(mprotect(low, usable, PROT_READ | PROT_WRITE), 0);
    unsigned char *at = place == NUM_AT_END ? high - bytes : low;
    if (layout == NUM_MISALIGNED)
        at = place == NUM_AT_START ? low + 4 : at - ((uintptr_t)at - 4) % 16;
    t->base = (float *)(void *)at;
    poison_all(t);
    describe(t);
    t->next = living;
    living = t;
}

void num_alloc(num_tensor *t, const char *name, int rank, const int64_t *extent,
               enum num_layout layout, enum num_place place)
{
    num_alloc_as(t, name, num_dtype_named("f32"), rank, extent, layout, place);
}

void num_free(num_tensor *t)
{
    num_tensor **at = &living;

    while (*at && *at != t)
        at = &(*at)->next;
    if (*at)
        *at = t->next;
    munmap(t->map, t->map_bytes);
}

int64_t num_elements(const num_tensor *t)
{
    int64_t n = 1;

    for (int d = 0; d < t->rank; d++)
        n *= t->extent[d];
    return n;
}

/* In elements from the base. */
static int64_t place_of(const num_tensor *t, int64_t i)
{
    int64_t place = 0;

    for (int d = t->rank - 1; d >= 0; d--) {
        place += i % t->extent[d] * t->stride[d];
        i /= t->extent[d];
    }
    return place;
}

float *num_at(const num_tensor *t, int64_t i)
{
    return t->base + place_of(t, i);
}

double num_value_at(const num_tensor *t, int64_t i)
{
    return num_get(t->type, t->base, place_of(t, i)).f;
}

void num_set_at(const num_tensor *t, int64_t i, double v)
{
    num_value x = {.i = (num_wide)v};

    if (t->type->is_float)
        x.f = num_round(t->type, v);
    num_put(t->type, t->base, place_of(t, i), x);
}

void num_fill(num_tensor *t, num_random *r, double sigma)
{
    for (int64_t i = 0, n = num_elements(t); i < n; i++)
        num_set_at(t, i, sigma * num_normal(r));
}

void num_protect(num_tensor *t)
{
    ck_assert_int_eq(mprotect(t->map + t->page, t->map_bytes - 2 * t->page, PROT_READ), 0);
    t->is_protected = true;
}

/* Counts the cells that still hold the poison: those of no element must; an element that was never
 * written still does too, which the comparison reports. */
bool num_padding_intact(const num_tensor *t)
{
    size_t size = element_bytes(t), cells = (t->map_bytes - 2 * t->page) / size;
    const unsigned char *first = t->map + t->page, *base = (const unsigned char *)t->base;
    unsigned char *is_element = calloc(cells, 1);
    bool intact = true;

    ck_assert_ptr_nonnull(is_element);
    for (int64_t i = 0, n = num_elements(t); i < n; i++)
        is_element[(size_t)(base - first) / size + (size_t)place_of(t, i)] = 1;
    for (size_t i = 0; i < cells; i++)
        intact &= is_element[i] || !memcmp(first + i * size, &poison, size < 4 ? size : 4);
    free(is_element);
    if (!intact)
        num_say("%s: cells outside of the tensor were written\n", t->name);
    return intact;
}

/* ---- launches ---- */

#define MAX_ARGS 24

/* A tensor's memory on the device, and the tensor there. */
typedef struct mirror {
    void *host, *at;
    size_t size;
    bool comes_back;
    DLTensor dl;
} mirror;

static void mirror_open(num_device *d, mirror *m, DLDevice where)
{
    m->dl.device = where;
    if (m->size == 0)
        return;
    num_must(tw_memory_alloc(d->dev, m->size, &m->at), "device memory");
    num_must(tw_memory_copy(d->dev, m->at, m->host, m->size, TW_COPY_TO_DEVICE, NULL), "copy");
    m->dl.data = (char *)m->at + ((char *)m->dl.data - (char *)m->host);
}

/* Nothing is copied back after a failure: its error is still to be read. */
static void mirror_close(num_device *d, mirror *m, bool ran)
{
    if (m->size && ran && m->comes_back)
        num_must(tw_memory_copy(d->dev, m->host, m->at, m->size, TW_COPY_FROM_DEVICE, NULL),
                 "copy back");
    tw_memory_free(d->dev, m->at);
}

static bool is_written(const tw_kernel *k, const char *name)
{
    for (size_t i = 0; i < tw_kernel_param_count(k); i++) {
        tw_param_info info = TW_PARAM_INFO_INIT;
        num_must(tw_kernel_param(k, i, &info), "parameter");
        if (strcmp(info.name, name) == 0)
            return info.direction != TW_IN;
    }
    return false;
}

/* From the first element to the last. */
static mirror mirror_of_elements(const tw_kernel *k, const tw_arg *arg)
{
    const DLTensor *dl = arg->value.tensor;
    int64_t span = 1, dense = 1;

    for (int d = dl->ndim - 1; d >= 0; d--) {
        int64_t stride = dl->strides ? dl->strides[d] : dense;
        span = dl->shape[d] && span ? span + (dl->shape[d] - 1) * stride : 0;
        dense *= dl->shape[d];
    }
    return (mirror){.host = (char *)dl->data + dl->byte_offset,
                    .size = (size_t)span * dl->dtype.bits / 8,
                    .comes_back = is_written(k, arg->name),
                    .dl = {(char *)dl->data + dl->byte_offset, dl->device, dl->ndim, dl->dtype,
                           dl->shape, dl->strides, 0}};
}

/* All that lies between the guard pages; of a tensor without them, its elements. */
static mirror mirror_of(const tw_kernel *k, const tw_arg *arg)
{
    const num_tensor *t = tensor_of(arg->value.tensor);

    if (!t)
        return mirror_of_elements(k, arg);
    return (mirror){.host = t->map + t->page,
                    .size = t->map_bytes - 2 * t->page,
                    .comes_back = !t->is_protected,
                    .dl = t->dl};
}

tw_status num_try(num_device *d, tw_kernel *k, const tw_arg *args, size_t n,
                  const tw_launch_options *options)
{
    tw_device_info info = TW_DEVICE_INFO_INIT;
    tw_arg there[MAX_ARGS];
    mirror m[MAX_ARGS];
    size_t mirrors = 0;

    ck_assert_uint_le(n, MAX_ARGS);
    memcpy(there, args, n * sizeof *args);
    num_must(tw_device_query(d->dev, &info), "device");
    for (size_t i = 0; i < n; i++) {
        if (args[i].kind != TW_ARG_TENSOR || info.memory.device_type == kDLCPU)
            continue;
        m[mirrors] = mirror_of(k, &args[i]);
        mirror_open(d, &m[mirrors], info.memory);
        there[i].value.tensor = &m[mirrors++].dl;
    }
    tw_status st = tw_launch_with(k, d->dev, NULL, there, n, options);
    if (st == TW_OK)
        st = tw_stream_sync(d->dev, NULL);
    for (size_t i = 0; i < mirrors; i++)
        mirror_close(d, &m[i], st == TW_OK);
    return st;
}

void num_launch(num_device *d, tw_kernel *k, const tw_arg *args, size_t n,
                const tw_launch_options *options)
{
    num_must(num_try(d, k, args, n, options), "launch");
}

/* ---- comparison ---- */

static bool same(double got, double want, double tolerance)
{
    if (isnan(want))
        return isnan(got);
    if (isinf(want) || isinf(got))
        return got == want;
    return fabs(got - want) <= tolerance; /* false for NaN */
}

static void print_element(const num_tensor *t, int64_t i, double want, double tolerance,
                          const char *what)
{
    int64_t index[NUM_MAX_RANK], rest = i;

    for (int d = t->rank - 1; d >= 0; d--) {
        index[d] = rest % t->extent[d];
        rest /= t->extent[d];
    }
    num_say("%s: %s[", what, t->name);
    for (int d = 0; d < t->rank; d++)
        num_say("%s%lld", d ? ", " : "", (long long)index[d]);
    num_say("] is %.9g, not %.9g +- %.3g\n", num_value_at(t, i), want, tolerance);
}

int num_compare(const num_tensor *got, const double *want, const double *tolerance,
                const char *what, double *closest)
{
    int bad = 0;

    for (int64_t i = 0, n = num_elements(got); i < n; i++) {
        double part = fabs(num_value_at(got, i) - want[i]) / tolerance[i];

        if (part > *closest && tolerance[i] > 0.0)
            *closest = part;
        if (same(num_value_at(got, i), want[i], tolerance[i]))
            continue;
        if (++bad <= 3)
            print_element(got, i, want[i], tolerance[i], what);
    }
    if (bad)
        num_say("%s: %d of %lld elements of %s differ\n", what, bad, (long long)num_elements(got),
                got->name);
    return bad;
}

double num_worst(const num_tensor *got, const double *want)
{
    double worst = 0.0;

    for (int64_t i = 0, n = num_elements(got); i < n; i++) {
        double error = fabs(num_value_at(got, i) - want[i]);

        if (num_value_at(got, i) != want[i] && !(error <= worst))
            worst = error;
    }
    return worst;
}
