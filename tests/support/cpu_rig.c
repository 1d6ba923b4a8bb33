#include "tests/support/cpu_rig.h"
#include "compiler/base/check.h"
#include "compiler/base/guard.h"
#include "compiler/ir/iredit.h"
#include "compiler/target/llvm/llvm_loader.h"
#include <check.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef int32_t entry_fn(const uint64_t *slots, int32_t x, int32_t y, int32_t z, void *scratch);

typedef struct job {
    const ir_module *m;
    const target *t;
    bool pack;
    arena a;
    artifact *art;
} job;

static tw_status compile(void *arg)
{
    job *j = arg;
    diag_list diags;
    ir_module *copy = ir_clone(j->m, &j->a);
    const ir_binding pack = {.name = "pack", .kind = BIND_INT, .value = 1};
    target_input in = {.module = copy, .diags = &diags, .config = &pack, .nconfig = j->pack};

    diag_init(&diags, &j->a);
    return j->t->compile(j->t, &in, &j->a, &j->art);
}

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t whole_pages(size_t bytes)
{
    return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

void *cpu_rig_alloc(size_t bytes, bool at_start)
{
    size_t page = page_bytes(), size = whole_pages(bytes + 1);
    char *map =
        mmap(NULL, size + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(map, MAP_FAILED);
    ck_assert_int_eq(mprotect(map, page, PROT_NONE), 0);
    ck_assert_int_eq(mprotect(map + page + size, page, PROT_NONE), 0);
    return at_start ? map + page : map + page + size - bytes;
}

void cpu_rig_free(void *p, size_t bytes, bool at_start)
{
    size_t page = page_bytes(), size = whole_pages(bytes + 1);
    char *first = at_start ? p : (char *)p + bytes - size;

    ck_assert_int_eq(munmap(first - page, size + 2 * page), 0);
}

static uint64_t scalar_bits(enum dtype t, ir_scalar v)
{
    uint64_t u = 0;
    float narrow = (float)v.f;

    if (t == DT_F32)
        memcpy(&u, &narrow, sizeof narrow);
    else
        memcpy(&u, &v, sizeof v);
    return u;
}

static uint64_t dim_value(const ir_fn *fn, const interp_arg *arg, int dim)
{
    if (fn->dims.at[dim].is_const)
        return (uint64_t)fn->dims.at[dim].value;
    for (uint32_t i = 0; i < fn->params.n; i++) {
        if (fn->params.at[i].kind == PARAM_DIM && fn->params.at[i].symbol == dim)
            return (uint64_t)arg[i].scalar.i;
    }
    ck_abort_msg("a dimension without a parameter");
    return 0;
}

/* A launch: the recipe's numbers, and memory for its workspaces. */
typedef struct launch {
    const ir_fn *fn;
    const artifact *art;
    const interp_arg *arg;
    const int64_t *grid;
    void *workspace[4];
    size_t bytes[4];
} launch;

static int64_t count_value(const launch *l, const recipe_count *c)
{
    int64_t n = 1;

    for (int i = 0; i < c->nterms; i++) {
        int64_t extent = (int64_t)dim_value(l->fn, l->arg, c->dim[i]);
        n *= (extent + c->per[i] - 1) / c->per[i];
    }
    return c->factor * (n + c->more);
}

static uint64_t slot_value(const launch *l, recipe_slot s)
{
    const ir_fn *fn = l->fn;
    const interp_arg *arg = l->arg;

    switch ((enum slot_kind)s.kind) {
    case SLOT_POINTER:
        return (uint64_t)(uintptr_t)arg[s.param].view.base;
    case SLOT_STRIDE:
        return (uint64_t)arg[s.param].view.stride[s.index];
    case SLOT_DIM:
        return dim_value(fn, arg, s.index);
    case SLOT_SCALAR:
        return scalar_bits((enum dtype)fn->params.at[s.param].type.dtype, arg[s.param].scalar);
    case SLOT_GRID:
        return (uint64_t)l->grid[s.index];
    case SLOT_WORKSPACE:
        return (uint64_t)(uintptr_t)l->workspace[s.index];
    case SLOT_COUNTER:
    case SLOT_ASSERT:
    case SLOT_CALLS:
    case SLOT_FIRST:
        break;
    }
    ck_abort_msg("a slot that a CPU step may have");
    return 0;
}

static int run_grid(entry_fn *entry, const uint64_t *slots, const int64_t *grid, void *scratch)
{
    for (int32_t z = 0; z < grid[2]; z++) {
        for (int32_t y = 0; y < grid[1]; y++) {
            for (int32_t x = 0; x < grid[0]; x++) {
                int failed = entry(slots, x, y, z, scratch);
                if (failed)
                    return failed;
            }
        }
    }
    return 0;
}

static tw_status run_step(const launch *l, const recipe_step *s, int *failed)
{
    const code_object *o = &l->art->object[s->object];
    const int64_t own[3] = {count_value(l, &s->programs), 1, 1};
    const int64_t *grid = s->programs.factor ? own : l->grid;
    size_t bytes = (size_t)s->scratch_bytes;
    uint64_t slots[64];
    llvm_loaded *code;
    void *entry;

    TRY(llvm_load(o->bytes, o->size, s->symbol, &code, &entry));
    ck_assert_uint_le(s->nslots, 64);
    for (uint32_t i = 0; i < s->nslots; i++)
        slots[i] = slot_value(l, s->slot[i]);
    void *scratch = cpu_rig_alloc(bytes, false);
    memset(scratch, 0xff, bytes);
    entry_fn *fn;
    memcpy(&fn, &entry, sizeof fn);
    *failed = run_grid(fn, slots, grid, scratch);
    cpu_rig_free(scratch, bytes, false);
    llvm_unload(code);
    return TW_OK;
}

static tw_status run_steps(const job *j, const interp_arg *arg, const int64_t *grid, int *failed)
{
    launch l = {.fn = j->m->kernel, .art = j->art, .arg = arg, .grid = grid};
    tw_status st = TW_OK;

    ck_assert_uint_le(j->art->nworkspaces, 4);
    for (uint32_t i = 0; i < j->art->nworkspaces; i++) {
        l.bytes[i] = (size_t)count_value(&l, &j->art->workspace[i]);
        l.workspace[i] = cpu_rig_alloc(l.bytes[i], false);
        memset(l.workspace[i], 0xff, l.bytes[i]);
    }
    for (uint32_t i = 0; i < j->art->nsteps && st == TW_OK; i++)
        st = run_step(&l, &j->art->step[i], failed);
    for (uint32_t i = 0; i < j->art->nworkspaces; i++)
        cpu_rig_free(l.workspace[i], l.bytes[i], false);
    return st;
}

tw_status cpu_rig_run(const ir_module *m, const target *t, bool pack, const interp_arg *arg,
                      const int64_t grid[3], int *failed)
{
    job j = {.m = m, .t = t, .pack = pack};

    arena_init(&j.a);
    tw_status st = guard_run(compile, &j);
    if (st == TW_OK)
        st = run_steps(&j, arg, grid, failed);
    arena_release(&j.a);
    return st;
}
