#ifndef TW_TARGET_CPU_PLAN_H
#define TW_TARGET_CPU_PLAN_H
/* What the code generator of the CPU decides before it emits anything. docs/CPU.md has the picture.
 *
 *   cpu_orient.c   which dimension of each tile lies in the vector lanes
 *   cpu_tile_fit.c which dots of bf16 go in tiles: what fits the registers
 *   cpu_place.c    which tiles are computed once (items), which again at each use (virtual)
 *   cpu_nest.c     items -> loop nests, fused; scalars and nests -> steps, in order
 *   cpu_scratch.c  live ranges of the buffers in scratch -> what is shared, offsets
 *
 * A copy of a tile is a cast to its own dtype; the planner inserts some.
 * Everything lives in the arena of the plan. Runs under guard_run. */
#include "compiler/ir/ir.h"
#include "compiler/passes/facts.h"
#include "compiler/target/cpu/cpu_isa.h"

/* What registers and scratch hold for a value of dtype t. */
static inline enum dtype cpu_held(enum dtype t)
{
    return t == DT_F16 || t == DT_BF16 ? DT_F32 : t;
}

typedef struct cpu_step cpu_step;
typedef struct cpu_block cpu_block;

/* A stretch of time, both ends included; see cpu_scratch.c. */
typedef struct cpu_span {
    int32_t from, to;
} cpu_span;

/* A tile in scratch: the lane dimension innermost and padded to whole vectors, the others row-major
 * around it. Buffers that are never alive at the same time may be one.
 * In pairs: elements k and k + 1 (k even) along a dimension that is not the lane are 16 bits each
 * of one word of 32, strides count words, and that of this dimension is half of the pairs'
 * distance. */
typedef struct cpu_buf {
    ir_type type; /* its dtype is what is held; bf16 where it is kept in 16 bits */
    int lane;
    int pairs;                     /* 1 + the dimension that lies in pairs; 0: none */
    int64_t stride[TILE_MAX_RANK]; /* in elements */
    int64_t bytes, offset;
    uint32_t root; /* the buffer it is merged into, or itself */
    VEC(cpu_span) live;
} cpu_buf;

enum cpu_place {
    CPU_SCALAR,  /* not a tile: an SSA value                                    */
    CPU_VIRTUAL, /* computed where it is used, for the elements needed there    */
    CPU_ITEM,    /* computed by one nest; in a buffer if another step reads it  */
    CPU_CARRIED  /* block argument or result of a control op: in a buffer       */
};

typedef struct cpu_use {
    ir_op *op;
    int arg;
} cpu_use;
typedef VEC(cpu_use) cpu_uses;

typedef struct cpu_value {
    uint8_t place;       /* enum cpu_place */
    uint8_t lane;        /* dimension in the lanes; 0 for scalars */
    uint8_t pairs;       /* of an item: see cpu_buf; only dots of pairs or tiles read it then */
    bool untiled;        /* a dot that the tile registers have no room for */
    bool narrow;         /* of an item: 16 bits an element; only dots of tiles read it then */
    bool direct;         /* a load that dots read in place as their scalar operand */
    uint32_t buf;        /* 0 = none (yet) */
    uint32_t direct_buf; /* zero-filled copy of a direct load's block when it is ragged */
    cpu_step *step;      /* computes it; NULL: a parameter or block argument */
    cpu_step *direct_step;
    cpu_uses uses;
} cpu_value;

enum cpu_item_kind {
    ITEM_BUFFER, /* evaluate v, store it in its buffer if it has one */
    ITEM_DOT,    /* v is a dot */
    ITEM_REDUCE, /* v is a reduction */
    ITEM_FOLD,   /* v is a reduction with a function; alone in its nest */
    ITEM_SCAN,   /* v is a scan; alone in its nest */
    ITEM_STORE,  /* op stores the tile v to a tensor */
    ITEM_ATOMIC  /* op, an atomic one, gives v */
};
typedef struct cpu_item {
    enum cpu_item_kind kind;
    ir_op *op; /* NULL of BUFFER */
    ir_val v;
    uint32_t buf; /* BUFFER: where to; 0 = v's own */
} cpu_item;

