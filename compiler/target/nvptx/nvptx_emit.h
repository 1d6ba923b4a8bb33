#ifndef TW_NVPTX_EMIT_H
#define TW_NVPTX_EMIT_H
/* Level-2 tile IR -> LLVM IR for NVPTX: one function, the kernel. docs/NVPTX.md tells how.
 *
 *   nvptx_emit.c     the function, its parameters; walks the ops; nvptx_control.c  loops, choices
 *   nvptx_program.c  which thread and which program this is
 *   nvptx_value.c    what registers hold; which element a thread has in which register
 *   nvptx_ops.c      elementwise ops and the ops of shape
 *   nvptx_reduce.c   reductions and scans;  nvptx_convert.c  other layouts, by shuffles
 *   nvptx_tensor.c   loads, stores, atomics of tensors;  nvptx_access.c  their addresses and bounds
 *   nvptx_align.c    what divides an index, and how large it is
 *   nvptx_shared.c   addresses in shared memory, buffer.load and buffer.store
 *   nvptx_copy.c     cp.async
 *   nvptx_mma.c      ldmatrix and mma.sync;  nvptx_dot.c  the exact product, by FMA
 *
 * A value of the IR is an array of LLVM scalars: element r of it is what this thread holds in
 * register r of the layout's map (scalars of the IR: one, the same in all threads). 16-bit floats
 * are held in pairs, elements 2i and 2i + 1 in one i32; scalars of them as f32. */
#include "compiler/ir/layout.h"
#include "compiler/target/explain.h"
#include "compiler/target/artifact.h"
#include "compiler/target/llvm/llvm_build.h"

enum { NV_WARP = 32 };

typedef struct nv_value {
    LLVMValueRef *at;
    int n;
} nv_value;

/* What is computed once, in an entry block. */
typedef struct nv_lane_part {
    int n;
    struct {
        int32_t place, weight, extent, stride;
    } digit[LAYOUT_MAX_DIGITS];
    LLVMValueRef value;
} nv_lane_part;
typedef struct nv_spot {              /* a lane's address in shared memory; see nvptx_shared.c */
    LLVMValueRef lane[TILE_MAX_RANK]; /* by stored dimension */
    int64_t scale[TILE_MAX_RANK];
    int column; /* the last dimension */
    int64_t rows, width, panel, flip;
    LLVMValueRef value;
} nv_spot;
typedef struct nv_sum { /* a lane part moved by a slot's place, in one block */
    LLVMValueRef slot, lane, value;
    LLVMBasicBlockRef block;
} nv_sum;

/* LLVM instructions of one kernel. LLVM's time grows with the square of a block: 42000 of them take
 * 20 seconds. The largest kernel of this project has 9000. */
enum { NV_MAX_CODE = 100000 };

typedef struct nv_emit {
    ll_cx *cx;
    arena *a;
    const ir_module *module;
    const ir_fn *fn;
    int capability; /* 80, 86, ... */
    int32_t min_blocks;
    nv_value *value;  /* by ir_val */
    const bool *used; /* by ir_val: does anything take it? */
    VEC(recipe_slot) slots;
    LLVMValueRef *pointer;                 /* by parameter; NULL where not used */
    LLVMValueRef (*stride)[VIEW_MAX_RANK]; /* i64; NULL: the unit stride */
    LLVMValueRef *dim;                     /* by dimension: i32 */
    LLVMValueRef grid[3], first[3], assert_record;
    LLVMValueRef program[3];
    LLVMValueRef thread, lane, warp; /* i32 */
    LLVMValueRef shared;             /* where dynamic shared memory begins, i32 */
    LLVMBasicBlockRef entry, start; /* the last entry block, and what follows it */
    LLVMBasicBlockRef block;        /* the last one that is in size, up to the instruction */
    LLVMValueRef counted;           /* `counted`, or none of it */
    long size;                      /* LLVM instructions, about */
    long dearest_size;              /* of the operation that made most of it */
    span dearest;                   /* and where that stands in the text */
    VEC(const char *) asserts;
    int32_t shared_bytes;
    VEC(nv_lane_part) lane_parts;
    VEC(nv_spot) spots;
    VEC(nv_sum) sums;
    const explain_map *places; /* note where code comes from; NULL: do not */
    LLVMMetadataRef scope;     /* for nv_lines_at */
} nv_emit;

/* ---- nvptx_emit.c ---- */
/* Emits the kernel into e->cx's module. Throws TW_E_INTERNAL at what this target does not do. */
void nv_emit_function(nv_emit *e, const char *name);
/* Emission goes on in the last entry block until nv_entry_end; nothing but constants and what is in
 * entry blocks may be used there. There is one at the start and one behind each loop and choice of
 * the body: what only the end of a kernel needs lives in no loop. */
