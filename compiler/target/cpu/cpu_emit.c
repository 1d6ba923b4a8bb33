#include "compiler/target/cpu/cpu_emit.h"
#include "compiler/base/check.h"
#include "compiler/base/guard.h"
#include <string.h>

/* ---- where code goes ------------------------------------------------------------------------- */

void cpu_goto(cpu_emit *e, LLVMBasicBlockRef block)
{
    e->here = block;
    ll_at(e->cx, block);
}

void cpu_hoist(cpu_emit *e, int depth)
{
    if (depth < e->depth)
        LLVMPositionBuilderBefore(e->cx->b, LLVMGetBasicBlockTerminator(e->enter[depth]));
    else
        ll_at(e->cx, e->here);
}

void cpu_home(cpu_emit *e)
{
    ll_at(e->cx, e->here);
}

/* ---- arguments ------------------------------------------------------------------------------- */

LLVMValueRef cpu_slot(cpu_emit *e, enum slot_kind kind, int param, int index)
{
    recipe_slot s = {(uint8_t)kind, (uint8_t)index, (uint16_t)param};
    uint32_t i = 0;

    while (i < e->slots.n && memcmp(&e->slots.at[i], &s, sizeof s) != 0)
        i++;
    if (i < e->slots.n)
        return e->slot_value.at[i];
    vec_push(&e->slots, e->a, s);
    LLVMPositionBuilderBefore(e->cx->b, LLVMGetBasicBlockTerminator(e->entry));
    LLVMValueRef at = ll_gep(e->cx, e->cx->i64, e->arg_slots, ll_i64(e->cx, i));
    bool pointer = kind == SLOT_POINTER || kind == SLOT_WORKSPACE || kind == SLOT_CALLS;
    LLVMTypeRef type = pointer ? e->cx->ptr : e->cx->i64;
    LLVMValueRef v = ll_load(e->cx, type, at, 8);
    vec_push(&e->slot_value, e->a, v);
    cpu_home(e);
    return v;
}

static LLVMValueRef dimension(cpu_emit *e, int dim)
{
    const ir_dim *d = &e->fn->dims.at[dim];

    return d->is_const ? ll_i64(e->cx, d->value) : cpu_slot(e, SLOT_DIM, 0, dim);
}

/* Dense, of constant extents. */
static void view_workspace(cpu_emit *e, const ir_param *p, cpu_view *v)
{
    int64_t stride = 1;

    v->base = cpu_slot(e, SLOT_WORKSPACE, 0, p->symbol);
    for (int d = p->type.rank - 1; d >= 0; d--) {
        int64_t extent = e->fn->dims.at[p->dim[d]].value;
        v->stride[d] = ll_i64(e->cx, stride);
        v->extent[d] = ll_i64(e->cx, extent);
        stride *= extent;
    }
}

const cpu_view *cpu_view_of(cpu_emit *e, int param)
{
    cpu_view *v = &e->view[param];
    const ir_param *p = &e->fn->params.at[param];

    if (v->base)
        return v;
    if (p->kind == PARAM_WORKSPACE) {
        view_workspace(e, p, v);
        return v;
    }
    v->base = cpu_slot(e, SLOT_POINTER, param, 0);
    for (int d = 0; d < p->type.rank; d++) {
        bool unit = p->unit_inner && d == p->type.rank - 1;
        v->stride[d] = unit ? ll_i64(e->cx, 1) : cpu_slot(e, SLOT_STRIDE, param, d);
        v->extent[d] = dimension(e, p->dim[d]);
    }
    return v;
}

/* The bits of a scalar in the low bytes of a slot. */
static LLVMValueRef from_bits(cpu_emit *e, enum dtype t, LLVMValueRef bits)
{
    if (t == DT_I1)
        return LLVMBuildTrunc(e->cx->b, bits, e->cx->i1, "");
    LLVMTypeRef narrow = LLVMIntTypeInContext(e->cx->context, (unsigned)dtype_bits(t));
    if (dtype_bits(t) < 64)
        bits = LLVMBuildTrunc(e->cx->b, bits, narrow, "");
    if (cpu_held(t) != t)
        return cpu_to_register(e, t, bits);
    return LLVMBuildBitCast(e->cx->b, bits, cpu_type(e, t, 1), "");
}

