#include "tests/support/schedule_fixture.h"
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "dsl/dsl.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_UNITS = 64, MAX_VALUES = 32 };

arena schedule_memory;
diag_list schedule_diags;
const char *schedule_path;
static intern names;
static dsl_unit *units[MAX_UNITS];
static int nunits;

void schedule_setup(void)
{
    arena_init(&schedule_memory);
    intern_init(&names, &schedule_memory);
    diag_init(&schedule_diags, &schedule_memory);
    nunits = 0;
    schedule_path = "sm_80";
}

void schedule_teardown(void)
{
    while (nunits > 0)
        dsl_unit_destroy(units[--nunits]);
    arena_release(&schedule_memory);
    ck_assert_int_eq(mem_live(), 0);
}

static ir_binding binding_of(char *word)
{
    char *value = strchr(word, '=');

    ck_assert_ptr_nonnull(value);
    *value++ = '\0';
    if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0)
        return (ir_binding){word, BIND_BOOL, value[0] == 't'};
    if (dtype_parse(value) != DT_NONE)
        return (ir_binding){word, BIND_DTYPE, dtype_parse(value)};
    return (ir_binding){word, BIND_INT, atoi(value)};
}

/* Compile-time parameters that are not given have their defaults. */
static uint32_t add_defaults(const kernel_sig *sig, ir_binding *b, uint32_t n)
{
    for (uint32_t i = 0; i < sig->nconsts && n < MAX_VALUES; i++) {
        const sig_const *c = &sig->cons[i];
        if (c->has_default && !binding_find(b, n, c->name))
            b[n++] = (ir_binding){c->name, c->kind, c->default_value};
    }
    return n;
}

static char *read_text(const char *path, size_t *len)
{
    static const size_t most = 1 << 16;
    FILE *f = fopen(path, "rb");
    char *text = mem_alloc(most);

    ck_assert_msg(f != NULL && text != NULL, "%s", path);
    *len = fread(text, 1, most - 1, f);
    fclose(f);
    text[*len] = '\0';
    return text;
}

static tw_status read_import(void *user, const char *path, char **text, size_t *len,
                             const char **why)
{
    (void)user, (void)why;
    *text = read_text(path, len);
    return TW_OK;
}

typedef struct lowering {
    const char *path, *text, *values;
    int align;
    ir_module *m;
} lowering;

static tw_status lower(void *arg)
{
    lowering *l = arg;
    ir_binding b[MAX_VALUES];
    uint32_t n = 0;
    char *rest = arena_strdup(&schedule_memory, l->values);

    for (char *word; n < MAX_VALUES && (word = strsep(&rest, ",")) != NULL && *word;)
        b[n++] = binding_of(word);
    ck_assert_int_lt(nunits, MAX_UNITS);
    ck_assert_int_eq(dsl_load_from(&(dsl_reader){read_import, NULL}, l->path, l->text,
                                   strlen(l->text), &schedule_diags, &units[nunits]),
                     TW_OK);
    const kernel_source *k = dsl_kernel(units[nunits++], 0);
    n = add_defaults(&k->sig, b, n);
    tw_status st =
        k->lower(k, &schedule_memory, &names, b, n, schedule_path, &schedule_diags, &l->m);
    if (st != TW_OK)
        return st;
    for (uint32_t i = 0; i < l->m->kernel->params.n; i++) {
        ir_param *p = &l->m->kernel->params.at[i];
        p->unit_inner = p->kind == PARAM_TENSOR;
        p->align = p->kind == PARAM_TENSOR ? (uint16_t)l->align : 0;
    }
    return pipeline_run(l->m, &schedule_diags, NULL);
}

static ir_module *lower_from(const char *path, const char *text, const char *values, int align)
{
    lowering l = {path, text, values, align, NULL};
    tw_status st = guard_run(lower, &l);

    if (st != TW_OK && schedule_diags.all.n)
        ck_abort_msg("%s", schedule_diags.all.at[0]->text);
    ck_assert_int_eq(st, TW_OK);
    return l.m;
}

ir_module *schedule_lower_text(const char *text, const char *values, int align)
{
    return lower_from("test", text, values, align);
}

ir_module *schedule_lower(const char *path, const char *values, int align)
{
    size_t len;
    char *text = read_text(path, &len);
    ir_module *m = lower_from(path, text, values, align);

    mem_free(text);
    return m;
}

typedef struct making {
    ir_module *m;
    gpu_limits gpu;
    schedule_params params;
    schedule_result result;
} making;

static tw_status make(void *arg)
{
    making *x = arg;
    const pipeline_options verify = {.verify_each = true};

    return schedule_run(x->m, &x->gpu, &x->params, &schedule_diags, &verify, &x->result);
}

tw_status schedule_make(ir_module *m, int capability, schedule_params params,
                        schedule_result *result)
{
    making x = {.m = m, .gpu = gpu_limits_of(capability), .params = params};
    tw_status st = guard_run(make, &x);

    if (result)
        *result = x.result;
    return st;
}

int count_if(const ir_fn *fn, const ir_block *blk, op_test test)
{
    int n = 0;

    for IR_EACH_OP(op, blk) {
        n += test(fn, op);
        for (int i = 0; i < op->nregions; i++)
            n += count_if(fn, op->regions[i], test);
    }
    return n;
}

int count_ops(const ir_block *blk, enum ir_opcode code)
{
    int n = 0;

    for IR_EACH_OP(op, blk) {
        n += op->code == code;
        for (int i = 0; i < op->nregions; i++)
            n += count_ops(op->regions[i], code);
    }
    return n;
}

const ir_op *dot_loop(const ir_fn *fn, int n)
{
    for IR_EACH_OP(op, fn->body) {
        bool multiplies = op->code == OP_FOR &&
                          count_ops(op->regions[0], OP_MMA) + count_ops(op->regions[0], OP_DOT);
        if (multiplies && n-- == 0)
            return op;
    }
    ck_abort_msg("there is no such loop");
    return NULL;
}
