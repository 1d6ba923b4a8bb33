#ifndef TW_TARGET_CPU_EMIT_H
#define TW_TARGET_CPU_EMIT_H
/* Plan -> LLVM IR of one function: what the emitting files share.
 *
 *   cpu_emit.c    the function: arguments, steps, control
 *   cpu_loop.c    loops; cpu_nests.c: those of a nest; cpu_reduce.c: reductions
 *   cpu_ahead.c   what a dot's nest asks the caches for
 *   cpu_dot.c     the register block of a dot; cpu_pairs.c, cpu_tiles.c: of bf16, whose operands
 *                 cpu_turn.c turns
 *   cpu_eval.c    elements of virtual tiles; buffers
 *   cpu_slice.c   where the elements of tensors are; cpu_access.c: read and written;
 *                 cpu_atomic.c: both at once
 *   cpu_ops.c     elementwise ops; cpu_math.c: exp2 and its like; cpu_half.c: floats of 16 bits
 *
 * Code of a nest is emitted at the outermost loop where its operands are known: every index and
 * every value knows the depth of the loop it changes in (0 = outside of the nest), and what was
 * computed once at a depth is found again (memo) until that loop closes. */
#include "compiler/target/artifact.h"
#include "compiler/target/cpu/cpu_plan.h"
#include "compiler/target/llvm/llvm_build.h"

enum { CPU_MAX_DEPTH = 8, CPU_MAX_LANES = 16 };

/* An index along one dimension: base + off. */
typedef struct cpu_index {
    LLVMValueRef base; /* i64, or NULL for 0 */
    int64_t off;
    int depth; /* loop that base changes in */
} cpu_index;

/* Which elements of a tile: lanes consecutive ones from i[lane] on, or one where lane < 0. */
typedef struct cpu_at {
    cpu_index i[TILE_MAX_RANK];
    int lane;
} cpu_at;

/* A vector of the target's lanes, or a scalar when all lanes are equal. */
typedef struct cpu_got {
    LLVMValueRef v;
    int depth;
} cpu_got;

typedef struct cpu_view {
    LLVMValueRef base, stride[VIEW_MAX_RANK], extent[VIEW_MAX_RANK];
} cpu_view;

/* Where a direct load's block lies. */
typedef struct cpu_direct {
    LLVMValueRef base, stride[TILE_MAX_RANK];
} cpu_direct;

typedef struct cpu_memo {
    ir_val v; /* 0: key is (tag, x, y) */
    cpu_at at;
    int tag;
    const void *x, *y;
    cpu_got got;
    uint32_t next; /* in its chain, 0 = end */
} cpu_memo;
enum { CPU_MEMO_CHAINS = 4096 };

typedef struct cpu_emit {
    const cpu_plan *plan;
    const cpu_isa *isa;
    ir_fn *fn;
    ll_cx *cx;
    arena *a;
    LLVMValueRef *scalar; /* by value id */
    cpu_direct *direct;   /* by value id */
    cpu_view *view;       /* by parameter; base NULL until used */
    LLVMValueRef arg_slots, arg_pid[3], arg_scratch;
    LLVMValueRef zero; /* 64 bytes of zeros: what loads outside read where nothing is masked */
    VEC(recipe_slot) slots;
    VEC(LLVMValueRef) slot_value;
    VEC(const char *) asserts;
    VEC(artifact_print) prints;
    LLVMBasicBlockRef entry, leave; /* leave: returns exit_code */
    LLVMValueRef exit_code;

    diag_list *diags;
    LLVMBasicBlockRef counted; /* the last block whose instructions are in size */
    int64_t size;
    int64_t dearest_size; /* of the step that made most of it */
    span dearest;         /* and where that stands in the text */

    LLVMBasicBlockRef here; /* where code of the current depth goes */
    int depth;
    LLVMBasicBlockRef enter[CPU_MAX_DEPTH]; /* by depth: block that ends by entering depth + 1 */
    VEC(cpu_memo) memo;                     /* [0] is unused */
    uint32_t chain[CPU_MEMO_CHAINS];
    /* the block of rows that a transposing nest works on */
    LLVMValueRef block_base;
    int64_t block_off;
    int block_rows;           /* 0: none */
    LLVMValueRef tile_memory; /* of emulated tiles; NULL until used */
    LLVMValueRef room[4];     /* of cpu_atomic.c; NULL until used */
    LLVMValueRef values;      /* of asserts; NULL until used */
} cpu_emit;

