#ifndef TW_NVPTX_ACCESS_H
#define TW_NVPTX_ACCESS_H
/* Where the elements of a slice of a tensor are, and which of them are inside. Addresses are 64
 * bits wide: the tensor's base, what the indices and lane and warp give, and for each register a
 * multiple of the strides. `index` below is that of a register's element in lane 0 of warp 0. */
#include "compiler/target/nvptx/nvptx_emit.h"

typedef struct nv_known { /* something about index `at` of dimension `dim` that was computed already
                           */
    int dim;
    int32_t at;
    LLVMValueRef v;
} nv_known;
typedef struct nv_access {
    const ir_op *op;
    const ir_param *tensor;
    uint32_t param;
    enum dtype t;
    ir_type tile; /* TYPE_SCALAR: one element */
    layout_map map;
    int rank, n;                      /* of the view; registers */
    int32_t run;                      /* elements from a checked one on that may count for it */
    int tile_dim[VIEW_MAX_RANK];      /* -1: one index */
    bool gathered[VIEW_MAX_RANK];     /* the index is a tile */
    unsigned inside;                  /* dimensions that need no check */
    LLVMValueRef lane[VIEW_MAX_RANK]; /* i32 or NULL */
    LLVMValueRef base;                /* pointer, without what registers add */
    VEC(nv_known) offsets, checks;    /* nv_access_forget: no longer in reach */
} nv_access;

/* op: load, store, copy.async, an atomic. tile: what it moves; map: who moves what. */
nv_access nv_access_of(nv_emit *e, const ir_op *op, ir_type tile, const layout_map *map);
LLVMValueRef nv_access_pointer(nv_emit *e, nv_access *x, const int32_t *index);
/* Bytes from an element to the one `by` further along dimension tile_dim of the tile. */
LLVMValueRef nv_access_step(nv_emit *e, const nv_access *x, int tile_dim, int32_t by);
/* Is the element inside along the dimensions that are not among `inside`? NULL: yes. */
LLVMValueRef nv_access_inside(nv_emit *e, nv_access *x, const int32_t *index, unsigned inside);
/* Elements from this one to the tensor's end along dimension d, i32; right where it is inside. */
LLVMValueRef nv_access_left(nv_emit *e, const nv_access *x, int d, int32_t at);
/* Is all of the slice inside along dimension d? The same for all threads. */
LLVMValueRef nv_access_whole(nv_emit *e, nv_access *x, int d);
/* Is the slice known to reach beyond the tensor along dimension d? */
bool nv_access_never_whole(const nv_emit *e, const nv_access *x, int d);
/* May n elements from a multiple of n of the slice on lie partly inside along dimension d? */
bool nv_access_splits(const nv_emit *e, const nv_access *x, int d, int n);
/* What was computed so far is not used again: it does not dominate what comes. */
void nv_access_forget(nv_access *x);

#endif
