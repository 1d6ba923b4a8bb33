#include "compiler/target/nvptx/nvptx_emit.h"
#include "compiler/base/check.h"
#include "compiler/base/guard.h"
#include "compiler/base/error.h"
#include "compiler/ir/irbuild.h"
#include "compiler/ir/iredit.h"
#include "compiler/target/llvm/llvm_ops.h"
#include "compiler/target/nvptx/nvptx_lines.h"
#include <stdio.h>
#include <string.h>

enum { CALL_PTX_KERNEL = 71, SPACE_GLOBAL = 1 };

/* ---- parameters ------------------------------------------------------------------------------ */

typedef struct usage {
    const ir_fn *fn;
    bool *value; /* by ir_val: an operand of something */
    bool *dim;   /* by dimension: bounds are compared with it */
    bool program, asserts;
} usage;

static const ir_param *view_of(const ir_fn *fn, ir_val view)
{
    const ir_value *v = ir_value_of(fn, view);

    ICHECK(v->block == fn->body, "a view is a parameter");
    return &fn->params.at[v->index];
}

static bool takes_view(const ir_op *op)
{
    return op->code == OP_LOAD || op->code == OP_STORE || op->code == OP_COPY_ASYNC ||
           op_is_atomic((enum ir_opcode)op->code);
}

static void note_use(ir_op *op, void *arg)
{
    usage *u = arg;

    for (int i = 0; i < op->nargs; i++)
        u->value[op->args[i]] = true;
    u->program = u->program || op->code == OP_PROGRAM_ID || op->code == OP_NUM_PROGRAMS;
    u->asserts = u->asserts || op->code == OP_ASSERT;
    u->program = u->program || (op->code == OP_ASSERT && op->nargs > 1);
    if (!takes_view(op))
        return;
    const ir_param *p = view_of(u->fn, op->args[0]);
    for (int d = 0; d < p->type.rank; d++) {
        if (!(op->attr[1].i >> d & 1))
            u->dim[p->dim[d]] = true;
    }
}

static void add_slot(nv_emit *e, enum slot_kind kind, uint32_t param, int index)
{
    recipe_slot s = {(uint8_t)kind, (uint8_t)index, (uint16_t)param};

    vec_push(&e->slots, e->a, s);
}

static void list_slots(nv_emit *e, const usage *u)
{
    const ir_fn *fn = e->fn;

    for (uint32_t i = 0; i < fn->params.n; i++) {
        const ir_param *p = &fn->params.at[i];
        bool used = u->value[ir_param_value(fn, (int)i)];
        if (p->kind == PARAM_DIM && (used || u->dim[p->symbol]))
            add_slot(e, SLOT_DIM, 0, p->symbol);
        else if (p->kind == PARAM_SCALAR && used)
            add_slot(e, SLOT_SCALAR, i, 0);
        if (p->kind != PARAM_TENSOR || !used)
            continue;
        add_slot(e, SLOT_POINTER, i, 0);
        for (int d = 0; d < p->type.rank - p->unit_inner; d++)
            add_slot(e, SLOT_STRIDE, i, d);
    }
    for (int d = 0; d < 3 && u->program; d++)
        add_slot(e, SLOT_GRID, 0, d);
    for (int d = 0; d < 3 && u->program; d++)
        add_slot(e, SLOT_FIRST, 0, d);
    if (u->asserts)
        add_slot(e, SLOT_ASSERT, 0, 0);
}

static LLVMTypeRef slot_type(nv_emit *e, const recipe_slot *s)
{
    bool pointer = s->kind == SLOT_POINTER || s->kind == SLOT_ASSERT;

    return pointer ? LLVMPointerTypeInContext(e->cx->context, SPACE_GLOBAL) : e->cx->i64;
}

static void attribute(nv_emit *e, unsigned at, const char *name, uint64_t value)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));

    LLVMAddAttributeAtIndex(e->cx->fn, at, LLVMCreateEnumAttribute(e->cx->context, kind, value));
}

static void text_attribute(nv_emit *e, const char *name, int value)
{
    char text[16];
    int n = snprintf(text, sizeof text, "%d", value);

    LLVMAddAttributeAtIndex(
        e->cx->fn, (unsigned)LLVMAttributeFunctionIndex,
        LLVMCreateStringAttribute(e->cx->context, name, (unsigned)strlen(name), text, (unsigned)n));
}

