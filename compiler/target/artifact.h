#ifndef TW_TARGET_ARTIFACT_H
#define TW_TARGET_ARTIFACT_H
/* What a target makes of a kernel: code objects and a launch recipe. Plain data: it can be written
 * to bytes, kept in the store and read back by another process. */
#include "compiler/base/hash.h"
#include "compiler/ir/ir.h"
#include "tilewright.h"

enum slot_kind {
    SLOT_POINTER,   /* base of tensor parameter `param` (+ its byte offset), 8 bytes       */
    SLOT_STRIDE,    /* stride of its dimension `index`, in elements, i64                   */
    SLOT_DIM,       /* run-time extent: dimension symbol `index` of the kernel, i64        */
    SLOT_SCALAR,    /* scalar parameter `param`, its bits in the low bytes                 */
    SLOT_GRID,      /* extent of the kernel's grid along `index`, i64                      */
    SLOT_WORKSPACE, /* pointer to workspace `index`, shared by all programs of a launch    */
    SLOT_COUNTER,   /* pointer to counter `index` (64 bits), cleared before the step       */
    SLOT_ASSERT,    /* GPU: pointer to an assert_record                                    */
    SLOT_CALLS,     /* CPU: pointer to a program_calls                                     */
    SLOT_FIRST      /* GPU: the launch's first program along grid dimension `index`, i64. Block x
                       of the physical, one-dimensional grid runs the program x places behind
                       it, dimension 0 fastest. Code without it does not depend on which
                       program it runs                                                     */
};
typedef struct recipe_slot {
    uint8_t kind, index;
    uint16_t param;
} recipe_slot;

/* A number known at launch: factor * (more + the product of all ceil(extent of dimension symbol
 * dim[i] / per[i])). Without terms the product is 1. */
typedef struct recipe_count {
    int64_t factor, more;
    uint8_t nterms, dim[VIEW_MAX_RANK];
    int32_t per[VIEW_MAX_RANK];
} recipe_count;

typedef struct recipe_step {
    uint32_t object;       /* which code object */
    const char *symbol;    /* entry in it */
    uint32_t nslots;
    recipe_slot *slot;     /* the entry's arguments, in order */
    recipe_count programs; /* a grid of its own, of one dimension, of which each launch runs all;
                              factor 0: the kernel's grid */
    uint8_t grid_map[3];   /* physical dimension i runs over kernel grid dimension grid_map[i] */
    uint8_t reversed;      /* bit i: dimension i of the kernel grid is walked from the end */
    int32_t block_threads; /* GPU: threads per block */
    int32_t shared_bytes;  /* GPU: dynamic shared memory */
    int64_t scratch_bytes; /* CPU: private memory of one running program, 64-byte aligned */
} recipe_step;

/* One print of the kernel: a scalar (rank 0) or a tile, as its elements lie. */
typedef struct artifact_print {
    const char *text; /* its label and where it stands */
    uint8_t dtype, held, rank; /* held: the dtype of the elements, which may be wider */
    int32_t shape[TILE_MAX_RANK];
    int64_t stride[TILE_MAX_RANK]; /* in elements */
} artifact_print;
/* What programs on the host call while they run; several may at once. fail: before a program
 * returns the assert that failed, when its text shows values (up to ASSERT_MAX_VALUES). */
typedef struct program_calls {
    void (*print)(const struct program_calls *self, int32_t index, int32_t x, int32_t y, int32_t z,
                  const void *elements);
    void (*fail)(const struct program_calls *self, int32_t index, int32_t x, int32_t y, int32_t z,
                 const int32_t *values);
} program_calls;

/* Where code that cannot return a failed assert, a GPU's, notes it, in memory that the host reads
 * meanwhile. A program that takes it (0 to 1 in `taken`, by one atomic operation of the device)
 * writes what it has to say, and last `failed`, behind a fence. Others are silent, until the host
 * has read it and clears `failed`, then `taken`: so it never holds parts of two failures. */
typedef struct assert_record {
    uint32_t failed, taken; /* failed: 1 + the assert's index */
    int32_t program[3], value[ASSERT_MAX_VALUES]; /* of asserts whose text shows values */
    int32_t told;                                 /* are these two there? */
    int32_t unused[7];                            /* one record, one line of the cache */
} assert_record;

enum object_kind { OBJECT_ELF, OBJECT_TIR, OBJECT_PTX, OBJECT_CUBIN };
typedef struct code_object {
    enum object_kind kind;
    uint32_t size;
    const uint8_t *bytes;
} code_object;

typedef struct artifact {
    uint32_t nobjects, nsteps, nworkspaces, ncounters, nasserts, nprints;
    code_object *object;
    recipe_step *step;
    recipe_count *workspace;  /* bytes of each */
    const char **assert_text; /* an entry returns 1 + index of the assert that failed, or 0 */
    artifact_print *print;
    const char *launch_text;  /* printed launch function; the warm process need not lower again */
    int32_t ir_ops;           /* statistics: level-1 ops after passes */
    int32_t registers, spill_bytes; /* GPU; 0 elsewhere */
    uint32_t code_bytes;      /* machine code, without tables */
} artifact;

/* What targets that make code start from: one object, and one step over the kernel's grid whose
 * entry has the kernel's name, without slots. Shares data. Under guard_run. */
artifact *artifact_of_code(arena *a, const ir_module *m, enum object_kind kind, const char *data,
                           size_t size);
/* Bytes in a, prefixed with a magic and a version. */
void artifact_write(const artifact *art, arena *a, const uint8_t **bytes, size_t *size);
/* Checks everything it reads (the bytes may be from a damaged file): TW_E_STORE on any doubt.
 * Copies into a. */
tw_status artifact_read(arena *a, const uint8_t *bytes, size_t size, artifact **out);

/* artifact.launch_text of m: its launch function and the kernel's parameters, without the kernel's
 * body, in the form that ir_parse reads. Under guard_run. */
const char *artifact_launch_text(arena *a, const ir_module *m);
/* What is shown when this assert fails: its text and where it stands. Under guard_run. */
const char *artifact_assert_text(arena *a, const ir_op *op);
/* Of a print whose elements lie in row-major order, in their own dtype. Under guard_run. */
artifact_print artifact_print_of(arena *a, const ir_fn *fn, const ir_op *op);

#endif
