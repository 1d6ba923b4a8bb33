#include "compiler/base/check.h"
#include "compiler/base/error.h"
#include "compiler/ir/iredit.h"
#include "compiler/ir/irtext.h"
#include "compiler/passes/pipeline.h"
#include "compiler/target/cpu/cpu_emit.h"
#include "compiler/target/cpu/cpu_features.h"
#include "compiler/target/cpu/cpu_pack.h"
#include "compiler/target/llvm/llvm_session.h"
#include "compiler/target/target.h"
#include <elf.h>
#include <string.h>
#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* ---- a compile ------------------------------------------------------------------------------- */

typedef struct job {
    const cpu_isa *isa;
    const target_input *in;
    enum llvm_output what;
    arena *a;
    cpu_packs packs;
    VEC(cpu_emit) steps; /* of the launch, in order: one that fills each workspace, the kernel */
    const char *data;
    size_t size;
} job;

static tw_status generate(llvm_session *s, void *arg)
{
    job *j = arg;
    llvm_machine machine = {j->isa->triple, j->isa->cpu, cpu_features_text(j->a, j->isa->sets)};

    llvm_session_target(s, &machine);
    for (uint32_t i = 0; i < j->steps.n; i++) {
        j->steps.at[i].cx = &s->cx;
        cpu_emit_function(&j->steps.at[i], j->steps.at[i].fn->name);
    }
    return llvm_session_emit(s, j->what, j->a, &j->data, &j->size);
}

/* Where the largest tile in scratch comes from. */
static span largest_tile(const cpu_plan *p)
{
    int64_t most = 0;
    span where = {0};

    for (ir_val v = 1; v < p->value.n; v++) {
        const ir_op *op = ir_def(p->fn, v);
        int64_t bytes = p->bufs.at[cpu_buf_root(p, p->value.at[v].buf)].bytes;
        if (op && op->where.src && bytes > most) {
            most = bytes;
            where = op->where;
        }
    }
    return where;
}

/* Plans the code of one step of the launch. */
static tw_status plan_step(job *j, ir_module *m)
{
    TRY(pipeline_run_tails(m, j->in->diags, j->in->passes));
    const cpu_plan *plan = cpu_plan_new(j->a, m->kernel, j->isa);
    if (plan->scratch_bytes > CPU_MAX_SCRATCH) {
        diag *d = diag_add(j->in->diags, DIAG_LIMIT, largest_tile(plan),
                           "the tiles of one program take %lld bytes; the limit is %lld",
                           (long long)plan->scratch_bytes, (long long)CPU_MAX_SCRATCH);
        diag_hint(j->in->diags, d, "use smaller tiles");
        return TW_E_LIMIT;
    }
    cpu_emit e = {.plan = plan, .isa = j->isa, .fn = m->kernel, .a = j->a, .diags = j->in->diags};
    vec_push(&j->steps, j->a, e);
    return TW_OK;
}

static bool is_on(const target_input *in, const char *param)
{
    const ir_binding *b = binding_find(in->config, in->nconfig, param);

    return b && b->value == 1;
}

static tw_status run_job(job *j)
{
    ir_module *m = j->in->module;

    if (m->level != 1)
        return error_set(TW_E_UNSUPPORTED,
                         "the kernel is scheduled for a GPU (tile IR of level 2), and the targets "
                         "of the CPU take level 1; device 'interp' runs both");
    if (is_on(j->in, "pack")) {
        m = ir_clone(m, j->a); /* the caller's has the parameters that a launch passes */
        cpu_pack_operands(m, &j->packs);
    }
    for (uint32_t i = 0; i < j->packs.n; i++)
        TRY(plan_step(j, j->packs.at[i].module));
    TRY(plan_step(j, m));
    return llvm_session_run(m->kernel->name, generate, j);
}

static const cpu_isa *isa_of(const target *t)
{
    return t->data;
}

/* Bytes in executable sections. */
static uint32_t machine_code_bytes(const char *object, size_t size)
{
    Elf64_Ehdr header;
    Elf64_Shdr section;
    uint64_t sum = 0;

    if (size < sizeof header || memcmp(object, ELFMAG, SELFMAG) != 0)
        return (uint32_t)size;
    memcpy(&header, object, sizeof header);
    for (unsigned i = 0; i < header.e_shnum; i++) {
        size_t at = header.e_shoff + i * sizeof section;
        if (at + sizeof section > size)
            break;
        memcpy(&section, object + at, sizeof section);
        if (section.sh_flags & SHF_EXECINSTR)
            sum += section.sh_size;
    }
    return (uint32_t)sum;
}

static recipe_step step_of(arena *a, const cpu_emit *e)
{
    return (recipe_step){.symbol = arena_strdup(a, e->fn->name),
                         .nslots = e->slots.n,
                         .slot = e->slots.at,
                         .grid_map = {0, 1, 2},
                         .scratch_bytes = e->plan->scratch_bytes};
}