/* A load whose block of the next iteration a dot's nest asks for; see cpu_ahead.c. */
typedef struct cpu_ahead {
    const ir_op *load;
    int lane;                  /* the dimension of the view that lies in the lanes */
    int64_t by[VIEW_MAX_RANK]; /* how much further the next block begins */
} cpu_ahead;

/* Loops over one index space. Two forms:
 *   vertical    other rows { lane groups of nr vectors { `inner` rows, mr at a time } }
 *   horizontal  all rows { lane groups }                    for reductions along the lanes */
typedef struct cpu_nest {
    ir_type space;
    int lane;
    int inner;                 /* the row dimension innermost; -1: the space has none */
    bool inner_fixed;          /* a reduction, a dot or a transposition chose it */
    bool horizontal, vertical; /* has reductions along the lanes; along inner */
    bool pairs;                /* an item stores pairs of inner rows */
    bool alone;                /* the one item is a fold or a scan, along the lanes or inner */
    bool blocks;               /* inner rows come in blocks of `lanes`, for transposed access */
    ir_op *turned;             /* all it does is to turn what this load of bf16 gives; or NULL */
    int mr, nr;
    ir_op *dot;
    VEC(cpu_item) items;
    VEC(cpu_ahead) ahead;
} cpu_nest;

enum cpu_step_kind {
    STEP_SCALAR, /* an op with scalar operands and result, or a store of one element */
    STEP_NEST,
    STEP_DIRECT, /* prepares the direct reading of op, a load */
    STEP_CONTROL /* for, while, if */
};
/* A copy that could not be avoided: value src into buffer dst. */
typedef struct cpu_copy {
    ir_val src;
    uint32_t dst;
    cpu_nest *nest;
} cpu_copy;
typedef VEC(cpu_copy) cpu_copies;

struct cpu_step {
    cpu_step *prev, *next;
    enum cpu_step_kind kind;
    cpu_block *block;
    int32_t order;          /* within the block, ascending */
    ir_op *op;              /* SCALAR, DIRECT, CONTROL */
    cpu_nest *nest;         /* NEST; DIRECT: the copy of a ragged block */
    uint64_t reads, writes; /* memory that may change: bit per tensor parameter, capped at 63 */
    cpu_block *region[2];
    int32_t time, end; /* see cpu_scratch.c */
    int32_t region_end[2];
    cpu_copies entry;    /* CONTROL: before it */
    cpu_copies leave[2]; /* CONTROL: at the end of each region */
};
struct cpu_block {
    cpu_step *first, *last;
    cpu_step *owner; /* NULL: the function's body */
    cpu_block *outer;
    ir_block *ir;
};

/* The most tiles of a result that a dot sums at once: of 16 rows, by vectors. */
typedef struct cpu_tile_block {
    int rows, vectors;
} cpu_tile_block;

typedef struct cpu_seen cpu_seen; /* of cpu_each_leaf */

typedef struct cpu_plan {
    arena *a;
    ir_fn *fn;
    const cpu_isa *isa;
    const facts *facts;
    VEC(cpu_value) value; /* by value id */
    VEC(cpu_buf) bufs;    /* [0] is unused */
    cpu_block *body;
    cpu_seen *seen;
    cpu_tile_block tile_block;
    int64_t scratch_bytes;
    int64_t stage; /* offset of CPU_STAGE_BYTES for results of tiles; -1: no dot needs them */
} cpu_plan;

/* All of it. TW_E_LIMIT when the tiles of one program do not fit CPU_MAX_SCRATCH. */
#define CPU_MAX_SCRATCH (256ll << 20)
enum { CPU_TILE_ROWS = 16, CPU_STAGE_BYTES = 4 * CPU_TILE_ROWS * CPU_TILE_ROWS * 4 };
cpu_plan *cpu_plan_new(arena *a, ir_fn *fn, const cpu_isa *isa);