static void declare(nv_emit *e, const char *name)
{
    LLVMTypeRef *type = ARENA_ARRAY(e->a, LLVMTypeRef, e->slots.n + 1);

    for (uint32_t i = 0; i < e->slots.n; i++)
        type[i] = slot_type(e, &e->slots.at[i]);
    LLVMTypeRef fn = LLVMFunctionType(LLVMVoidTypeInContext(e->cx->context), type, e->slots.n, 0);
    e->cx->fn = LLVMAddFunction(e->cx->module, name, fn);
    LLVMSetFunctionCallConv(e->cx->fn, CALL_PTX_KERNEL);
    text_attribute(e, "nvvm.maxntid", e->fn->warps * NV_WARP);
    if (e->min_blocks > 0)
        text_attribute(e, "nvvm.minctasm", e->min_blocks);
    for (uint32_t i = 0; i < e->slots.n; i++) {
        const recipe_slot *s = &e->slots.at[i];
        if (s->kind != SLOT_POINTER)
            continue;
        attribute(e, i + 1, "noalias", 0);
        if (e->fn->params.at[s->param].align > 1)
            attribute(e, i + 1, "align", e->fn->params.at[s->param].align);
    }
}

static LLVMValueRef scalar_of_bits(nv_emit *e, enum dtype t, LLVMValueRef bits)
{
    LLVMBuilderRef b = e->cx->b;

    if (t == DT_I1)
        return LLVMBuildICmp(b, LLVMIntNE, LLVMBuildAnd(b, bits, ll_i64(e->cx, 1), ""),
                             ll_i64(e->cx, 0), "");
    LLVMTypeRef narrow = LLVMIntTypeInContext(e->cx->context, (unsigned)dtype_bits(t));
    LLVMValueRef v = LLVMBuildTruncOrBitCast(b, bits, narrow, "");
    v = LLVMBuildBitCast(b, v, ll_type(e->cx, t, 1), "");
    return nv_is_half(t) ? LLVMBuildFPExt(b, v, e->cx->f32, "") : v;
}

static void take_slot(nv_emit *e, const recipe_slot *s, LLVMValueRef arg)
{
    const ir_fn *fn = e->fn;
    const ir_param *p = &fn->params.at[s->param];

    switch ((enum slot_kind)s->kind) {
    case SLOT_POINTER:
        e->pointer[s->param] = arg;
        break;
    case SLOT_STRIDE:
        e->stride[s->param][s->index] = arg;
        break;
    case SLOT_DIM:
        e->dim[s->index] = LLVMBuildTrunc(e->cx->b, arg, e->cx->i32, "");
        break;
    case SLOT_SCALAR:
        nv_new(e, ir_param_value(fn, (int)s->param))->at[0] =
            scalar_of_bits(e, (enum dtype)p->type.dtype, arg);
        break;
    case SLOT_GRID:
        e->grid[s->index] = LLVMBuildTrunc(e->cx->b, arg, e->cx->i32, "");
        break;
    case SLOT_FIRST:
        e->first[s->index] = LLVMBuildTrunc(e->cx->b, arg, e->cx->i32, "");
        break;
    case SLOT_ASSERT:
        e->assert_record = arg;
        break;
    case SLOT_WORKSPACE:
    case SLOT_COUNTER:
    case SLOT_CALLS:
        ICHECK(0, "a slot that this target lists");
    }
}

LLVMValueRef nv_dim(nv_emit *e, int dim)
{
    const ir_dim *d = &e->fn->dims.at[dim];

    if (d->is_const)
        return nv_i32(e, d->value);
    ICHECK(e->dim[dim], "a dimension that was found to be used");
    return e->dim[dim];
}

/* ---- entry blocks ---------------------------------------------------------------------------- */

LLVMBasicBlockRef nv_entry_begin(nv_emit *e)
{
    LLVMBasicBlockRef back = ll_here(e->cx);

    ll_at(e->cx, e->entry);
    return back;
}

void nv_entry_end(nv_emit *e, LLVMBasicBlockRef back)
{
    ll_at(e->cx, back);
}

/* ---- ops ------------------------------------------------------------------------------------- */

static void call_plain(nv_emit *e, const char *name, LLVMValueRef *args, int n)
{
    (void)ll_call(e->cx, name, NULL, 0, args, n);
}

static void emit_barrier(nv_emit *e, const ir_op *op)
{
    LLVMValueRef args[] = {nv_i32(e, op->attr[0].i), nv_i32(e, op->attr[1].i * NV_WARP)};
    bool all = op->attr[1].i == 0 || op->attr[1].i == e->fn->warps;

    call_plain(e,
               all ? "llvm.nvvm.barrier.cta.sync.aligned.all"
                   : "llvm.nvvm.barrier.cta.sync.aligned.count",
               args, all ? 1 : 2);
}

