#ifndef TW_TEST_PTX_MACHINE_H
#define TW_TEST_PTX_MACHINE_H
/* Runs PTX as LLVM prints it, without a GPU: enough of the instruction set for what the nvptx
 * target emits. Threads run on their own up to what a warp does together (shuffles, votes,
 * ldmatrix, mma.sync, barriers), where all of it must arrive. What cp.async copies lands at the
 * wait that asks for it, as late as a GPU may be. Global addresses are addresses of this process.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ptx_program ptx_program;

/* NULL: no memory, or a statement that is not understood; it is in why. */
ptx_program *ptx_parse(const char *text, char *why, size_t size);
void ptx_free(ptx_program *p);

/* Block number `block` of one of so many threads. shared: bytes of dynamic shared memory; param:
 * one 64-bit word each. False: what happened is in why. */
bool ptx_run(const ptx_program *p, uint32_t block, int threads, size_t shared,
             const uint64_t *param, char *why, size_t size);

#endif
