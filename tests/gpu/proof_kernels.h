#ifndef TW_TESTS_PROOF_KERNELS_H
#define TW_TESTS_PROOF_KERNELS_H
/* PTX written by hand, each with one entry `proof` of blocks of 128 threads, so that what runs on a
 * GPU here depends on no code generator; and the kernel text that says arguments and grid. */
#include "compiler/target/artifact.h"

#define PTX_HEAD ".version 7.0\n.target sm_80\n.address_size 64\n"
#define PTX_BODY                                                                                   \
    "{\n.reg .pred %p<4>;\n.reg .f32 %f<4>;\n.reg .b32 %r<8>;\n.reg .b64 %d<12>;\n"                \
    "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %tid.x;\ncvt.u64.u32 %d1, %r1;\ncvt.u64.u32 %d2, %r2;\n"

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

/* Assert 0 fails if x[0] is negative. Slots: word, x. */
static const char ptx_assert[] =
    PTX_HEAD ".visible .entry proof(.param .u64 word, .param .u64 x)\n" PTX_BODY
             "ld.param.u64 %d3, [word];\nld.param.u64 %d4, [x];\nld.global.f32 %f1, [%d4];\n"
             "setp.geu.f32 %p1, %f1, 0f00000000;\n@%p1 bra DONE;\nmov.u64 %d5, 1;\n"
             "st.global.u64 [%d3], %d5;\nDONE:\nret;\n}\n";

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

/* y[0] = 1 by the last of 65536 * 32769 programs, which are more than 2^31. Slots: first program,
 * y. */
static const char ptx_last[] =
    PTX_HEAD ".visible .entry proof(.param .u64 first, .param .u64 y)\n" PTX_BODY
             "ld.param.u64 %d3, [first];\nadd.u64 %d1, %d1, %d3;\nmov.u64 %d4, 2147549183;\n"
             "setp.ne.u64 %p1, %d1, %d4;\n@%p1 bra DONE;\nld.param.u64 %d5, [y];\n"
             "st.global.f32 [%d5], 0f3F800000;\nDONE:\nret;\n}\n";

/* A kernel is text for its arguments and grid, and PTX and slots for its code. */
typedef struct proof_code {
    const char *ptx;
    recipe_slot slot[4];
    uint32_t nslots;
    int32_t shared_bytes;
} proof_code;
static const proof_code add_code = {
    ptx_add,
    {{SLOT_POINTER, 0, 0}, {SLOT_POINTER, 0, 1}, {SLOT_DIM, 0, 0}, {SLOT_FIRST, 0, 0}},
    4,
    0};
static const proof_code count_code = {
    ptx_count, {{SLOT_WORKSPACE, 0, 0}, {SLOT_COUNTER, 0, 0}, {SLOT_POINTER, 0, 1}}, 3, 0};
static const proof_code assert_code = {
    ptx_assert, {{SLOT_ASSERT, 0, 0}, {SLOT_POINTER, 0, 0}}, 2, 0};
static const proof_code fault_code = {.ptx = ptx_fault};
static const proof_code shared_code = {ptx_shared, {{SLOT_POINTER, 0, 1}}, 1, 100000};
static const proof_code last_code = {ptx_last, {{SLOT_FIRST, 0, 0}, {SLOT_POINTER, 0, 1}}, 2, 0};

static const char text_blocks[] = "kernel proof(x: f32[N], out y: f32[N])\n"
                                  "grid (cdiv(N, 128))\n"
                                  "{\n    store(y[0 :+ 128], load(x[0 :+ 128]));\n}\n";
static const char text_many[] = "kernel proof(x: f32[N], out y: f32[N])\n"
                                "grid (65536, 32769)\n"
                                "{\n    store(y[0 :+ 128], load(x[0 :+ 128]));\n}\n";

#endif
