#ifndef TW_DSL_ELABORATE_H
#define TW_DSL_ELABORATE_H
/* A resolved tree and compile-time values -> tile IR, in one walk that checks types and shapes.
 *
 * Every expression has a value: a constant, a run-time scalar or tile (an IR value), a dtype, a
 * type, a tensor, a slice of one. A mistake is reported once and gives VAL_BAD, which is silent
 * from then on. Functions are inlined. As nothing recurses, a declaration has at most one value at
 * a time: env, indexed by slot, is all there is of scopes and frames. */
#include "compiler/ir/irbuild.h"
#include "compiler/ir/ireval.h"
#include "dsl/names.h"

#define ELAB_MAX_VALUES 20000 /* IR values of one kernel */
#define ELAB_MAX_STEPS 400000 /* expressions and statements walked, inlined ones each time */
#define ELAB_MAX_DEPTH 800    /* levels of the walk: bounds the C stack */

enum value_kind {
    VAL_UNSET,   /* a slot of env without a value yet */
    VAL_BAD,     /* reported already */
    VAL_NOTHING, /* of a call without a result */
    VAL_CONST,   /* known now; an untyped one adapts to what it meets */
    VAL_RUN,     /* an IR value */
    VAL_DTYPE,
    VAL_TYPE,  /* f32[64, 64] */
    VAL_VIEW,  /* a tensor parameter */
    VAL_PLACE, /* a slice of one */
    VAL_TEXT,
    VAL_MEMBER, /* of an enumeration */
    VAL_FN
};
enum const_class { CLASS_INT, CLASS_FLOAT, CLASS_BOOL };

enum { NO_LINE = -2 };
typedef struct place {
    const decl *tensor;
    ir_val view, index[VIEW_MAX_RANK];
    int32_t extent[VIEW_MAX_RANK];
    ir_type type; /* of what is read or written, as the text sees it */
    int lines;    /* dimensions of its tiles of indices when they have more than one, else 0 */
    int axis[VIEW_MAX_RANK]; /* lines: along which of them an index runs, -1: has one element */
    ir_type block;           /* of the one tile of indices that has several dimensions, if rank */
    ir_type stored;          /* lines, block: as memory has it */
} place;

typedef struct value {
    enum value_kind kind;
    enum const_class cls; /* CONST */
    enum dtype dtype;     /* CONST: DT_NONE = untyped; DTYPE */
    union {
        ir_scalar num; /* CONST */
        ir_val run;
        ir_type type;
        const decl *tensor;
        const place *place;
        const char *text;
        const decl *decl; /* MEMBER, FN */
    } as;
} value;

enum elab_mode {
    ELAB_CONST, /* no IR: constants only */
    ELAB_HOST,  /* the launch function: scalars, no control flow, no memory */
    ELAB_KERNEL
};

typedef struct call_site {
    span where;
    const decl *fn;
} call_site;

typedef struct elab {
    arena *a;
    diag_list *diags;
    const unit_ast *unit;
    const kernel_ast *kernel; /* NULL while a file's constants are evaluated */
    enum elab_mode mode;
    ir_builder b;
    value *env;
    VEC(call_site) calls; /* being inlined, outermost first */
    uint32_t steps, depth;
    bool in_fold; /* in the function of a reduction or a scan: choices are selects */
    bool over;    /* a limit was met: all is silent from here on */
} elab;

/* ---- elab_value.c: values and their conversions ---- */

value val_bad(void);
value val_nothing(void);
value val_int(int64_t i);
value val_float(double f);
value val_bool(bool b);
value val_run(ir_val v);
value val_dtype(enum dtype t);
value val_type(ir_type t);
value val_member(const decl *d);
value val_fn(const decl *d);