static void read_scalar_params(cpu_emit *e)
{
    for (uint32_t i = 0; i < e->fn->params.n; i++) {
        const ir_param *p = &e->fn->params.at[i];
        ir_val v = e->fn->body->arg + i;
        if (p->type.kind == TYPE_VIEW || e->plan->value.at[v].uses.n == 0)
            continue;
        LLVMValueRef bits =
            p->kind == PARAM_DIM ? dimension(e, p->symbol) : cpu_slot(e, SLOT_SCALAR, (int)i, 0);
        e->scalar[v] = from_bits(e, (enum dtype)p->type.dtype, bits);
    }
}

/* ---- scalar steps ---------------------------------------------------------------------------- */

static void emit_assert(cpu_emit *e, const ir_op *op)
{
    LLVMBasicBlockRef pass = ll_block(e->cx, ""), fail = e->leave;

    if (op->nargs > 1)
        fail = ll_block(e->cx, "fail");
    LLVMBuildCondBr(e->cx->b, e->scalar[op->args[0]], pass, fail);
    if (op->nargs > 1) {
        cpu_goto(e, fail);
        cpu_emit_failure(e, op, e->asserts.n);
        LLVMBuildBr(e->cx->b, e->leave);
    }
    vec_push(&e->asserts, e->a, artifact_assert_text(e->a, op));
    ll_phi_add(e->exit_code, ll_int(e->cx->i32, e->asserts.n), e->here);
    cpu_goto(e, pass);
}

static LLVMValueRef emit_elementwise(cpu_emit *e, const ir_op *op)
{
    LLVMValueRef arg[3];
    ir_val typed = op->args[op->code == OP_WHERE];

    for (int i = 0; i < op->nargs; i++)
        arg[i] = e->scalar[op->args[i]];
    return cpu_op(e, (enum ir_opcode)op->code, (enum dtype)ir_type_of(e->fn, typed).dtype,
                  (enum dtype)ir_type_of(e->fn, op->res).dtype, arg);
}

static LLVMValueRef emit_scalar(cpu_emit *e, const ir_op *op)
{
    LLVMTypeRef type = cpu_type(e, (enum dtype)ir_type_of(e->fn, op->res).dtype, 1);

    switch (op->code) {
    case OP_CONST_INT:
        return ll_int(type, op->attr[0].i);
    case OP_CONST_FLOAT:
        return ll_float(type, op->attr[0].f);
    case OP_PROGRAM_ID:
        return e->arg_pid[op->attr[0].i];
    case OP_NUM_PROGRAMS:
        return LLVMBuildTrunc(e->cx->b, cpu_slot(e, SLOT_GRID, 0, (int)op->attr[0].i), e->cx->i32,
                              "");
    case OP_LOAD:
        return cpu_load_element(e, op);
    case OP_ATOMIC_ADD:
    case OP_ATOMIC_MAX:
    case OP_ATOMIC_MIN:
    case OP_ATOMIC_XCHG:
    case OP_ATOMIC_CAS:
        return cpu_atomic_element(e, op);
    default:
        return emit_elementwise(e, op);
    }
}

static void emit_scalar_step(cpu_emit *e, const ir_op *op)
{
    cpu_memo_clear(e);
    if (op->code == OP_ASSERT)
        emit_assert(e, op);
    else if (op->code == OP_PRINT)
        cpu_emit_print(e, op);
    else if (op->code == OP_STORE)
        cpu_store_element(e, op);
    else
        e->scalar[op->res] = emit_scalar(e, op);
    cpu_memo_clear(e);
}

/* ---- control --------------------------------------------------------------------------------- */

static void emit_block(cpu_emit *e, const cpu_block *b);

static void emit_copies(cpu_emit *e, const cpu_copies *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        cpu_emit_nest(e, c->at[i].nest);
}

/* Phis in the current block for the scalars among n values from first on. */
static void begin_phis(cpu_emit *e, ir_val first, int n)
{
    for (int i = 0; i < n; i++) {
        ir_val v = first + (ir_val)i;
        ir_type t = ir_type_of(e->fn, v);
        if (t.kind == TYPE_SCALAR)
            e->scalar[v] = LLVMBuildPhi(e->cx->b, cpu_type(e, (enum dtype)t.dtype, 1), "");
    }
}