/* ---- cpu_emit.c ---- */
enum { CPU_MAX_CODE = 40000 }; /* LLVM instructions of one kernel */
/* Builds function `name`; fills slots and asserts. */
void cpu_emit_function(cpu_emit *e, const char *name);
void cpu_goto(cpu_emit *e, LLVMBasicBlockRef block);
/* The value of a slot, read in the entry block; pointers as such. */
LLVMValueRef cpu_slot(cpu_emit *e, enum slot_kind kind, int param, int index);
/* Code goes where depth's does, until cpu_home. */
void cpu_hoist(cpu_emit *e, int depth);
void cpu_home(cpu_emit *e);
const cpu_view *cpu_view_of(cpu_emit *e, int param);
LLVMValueRef cpu_index_value(cpu_emit *e, cpu_index i); /* as i64, at its depth */

/* ---- cpu_loop.c ---- */
enum { CPU_MAX_CARRIED = 64 };
typedef struct cpu_loop {
    LLVMBasicBlockRef head; /* NULL: no loop, one iteration */
    LLVMValueRef index, phi[CPU_MAX_CARRIED];
    int64_t n, step;
    int ncarried;
} cpu_loop;
/* 0, step, ... below n. carried: what enters, replaced by what each iteration begins with. */
cpu_index cpu_loop_open(cpu_emit *e, cpu_loop *l, int64_t n, int64_t step, LLVMValueRef *carried,
                        int ncarried);
/* carried: what the iteration ends with, which is also what the loop leaves. */
void cpu_loop_close(cpu_emit *e, cpu_loop *l, LLVMValueRef *carried);
/* Code that runs where condition (i1, known here) holds; a depth of its own. after: of
 * cpu_when_open, for cpu_when_close. */
LLVMBasicBlockRef cpu_when_open(cpu_emit *e, LLVMValueRef condition);
void cpu_when_close(cpu_emit *e, LLVMBasicBlockRef after);

/* ---- cpu_nests.c ---- */
void cpu_emit_nest(cpu_emit *e, const cpu_nest *n);

/* ---- cpu_dot.c ---- */
/* The nest's dot for mr rows of nr vectors; at: of each, the vectors of a row next to each other.
 * Its elements are remembered. */
void cpu_emit_dot(cpu_emit *e, const cpu_nest *n, const cpu_at *at, int mr, int nr);

/* ---- cpu_tiles.c ---- */
/* Where tiles put f32, rows next to each other; stride in elements. */
typedef struct cpu_stage {
    LLVMValueRef p;
    int64_t stride;
} cpu_stage;
bool cpu_dot_starts_at_zero(const cpu_emit *e, const ir_op *dot);
/* The nest's dot for up to 32 rows of up to 2 vectors from `at` on, into stage, which holds what
 * they start from unless that is zero. */
void cpu_emit_tiles(cpu_emit *e, const cpu_nest *n, const cpu_at *at, int rows, int nr,
                    cpu_stage stage);

/* ---- cpu_turn.c ---- */
/* A nest that turns a load of bf16. */
void cpu_emit_turned(cpu_emit *e, const cpu_nest *n);

/* ---- cpu_pairs.c: i32 words that hold two elements of bf16, the first in the low half ---- */
/* Elements `at` and the next ones along the pairs' dimension of a dot's operand. */
LLVMValueRef cpu_load_pairs(cpu_emit *e, ir_val v, const cpu_at *at);
/* low and high are vectors of f32; exact: they hold values of bf16. */
void cpu_store_pairs(cpu_emit *e, uint32_t buf, const cpu_at *at, LLVMValueRef low,
                     LLVMValueRef high, bool exact);
