#include "tests/support/proof_kernels.h"
#include "compiler/base/check.h"
#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- code ------------------------------------------------------------------------------------ */

/* y[i] = x[i] + 1 for i < n. Slots: x, y, N, first program. */
static const char ptx_add[] = PTX_HEAD
    ".visible .entry proof(.param .u64 x, .param .u64 y, .param .u64 n, .param .u64 "
    "first)\n" PTX_BODY "ld.param.u64 %d3, [x];\nld.param.u64 %d4, [y];\nld.param.u64 %d5, [n];\n"
    "ld.param.u64 %d6, [first];\nadd.u64 %d1, %d1, %d6;\nshl.b64 %d1, %d1, 7;\n"
    "add.u64 %d1, %d1, %d2;\nsetp.ge.u64 %p1, %d1, %d5;\n@%p1 bra DONE;\nshl.b64 %d1, %d1, 2;\n"
    "add.u64 %d3, %d3, %d1;\nadd.u64 %d4, %d4, %d1;\nld.global.f32 %f1, [%d3];\n"
    "add.f32 %f1, %f1, 0f3F800000;\nst.global.f32 [%d4], %f1;\nDONE:\nret;\n}\n";

/* Every block takes a number from the counter and notes it in the workspace; y[0] is how many there
 * were, when the last one has its number. Slots: workspace, counter, y. */
static const char ptx_count[] =
    PTX_HEAD ".visible .entry proof(.param .u64 w, .param .u64 c, .param .u64 y)\n" PTX_BODY
             "ld.param.u64 %d3, [w];\nld.param.u64 %d4, [c];\nld.param.u64 %d5, [y];\n"
             "setp.ne.u32 %p1, %r2, 0;\n@%p1 bra DONE;\natom.global.add.u64 %d6, [%d4], 1;\n"
             "shl.b64 %d7, %d6, 3;\nadd.u64 %d3, %d3, %d7;\nst.global.u64 [%d3], %d6;\n"
             "add.u64 %d6, %d6, 1;\nmov.u32 %r3, %nctaid.x;\ncvt.u64.u32 %d8, %r3;\n"
             "setp.ne.u64 %p2, %d6, %d8;\n@%p2 bra DONE;\ncvt.rn.f32.u64 %f1, %d6;\n"
             "st.global.f32 [%d5], %f1;\nDONE:\nret;\n}\n";

/* Assert 0 fails in each block if x[0] is negative, and tells 3 x block and 1000000 - block, as
 * compiled code does it. Slots: record, x. */
static const char ptx_assert[] =
    PTX_HEAD ".visible .entry proof(.param .u64 record, .param .u64 x)\n" PTX_BODY
             "ld.param.u64 %d3, [record];\nld.param.u64 %d4, [x];\nld.global.f32 %f1, [%d4];\n"
             "setp.geu.f32 %p1, %f1, 0f00000000;\n@%p1 bra DONE;\n"
             "setp.ne.u32 %p2, %r2, 0;\n@%p2 bra DONE;\n"
             "atom.relaxed.gpu.global.cas.b32 %r3, [%d3+4], 0, 1;\n"
             "setp.ne.u32 %p3, %r3, 0;\n@%p3 bra DONE;\nst.global.u32 [%d3+8], %r1;\n"
             "st.global.u32 [%d3+12], 0;\nst.global.u32 [%d3+16], 0;\nmul.lo.u32 %r4, %r1, 3;\n"
             "st.global.u32 [%d3+20], %r4;\nmov.u32 %r5, 1000000;\nsub.u32 %r5, %r5, %r1;\n"
             "st.global.u32 [%d3+24], %r5;\nst.global.u32 [%d3+32], 1;\n"
             "fence.acq_rel.sys;\nst.global.u32 [%d3], 1;\nDONE:\nret;\n}\n";
static_assert(offsetof(assert_record, taken) == 4 && offsetof(assert_record, program) == 8 &&
                  offsetof(assert_record, value) == 20 && offsetof(assert_record, told) == 32,
              "the text above has these numbers");

/* Touches memory that is not there. */
static const char ptx_fault[] = PTX_HEAD ".visible .entry proof()\n" PTX_BODY
                                         "mov.u64 %d3, 4096;\nst.global.u32 [%d3], %r1;\nret;\n}\n";

/* y[t] = 127 - t, through the last of 100000 bytes of shared memory. Slots: y. */
static const char ptx_shared[] = PTX_HEAD
    ".extern .shared .align 16 .b8 dynamic[];\n.visible .entry proof(.param .u64 y)\n" PTX_BODY
    "ld.param.u64 %d3, [y];\nmov.u32 %r3, dynamic;\nadd.u32 %r3, %r3, 99488;\nshl.b32 %r4, %r2, "
    "2;\n"
    "add.u32 %r5, %r3, %r4;\nst.shared.u32 [%r5], %r2;\nbar.sync 0;\nsub.u32 %r6, 508, %r4;\n"
    "add.u32 %r5, %r3, %r6;\nld.shared.u32 %r7, [%r5];\ncvt.rn.f32.u32 %f1, %r7;\n"
    "shl.b64 %d2, %d2, 2;\nadd.u64 %d3, %d3, %d2;\nst.global.f32 [%d3], %f1;\nret;\n}\n";