/* In front of the step of the kernel, those that fill workspaces. */
static void add_packing(artifact *art, arena *a, const job *j)
{
    uint32_t n = j->packs.n;
    recipe_step *step = ARENA_ARRAY(a, recipe_step, n + 1);

    art->nworkspaces = n;
    art->workspace = ARENA_ARRAY(a, recipe_count, n);
    for (uint32_t i = 0; i < n; i++) {
        step[i] = step_of(a, &j->steps.at[i]);
        step[i].programs = j->packs.at[i].programs;
        art->workspace[i] = j->packs.at[i].bytes;
    }
    step[n] = *art->step;
    art->step = step;
    art->nsteps = n + 1;
}

static tw_status cpu_compile(const target *t, const target_input *in, arena *a, artifact **out)
{
    job j = {.isa = isa_of(t), .in = in, .what = LLVM_OUTPUT_OBJECT, .a = a};
    int ops = ir_op_count(in->module->kernel);

    TRY(run_job(&j));
    artifact *art = artifact_of_code(a, in->module, OBJECT_ELF, j.data, j.size);
    const cpu_emit *kernel = &j.steps.at[j.packs.n];
    *art->step = step_of(a, kernel);
    art->step->reversed = is_on(in, "order");
    art->nasserts = kernel->asserts.n;
    art->assert_text = kernel->asserts.at;
    art->nprints = kernel->prints.n;
    art->print = kernel->prints.at;
    add_packing(art, a, &j);
    art->ir_ops = ops;
    art->code_bytes = machine_code_bytes(j.data, j.size);
    *out = art;
    return TW_OK;
}

/* Nothing but what code it would be: packing leaves most kernels as they are. */
static tw_status cpu_needs(const target *t, const target_input *in, target_needs *out)
{
    hash128 code = ir_hash(in->module);
    cpu_packs packs = {0};

    if (is_on(in, "pack"))
        cpu_pack_operands(ir_clone(in->module, in->module->a), &packs);
    for (uint32_t i = 0; i < in->nconfig; i++) {
        const ir_binding *b = &in->config[i];
        if (target_sched(t, b->name) && (strcmp(b->name, "pack") != 0 || packs.n))
            code =
                hash_mix(code, hash_mix(hash_str(b->name), hash_mem(&b->value, sizeof b->value)));
    }
    *out = (target_needs){.code = code};
    return TW_OK;
}

static tw_status cpu_emit_stage(const target *t, const target_input *in, const char *kind, arena *a,
                                const char **data, size_t *size)
{
    job j = {.isa = isa_of(t), .in = in, .what = LLVM_OUTPUT_IR, .a = a};

    if (!strcmp(kind, "asm"))
        j.what = LLVM_OUTPUT_ASM;
    else if (!strcmp(kind, "obj"))
        j.what = LLVM_OUTPUT_OBJECT;
    else if (strcmp(kind, "ll") != 0)
        return TW_E_UNSUPPORTED;
    TRY(run_job(&j));
    *data = j.data;
    *size = j.size;
    return TW_OK;
}

/* ---- the targets ----------------------------------------------------------------------------- */

static const char *features_of(const target *t)
{
    return isa_of(t)->name;
}

static const char *const stages[] = {"ll", "asm", "obj", NULL};
static const sched_param schedule[] = {
    {.name = "threads",
     .help = "threads that share the grid",
     .lo = 1,
     .hi = 1024,
     .dynamic = true},
    {.name = "order",
     .help = "1: the innermost grid dimension is walked from its end (causal: longest first)",
     .n = 2,
     .value = {0, 1},
     .lo = 0,
     .hi = 1},
    {.name = "pack",
     .help = "1: what dots of bf16 read against a tensor's order is turned once a launch",
     .n = 2,
     .value = {0, 1},
     .lo = 0,
     .hi = 1},
};

/* Where dots of bf16 are elements of f32, the last parameter is nothing to tune. */
#define CPU_TARGET(id, text, about, isa_data, usable_fn, turns)                                    \
    const target id = {.name = text,                                                               \
                       .family = "cpu",                                                            \
                       .help = about,                                                              \
                       .sched = schedule,                                                          \
                       .nsched = sizeof schedule / sizeof *schedule - ((turns) ? 0 : 1),           \
                       .emits = stages,                                                            \
                       .data = isa_data,                                                           \
                       .usable = usable_fn,                                                        \
                       .features = features_of,                                                    \
                       .compile = cpu_compile,                                                     \
                       .emit = cpu_emit_stage,                                                     \
                       .needs = (turns) ? cpu_needs : NULL}

static bool never(const target *t)
{
    (void)t;
    return false;
}

static const cpu_isa neon = {.name = "armv8-a",
                             .triple = "aarch64-unknown-linux-gnu",
                             .cpu = "generic",
                             .lanes = 4,
                             .mr = 6,
                             .nr = 4,
                             .fma = true};

CPU_TARGET(cpu_neon, "cpu-neon", "AArch64 with NEON", &neon, never, false);