/* ---- the parts, in order ---- */
void cpu_orient(cpu_plan *p);
void cpu_fit_tiles(cpu_plan *p);
void cpu_place(cpu_plan *p);
void cpu_form_nests(cpu_plan *p);
void cpu_scratch(cpu_plan *p);

/* ---- what they share ---- */
void cpu_collect_uses(cpu_plan *p); /* again after ops were inserted */
bool cpu_is_tile(const cpu_plan *p, ir_val v);
bool cpu_is_copy(const cpu_plan *p, const ir_op *op); /* a cast to the same dtype */
/* Inserts a copy of v before op, or where that is NULL at the end of blk; with an entry in value.
 */
ir_val cpu_insert_copy(cpu_plan *p, ir_val v, ir_block *blk, ir_op *before);
/* Follows trans, and copies that are virtual, to the value that is stored; dim (rank entries):
 * dimension of the result -> dimension of that value. */
ir_val cpu_strip(const cpu_plan *p, ir_val v, int *dim);
/* Dimensions of extent above 1. */
int cpu_effective_rank(ir_type t);
/* The parameter that a view is. */
int cpu_view_param(const cpu_plan *p, ir_val view);
/* The dimension of the view that tile dimension d of a load or store walks. */
int cpu_view_dim(const ir_op *op, int d);
/* Does a tile give the indices along dimension d of the view? */
bool cpu_is_gathered(const ir_fn *fn, const ir_op *op, int d);
/* The tile dimension whose elements lie next to each other in the tensor; -1 when unknown. */
int cpu_contiguous_dim(const cpu_plan *p, const ir_op *op);
/* Could the dot read v, which operand arg of it is but for views, one element (pair, tile) at a
 * time where it lies? dim: from cpu_strip. */
bool cpu_may_be_direct(const cpu_plan *p, const ir_op *dot, int arg, ir_val v, const int *dim);
/* What a dot multiplies at once: elements, pairs of bf16, or tiles of 16 x 32 and 32 x 16 bf16. */
enum cpu_dot_kind { CPU_DOT_ELEMENTS, CPU_DOT_PAIRS, CPU_DOT_TILES };
enum cpu_dot_kind cpu_dot_kind(const cpu_plan *p, const ir_op *dot);
/* Operand number of a dot's vector operand: 0 when the result's rows lie in the lanes, else 1. */
int cpu_dot_vector(const cpu_plan *p, const ir_op *dot);

/* A leaf of the expression of a virtual value: a scalar, an item, a carried tile, a direct load. */
typedef struct cpu_leaf {
    ir_val v;
    int8_t dim[TILE_MAX_RANK]; /* leaf's dimension -> dimension of the root's space, -1 = none */
    const ir_op *load;         /* a virtual load met on the way (v is then its result), or NULL */
    bool scalar_operand;       /* read by a dot one element at a time */
    bool vector_operand;
} cpu_leaf;
typedef void (*cpu_leaf_fn)(void *arg, const cpu_leaf *leaf);
/* Each leaf once for each way its dimensions are met. Walks do not nest. */
void cpu_each_leaf(cpu_plan *p, const cpu_item *item, cpu_leaf_fn fn, void *arg);
/* True when the leaf is read at exactly the indices of the space, by one iteration. */
bool cpu_leaf_local(const cpu_plan *p, const cpu_leaf *leaf, const cpu_nest *nest);

/* Finds what the nests of a loop's body should ask for. */
void cpu_look_ahead(cpu_plan *p, cpu_block *b);

uint32_t cpu_new_buf(cpu_plan *p, ir_type type, int lane);
/* One that keeps elements as a tensor does, or in pairs. */
uint32_t cpu_new_narrow(cpu_plan *p, ir_type type, int lane, int pairs);
uint32_t cpu_buf_root(const cpu_plan *p, uint32_t b);
/* A nest that copies v into the buffer, for cpu_copy. */
cpu_nest *cpu_copy_nest(cpu_plan *p, ir_val v, uint32_t buf);

#endif
