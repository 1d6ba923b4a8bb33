#ifndef TW_TARGET_CPU_PACK_H
#define TW_TARGET_CPU_PACK_H
/* Operands of dots that every program would turn, turned once a launch: a step before the kernel's
 * fills a workspace of the launch with their blocks, as the dots want them. */
#include "compiler/ir/ir.h"
#include "compiler/target/artifact.h"

/* The step that fills one workspace. */
typedef struct cpu_pack {
    const ir_op *load;     /* of the kernel: what it packs the blocks of */
    ir_module *module;     /* its kernel, and no launch function */
    recipe_count programs; /* of the step */
    recipe_count bytes;    /* of the workspace */
} cpu_pack;
typedef VEC(cpu_pack) cpu_packs;

/* Lets the kernel of m read packed blocks where it can. packs: empty at first; number i fills
 * workspace i. Runs under guard_run. */
void cpu_pack_operands(ir_module *m, cpu_packs *packs);

#endif