#if defined(__x86_64__)
static bool has_features(const target *t)
{
    return cpu_answers_have(cpu_answers_here(), isa_of(t)->sets);
}

/* On Intel's processors vdpbf16ps has half the rate of f32's fma (Emerald Rapids: 83 against 166
 * GFLOP/s), on AMD's the same for twice the products. */
static bool has_fast_pairs(const target *t)
{
    return has_features(t) && !cpu_answers_from_intel(cpu_answers_here());
}

/* May this process use tiles? The runtime asks for that when it opens a device; without it the
 * first tile instruction is an illegal one. */
static bool may_use_tiles(void)
{
    enum { GET_PERMISSION = 0x1022, TILE_DATA = 18 };
    uint64_t mask = 0;

    return syscall(SYS_arch_prctl, GET_PERMISSION, &mask) == 0 && (mask >> TILE_DATA & 1);
}

static bool has_tiles(const target *t)
{
    return has_features(t) && cpu_answers_have_palette(cpu_answers_here()) && may_use_tiles();
}

enum {
    V2 = CPU_SET_V2,
    V3 = V2 | CPU_SET_V3,
    V4 = V3 | CPU_SET_V4,
};

/* mr, nr: measured in docs/CPU.md */
#define OF_AVX512                                                                                  \
    .cpu = "x86-64", .tune = "x86-64-v4", .lanes = 16, .mr = 4, .nr = 4, .avx512 = true,           \
    .fma = true, .f16c = true
#define OF_AVX2 .cpu = "x86-64", .sets = V3, .tune = "x86-64-v3", .fma = true, .f16c = true

static const cpu_isa avx512 = {OF_AVX512, .name = "x86-64-v4", .sets = V4};
static const cpu_isa avx512_bf16 = {OF_AVX512, .name = "x86-64-v4+avx512bf16",
                                    .sets = V4 | CPU_SET_BF16, .bf16_pairs = true,
                                    .bf16_round = true};
/* vdpbf16ps has half the rate of fma where there is AMX: what is no dot of tiles is converted. */
static const cpu_isa amx = {OF_AVX512, .name = "x86-64-v4+avx512bf16+amx-bf16",
                            .sets = V4 | CPU_SET_BF16 | CPU_SET_TILES, .bf16_round = true,
                            .tiles = CPU_TILES_AMX};
/* For tests: the code of amx around AVX-512 or AVX2. */
static const cpu_isa emulated = {OF_AVX512, .name = "x86-64-v4, tiles emulated", .sets = V4,
                                 .tiles = CPU_TILES_EMULATED};
static const cpu_isa emulated_avx2 = {OF_AVX2,     .name = "x86-64-v3, tiles emulated",
                                      .lanes = 16, .mr = 2,
                                      .nr = 2,     .tiles = CPU_TILES_EMULATED};
static const cpu_isa avx2 = {OF_AVX2, .name = "x86-64-v3", .lanes = 8, .mr = 6, .nr = 2};
static const cpu_isa generic = {.name = "x86-64-v2",
                                .cpu = "x86-64",
                                .sets = V2,
                                .tune = "x86-64-v2",
                                .lanes = 4,
                                .mr = 4,
                                .nr = 2};

static CPU_TARGET(cpu_amx, "cpu-amx", "AVX-512 and AMX with BF16", &amx, has_tiles, true);
static CPU_TARGET(cpu_avx512_bf16, "cpu-avx512-bf16",
                  "AVX-512 that multiplies pairs of bf16 at full rate", &avx512_bf16,
                  has_fast_pairs, true);
static CPU_TARGET(cpu_avx512, "cpu-avx512", "AVX-512 (F, BW, DQ, VL, CD)", &avx512, has_features,
                  false);
static CPU_TARGET(cpu_avx2, "cpu-avx2", "AVX2 with FMA", &avx2, has_features, false);
static CPU_TARGET(cpu_generic, "cpu-generic", "SSE 4.2", &generic, has_features, false);

static CPU_TARGET(amx_emulated, "cpu-amx-emulated", "cpu-amx without its registers", &emulated,
                  has_features, true);
static CPU_TARGET(amx_emulated_avx2, "cpu-amx-emulated", "cpu-amx without its registers",
                  &emulated_avx2, has_features, true);

const target *const cpu_amx_emulated[] = {&amx_emulated, &amx_emulated_avx2, NULL};
const target *const cpu_targets[] = {&cpu_amx,  &cpu_avx512_bf16, &cpu_avx512,
                                     &cpu_avx2, &cpu_generic,     NULL};
#else
static bool always(const target *t)
{
    (void)t;
    return true;
}

static const cpu_isa generic = {
    .name = "generic", .cpu = "generic", .lanes = 4, .mr = 6, .nr = 4, .fma = true};

static CPU_TARGET(cpu_generic, "cpu-generic", "the vectors that every processor of this kind has",
                  &generic, always, false);

const target *const cpu_targets[] = {&cpu_generic, NULL};
#endif
