#ifndef TW_NVPTX_EXPLAIN_H
#define TW_NVPTX_EXPLAIN_H
/* The rows of the stage "explain" that are of a GPU:
 *
 *   block   WARPS SHARED REGISTERS    bytes of shared memory; an estimate of registers a thread
 *   fits    THREADS SHARED BLOCKS     blocks that a multiprocessor has room for by its threads, by
 *                                     its shared memory, and at most
 *   sm      WARPS                     that a multiprocessor has room for
 *   room    BLOCKS REGISTERS          with so many at most a thread, so many blocks fit
 *   dim     NAME FROM TO LINE WHY     a dimension of dots that the matrix unit does not take: it
 *                                     was padded (LINE 0, no WHY), or would have been, but for WHY
 *   buffer  OFFSET BYTES TYPE         in shared memory
 *   layout  TEXT                      "#mma = ...": those that types name
 *   tile    NAME TYPE                 tiles that have a name in the text, with their layouts */
#include "compiler/schedule/schedule.h"
#include "compiler/target/explain.h"
#include "compiler/target/target.h"

/* m: level 2. ptx: made with the places of map. */
void nv_explain(strbuf *out, const ir_module *m, const gpu_limits *gpu, const target_needs *needs,
                const explain_map *map, const char *ptx);
/* Rows dim. */
void nv_explain_dims(strbuf *out, const schedule_result *res);

#endif