static void refuse(const ir_op *op)
{
    error_set(TW_E_INTERNAL, "nvptx: '%s' is not for this code path",
              op_info((enum ir_opcode)op->code)->name);
    guard_throw(TW_E_INTERNAL);
}

static void emit_control(nv_emit *e, const ir_op *op)
{
    switch ((int)op->code) {
    case OP_FOR:
        nv_for(e, op);
        return;
    case OP_WHILE:
        nv_while(e, op);
        return;
    case OP_IF:
        nv_if(e, op);
        return;
    case OP_ASSERT:
        nv_assert(e, op);
        return;
    case OP_RETURN:
        LLVMBuildRetVoid(e->cx->b);
        return;
    case OP_YIELD:
    case OP_CONDITION:
        return;
    default:
        refuse(op);
    }
}

static void emit_scheduled(nv_emit *e, const ir_op *op)
{
    LLVMValueRef all = nv_i32(e, -1), pending;

    switch ((int)op->code) {
    case OP_ALLOC:
    case OP_BUFFER_TRANS:
    case OP_BUFFER_VIEW:
        return; /* nv_slot_of looks at them */
    case OP_BUFFER_SLOT:
        nv_buffer_slot(e, op);
        return;
    case OP_BUFFER_LOAD:
        nv_buffer_load(e, op);
        return;
    case OP_BUFFER_STORE:
        nv_buffer_store(e, op);
        return;
    case OP_CONVERT:
        nv_convert(e, op);
        return;
    case OP_COPY_ASYNC:
        nv_copy_async(e, op);
        return;
    case OP_COPY_COMMIT:
        call_plain(e, "llvm.nvvm.cp.async.commit.group", NULL, 0);
        return;
    case OP_COPY_WAIT:
        pending = nv_i32(e, op->attr[0].i);
        call_plain(e, "llvm.nvvm.cp.async.wait.group", &pending, 1);
        return;
    case OP_BARRIER:
        emit_barrier(e, op);
        return;
    case OP_BARRIER_WARP:
        call_plain(e, "llvm.nvvm.bar.warp.sync", &all, 1);
        return;
    case OP_MMA:
        nv_mma(e, op);
        return;
    case OP_DOT:
        nv_dot(e, op);
        return;
    case OP_MMA_SUM:
        nv_mma_sum(e, op);
        return;
    case OP_PARTIAL_SUM:
        nv_partial_sum(e, op);
        return;
    case OP_VOTE_ANY:
        nv_vote(e, op);
        return;
    default:
        emit_control(e, op);
    }
}

static void emit_op(nv_emit *e, const ir_op *op)
{
    switch ((int)op->code) {
    case OP_CONST_INT:
    case OP_CONST_FLOAT:
    case OP_PROGRAM_ID:
    case OP_NUM_PROGRAMS:
    case OP_ARANGE:
        nv_leaf(e, op);
        return;
    case OP_SPLAT:
    case OP_EXPAND:
    case OP_BROADCAST:
    case OP_TRANS:
    case OP_RESHAPE:
        nv_shape(e, op);
        return;
    case OP_REDUCE:
    case OP_REDUCE_MAX:
    case OP_REDUCE_MIN:
    case OP_REDUCE_SUM:
        nv_reduce(e, op);
        return;
    case OP_SCAN:
    case OP_SCAN_SUM:
    case OP_SCAN_PROD:
        nv_scan(e, op);
        return;
    case OP_LOAD:
        nv_load(e, op);
        return;
    case OP_STORE:
        nv_store(e, op);
        return;
    default:
        break;
    }
    if (op_is_atomic((enum ir_opcode)op->code))
        nv_atomic(e, op);
    else if (op->code >= OP_CAST && op->code <= OP_FMA)
        nv_elementwise(e, op);
    else
        emit_scheduled(e, op);
}

LLVMValueRef nv_call_region(nv_emit *e, const ir_block *blk, LLVMValueRef x, LLVMValueRef y)
{
    nv_new(e, blk->arg)->at[0] = x;
    nv_new(e, blk->arg + 1)->at[0] = y;
    nv_emit_block(e, blk);
    return nv_get(e, blk->last->args[0], 0);
}