/* What comes to them from the current block. */
static void feed_phis(cpu_emit *e, ir_val first, const ir_val *from, int n)
{
    for (int i = 0; i < n; i++) {
        ir_val v = first + (ir_val)i;
        if (ir_type_of(e->fn, v).kind == TYPE_SCALAR)
            ll_phi_add(e->scalar[v], e->scalar[from[i]], e->here);
    }
}

static void same_scalars(cpu_emit *e, ir_val to, ir_val from, int n)
{
    for (int i = 0; i < n; i++)
        e->scalar[to + (ir_val)i] = e->scalar[from + (ir_val)i];
}

/* i < hi, or i > hi when step is negative; never when it is 0. */
static LLVMValueRef in_range(cpu_emit *e, LLVMValueRef i, LLVMValueRef hi, LLVMValueRef step)
{
    LLVMValueRef zero = ll_i64(e->cx, 0);
    LLVMValueRef up = LLVMBuildAnd(e->cx->b, LLVMBuildICmp(e->cx->b, LLVMIntSGT, step, zero, ""),
                                   LLVMBuildICmp(e->cx->b, LLVMIntSLT, i, hi, ""), "");
    LLVMValueRef down = LLVMBuildAnd(e->cx->b, LLVMBuildICmp(e->cx->b, LLVMIntSLT, step, zero, ""),
                                     LLVMBuildICmp(e->cx->b, LLVMIntSGT, i, hi, ""), "");

    return LLVMBuildOr(e->cx->b, up, down, "");
}

/* The counter is i64, so that it cannot wrap before it passes the bound. */
static void emit_for(cpu_emit *e, const cpu_step *s)
{
    const ir_op *op = s->op;
    ir_val arg = op->regions[0]->arg;
    int n = op->nres;
    LLVMValueRef bound[3];
    LLVMBasicBlockRef head = ll_block(e->cx, "for"), body = ll_block(e->cx, "body");
    LLVMBasicBlockRef after = ll_block(e->cx, "");

    emit_copies(e, &s->entry);
    for (int i = 0; i < 3; i++)
        bound[i] = LLVMBuildSExt(e->cx->b, e->scalar[op->args[i]], e->cx->i64, "");
    LLVMBuildBr(e->cx->b, head);
    LLVMBasicBlockRef before = e->here;
    cpu_goto(e, head);
    LLVMValueRef i = LLVMBuildPhi(e->cx->b, e->cx->i64, "");
    begin_phis(e, arg + 1, n);
    ll_phi_add(i, bound[0], before);
    e->here = before;
    feed_phis(e, arg + 1, op->args + 3, n);
    cpu_goto(e, head);
    LLVMBuildCondBr(e->cx->b, in_range(e, i, bound[1], bound[2]), body, after);
    same_scalars(e, op->res, arg + 1, n);
    cpu_goto(e, body);
    e->scalar[arg] = LLVMBuildTrunc(e->cx->b, i, e->cx->i32, "");
    emit_block(e, s->region[0]);
    emit_copies(e, &s->leave[0]);
    ll_phi_add(i, LLVMBuildAdd(e->cx->b, i, bound[2], ""), e->here);
    feed_phis(e, arg + 1, op->regions[0]->last->args, n);
    LLVMBuildBr(e->cx->b, head);
    cpu_goto(e, after);
}

static void emit_while(cpu_emit *e, const cpu_step *s)
{
    const ir_op *op = s->op, *condition = op->regions[0]->last;
    LLVMBasicBlockRef head = ll_block(e->cx, "while"), body = ll_block(e->cx, "body");
    LLVMBasicBlockRef after = ll_block(e->cx, ""), before;
    ir_val arg = op->regions[0]->arg, pass = op->regions[1]->arg;

    emit_copies(e, &s->entry);
    LLVMBuildBr(e->cx->b, head);
    before = e->here;
    cpu_goto(e, head);
    begin_phis(e, arg, op->nargs);
    e->here = before;
    feed_phis(e, arg, op->args, op->nargs);
    cpu_goto(e, head);
    emit_block(e, s->region[0]);
    emit_copies(e, &s->leave[0]);
    for (int i = 0; i < op->nres; i++)
        e->scalar[pass + (ir_val)i] = e->scalar[condition->args[1 + i]];
    same_scalars(e, op->res, pass, op->nres);
    LLVMBuildCondBr(e->cx->b, e->scalar[condition->args[0]], body, after);
    cpu_goto(e, body);
    emit_block(e, s->region[1]);
    emit_copies(e, &s->leave[1]);
    feed_phis(e, arg, op->regions[1]->last->args, op->nargs);
    LLVMBuildBr(e->cx->b, head);
    cpu_goto(e, after);
}