/* v of f32, rounded to bf16, as it lies in memory; subnormal values may be taken for 0. */
LLVMValueRef cpu_rounded_bits(cpu_emit *e, LLVMValueRef v);
/* acc + both products of the pairs, in f32; subnormal factors and results may be taken for 0. */
LLVMValueRef cpu_add_products(cpu_emit *e, LLVMValueRef acc, LLVMValueRef x, LLVMValueRef y);

/* ---- cpu_calls.c ---- */
void cpu_emit_print(cpu_emit *e, const ir_op *op);
/* Tells the values of an assert that failed, the kernel's index-th. */
void cpu_emit_failure(cpu_emit *e, const ir_op *op, uint32_t index);

/* ---- cpu_eval.c ---- */
cpu_got cpu_eval(cpu_emit *e, ir_val v, const cpu_at *at);
/* What v's op gives at these indices, though v has a buffer: for the nest that fills it. */
cpu_got cpu_eval_item(cpu_emit *e, ir_val v, const cpu_at *at);
/* An operand of a dot: what is direct is read in place. */
cpu_got cpu_eval_operand(cpu_emit *e, ir_val v, const cpu_at *at);
/* The value that operand v is but for views; *at: of v, becomes of that. */
ir_val cpu_operand(const cpu_emit *e, ir_val v, cpu_at *at);
/* Where a direct load's element lies; it is known at that depth. */
LLVMValueRef cpu_direct_address(cpu_emit *e, ir_val v, const cpu_at *at, int depth);
LLVMValueRef cpu_buf_address(cpu_emit *e, const cpu_buf *b, const cpu_at *at, int depth);
void cpu_remember(cpu_emit *e, ir_val v, const cpu_at *at, cpu_got got);
/* got as a vector. */
LLVMValueRef cpu_vector(cpu_emit *e, cpu_got got);
/* Instructions that are not emitted twice: looked up by tag and operands. NULL when nothing known
 * at depth has them; then the caller emits it there (between cpu_hoist and cpu_home) and notes it.
 */
enum cpu_tag {
    CPU_TAG_ADD,
    CPU_TAG_MUL,
    CPU_TAG_SPLAT,
    CPU_TAG_SEXT,
    CPU_TAG_BELOW,
    CPU_TAG_ORIGIN,
    CPU_TAG_OUTER,
    CPU_TAG_MASK,
    CPU_TAG_GEP = 64,      /* + kind and width of the element */
    CPU_TAG_REST = 1 << 20 /* + limit */
};
LLVMValueRef cpu_known(const cpu_emit *e, int tag, const void *x, const void *y, int depth);
void cpu_note(cpu_emit *e, int tag, const void *x, const void *y, LLVMValueRef v, int depth);
LLVMValueRef cpu_mul(cpu_emit *e, LLVMValueRef x, LLVMValueRef y, int depth);
LLVMValueRef cpu_add(cpu_emit *e, LLVMValueRef x, LLVMValueRef y, int depth);
void cpu_store_buf(cpu_emit *e, uint32_t buf, const cpu_at *at, cpu_got got);
/* got is f32, buf an operand of tiles. */
void cpu_store_narrow(cpu_emit *e, uint32_t buf, const cpu_at *at, cpu_got got);
void cpu_memo_close(cpu_emit *e, int depth); /* forgets what was computed at depth and deeper */
void cpu_memo_clear(cpu_emit *e);
int cpu_at_depth(const cpu_at *at, int rank);

/* ---- cpu_slice.c; the rest of it is in cpu_slice.h ---- */
/* base + sum of index * stride, in elements of type elem; the constant part is added at depth. */
typedef struct cpu_term {
    cpu_index i;
    LLVMValueRef stride; /* i64 */
} cpu_term;
LLVMValueRef cpu_address(cpu_emit *e, LLVMTypeRef elem, LLVMValueRef base, const cpu_term *t, int n,
                         int depth);