/* Reports, with the chain of calls that led here; NULL after a limit. */
diag *elab_error(elab *cx, enum diag_id id, span where, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* "f32[64]", "the constant 3", "a dtype", "a slice of q": for messages. */
const char *val_text(elab *cx, const value *v);
const char *elab_type_text(elab *cx, ir_type t);
ir_type val_run_type(const elab *cx, const value *v); /* of VAL_RUN */
/* Of a constant or run-time value; an untyped constant alone is i32, f32 or i1. */
enum dtype val_dtype_of(const elab *cx, const value *v);
bool val_is_number(const value *v); /* CONST or RUN */
/* Reports what is not a scalar or tile; false then, and for VAL_BAD. */
bool elab_need_number(elab *cx, const value *v, const expr *e, const char *user);

/* A constant as one of type t; reports when it does not fit. */
bool val_const_to(elab *cx, value *v, enum dtype t, span where);
/* As an IR value; a constant gets dtype t, or its own when t is DT_NONE. 0 after a report. */
ir_val val_to_run(elab *cx, const value *v, enum dtype t, span where);
/* An i32 scalar, for indices and loop bounds. 0 after a report. */
ir_val elab_need_index(elab *cx, const value *v, const expr *e, const char *user);
/* An i1 scalar, constant or not. */
bool elab_need_condition(elab *cx, const value *v, const expr *e, const char *user);
/* A compile-time int in [lo, hi]. */
bool elab_need_int(elab *cx, const value *v, const expr *e, const char *user, int64_t lo,
                   int64_t hi, int64_t *out);
/* Gives n values one dtype: constants adapt to the others. Reports a clash as user's. */
bool elab_unify(elab *cx, value *v, const expr *const *e, int n, const char *user, span where);
/* Gives n IR values one shape: scalars and extents of 1 are widened. */
bool elab_join(elab *cx, ir_val *v, int n, const char *user, span where);
/* v as a value of type t: dtype must agree (constants adapt), shape may be widened. 0 on report. */
ir_val val_as(elab *cx, const value *v, ir_type t, const expr *e, const char *user);
/* Within the limits of a tile? Reports if not. */
bool elab_check_tile(elab *cx, ir_type t, span where);

/* ---- elab_fold.c: arithmetic on constants ---- */

/* An elementwise op: folds constants, or widens and builds. v has one dtype (see elab_unify). */
value elab_apply(elab *cx, enum ir_opcode code, value *v, int n, const char *user, span where);

/* ---- elab_expr.c ---- */

value elab_expr(elab *cx, const expr *e);
/* The type that an annotation or an argument such as f32[64] names; kind TYPE_NONE after a report.
 */
ir_type elab_type(elab *cx, const expr *e);
/* The tile type of dtype t with these extents; kind TYPE_NONE after a report. */
ir_type elab_shape_of(elab *cx, enum dtype t, const expr_list *list, span where);
/* Counts a step; false, once reported, when a limit is met. */
bool elab_enter(elab *cx, span where);
void elab_leave(elab *cx);
/* IR can be built here; reports (as user's) if not. */
bool elab_need_builder(elab *cx, span where, const char *user);
bool elab_need_program(elab *cx, span where, const char *user);

/* ---- elab_branch.c: ?:, &&, || ---- */

value elab_cond(elab *cx, const expr *e);
value elab_logic(elab *cx, const expr *e);

/* ---- elab_call.c ---- */

value elab_call(elab *cx, const expr *e);
/* The value of d's body, inlined where e stands; from: what gave each argument, for messages. */
value elab_inline(elab *cx, const expr *e, const decl *d, const value *v, expr *const *from);

/* ---- elab_math.c, elab_tile.c, elab_reduce.c, elab_random.c: built-ins; arguments are evaluated,
 * v[0] is the first ---- */

value elab_elementwise(elab *cx, const expr *e, value *v);
value elab_special(elab *cx, const expr *e, value *v);
value elab_print(elab *cx, const expr *e, value *v);
value elab_check(elab *cx, const expr *e, value *v);
value elab_make(elab *cx, const expr *e, value *v);
value elab_memory(elab *cx, const expr *e, value *v);
value elab_shape(elab *cx, const expr *e, value *v);
value elab_reduce(elab *cx, const expr *e, value *v);
value elab_fold_along(elab *cx, const expr *e, value *v);
value elab_random(elab *cx, const expr *e, value *v);
value elab_dot(elab *cx, const expr *e, value *v);

/* ---- elab_index.c ---- */

value elab_index(elab *cx, const expr *e);
/* What memory operations on p give, as the text sees it, and the other way round. */
ir_val elab_as_seen(elab *cx, const place *p, ir_val v);
ir_val elab_as_stored(elab *cx, const place *p, ir_val v);

/* ---- elab_stmt.c ---- */

void elab_stmt(elab *cx, const stmt *s);
/* The outer vars that a loop or branch assigns, and what they are at the moment. */
typedef struct carried {
    uint32_t n;
    const decl **var;
    ir_val *now; /* their values, refreshed by elab_read_vars */
    ir_type *type;
} carried;
carried elab_carry(elab *cx, const decl_list *assigned);
/* From now on they are the consecutive values from first on. */
void elab_set_vars(elab *cx, const carried *c, ir_val first);
void elab_read_vars(elab *cx, carried *c);
/* An if on a run-time condition: s has then, other and assigned. */
void elab_run_if(elab *cx, const stmt *s, ir_val cond);
void elab_name_value(elab *cx, const decl *d, const value *v);

/* ---- elab_masked.c ---- */

void elab_masked(elab *cx, const stmt *s);

/* ---- elab_stmt.c ---- */

/* A let, const, var or argument: checks v against the declared type and binds it. */
void elab_bind(elab *cx, const decl *d, value v, const expr *e);

/* ---- elab_kernel.c ---- */

tw_status elab_lower(const unit_ast *unit, const kernel_ast *k, const kernel_sig *sig, arena *a,
                     intern *names, const ir_binding *binding, uint32_t nbinding, diag_list *diags,
                     ir_module **out);
/* Ready to evaluate constants; binding may be NULL. */
void elab_init(elab *cx, const unit_ast *unit, const kernel_ast *k, arena *a, diag_list *diags);
bool elab_bindings(elab *cx, const kernel_sig *sig, const ir_binding *binding, uint32_t n);

#endif
