/* NVIDIA GPUs as targets, one for each compute capability that LLVM makes code for. PTX of one
 * capability runs on all later ones: the driver finishes it. */
#include "compiler/base/check.h"
#include "compiler/base/error.h"
#include "compiler/ir/iredit.h"
#include "compiler/ir/irtext.h"
#include "compiler/schedule/schedule.h"
#include "compiler/target/llvm/llvm_session.h"
#include "compiler/target/nvptx/nvptx_emit.h"
#include "compiler/target/nvptx/nvptx_explain.h"
#include "compiler/target/target.h"
#include <string.h>

typedef struct path {
    int capability;
    const char *cpu; /* LLVM's name */
} path;

static const path *path_of(const target *t)
{
    return t->data;
}

/* ---- what this version cannot do ------------------------------------------------------------- */

typedef struct survey {
    const ir_fn *fn;
    diag_list *diags;
    tw_status st;
} survey;

static void refuse(survey *s, const ir_op *op, const char *of)
{
    if (s->st == TW_OK)
        diag_add(s->diags, DIAG_UNSUPPORTED, op->where, "the CUDA targets have no %s%s%s yet",
                 op_info((enum ir_opcode)op->code)->name, of[0] ? " of " : "", of);
    s->st = TW_E_UNSUPPORTED;
}

static void survey_op(ir_op *op, void *arg)
{
    survey *s = arg;

    if (op->code == OP_PRINT)
        refuse(s, op, "");
    if (op->nargs == 0 || op->nres == 0)
        return;
    enum dtype t = (enum dtype)ir_type_of(s->fn, op->args[0]).dtype;
    bool function = op->code >= OP_EXP && op->code <= OP_ERF;
    if (function && t == DT_F64)
        refuse(s, op, dtype_name(t));
}

/* ---- a compile ------------------------------------------------------------------------------- */

typedef struct job {
    const path *path;
    const target_input *in;
    enum llvm_output what;
    arena *a;
    const explain_map *places; /* of the schedule: code with lines; or NULL */
    schedule_result scheduled; /* nothing of a module that came as level 2 */
    nv_emit e;
    const char *data;
    size_t size;
} job;

static int param(const target_input *in, const char *name, int otherwise)
{
    const ir_binding *b = binding_find(in->config, in->nconfig, name);

    return b ? (int)b->value : otherwise;
}

static gpu_limits limits_of(const job *j)
{
    gpu_limits gpu = j->in->gpu ? *j->in->gpu : gpu_limits_of(j->path->capability);

    gpu.capability = j->path->capability; /* what the code may use, whatever the GPU has */
    return gpu;
}

/* Level 1 becomes level 2; text of level 2 is taken as it is. */
static tw_status schedule(job *j)
{
    const target_input *in = j->in;
    schedule_params p = schedule_defaults();
    gpu_limits gpu = limits_of(j);

    if (in->module->level == 2)
        return TW_OK;
    p.num_warps = param(in, "num_warps", p.num_warps);
    p.num_stages = param(in, "num_stages", p.num_stages);
    p.operand_registers = param(in, "operand_registers", p.operand_registers);
    p.lazy_rescale = param(in, "lazy_rescale", p.lazy_rescale);
    p.program_order = param(in, "program_order", p.program_order);
    p.stage_blocks = param(in, "stage_blocks", p.stage_blocks);
    return schedule_run(in->module, &gpu, &p, in->diags, in->passes, &j->scheduled);
}

typedef struct extent {
    const ir_fn *fn;
    int64_t bytes;
} extent;

static void measure(ir_op *op, void *arg)
{
    extent *x = arg;

    if (op->code != OP_ALLOC)
        return;
    ir_type t = ir_type_of(x->fn, op->res);
    int64_t end = op->attr[0].i + t.shape[0] * layout_slot_bytes(x->fn, t);
    x->bytes = end > x->bytes ? end : x->bytes;
}

static int32_t shared_bytes(const ir_fn *fn)
{
    extent x = {fn, 0};

    ir_walk(fn->body, measure, &x);
    return (int32_t)x.bytes;
}

static tw_status generate(llvm_session *s, void *arg)
{
    job *j = arg;
    llvm_machine machine = {"nvptx64-nvidia-cuda", j->path->cpu, ""};

    llvm_session_target(s, &machine);
    j->e.cx = &s->cx;
    nv_emit_function(&j->e, j->in->module->kernel->name);
    return llvm_session_emit(s, j->what, j->a, &j->data, &j->size);
}

static tw_status run_job(job *j)
{
    ir_module *m = j->in->module;
    survey s = {m->kernel, j->in->diags, TW_OK};

    ir_walk(m->kernel->body, survey_op, &s);
    TRY(s.st);
    TRY(schedule(j));
    j->e = (nv_emit){.a = j->a,
                     .module = m,
                     .fn = m->kernel,
                     .capability = j->path->capability,
                     .min_blocks = param(j->in, "min_blocks", 0),
                     .places = j->places};
    return llvm_session_run(m->kernel->name, generate, j);
}

static tw_status nvptx_compile(const target *t, const target_input *in, arena *a, artifact **out)
{
    job j = {.path = path_of(t), .in = in, .what = LLVM_OUTPUT_ASM, .a = a};
    int ops = ir_op_count(in->module->kernel);

    TRY(run_job(&j));
    artifact *art = artifact_of_code(a, in->module, OBJECT_PTX, j.data, j.size);
    art->step->nslots = j.e.slots.n;
    art->step->slot = j.e.slots.at;
    art->step->block_threads = j.e.fn->warps * NV_WARP;
    art->step->shared_bytes = shared_bytes(j.e.fn);
    art->nasserts = j.e.asserts.n;
    art->assert_text = j.e.asserts.at;
    art->ir_ops = ops;
    *out = art;
    return TW_OK;
}

