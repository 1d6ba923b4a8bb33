#ifndef TW_TESTS_PROOF_KERNELS_H
#define TW_TESTS_PROOF_KERNELS_H
/* Kernels whose code is PTX written by hand, each with one entry `proof` of blocks of 128 threads,
 * so that what runs on a GPU here depends on no code generator. Their text says arguments and grid;
 * its IR differs in each, because executables and artifacts are kept by IR, not by name. */
#include "compiler/target/artifact.h"
#include "compiler/target/target.h"

enum { PROOF_WORKSPACE = 8 << 20 }; /* bytes: a number of 8 for each of 2^20 blocks */

#define PTX_HEAD ".version 7.0\n.target sm_80\n.address_size 64\n"
#define PTX_BODY                                                                                   \
    "{\n.reg .pred %p<4>;\n.reg .f32 %f<4>;\n.reg .b32 %r<8>;\n.reg .b64 %d<12>;\n"                \
    "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %tid.x;\ncvt.u64.u32 %d1, %r1;\ncvt.u64.u32 %d2, %r2;\n"

typedef struct proof_code {
    const char *name; /* of the kernel */
    const char *ptx;
    recipe_slot slot[4];
    uint32_t nslots;
    int32_t shared_bytes;
} proof_code;

extern const proof_code proof_add;    /* y[i] = x[i] + 1 */
extern const proof_code proof_count;  /* y[0]: how many blocks took a number of a counter */
extern const proof_code proof_assert; /* fails in each block if x[0] is negative */
extern const proof_code proof_fault;  /* touches memory that is not there */
extern const proof_code proof_shared; /* y[t] = 127 - t, by way of 100000 bytes of shared memory */
extern const proof_code proof_too_shared; /* the same, with 300000 */
extern const proof_code proof_last;       /* y[0] = 1 by the last of more than 2^31 programs */

extern const target proof_target; /* their code path, for cuda_test_target */
tw_status proof_load(tw_context *cx, const proof_code *c, tw_kernel **out);

#endif