/* Does all of the slice, no dimension of which is gathered, lie in the tensor? NULL: proved. */
LLVMValueRef cpu_slice_inside(cpu_emit *e, const ir_op *op);

/* ---- cpu_access.c ---- */
cpu_got cpu_load_tensor(cpu_emit *e, const ir_op *op, const cpu_at *at);
/* Two vectors of elements of 16 bits as they lie along at->lane, which is contiguous: the first
 * width of them; the others, and those outside of the tensor, are 0. */
LLVMValueRef cpu_load_row(cpu_emit *e, const ir_op *op, const cpu_at *at, int width);
/* n of them, all inside of the tensor. */
LLVMValueRef cpu_load_inside(cpu_emit *e, const ir_op *op, const cpu_at *at, int n);
void cpu_store_tensor(cpu_emit *e, const ir_op *op, const cpu_at *at, cpu_got got);
/* The rows of the nest's block at once: got[r] belongs at `at` with r added along dimension inner,
 * which lies contiguous in the tensor. */
void cpu_store_block(cpu_emit *e, const ir_op *op, const cpu_at *at, const cpu_got *got, int inner);
void cpu_prepare_direct(cpu_emit *e, const cpu_step *s);
LLVMValueRef cpu_load_element(cpu_emit *e, const ir_op *op); /* outside of the tensor: 0 */
void cpu_store_element(cpu_emit *e, const ir_op *op);
/* Of an access to one element; *inside NULL: proved. */
LLVMValueRef cpu_element_pointer(cpu_emit *e, const ir_op *op, LLVMValueRef *inside);
/* Of the lanes' elements, at the depth of the nest; mask: which of them there are. */
LLVMValueRef cpu_lane_pointers(cpu_emit *e, const ir_op *op, const cpu_at *at, LLVMValueRef *mask);

/* ---- cpu_atomic.c: what was there before ---- */
cpu_got cpu_atomic(cpu_emit *e, const ir_op *op, const cpu_at *at);
LLVMValueRef cpu_atomic_element(cpu_emit *e, const ir_op *op);

/* ---- cpu_half.c ---- */
/* Types of registers and scratch, and of elements in a tensor. */
LLVMTypeRef cpu_type(const cpu_emit *e, enum dtype t, int lanes);
LLVMTypeRef cpu_memory_type(const cpu_emit *e, enum dtype t, int lanes);
/* Between memory and a register: i1 is a byte in memory, f16 and bf16 are 16 bits. */
LLVMValueRef cpu_to_register(cpu_emit *e, enum dtype t, LLVMValueRef v);
LLVMValueRef cpu_to_memory(cpu_emit *e, enum dtype t, LLVMValueRef v);
/* x, held as cpu_held(t), to the nearest value of t. */
LLVMValueRef cpu_round(cpu_emit *e, enum dtype t, LLVMValueRef x);

/* ---- cpu_ops.c ---- */
/* An elementwise op or cast; all operands have the same number of lanes. */
LLVMValueRef cpu_op(cpu_emit *e, enum ir_opcode code, enum dtype from, enum dtype to,
                    LLVMValueRef *args);
/* x op y of a reduction whose NaNs are tracked apart. */
LLVMValueRef cpu_combine(cpu_emit *e, enum ir_opcode code, enum dtype t, LLVMValueRef x,
                         LLVMValueRef y);
LLVMValueRef cpu_neutral(cpu_emit *e, enum ir_opcode code, enum dtype t, int lanes);
LLVMValueRef cpu_fma_or_not(cpu_emit *e, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z);

/* ---- cpu_math.c: x is f32 ---- */
LLVMValueRef cpu_math(cpu_emit *e, enum ir_opcode code, LLVMValueRef x);

#endif
