#ifndef TW_IR_CBUILD_H
#define TW_IR_CBUILD_H
/* The state behind the calls of tilewright_ir.h. Each call is checked before irbuild.h, which takes
 * wrong ones for our bug, hears of it; runs under a guard_run of its own, because the frames
 * between it and the compile's are the user's; and does nothing once one was wrong. */
#include "compiler/base/vec.h"
#include "compiler/ir/irbuild.h"
#include "compiler/ir/irsource.h"
#include "tilewright_ir.h"

#define CBUILD_MAX_CALLS (1u << 17)
#define CBUILD_MAX_LIST 1024 /* as in the text form: docs/IR.md */
#define CBUILD_MAX_DEPTH 63  /* regions in each other; the body is the 64th block */

typedef struct open_region {
    ir_op *op;
    int region;      /* of op: the one that is being filled */
    ir_block *outer; /* the block that op stands in */
    int count;       /* of an if: values of its first arm */
    const ir_type *types;
} open_region;

struct tw_ir {
    const kernel_sig *sig;
    const ir_binding *binding;
    uint32_t nbinding;
    const char *target;
    diag_list *diags;
    ir_builder b; /* fn is NULL where nothing can be built */
    bool is_launch, done;
    tw_status st; /* of the first wrong call */
    uint32_t calls;
    const char *file; /* of tw_ir_at; in the arena of diags */
    int line;
    VEC(open_region) open;
    ir_val *scalar; /* launch functions: of each visible parameter, what the kernel gets */
};

/* One call. */
typedef struct call call;
struct call {
    tw_ir *b;
    const char *name; /* as in messages */
    void (*build)(call *c);
    const tw_ir_val *args;
    size_t nargs;
    const char *text;
    enum ir_opcode code;
    ir_attr attr[OP_MAX_ATTRS];
    ir_type type;
    const tw_ir_attr *attrs; /* of tw_ir_op */
    size_t nattrs;
    tw_ir_val *out; /* nout of them */
    size_t nout;
    ir_val res;
};
/* Its result, or 0. */
ir_val call_run(call c);

/* ---- inside of a call; all may throw ---- */

/* Makes it the wrong one. Use as  return call_bad(c, ...); */
void call_bad(call *c, enum diag_id id, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
bool call_ok(const call *c);
bool call_see(call *c, const tw_ir_val *args, size_t n); /* all are values in sight */
/* An op by the rules of docs/IR.md; false after call_bad. */
bool call_fits(call *c, enum ir_opcode code, const tw_ir_val *args, size_t n, const ir_attr *attrs,
               ir_type *type);
ir_val call_emit(call *c, enum ir_opcode code, const tw_ir_val *args, size_t n,
                 const ir_attr *attrs, ir_type type);
/* Is the region of a reduce or scan open? */
bool cbuild_folds(const tw_ir *b);
enum dtype call_dtype(call *c, tw_ir_dtype dtype); /* DT_NONE after call_bad */

/* Begins the kernel or the launch function; what is wrong at its end is found by cbuild_end. */
void cbuild_begin(tw_ir *b, ir_fn *fn, bool is_launch);
tw_status cbuild_end(tw_ir *b);

#endif
