#ifndef TW_TESTS_CPU_RIG_H
#define TW_TESTS_CPU_RIG_H
/* Runs a module on a CPU target without the runtime: compile, load, call once a program, step by
 * step. Scratch memory and workspaces are as large as the recipe says, poisoned, and end at a page
 * that faults. */
#include "compiler/target/interp/interp.h"
#include "compiler/target/target.h"

/* What stands behind the arguments of interp_run serves both. pack: that schedule parameter.
 * *failed: 0, or 1 + the assert that
 * stopped the last program. m is not changed. */
tw_status cpu_rig_run(const ir_module *m, const target *t, bool pack, const interp_arg *arg,
                      const int64_t grid[3], int *failed);
/* Memory whose last byte is followed, or (at_start) whose first is preceded, by a page that faults.
 */
void *cpu_rig_alloc(size_t bytes, bool at_start);
void cpu_rig_free(void *p, size_t bytes, bool at_start); /* as it was allocated */

#endif