/* What is new at the end of the block that was the last one, and all blocks behind it. */
static void count_new(nv_emit *e)
{
    if (!e->block)
        e->block = LLVMGetFirstBasicBlock(e->cx->fn);
    for (;;) {
        LLVMValueRef i = e->counted ? LLVMGetNextInstruction(e->counted)
                                    : LLVMGetFirstInstruction(e->block);
        for (; i; i = LLVMGetNextInstruction(i)) {
            e->counted = i;
            e->size++;
        }
        LLVMBasicBlockRef next = LLVMGetNextBasicBlock(e->block);
        if (!next)
            return;
        e->block = next;
        e->counted = NULL;
    }
}

/* Ends the compile where there is too much code for LLVM to take in minutes. What is put into
 * blocks before the last afterwards is not counted: it is little. */
static void count_code(nv_emit *e, const ir_op *op)
{
    long before = e->size;

    count_new(e);
    if (e->size - before > e->dearest_size && op->where.src) {
        e->dearest_size = e->size - before;
        e->dearest = op->where;
    }
    if (e->size <= NV_MAX_CODE)
        return;
    (void)error_diag_at(TW_E_LIMIT, DIAG_LIMIT, e->dearest,
                        "split it, or use loops and smaller tiles",
                        "the kernel makes more than %d instructions for a GPU; this is the largest "
                        "part of it, with %ld",
                        NV_MAX_CODE, e->dearest_size);
    guard_throw(TW_E_LIMIT);
}

static void emit_in_line(nv_emit *e, const ir_op *op)
{
    if (e->places)
        nv_lines_at(e->cx, e->scope, explain_index(e->places, op));
    emit_op(e, op);
    count_code(e, op);
}

void nv_emit_block(nv_emit *e, const ir_block *blk)
{
    for IR_EACH_OP(op, blk)
        emit_in_line(e, op);
}

/* Begins an entry block, and goes on behind it. */
static void begin_entry(nv_emit *e)
{
    LLVMBasicBlockRef last = e->entry;

    e->entry = ll_block(e->cx, last ? "between" : "entry");
    if (last) {
        LLVMBuildBr(e->cx->b, e->entry);
        ll_at(e->cx, last);
        LLVMBuildBr(e->cx->b, e->start);
    }
    e->start = ll_block(e->cx, "start");
    ll_at(e->cx, e->start);
}

static void emit_body(nv_emit *e, const ir_block *body)
{
    for IR_EACH_OP(op, body) {
        bool control = op->code == OP_FOR || op->code == OP_WHILE || op->code == OP_IF;
        emit_in_line(e, op);
        if (control)
            begin_entry(e);
    }
}

/* ---- the function ---------------------------------------------------------------------------- */

static usage look_over(const nv_emit *e)
{
    usage u = {.fn = e->fn,
               .value = ARENA_ARRAY(e->a, bool, e->fn->values.n),
               .dim = ARENA_ARRAY(e->a, bool, e->fn->dims.n + 1)};

    ir_walk(e->fn->body, note_use, &u);
    return u;
}

static void take_slots(nv_emit *e)
{
    const ir_fn *fn = e->fn;

    for (uint32_t i = 0; i < e->slots.n; i++)
        take_slot(e, &e->slots.at[i], LLVMGetParam(e->cx->fn, i));
    for (uint32_t i = 0; i < fn->params.n; i++) {
        const ir_param *p = &fn->params.at[i];
        if (p->kind == PARAM_DIM && e->dim[p->symbol])
            nv_new(e, ir_param_value(fn, (int)i))->at[0] = e->dim[p->symbol];
    }
}

void nv_emit_function(nv_emit *e, const char *name)
{
    const ir_fn *fn = e->fn;
    usage u = look_over(e);

    e->value = ARENA_ARRAY(e->a, nv_value, fn->values.n);
    e->pointer = ARENA_ARRAY(e->a, LLVMValueRef, fn->params.n + 1);
    e->stride = arena_alloc(e->a, sizeof *e->stride * (fn->params.n + 1));
    e->dim = ARENA_ARRAY(e->a, LLVMValueRef, fn->dims.n + 1);
    e->used = u.value;
    list_slots(e, &u);
    declare(e, name);
    if (e->places)
        e->scope = nv_lines_begin(e->cx, name);
    begin_entry(e);
    ll_at(e->cx, e->entry);
    take_slots(e);
    nv_find_thread(e);
    nv_find_program(e);
    e->entry = ll_here(e->cx);
    LLVMMoveBasicBlockAfter(e->start, e->entry); /* code is counted in order of blocks */
    ll_at(e->cx, e->start);
    emit_body(e, fn->body);
    ll_at(e->cx, e->entry);
    LLVMBuildBr(e->cx->b, e->start);
}
