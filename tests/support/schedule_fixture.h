#ifndef TW_TESTS_SCHEDULE_FIXTURE_H
#define TW_TESTS_SCHEDULE_FIXTURE_H
/* Kernel text to tile IR, and to scheduled tile IR. Everything lives in memory that
 * schedule_teardown releases. */
#include "compiler/ir/ir.h"
#include "compiler/schedule/schedule.h"

extern arena schedule_memory;
extern diag_list schedule_diags;
extern const char *schedule_path; /* the code path that texts are for; schedule_setup: "sm_80" */

void schedule_setup(void);
void schedule_teardown(void);
/* Level 1 after the passes, of a file of kernels; values: "T=bf16,D=128,CAUSAL=true,BLOCK_M=64":
 * every bracket and tune parameter. Tensors are unit and aligned to `align` bytes. */
ir_module *schedule_lower(const char *path, const char *values, int align);
ir_module *schedule_lower_text(const char *text, const char *values, int align);
/* m becomes level 2. capability: see gpu.h. result may be NULL. */
tw_status schedule_make(ir_module *m, int capability, schedule_params params,
                        schedule_result *result);

typedef bool (*op_test)(const ir_fn *fn, const ir_op *op);
/* Ops of a code in the block and its regions. */
int count_ops(const ir_block *blk, enum ir_opcode code);
int count_if(const ir_fn *fn, const ir_block *blk, op_test test);
/* Number n of the loops of the function's own block that multiply; fails the test when there are
 * fewer. */
const ir_op *dot_loop(const ir_fn *fn, int n);

#endif