LLVMBasicBlockRef nv_entry_begin(nv_emit *e);
void nv_entry_end(nv_emit *e, LLVMBasicBlockRef back);
void nv_emit_block(nv_emit *e, const ir_block *blk);
/* The value of a region of two scalars. */
LLVMValueRef nv_call_region(nv_emit *e, const ir_block *blk, LLVMValueRef x, LLVMValueRef y);
/* The dimension's extent, i32. */
LLVMValueRef nv_dim(nv_emit *e, int dim);

/* ---- nvptx_control.c ---- */
void nv_for(nv_emit *e, const ir_op *op);
void nv_while(nv_emit *e, const ir_op *op);
void nv_if(nv_emit *e, const ir_op *op);

/* ---- nvptx_program.c ---- */
/* Sets thread, lane, warp and shared. */
void nv_find_thread(nv_emit *e);
/* Sets program and grid where they are used, and leaves another block than it found. */
void nv_find_program(nv_emit *e);

/* ---- nvptx_assert.c ---- */
void nv_assert(nv_emit *e, const ir_op *op);

/* ---- nvptx_value.c ---- */
static inline ir_type nv_type(const nv_emit *e, ir_val v)
{
    return ir_type_of(e->fn, v);
}
static inline bool nv_is_half(enum dtype t)
{
    return t == DT_F16 || t == DT_BF16;
}
/* The dtype that one element is computed in: f32 for 16-bit floats. */
enum dtype nv_held(enum dtype t);
void nv_map(const nv_emit *e, ir_type tile, layout_map *map);
int nv_registers(const nv_emit *e, ir_type t); /* elements a thread holds; a scalar: 1 */
LLVMTypeRef nv_word_type(const nv_emit *e, ir_type t);
nv_value *nv_at(nv_emit *e, ir_val v);  /* of a value that was emitted */
nv_value *nv_new(nv_emit *e, ir_val v); /* room for one that is being emitted */
/* Element r as it is computed with. */
LLVMValueRef nv_get(nv_emit *e, ir_val v, int r);
/* All elements, as computed: rounds and packs 16-bit floats. */
void nv_set(nv_emit *e, ir_val v, LLVMValueRef *element);
/* Element r as memory has it: i16 for 16-bit floats, i8 for i1. */
LLVMValueRef nv_raw(nv_emit *e, ir_val v, int r);
LLVMValueRef nv_from_raw(nv_emit *e, enum dtype t, LLVMValueRef raw);
LLVMTypeRef nv_raw_type(const nv_emit *e, enum dtype t);
void nv_set_raw(nv_emit *e, ir_val v, LLVMValueRef *raw);
/* v's register r is x's register from[r]. */
void nv_permute(nv_emit *e, ir_val v, ir_val x, const int *from);
/* Two f32 rounded to a pair. */
LLVMValueRef nv_pack(nv_emit *e, enum dtype t, LLVMValueRef lo, LLVMValueRef hi);
/* Two i16 to a pair; the pair itself where they are the halves of one. */
LLVMValueRef nv_join(nv_emit *e, LLVMValueRef lo, LLVMValueRef hi);
/* The words of nv_value that hold these elements of a value of type t. */
void nv_words_of_raw(nv_emit *e, ir_type t, LLVMValueRef *raw, LLVMValueRef *word);
/* How many consecutive elements of dim consecutive registers hold, from a multiple of it on: a
 * power of two, at most `most`. */
int nv_consecutive(const layout_map *map, int dim, int most);
/* What lane and warp add to the index along dim, i32 (NULL: nothing); *bits: those that may be set.
 */
LLVMValueRef nv_lane_index(nv_emit *e, const layout_map *map, int dim, uint32_t *bits);
/* The digit's value in this thread, times scale; the digit is of a lane or a warp. */
LLVMValueRef nv_digit(nv_emit *e, const layout_map *map, int digit, int32_t scale);
/* Is this the thread that counts for its elements? NULL: every thread is. */
LLVMValueRef nv_first_copy(nv_emit *e, const layout_map *map);
/* Bits that a sum, or a product with a constant, may have set. */
uint32_t nv_bits_add(uint32_t a, uint32_t b);
uint32_t nv_bits_mul(uint32_t a, int64_t by);
LLVMValueRef nv_i32(const nv_emit *e, int64_t v);
/* x + y where either may be NULL: 0. */
LLVMValueRef nv_plus(nv_emit *e, LLVMValueRef x, LLVMValueRef y);
/* x and y, conditions, where either may be NULL: true. */
LLVMValueRef nv_both(nv_emit *e, LLVMValueRef x, LLVMValueRef y);
/* Emission continues where c holds; nv_guard_end goes on for all. c = NULL: no branch. */
typedef struct nv_guard {
    LLVMBasicBlockRef before, inside, after;
} nv_guard;
nv_guard nv_guard_begin(nv_emit *e, LLVMValueRef c);
void nv_guard_end(nv_emit *e, nv_guard *g);
/* After nv_guard_end: v where the guard held, else otherwise. */
LLVMValueRef nv_guard_value(nv_emit *e, const nv_guard *g, LLVMValueRef v, LLVMValueRef otherwise);

