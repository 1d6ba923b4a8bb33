#ifndef TW_IR_H
#define TW_IR_H
/* Tile IR: SSA with structured control flow. docs/IR.md is its specification and text form.
 *
 * Ownership: everything lives in the arena of the ir_module. Values are 32-bit ids (dense, from 1;
 * 0 = none) into fn->values. Ops and blocks are arena objects that never move; a removed op is
 * unlinked, not freed. There are no use lists: kernels are a few hundred ops, and the walks in
 * iredit.h are linear.
 *
 * Level 1 has no layouts. Level 2 has layouts (ir_type.layout indexes fn->layouts), buffers, async
 * ops and roles as further rows of ops.def (trait SCHED) and kinds of ir_type.
 */
#include "compiler/base/diag.h"
#include "compiler/base/hash.h"
#include "compiler/base/intern.h"
#include "compiler/ir/type.h"

enum ir_opcode {
#define OP(code, name, min, max, nres, nreg, traits, attrs) OP_##code,
#include "compiler/ir/ops.def"
#undef OP
    OP_COUNT
};
enum ir_trait {
    OPT_PURE = 1, OPT_EWISE = 2, OPT_COMM = 4, OPT_EFFECT = 8, OPT_TERM = 16, OPT_HOST = 32,
    OPT_READ = 64, OPT_WRITE = 128, OPT_SCHED = 256
};
enum ir_attr_kind { ATTR_NONE, ATTR_I64, ATTR_F64, ATTR_INTS, ATTR_STR, ATTR_DTYPE };
#define OP_MAX_ATTRS 3

typedef struct ir_op_info {
    const char *name;
    int min_args, max_args, results, regions; /* -1 = any */
    unsigned traits;
    struct { const char *name; enum ir_attr_kind kind; } attr[OP_MAX_ATTRS];
} ir_op_info;
const ir_op_info *op_info(enum ir_opcode code);
int op_parse(const char *name); /* -1 when unknown */
/* (view, one index per dimension[, values]) with extent and inside: load, store, atomics of
 * level 1. */
static inline bool op_is_access(enum ir_opcode code)
{
    return code >= OP_LOAD && code <= OP_ATOMIC_CAS;
}
static inline bool op_is_fold(enum ir_opcode code)
{
    return code == OP_REDUCE || code == OP_SCAN;
}
/* May it stand in the region of a reduce or a scan, on scalars? */
static inline bool op_folds(enum ir_opcode code)
{
    uint32_t traits = op_info(code)->traits;

    return (traits & OPT_EWISE) || ((traits & OPT_PURE) && (traits & OPT_HOST)) ||
           code == OP_BITCAST;
}
static inline bool op_is_atomic(enum ir_opcode code)
{
    return code >= OP_ATOMIC_ADD && code <= OP_ATOMIC_CAS; /* copies read and write, too */
}

#define ASSERT_MAX_VALUES 3 /* that the text of an assert shows */

typedef uint32_t ir_val;

typedef union ir_attr {
    int64_t i;
    double f;
    const char *s;
    struct { uint32_t n; const int64_t *at; } ints;
} ir_attr;

typedef struct ir_op ir_op;
typedef struct ir_block ir_block;
struct ir_op {
    ir_op *prev, *next;
    ir_block *parent;
    uint16_t code; /* enum ir_opcode */
    uint16_t nargs, nres, nregions;
    ir_val *args;
    ir_val res; /* first result; results have consecutive ids */
    ir_block **regions;
    ir_attr attr[OP_MAX_ATTRS];
    span where;  /* source text it came from, for messages; not part of the printed form */
    uint32_t mark; /* scratch for one pass at a time */
};
struct ir_block {
    ir_op *first, *last; /* last is the terminator once complete */
    ir_op *owner;        /* NULL for a function's body */
    ir_val arg;          /* first block argument; consecutive ids */
    uint32_t nargs;
};
typedef struct ir_value {
    ir_type type;
    ir_op *def;       /* NULL for block arguments */
    ir_block *block;  /* of a block argument, else NULL */
    uint32_t index;   /* which result or argument */
    const char *name; /* hint for printing, or NULL */
} ir_value;

/* A dimension symbol ("M"): its run-time value, or the constant bound at compile time. */
typedef struct ir_dim {
    const char *name;
    bool is_const;
    int64_t value; /* when constant */
} ir_dim;

enum ir_param_kind { PARAM_TENSOR, PARAM_SCALAR, PARAM_DIM, PARAM_GIVEN, PARAM_WORKSPACE };
enum ir_direction { DIR_IN, DIR_OUT, DIR_INOUT };

/* One parameter of the kernel as the caller sees it, or (PARAM_DIM) a hidden one: the run-time
 * value of a dimension symbol, i32, always after the visible ones. In a launch function,
 * PARAM_GIVEN parameters (i1, last) say whether the scalar parameter `symbol` was passed. To a
 * kernel that it has split in steps, a target adds PARAM_WORKSPACE parameters, last: dense views of
 * memory of the launch, with constant extents; no text with them is read. Body block argument
 * number i is parameter i. */
typedef struct ir_param {
    enum ir_param_kind kind;
    const char *name;
    ir_type type; /* view or scalar */
    enum ir_direction direction;
    int32_t dim[VIEW_MAX_RANK]; /* views: index into fn->dims of each dimension */
    int32_t symbol;             /* PARAM_DIM: index into fn->dims; PARAM_GIVEN: into fn->params;
                                   PARAM_WORKSPACE: which of the launch's */
    bool has_default;           /* scalars: see ir_module.launch */
    /* facts that the specialisation promises about a tensor (0/false: nothing) */
    bool unit_inner;            /* innermost stride is 1 element */
    uint16_t align;             /* base and every other stride are multiples of this many bytes */
} ir_param;

typedef struct ir_layout ir_layout; /* level 2; layout.h */
#define IR_MAX_WARPS 32

typedef struct ir_fn {
    struct ir_module *module;
    const char *name;
    VEC(ir_param) params;
    VEC(ir_dim) dims;
    VEC(ir_value) values; /* [0] is unused */
    VEC(ir_layout *) layouts; /* [0] is unused */
    ir_block *body;
    int nresults; /* of a launch function; their types are the operands of its return */
    int warps;    /* level 2: of the block that runs one program; else 0 */
} ir_fn;

/* A kernel after lowering. launch is a straight line of HOST ops over the same parameters in which
 * views may not be used: it asserts what `require` states, and returns
 *   grid x, y, z (i64), then one value per scalar parameter, in parameter order:
 *   where(given, passed, default), or the value passed when there is no default.
 * Default, require and grid expressions use these values. A default may use dimensions and earlier
 * scalars. The host evaluates the function at each launch (ireval.h). */
typedef struct ir_module {
    arena *a;
    intern *names;
    ir_fn *kernel;
    ir_fn *launch;
    int level;               /* 1 or 2 */
} ir_module;

static inline const ir_value *ir_value_of(const ir_fn *fn, ir_val v) { return &fn->values.at[v]; }
static inline ir_type ir_type_of(const ir_fn *fn, ir_val v) { return fn->values.at[v].type; }
static inline ir_op *ir_def(const ir_fn *fn, ir_val v) { return v ? fn->values.at[v].def : NULL; }

#define IR_EACH_OP(op, blk) (ir_op *op = (blk)->first; op; op = op->next)
/* The same when the body may unlink op. */
#define IR_EACH_OP_SAFE(op, nx, blk) \
    (ir_op *op = (blk)->first, *nx = op ? op->next : NULL; op; op = nx, nx = op ? op->next : NULL)

#endif