static void emit_if(cpu_emit *e, const cpu_step *s)
{
    const ir_op *op = s->op;
    LLVMBasicBlockRef arm[2] = {ll_block(e->cx, "then"), ll_block(e->cx, "else")}, end[2];
    LLVMBasicBlockRef after = ll_block(e->cx, "");

    LLVMBuildCondBr(e->cx->b, e->scalar[op->args[0]], arm[0], arm[1]);
    for (int r = 0; r < 2; r++) {
        cpu_goto(e, arm[r]);
        emit_block(e, s->region[r]);
        emit_copies(e, &s->leave[r]);
        LLVMBuildBr(e->cx->b, after);
        end[r] = e->here;
    }
    cpu_goto(e, after);
    begin_phis(e, op->res, op->nres);
    for (int r = 0; r < 2; r++) {
        e->here = end[r];
        feed_phis(e, op->res, op->regions[r]->last->args, op->nres);
    }
    cpu_goto(e, after);
}

static void emit_control(cpu_emit *e, const cpu_step *s)
{
    cpu_memo_clear(e);
    if (s->op->code == OP_FOR)
        emit_for(e, s);
    else if (s->op->code == OP_WHILE)
        emit_while(e, s);
    else
        emit_if(e, s);
    cpu_memo_clear(e);
}

/* What an instruction costs LLVM: about 50 us for each unit. Accesses under a mask become code for
 * each lane where the machine has no instruction for them. */
static int64_t weight_of(const cpu_emit *e, LLVMValueRef instruction)
{
    size_t n;
    const char *name;

    if (LLVMGetInstructionOpcode(instruction) != LLVMCall)
        return 1;
    LLVMValueRef callee = LLVMGetCalledValue(instruction);
    name = LLVMIsAFunction(callee) ? LLVMGetValueName2(callee, &n) : "";
    if (strncmp(name, "llvm.masked.", 12) != 0)
        return 1;
    bool scattered = strncmp(name + 12, "gather", 6) == 0 || strncmp(name + 12, "scatter", 7) == 0;
    return e->isa->avx512 || (e->isa->fma && !scattered) ? 3 : 4 * e->isa->lanes;
}

/* The first of a step's operations that has a place in the text. */
static span place_of(const cpu_emit *e, const cpu_step *s)
{
    span where = s->op ? s->op->where : (span){0};

    for (uint32_t i = 0; s->nest && !where.src && i < s->nest->items.n; i++) {
        const cpu_item *item = &s->nest->items.at[i];
        const ir_op *op = item->op ? item->op : ir_def(e->fn, item->v);
        where = op ? op->where : where;
    }
    return where;
}

/* After step s (NULL: after all). Ends the compile where there is too much code for LLVM to take in
 * seconds. */
static void count_code(cpu_emit *e, const cpu_step *s)
{
    LLVMBasicBlockRef b = LLVMGetNextBasicBlock(e->counted);
    int64_t before = e->size;

    for (; b; e->counted = b, b = LLVMGetNextBasicBlock(b)) {
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
            e->size += weight_of(e, i);
    }
    if (s && e->size - before > e->dearest_size) {
        e->dearest_size = e->size - before;
        e->dearest = place_of(e, s);
    }
    if (e->size <= CPU_MAX_CODE)
        return;
    diag *d =
        diag_add(e->diags, DIAG_LIMIT, e->dearest,
                 "the kernel makes more than %d instructions for %s; this is the largest part "
                 "of it, with %lld",
                 CPU_MAX_CODE, e->isa->name, (long long)e->dearest_size);
    diag_hint(e->diags, d, "split it, or use loops and smaller tiles");
    guard_throw(TW_E_LIMIT);
}