/* y[0] = 1 by the last of 65536 x 32769 programs, which are more than 2^31. Slots: the first
 * program by dimension, y. */
static const char ptx_last[] =
    PTX_HEAD
    ".visible .entry proof(.param .u64 first0, .param .u64 first1, .param .u64 y)\n" PTX_BODY
    "ld.param.u64 %d3, [first0];\nadd.u64 %d1, %d1, %d3;\nld.param.u64 %d3, [first1];\n"
    "shl.b64 %d3, %d3, 16;\nadd.u64 %d1, %d1, %d3;\nmov.u64 %d4, 2147549183;\n"
    "setp.ne.u64 %p1, %d1, %d4;\n@%p1 bra DONE;\nld.param.u64 %d5, [y];\n"
             "st.global.f32 [%d5], 0f3F800000;\nDONE:\nret;\n}\n";

/* ---- kernels --------------------------------------------------------------------------------- */

const proof_code proof_add = {
    "add",
    ptx_add,
    {{SLOT_POINTER, 0, 0}, {SLOT_POINTER, 0, 1}, {SLOT_DIM, 0, 0}, {SLOT_FIRST, 0, 0}},
    4,
    0};
const proof_code proof_count = {
    "count", ptx_count, {{SLOT_WORKSPACE, 0, 0}, {SLOT_COUNTER, 0, 0}, {SLOT_POINTER, 0, 1}}, 3, 0};
const proof_code proof_assert = {
    "check", ptx_assert, {{SLOT_ASSERT, 0, 0}, {SLOT_POINTER, 0, 0}}, 2, 0};
const proof_code proof_fault = {.name = "fault", .ptx = ptx_fault};
const proof_code proof_shared = {"shared", ptx_shared, {{SLOT_POINTER, 0, 1}}, 1, 100000};
const proof_code proof_too_shared = {"too_shared", ptx_shared, {{SLOT_POINTER, 0, 1}}, 1, 300000};
const proof_code proof_last = {
    "last", ptx_last, {{SLOT_FIRST, 0, 0}, {SLOT_FIRST, 1, 0}, {SLOT_POINTER, 0, 1}}, 3, 0};

static const proof_code *const all[] = {&proof_add,   &proof_count,  &proof_assert,
                                        &proof_fault, &proof_shared, &proof_too_shared,
                                        &proof_last};
enum { ALL = sizeof all / sizeof *all };

static int place_of(const char *name)
{
    int i = 0;

    while (i < ALL && strcmp(all[i]->name, name) != 0)
        i++;
    ICHECK(i < ALL, "a kernel of the proof");
    return i;
}

tw_status proof_load(tw_context *cx, const proof_code *c, tw_kernel **out)
{
    char text[300];

    snprintf(text, sizeof text,
             "kernel %s(x: f32[N], out y: f32[N])\ngrid (%s)\n"
             "{\n    store(y[0 :+ 128], load(x[0 :+ 128]) + %d.0);\n}\n",
             c->name, c == &proof_last ? "65536, 32769" : "cdiv(N, 128)", 1 + place_of(c->name));
    return tw_kernel_load_text(cx, "proof.tw", text, strlen(text), NULL, out);
}

/* ---- the code path --------------------------------------------------------------------------- */

static tw_status proof_compile(const target *t, const target_input *in, arena *a, artifact **out)
{
    static const char *asserts[] = {"x[0] is not negative: {0}, {1}"};
    static const recipe_count space = {.factor = PROOF_WORKSPACE};
    const proof_code *code = all[place_of(in->module->kernel->name)];
    artifact *art = ARENA_NEW(a, artifact);

    (void)t;
    art->nobjects = art->nsteps = art->nasserts = 1;
    art->object = ARENA_NEW(a, code_object);
    *art->object =
        (code_object){OBJECT_PTX, (uint32_t)strlen(code->ptx), (const uint8_t *)code->ptx};
    art->workspace = ARENA_NEW(a, recipe_count);
    *art->workspace = space;
    art->step = ARENA_NEW(a, recipe_step);
    *art->step = (recipe_step){.symbol = "proof",
                               .nslots = code->nslots,
                               .slot = ARENA_ARRAY(a, recipe_slot, 4),
                               .grid_map = {0, 1, 2},
                               .block_threads = 128,
                               .shared_bytes = code->shared_bytes};
    memcpy(art->step->slot, code->slot, sizeof code->slot);
    bool uses_space = code->nslots && code->slot[0].kind == SLOT_WORKSPACE;
    art->ncounters = art->nworkspaces = uses_space;
    art->assert_text = asserts;
    art->launch_text = artifact_launch_text(a, in->module);
    *out = art;
    return TW_OK;
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
const target proof_target = {.name = "sm_80",
                             .family = "cuda",
                             .emits = nothing,
                             .usable = never,
                             .features = no_features,
                             .compile = proof_compile};
