#include "tests/support/cuda_rig.h"
#include "compiler/base/mem.h"
#include <check.h>
#include <dlfcn.h>
#include <string.h>

const fake_api *cuda_fake;
fake_control *fake_is;
static void *library;

/* ---- the driver ------------------------------------------------------------------------------ */

static void start(const char *path)
{
    rt_setup();
    library = dlopen(path, RTLD_NOW);
    ck_assert_msg(library != NULL, "%s", dlerror());
    cuda_fake = dlsym(library, "fake_cuda_api");
    ck_assert_ptr_nonnull(cuda_fake);
    cuda_fake->reset();
    fake_is = cuda_fake->control();
    cuda_library = path;
    cuda_test_target = &rig_target;
    rig_nslots = 2;
    rig_slots[0] = (recipe_slot){SLOT_POINTER, 0, 0};
    rig_slots[1] = (recipe_slot){SLOT_POINTER, 0, 1};
    rig_ncounters = rig_nworkspaces = 0;
    rig_step = (recipe_step){.block_threads = 128};
    rig_ptx = NULL;
    atomic_store(&rig_compiles, 0);
}

void cuda_setup(void)
{
    start(FAKE_CUDA);
}

void cuda_setup_old(void)
{
    start(FAKE_CUDA_OLD);
    fake_is->version = 11000;
}

void cuda_teardown(void)
{
    char text[200];

    fake_is->fails = NULL;
    ck_assert_msg(cuda_fake->live(text, sizeof text) == 0, "%s", text);
    cuda_api_forget();
    cuda_library = NULL;
    cuda_test_target = NULL;
    dlclose(library);
    rt_teardown();
}

void fake_fails(const char *call, int n, int result)
{
    fake_is->fails = call;
    fake_is->after = n;
    fake_is->result = result;
    fake_is->breaks = false;
}

void fake_breaks(const char *call, int result)
{
    fake_fails(call, 1, result);
    fake_is->breaks = true;
}

/* ---- the code path --------------------------------------------------------------------------- */

recipe_slot rig_slots[8];
uint32_t rig_nslots, rig_ncounters, rig_nworkspaces;
recipe_step rig_step;
const char *rig_ptx;
atomic_int rig_compiles;

static const char right_ptx[] = ".version 7.0\n"
                                ".target sm_80\n"
                                ".address_size 64\n"
                                ".visible .entry add(.param .b64 x, .param .b64 y)\n"
                                "{\n"
                                "    ret;\n"
                                "}\n";

static tw_status rig_compile(const target *t, const target_input *in, arena *a, artifact **out)
{
    artifact *art = ARENA_NEW(a, artifact);
    const char *ptx = rig_ptx ? rig_ptx : right_ptx;
    static const char *asserts[] = {"x is not negative (line 7)", "index {0} of {1}, {2} (line 9)"};

    (void)t;
    atomic_fetch_add(&rig_compiles, 1);
    art->nobjects = 1;
    art->object = ARENA_NEW(a, code_object);
    *art->object =
        (code_object){OBJECT_PTX, (uint32_t)strlen(ptx), (const uint8_t *)arena_strdup(a, ptx)};
    art->nsteps = 1;
    art->step = ARENA_NEW(a, recipe_step);
    *art->step = rig_step;
    art->step->symbol = "add";
    art->step->nslots = rig_nslots;
    art->step->slot = ARENA_ARRAY(a, recipe_slot, rig_nslots);
    memcpy(art->step->slot, rig_slots, rig_nslots * sizeof *rig_slots);
    for (uint8_t i = 0; i < 3; i++)
        art->step->grid_map[i] = i;
    art->ncounters = rig_ncounters;
    art->nworkspaces = rig_nworkspaces;
    art->workspace = ARENA_ARRAY(a, recipe_count, rig_nworkspaces);
    for (uint32_t i = 0; i < rig_nworkspaces; i++)
        art->workspace[i] = (recipe_count){.factor = 1000};
    art->nasserts = 2;
    art->assert_text = asserts;
    art->launch_text = artifact_launch_text(a, in->module);
    *out = art;
    return TW_OK;
}

