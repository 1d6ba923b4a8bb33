#ifndef TW_TARGET_CPU_NESTS_H
#define TW_TARGET_CPU_NESTS_H
/* One nest while it is emitted: what cpu_nests.c shares with cpu_reduce.c, cpu_ahead.c, and
 * cpu_fold.c, which has the nests of one item: scans, and reductions with a function of the text.
 */
#include "compiler/target/cpu/cpu_emit.h"

typedef struct cpu_nesting {
    cpu_emit *e;
    const cpu_nest *n;
    cpu_at at; /* row indices; the lane's is the group's first */
    /* running values of the reductions: for each, nr vectors, then nr NaN masks if it has them */
    LLVMValueRef carried[CPU_MAX_CARRIED];
    int ncarried;
    int nr;              /* vectors that have running values */
    cpu_stage stage;     /* of a dot of tiles: the results of 32 rows, */
    cpu_index stage_row; /* and of which of them the units are */
    bool in_place;       /* the stage is where the results stay */
} cpu_nesting;

/* ---- cpu_nests.c ---- */
cpu_at cpu_without(const cpu_nesting *s, cpu_at at, int axis); /* of the reduced tile */
cpu_at cpu_vector_at(const cpu_nesting *s, int j);             /* vector j of the group */

/* ---- cpu_reduce.c ---- */
enum dtype cpu_reduced_type(const cpu_nesting *s, const ir_op *op); /* as held */
LLVMValueRef cpu_widen(cpu_emit *e, enum dtype from, enum dtype to, LLVMValueRef v);
void cpu_reduce_begin(cpu_nesting *s, int nr);
/* mr rows of nr vectors, at: of each. */
void cpu_reduce_units(cpu_nesting *s, const cpu_item *item, const cpu_at *at, int mr, int nr);
void cpu_reduce_end(cpu_nesting *s);

/* ---- cpu_ahead.c ---- */
/* What the nest is to ask for: the share of mr rows of nr vectors, from row on. */
void cpu_emit_ahead(cpu_nesting *s, int mr, int nr, cpu_index row);

/* ---- cpu_fold.c ---- */
void cpu_fold_begin(cpu_nesting *s, int nr);
void cpu_fold_units(cpu_nesting *s, const cpu_item *item, const cpu_at *at, int mr, int nr);
/* got: what each unit gives. */
void cpu_scan_units(cpu_nesting *s, const cpu_item *item, const cpu_at *at, int mr, int nr,
                    cpu_got *got);
void cpu_fold_end(cpu_nesting *s);

#endif