static void emit_block(cpu_emit *e, const cpu_block *b)
{
    for (const cpu_step *s = b->first; s; s = s->next) {
        switch (s->kind) {
        case STEP_SCALAR:
            emit_scalar_step(e, s->op);
            break;
        case STEP_NEST:
            cpu_emit_nest(e, s->nest);
            break;
        case STEP_DIRECT:
            cpu_memo_clear(e);
            cpu_prepare_direct(e, s);
            cpu_memo_clear(e);
            break;
        case STEP_CONTROL:
            emit_control(e, s);
            break;
        }
        count_code(e, s);
    }
}

/* ---- the function ---------------------------------------------------------------------------- */

static void add_attribute(cpu_emit *e, LLVMValueRef fn, const char *name, const char *value)
{
    LLVMAttributeRef a = LLVMCreateStringAttribute(e->cx->context, name, (unsigned)strlen(name),
                                                   value, (unsigned)strlen(value));

    LLVMAddAttributeAtIndex(fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, a);
}

/* Of the kernel's function and of those that it calls. */
static void add_attributes(cpu_emit *e)
{
    unsigned nounwind = LLVMGetEnumAttributeKindForName("nounwind", 8);

    for (LLVMValueRef fn = LLVMGetFirstFunction(e->cx->module); fn; fn = LLVMGetNextFunction(fn)) {
        if (LLVMIsDeclaration(fn))
            continue;
        LLVMAddAttributeAtIndex(fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                LLVMCreateEnumAttribute(e->cx->context, nounwind, 0));
        if (e->isa->tune)
            add_attribute(e, fn, "tune-cpu", e->isa->tune);
        if (e->isa->avx512)
            add_attribute(e, fn, "prefer-vector-width", "512");
    }
}

static void make_function(cpu_emit *e, const char *name)
{
    ll_cx *cx = e->cx;
    LLVMTypeRef arg[] = {cx->ptr, cx->i32, cx->i32, cx->i32, cx->ptr};

    cx->fn = LLVMAddFunction(cx->module, name, LLVMFunctionType(cx->i32, arg, 5, 0));
    e->arg_slots = LLVMGetParam(cx->fn, 0);
    for (int i = 0; i < 3; i++)
        e->arg_pid[i] = LLVMGetParam(cx->fn, 1 + (unsigned)i);
    e->arg_scratch = LLVMGetParam(cx->fn, 4);
}

static void make_zero(cpu_emit *e)
{
    LLVMTypeRef type = LLVMArrayType2(e->cx->i32, CPU_MAX_LANES);

    e->zero = LLVMAddGlobal(e->cx->module, type, "zero");
    LLVMSetInitializer(e->zero, LLVMConstNull(type));
    LLVMSetGlobalConstant(e->zero, 1);
    LLVMSetLinkage(e->zero, LLVMPrivateLinkage);
    LLVMSetAlignment(e->zero, 16);
}

void cpu_emit_function(cpu_emit *e, const char *name)
{
    make_function(e, name);
    make_zero(e);
    e->scalar = ARENA_ARRAY(e->a, LLVMValueRef, e->plan->value.n);
    e->direct = ARENA_ARRAY(e->a, cpu_direct, e->plan->value.n);
    e->view = ARENA_ARRAY(e->a, cpu_view, e->fn->params.n);
    e->entry = ll_block(e->cx, "entry");
    e->leave = ll_block(e->cx, "leave");
    e->counted = e->leave;
    LLVMBasicBlockRef body = ll_block(e->cx, "");
    ll_at(e->cx, e->leave);
    e->exit_code = LLVMBuildPhi(e->cx->b, e->cx->i32, "");
    LLVMBuildRet(e->cx->b, e->exit_code);
    ll_at(e->cx, e->entry);
    LLVMBuildBr(e->cx->b, body);
    cpu_goto(e, body);
    cpu_memo_clear(e);
    read_scalar_params(e);
    emit_block(e, e->plan->body);
    count_code(e, NULL);
    ll_phi_add(e->exit_code, ll_int(e->cx->i32, 0), e->here);
    LLVMBuildBr(e->cx->b, e->leave);
    add_attributes(e);
}
