#include "tests/support/ptx_rig.h"
#include "compiler/base/error.h"
#include "compiler/base/guard.h"
#include "compiler/ir/element.h"
#include "compiler/ir/irtext.h"
#include "compiler/target/interp/interp.h"
#include "compiler/target/target.h"
#include "tests/support/ptx_machine.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char why[600];

typedef struct tensor {
    int64_t n, stride[VIEW_MAX_RANK], extent[VIEW_MAX_RANK];
    int bytes;
    uint8_t *mine, *other; /* what PTX and what the interpreter works on */
} tensor;
typedef struct rig {
    const char *name, *text;
    const target *t;
    arena a;
    intern names;
    diag_list diags;
    ir_module *m, *for_target;
    artifact *art;
    interp_program *program;
    tensor *tensor;
    ir_scalar *scalar;
    int64_t grid[3];
    double tolerance, range;
    uint64_t random;
} rig;

/* ---- what the text says ---------------------------------------------------------------------- */

static const char *note(const rig *r, const char *what)
{
    char key[32];

    snprintf(key, sizeof key, "# %s:", what);
    const char *at = strstr(r->text, key);
    return at ? at + strlen(key) : "";
}

/* NAME=VALUE in a note. */
static double named(const rig *r, const char *what, const char *name, double otherwise)
{
    const char *line = note(r, what), *end = line + strcspn(line, "\n");
    size_t n = strlen(name);

    for (const char *s = strstr(line, name); s && s < end; s = strstr(s + 1, name)) {
        if (s[-1] == ' ' && s[n] == '=')
            return strtod(s + n + 1, NULL);
    }
    return otherwise;
}