static tw_status rig_emit(const target *t, const target_input *in, const char *kind, arena *a,
                          const char **data, size_t *size)
{
    (void)t, (void)in, (void)kind, (void)a, (void)data, (void)size;
    return TW_E_UNSUPPORTED;
}

static bool never(const target *t)
{
    (void)t;
    return false;
}

static const char *no_features(const target *t)
{
    (void)t;
    return "";
}

static const char *const nothing[] = {NULL};

const target rig_target = {
    .name = "sm_80",
    .family = "cuda",
    .help = "for tests",
    .emits = nothing,
    .usable = never,
    .features = no_features,
    .compile = rig_compile,
    .emit = rig_emit,
};

/* ---- a device, a kernel and its tensors ------------------------------------------------------ */

tw_device *rig_dev;
tw_kernel *rig_kernel;
float *rig_x, *rig_y;
int64_t rig_shape[] = {RIG_N};
DLTensor rig_tx, rig_ty;
uint64_t rig_seen[3];

DLTensor rig_tensor(void *p)
{
    return (DLTensor){p, {kDLCUDA, 0}, 1, {kDLFloat, 32, 1}, rig_shape, NULL, 0};
}

void rig_tensors(void)
{
    void *p, *q;

    RT_OK(tw_memory_alloc(rig_dev, sizeof(float) * RIG_N, &p));
    RT_OK(tw_memory_alloc(rig_dev, sizeof(float) * RIG_N, &q));
    rig_x = p;
    rig_y = q;
    rig_tx = rig_tensor(rig_x);
    rig_ty = rig_tensor(rig_y);
}

void rig_open(void)
{
    rig_shape[0] = RIG_N;
    rig_dev = rt_device("cuda");
    rig_kernel = rt_add_kernel();
    rig_tensors();
}

tw_status rig_launch_on(CUstream s)
{
    const tw_arg args[] = {TW_TENSOR("x", &rig_tx), TW_TENSOR("y", &rig_ty)};

    return tw_launch(rig_kernel, rig_dev, (tw_stream *)(void *)s, args, 2);
}

tw_status rig_launch(void)
{
    return rig_launch_on(NULL);
}

void rig_reopen(const char *spec)
{
    tw_kernel_destroy(rig_kernel);
    tw_device_close(rig_dev);
    rig_dev = rt_device(spec);
    rig_kernel = rt_add_kernel();
    rig_tensors();
    rig_tx.device.device_id = rig_ty.device.device_id = spec[5] - '0';
}

/* ---- asserts --------------------------------------------------------------------------------- */

void rig_fails(uint64_t record, uint32_t index, const int32_t program[3], const int32_t *value)
{
    assert_record *r = (assert_record *)(uintptr_t)record;
    uint32_t none = 0;

    if (!__atomic_compare_exchange_n(&r->taken, &none, 1, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return;
    r->told = value != NULL;
    memcpy(r->program, program, sizeof r->program);
    if (value)
        memcpy(r->value, value, sizeof r->value);
    __atomic_store_n(&r->failed, 1 + index, __ATOMIC_RELEASE);
}

/* ---- workspaces ------------------------------------------------------------------------------ */

static void use_workspace(const fake_launch *l)
{
    uint64_t *counter = (uint64_t *)(uintptr_t)l->slot[1];

    rig_seen[0] = l->slot[0];
    rig_seen[1] = l->slot[1];
    rig_seen[2] = *counter;
    *counter = 77;
    memset((void *)(uintptr_t)l->slot[0], 1, 1000);
}

void rig_with_workspace(void)
{
    rig_nslots = 2;
    rig_slots[0] = (recipe_slot){SLOT_WORKSPACE, 0, 0};
    rig_slots[1] = (recipe_slot){SLOT_COUNTER, 0, 0};
    rig_nworkspaces = rig_ncounters = 1;
    fake_is->kernel = use_workspace;
}

void rig_setup(void)
{
    cuda_setup();
    rig_open();
}

void rig_setup_old(void)
{
    cuda_setup_old();
    rig_open();
}

void rig_teardown(void)
{
    tw_kernel_destroy(rig_kernel);
    tw_device_close(rig_dev);
    cuda_teardown();
}