/* ---- nvptx_ops.c ---- */
void nv_elementwise(nv_emit *e, const ir_op *op);
void nv_leaf(nv_emit *e, const ir_op *op);  /* const, arange, program_id, num_programs */
void nv_shape(nv_emit *e, const ir_op *op); /* splat, expand_dims, broadcast, trans, reshape */

/* ---- nvptx_reduce.c ---- */
void nv_reduce(nv_emit *e, const ir_op *op);
void nv_partial_sum(nv_emit *e, const ir_op *op);
void nv_scan(nv_emit *e, const ir_op *op);
void nv_vote(nv_emit *e, const ir_op *op);
enum nv_shuffle { NV_BUTTERFLY, NV_INDEX };
/* x, as computed, of another lane. */
LLVMValueRef nv_shuffle(nv_emit *e, enum nv_shuffle kind, LLVMValueRef x, LLVMValueRef lane);

/* ---- nvptx_convert.c ---- */
void nv_convert(nv_emit *e, const ir_op *op);

/* ---- nvptx_align.c ---- */
/* Largest power of two, up to 4096, known to divide the i32 scalar v. */
int32_t nv_divisor(const nv_emit *e, ir_val v);
/* What a scalar, i32 or i64, is never above, where it is never below 0; -1: not known. */
int64_t nv_most(const nv_emit *e, ir_val v);

/* ---- nvptx_tensor.c ---- */
void nv_load(nv_emit *e, const ir_op *op);
void nv_store(nv_emit *e, const ir_op *op);
void nv_atomic(nv_emit *e, const ir_op *op);

/* ---- nvptx_shared.c ---- */
typedef struct nv_slot {
    ir_type type; /* as stored: [1, extents...] with its shared layout */
    uint8_t
        perm[TILE_MAX_RANK]; /* dimension i of the tile is dimension perm[i] of the stored one */
    int rank;                /* of the tile */
    int64_t offset;          /* bytes from the start of shared memory, without moved */
    LLVMValueRef moved;      /* i32 bytes, or NULL */
    int32_t align;           /* of offset and moved */
} nv_slot;
void nv_buffer_slot(nv_emit *e, const ir_op *op);
nv_slot nv_slot_of(nv_emit *e, ir_val v);
/* Where the element is whose index along dimension d of the tile is constant[d] + what lane and
 * warp add by map. */
LLVMValueRef nv_shared_pointer(nv_emit *e, const nv_slot *slot, const layout_map *map,
                               const int32_t *constant);
/* The same, further on along a dimension by a value of which only these bits may be set. */
typedef struct nv_motion {
    int dim;
    LLVMValueRef by;
    uint32_t bits;
} nv_motion;
LLVMValueRef nv_shared_moving(nv_emit *e, const nv_slot *slot, const layout_map *map,
                              const int32_t *constant, const nv_motion *motion);
void nv_buffer_load(nv_emit *e, const ir_op *op);
void nv_buffer_store(nv_emit *e, const ir_op *op);
/* A vector of count elements of dtype t at p, aligned to its size, as words: a pair of 16-bit
 * floats is one. */
int nv_vector_words(enum dtype t, int count);
void nv_vector_load(nv_emit *e, enum dtype t, int count, LLVMValueRef p, bool invariant,
                    LLVMValueRef *word);
void nv_split_words(nv_emit *e, enum dtype t, int count, LLVMValueRef *word, LLVMValueRef *raw);
void nv_vector_store(nv_emit *e, enum dtype t, int count, LLVMValueRef p, LLVMValueRef *raw);

/* ---- nvptx_copy.c ---- */
void nv_copy_async(nv_emit *e, const ir_op *op);

/* ---- nvptx_mma.c, nvptx_dot.c ---- */
void nv_mma(nv_emit *e, const ir_op *op);
void nv_mma_sum(nv_emit *e, const ir_op *op);
/* A cast to a 16-bit float that nothing but a product behind it in its block takes, as left factor:
 * not emitted, but done by nv_mma, the pieces of one step at a time, right before it. A tile that
 * is rounded at once ptxas has in other registers than mma.sync wants it (bench/NOTES.md). */
bool nv_mma_rounds(const nv_emit *e, const ir_op *op);
void nv_dot(nv_emit *e, const ir_op *op);

#endif