static void read_notes(rig *r)
{
    const char *grid = note(r, "grid");
    char *end = NULL;

    for (int d = 0; d < 3; d++, grid = end) {
        r->grid[d] = strtoll(grid, &end, 10);
        r->grid[d] = r->grid[d] > 0 ? r->grid[d] : 1;
    }
    r->tolerance = strtod(note(r, "tolerance"), NULL);
    r->range = strtod(note(r, "range"), NULL);
    r->range = r->range > 0 ? r->range : 2.0;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static int64_t extent_of(const rig *r, int dim)
{
    const ir_dim *d = &r->m->kernel->dims.at[dim];

    return d->is_const ? d->value : (int64_t)named(r, "dims", d->name, 64);
}

static double next_random(rig *r)
{
    r->random = r->random * 6364136223846793005u + 1442695040888963407u;
    return ((double)(r->random >> 11) / 0x1p52 - 1.0) * r->range;
}

static size_t bytes_of(const tensor *t)
{
    return (size_t)t->n * (size_t)t->bytes;
}

/* A tensor and what lies behind it: NaN in every float type. */
static size_t room_of(const tensor *t)
{
    return (bytes_of(t) + 511) / 256 * 256;
}

static void fill(rig *r, const ir_param *p, tensor *t)
{
    enum dtype d = (enum dtype)p->type.dtype;

    t->mine = aligned_alloc(256, room_of(t));
    t->other = aligned_alloc(256, room_of(t));
    memset(t->mine, 0xff, room_of(t));
    memset(t->mine, 0x7b, bytes_of(t));
    for (int64_t i = 0; i < t->n && p->direction != DIR_OUT; i++) {
        double v = next_random(r);
        ir_scalar s = {.i = (int64_t)v};
        if (dtype_is_float(d))
            s = eval_round(d, (ir_scalar){.f = v});
        else if (dtype_kind(d) == DTK_UINT || d == DT_I1)
            s.i = s.i < 0 ? -s.i : s.i;
        if (d == DT_I1)
            s.i &= 1;
        element_write(d, t->mine + i * t->bytes, s);
    }
    memcpy(t->other, t->mine, room_of(t));
}

static void make_arguments(rig *r)
{
    const ir_fn *fn = r->m->kernel;

    r->tensor = ARENA_ARRAY(&r->a, tensor, fn->params.n + 1);
    r->scalar = ARENA_ARRAY(&r->a, ir_scalar, fn->params.n + 1);
    for (uint32_t i = 0; i < fn->params.n; i++) {
        const ir_param *p = &fn->params.at[i];
        tensor *t = &r->tensor[i];
        if (p->kind == PARAM_DIM) {
            r->scalar[i].i = extent_of(r, p->symbol);
        } else if (p->kind == PARAM_SCALAR) {
            double v = named(r, "scalars", p->name, 1.0);
            r->scalar[i] = dtype_is_float((enum dtype)p->type.dtype)
                               ? eval_round((enum dtype)p->type.dtype, (ir_scalar){.f = v})
                               : (ir_scalar){.i = (int64_t)v};
        }
        if (p->kind != PARAM_TENSOR)
            continue;
        t->n = 1;
        t->bytes = dtype_bytes((enum dtype)p->type.dtype);
        for (int d = p->type.rank - 1; d >= 0; d--) {
            t->extent[d] = extent_of(r, p->dim[d]);
            t->stride[d] = t->n;
            t->n *= t->extent[d];
        }
        fill(r, p, t);
    }
}

/* ---- running --------------------------------------------------------------------------------- */

static uint64_t scalar_bits(enum dtype t, ir_scalar v)
{
    uint64_t bits = 0;

    element_write(t, &bits, v);
    return bits;
}

static uint64_t slot_value(const rig *r, recipe_slot s, const assert_record *failed)
{
    const ir_fn *fn = r->m->kernel;

    switch ((enum slot_kind)s.kind) {
    case SLOT_POINTER:
        return (uintptr_t)r->tensor[s.param].mine;
    case SLOT_STRIDE:
        return (uint64_t)r->tensor[s.param].stride[s.index];
    case SLOT_DIM:
        return (uint64_t)extent_of(r, s.index);
    case SLOT_SCALAR:
        return scalar_bits((enum dtype)fn->params.at[s.param].type.dtype, r->scalar[s.param]);
    case SLOT_GRID:
        return (uint64_t)r->grid[s.index];
    case SLOT_ASSERT:
        return (uintptr_t)failed;
    case SLOT_FIRST:
    case SLOT_WORKSPACE:
    case SLOT_COUNTER:
    case SLOT_CALLS:
        break;
    }
    return 0;
}

/* A grid that begins with program `first`. */
static bool run_blocks(rig *r, ptx_program *p, int64_t first, int64_t blocks,
                       const assert_record *failed)
{
    const recipe_step *step = r->art->step;
    const int64_t at[3] = {first % r->grid[0], first / r->grid[0] % r->grid[1],
                           first / r->grid[0] / r->grid[1]};
    uint64_t param[64] = {0};
    bool ok = true;

    for (uint32_t i = 0; i < step->nslots; i++)
        param[i] = step->slot[i].kind == SLOT_FIRST ? (uint64_t)at[step->slot[i].index]
                                                    : slot_value(r, step->slot[i], failed);
    for (int64_t b = 0; ok && b < blocks; b++)
        ok = ptx_run(p, (uint32_t)b, step->block_threads, (size_t)step->shared_bytes, param, why,
                     sizeof why);
    return ok;
}

/* In two grids, as more programs than one holds are. */
static bool run_ptx(rig *r, const assert_record *failed)
{
    ptx_program *p = ptx_parse((const char *)r->art->object->bytes, why, sizeof why);
    int64_t blocks = r->grid[0] * r->grid[1] * r->grid[2], half = blocks / 2;
    bool ok =
        p && run_blocks(r, p, 0, half, failed) && run_blocks(r, p, half, blocks - half, failed);

    if (p)
        ptx_free(p);
    return ok;
}

static bool run_interp(rig *r, interp_fault *fault)
{
    const ir_fn *fn = r->m->kernel;
    interp_arg *arg = ARENA_ARRAY(&r->a, interp_arg, fn->params.n + 1);

    for (uint32_t i = 0; i < fn->params.n; i++) {
        arg[i].scalar = r->scalar[i];
        arg[i].view.base = r->tensor[i].other;
        memcpy(arg[i].view.stride, r->tensor[i].stride, sizeof arg[i].view.stride);
        memcpy(arg[i].view.extent, r->tensor[i].extent, sizeof arg[i].view.extent);
    }
    interp_launch l = {.arg = arg, .grid = {r->grid[0], r->grid[1], r->grid[2]}};
    tw_status st = interp_run(r->program, &l, 0, r->grid[0] * r->grid[1] * r->grid[2], fault);
    if (st == TW_OK || st == TW_E_ASSERT)
        return true;
    snprintf(why, sizeof why, "the interpreter: %s", fault->text);
    return false;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static double as_double(enum dtype t, ir_scalar v)
{
    return dtype_is_float(t) ? v.f : (double)v.i;
}

static bool agrees(double x, double y, double size, double tolerance)
{
    if (isnan(x) || isnan(y))
        return isnan(x) && isnan(y);
    if (isinf(x) || isinf(y))
        return x == y;
    return fabs(x - y) <= tolerance * size;
}

static bool compare_tensor(const rig *r, uint32_t i)
{
    const ir_param *p = &r->m->kernel->params.at[i];
    const tensor *t = &r->tensor[i];
    enum dtype d = (enum dtype)p->type.dtype;
    double size = 0.0;

    for (int64_t k = 0; k < t->n; k++) {
        double v = fabs(as_double(d, element_read(d, t->other + k * t->bytes)));
        size = v > size && isfinite(v) ? v : size;
    }
    for (int64_t k = 0; k < t->n; k++) {
        double x = as_double(d, element_read(d, t->mine + k * t->bytes));
        double y = as_double(d, element_read(d, t->other + k * t->bytes));
        if (!agrees(x, y, size, r->tolerance)) {
            snprintf(why, sizeof why, "%s[%" PRId64 "] is %.9g, the interpreter has %.9g", p->name,
                     k, x, y);
            return false;
        }
    }
    if (memcmp(t->mine + bytes_of(t), t->other + bytes_of(t), room_of(t) - bytes_of(t)) == 0)
        return true;
    snprintf(why, sizeof why, "%s: written behind its end", p->name);
    return false;
}

static bool compare(const rig *r)
{
    const ir_fn *fn = r->m->kernel;

    for (uint32_t i = 0; i < fn->params.n; i++) {
        if (fn->params.at[i].kind == PARAM_TENSOR && !compare_tensor(r, i))
            return false;
    }
    return true;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static tw_status prepare(void *arg)
{
    rig *r = arg;
    const source *src = source_new(&r->a, r->name, r->text, strlen(r->text));

    intern_init(&r->names, &r->a);
    r->m = ir_parse(&r->a, &r->names, src, &r->diags);
    if (!r->m)
        return TW_E_SOURCE;
    r->for_target = ir_parse(&r->a, &r->names, src, &r->diags);
    target_input in = {.module = r->for_target, .diags = &r->diags};
    tw_status st = r->t->compile(r->t, &in, &r->a, &r->art);
    if (st == TW_OK)
        r->program = interp_prepare(&r->a, r->m);
    return st;
}

static bool same_failure(const assert_record *r, const interp_fault *f)
{
    bool same = r->failed == (uint32_t)f->assert_index + 1 && r->told == (f->nvalues > 0);

    for (int d = 0; r->told && d < 3; d++)
        same = same && r->program[d] == f->program[d];
    for (int i = 0; i < f->nvalues; i++)
        same = same && r->value[i] == f->value[i];
    if (!same)
        snprintf(why, sizeof why,
                 "assert %d failed in program %d, %d, %d with %d, %d, %d, in the interpreter "
                 "%d in %d, %d, %d with %d, %d, %d",
                 (int)r->failed, r->program[0], r->program[1], r->program[2], r->value[0],
                 r->value[1], r->value[2], f->assert_index + 1, (int)f->program[0],
                 (int)f->program[1], (int)f->program[2], f->value[0], f->value[1], f->value[2]);
    return same;
}

static bool run_both(rig *r)
{
    assert_record failed = {0};
    interp_fault fault = {0};
    tw_status st = error_thrown(guard_run(prepare, r));

    if (st != TW_OK) {
        snprintf(why, sizeof why, "%s %s", tw_last_error()->text,
                 r->diags.all.n ? r->diags.all.at[0]->text : "");
        return false;
    }
    read_notes(r);
    make_arguments(r);
    if (!run_ptx(r, &failed) || !run_interp(r, &fault))
        return false;
    if (fault.status == TW_E_ASSERT)
        return same_failure(&failed, &fault);
    if (failed.failed == 0)
        return compare(r);
    snprintf(why, sizeof why, "assert %d failed, in the interpreter none", (int)failed.failed);
    return false;
}

const char *ptx_rig_run(const char *name, const char *text, const char *path)
{
    rig r = {.name = name, .text = text, .t = target_find(path), .random = 7};

    arena_init(&r.a);
    diag_init(&r.diags, &r.a);
    bool ok = run_both(&r);
    for (uint32_t i = 0; r.tensor && i < r.m->kernel->params.n; i++) {
        free(r.tensor[i].mine);
        free(r.tensor[i].other);
    }
    arena_release(&r.a);
    return ok ? NULL : why;
}