/* The schedule, and what shapes code beside it. */
static hash128 code_of(const job *j)
{
    int32_t blocks = param(j->in, "min_blocks", 0);

    return hash_mix(ir_hash(j->in->module), hash_mem(&blocks, sizeof blocks));
}

static tw_status find_needs(job *j, target_needs *out)
{
    ir_fn *fn = j->in->module->kernel;
    survey s = {fn, j->in->diags, TW_OK};

    ir_walk(fn->body, survey_op, &s);
    TRY(s.st);
    TRY(schedule(j));
    out->threads = fn->warps * NV_WARP;
    out->registers = j->scheduled.registers;
    out->shared_bytes = shared_bytes(fn);
    out->code = code_of(j);
    return TW_OK;
}

static tw_status nvptx_needs(const target *t, const target_input *in, target_needs *out)
{
    job j = {.path = path_of(t), .in = in};

    return find_needs(&j, out);
}

/* ---- stages ---------------------------------------------------------------------------------- */

static tw_status emit_schedule(job *j)
{
    strbuf text;

    TRY(schedule(j));
    sb_init(&text, j->a);
    ir_print(&text, j->in->module, 0);
    j->data = text.s;
    j->size = text.n;
    return TW_OK;
}

/* The schedule first: what it needs, and its places, by which the code is counted. */
static tw_status emit_explanation(job *j)
{
    gpu_limits gpu = limits_of(j);
    target_needs needs;
    explain_map map;
    strbuf text;

    TRY(find_needs(j, &needs));
    explain_begin(&map, j->in->module->kernel, j->a);
    j->places = &map;
    j->what = LLVM_OUTPUT_ASM;
    TRY(run_job(j));
    sb_init(&text, j->a);
    nv_explain_dims(&text, &j->scheduled);
    nv_explain(&text, j->in->module, &gpu, &needs, &map, j->data);
    j->data = text.s;
    j->size = text.n;
    j->places = NULL;
    return TW_OK;
}

static tw_status nvptx_emit_stage(const target *t, const target_input *in, const char *kind,
                                  arena *a, const char **data, size_t *size)
{
    job j = {.path = path_of(t), .in = in, .what = LLVM_OUTPUT_IR, .a = a};

    if (!strcmp(kind, "sched"))
        TRY(emit_schedule(&j));
    else if (!strcmp(kind, "explain"))
        TRY(emit_explanation(&j));
    else
        j.what = !strcmp(kind, "ll") ? LLVM_OUTPUT_IR : LLVM_OUTPUT_ASM;
    if (!j.data)
        TRY(run_job(&j));
    *data = j.data;
    *size = j.size;
    return TW_OK;
}

/* ---- the targets ----------------------------------------------------------------------------- */

/* A device opened by the CUDA driver says what runs on it; without one there is nothing to run on.
 */
static bool never(const target *t)
{
    (void)t;
    return false;
}

static const char *features_of(const target *t)
{
    return path_of(t)->cpu;
}

static const char *const stages[] = {"sched", "ll", "ptx", "explain", NULL};
static const sched_param parameters[] = {
    {.name = "num_warps",
     .help = "warps that run one program",
     .n = 2,
     .value = {4, 8},
     .lo = 1,
     .hi = 16},
    {.name = "num_stages",
     .help = "buffers of a loop's asynchronous copies",
     .n = 3,
     .value = {2, 1, 3},
     .lo = 1,
     .hi = 4},
    {.name = "operand_registers",
     .help = "1: what a loop multiplies and does not change stays in registers; 2: and gives up "
             "its shared memory",
     .n = 3,
     .value = {0, 1, 2},
     .lo = 0,
     .hi = 2},
    {.name = "lazy_rescale",
     .help = "1: running_max keeps the old maximum while it may",
     .n = 1,
     .value = {1},
     .lo = 0,
     .hi = 1},
    {.name = "program_order",
     .help = "1: the first grid dimension from its end, in sections that fit the L2 cache",
     .n = 2,
     .value = {0, 1},
     .lo = 0,
     .hi = 1},
    {.name = "stage_blocks",
     .help = "iterations of a loop whose copies share a stage, a wait and a barrier (1, 2 or 4)",
     .n = 1, /* on an H200 nothing won with 2 */
     .value = {1},
     .lo = 1,
     .hi = 4},
    {.name = "min_blocks",
     .help = "blocks that must fit on a multiprocessor (0: any number)",
     .n = 1,
     .value = {0},
     .lo = 0,
     .hi = 32},
};

#define NVPTX_TARGET(number, about)                                                                \
    static const path path_##number = {number, "sm_" #number};                                     \
    static const target sm_##number = {.name = "sm_" #number,                                      \
                                       .family = "cuda",                                           \
                                       .help = about,                                              \
                                       .sched = parameters,                                        \
                                       .nsched = sizeof parameters / sizeof *parameters,           \
                                       .emits = stages,                                            \
                                       .data = &path_##number,                                     \
                                       .usable = never,                                            \
                                       .features = features_of,                                    \
                                       .compile = nvptx_compile,                                   \
                                       .emit = nvptx_emit_stage,                                   \
                                       .needs = nvptx_needs}

NVPTX_TARGET(80, "A100");
NVPTX_TARGET(86, "RTX 30, A10, A40");
NVPTX_TARGET(87, "Jetson Orin");
NVPTX_TARGET(89, "RTX 40, L4, L40");
NVPTX_TARGET(90, "H100, H200");
NVPTX_TARGET(100, "B100, B200");
NVPTX_TARGET(120, "RTX 50");

const target *const nvptx_targets[] = {&sm_120, &sm_100, &sm_90, &sm_89,
                                       &sm_87,  &sm_86,  &sm_80, NULL};
