#ifndef TW_PASSES_FACTS_CORE_H
#define TW_PASSES_FACTS_CORE_H
/* What facts.c finds and facts_prove.c reasons with.
 *
 * A node is an integer value (scalar or tile) of the kernel or of its launch function. Nodes are
 * numbered in the order in which their values come to be: the kernel's parameters, the launch
 * function, the kernel's body. A launch value that is passed to the kernel (a dimension, a scalar
 * parameter) has the kernel's node. */
#include "compiler/passes/facts.h"
#include "compiler/passes/facts_form.h"

typedef struct fact {
    const ir_fn *fn;
    ir_val val;
    int64_t lo, hi;
    int64_t multiple; /* the value (a tile's first element) is a multiple of this; 0: it is 0 */
    const form *lin;  /* exact, or NULL: a scalar then stands for itself, a tile is opaque */
} fact;

/* p % q == 0 is known; both are scalars. */
typedef struct divides {
    form p, q;
} divides;

struct facts {
    arena *a;
    const ir_fn *fn;
    VEC(fact) node;      /* [0] is unused */
    uint32_t *of_kernel; /* value -> node, 0 = none */
    uint32_t *of_launch;
    uint32_t program_id[3], num_programs[3]; /* nodes, one for all ops of an axis; 0 = not seen */
    VEC(form) known;                         /* each is <= 0 in every program */
    VEC(divides) divided;
    int8_t *truth;   /* of each kernel value: facts_truth, or TRUTH_NEW */
    int *steps_left; /* of proofs, for all questions together: bounds the time of a huge kernel */
};
enum { TRUTH_NEW = 2 };

static inline uint32_t node_of(const facts *f, const ir_fn *fn, ir_val v)
{
    return fn == f->fn ? f->of_kernel[v] : f->of_launch[v];
}
/* The exact form of an integer value; false for an opaque tile or what is no integer. */
bool form_of(const facts *f, const ir_fn *fn, ir_val v, form *out);
/* Bounds of a form; shape: of the tile whose positions FORM_AXIS keys are, or NULL. */
wide form_max(const facts *f, const form *x, const ir_type *shape);
wide form_min(const facts *f, const form *x, const ir_type *shape);
/* Every value that x takes is a multiple of s > 0. */
bool form_divisible(const facts *f, const form *x, int64_t s);
/* Bounds of a dtype's values; false for u64, whose values int64_t does not hold. */
bool dtype_bounds(enum dtype t, int64_t *lo, int64_t *hi);

/* facts_launch.c: what the launch function promises, as facts->known and facts->divided. Called
 * once its values have nodes. */
void facts_read_requires(facts *f, const ir_fn *launch);
/* The program index along an axis is below the grid's extent: bounds and facts->known. */
void facts_bound_program(facts *f, const ir_fn *launch, int axis);

#endif
