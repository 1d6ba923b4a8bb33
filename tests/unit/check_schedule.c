/* What schedules of known kernels look like: the facts on which their speed rests. */
#include "compiler/base/error.h"
#include "compiler/ir/irbuild.h"
#include "compiler/ir/iredit.h"
#include "compiler/ir/layout.h"
#include "compiler/schedule/schedule.h"
#include "tests/support/schedule_fixture.h"
#include <check.h>
#include <stdio.h>
#include <string.h>

static const char attention[] = "kernels/attention_fwd.tw", matmul[] = "kernels/matmul.tw";
static const char d128[] = "T=bf16,D=128,DV=128,CAUSAL=true,BLOCK_M=128,BLOCK_N=64";

static ir_module *made(const char *path, const char *values, schedule_params params,
                       schedule_result *result)
{
    ir_module *m = schedule_lower(path, values, 16);

    ck_assert_msg(schedule_make(m, 80, params, result) == TW_OK, "%s: %s", values,
                  error_get()->text);
    return m;
}

static schedule_params stages(int n)
{
    schedule_params p = schedule_defaults();

    p.num_stages = n;
    return p;
}

static bool factor_in_registers(const ir_fn *fn, const ir_op *op)
{
    return op->code == OP_MMA && ir_type_of(fn, op->args[0]).kind == TYPE_TILE;
}

static bool is_mask(const ir_fn *fn, const ir_op *op)
{
    return op->nres == 1 && ir_type_of(fn, op->res).kind == TYPE_TILE &&
           ir_type_of(fn, op->res).rank == 2 &&
           (op->code == OP_WHERE || op->code == OP_CMP_LE || op->code == OP_CMP_LT);
}

/* One wait and one barrier an iteration; P and the sums of rows never leave a warp. */
START_TEST(attention_ring)
{
    for (int n = 2; n <= 4; n++) {
        const ir_fn *fn = made(attention, "T=bf16,D=64,DV=64,CAUSAL=true,BLOCK_M=128,BLOCK_N=64",
                               stages(n), NULL)->kernel;
        for (int i = 0; i < 2; i++) {
            const ir_block *body = dot_loop(fn, i)->regions[0];
            ck_assert_int_eq(count_ops(body, OP_COPY_WAIT), 1);
            ck_assert_int_eq(count_ops(body, OP_BARRIER), 1);
            ck_assert_int_eq(count_ops(body, OP_COPY_COMMIT), 1);
            ck_assert_int_eq(count_ops(body, OP_COPY_ASYNC), 2);
            ck_assert_int_eq(count_ops(body, OP_MMA), 2);
            ck_assert_int_eq(count_if(fn, body, factor_in_registers), 1);
            ck_assert_int_eq(count_ops(body, OP_BUFFER_STORE) + count_ops(body, OP_BUFFER_LOAD) +
                                 count_ops(body, OP_CONVERT) + count_ops(body, OP_BARRIER_WARP), 0);
            ck_assert_int_eq(count_ops(body, OP_VOTE_ANY), 1);
            ck_assert_int_eq(count_ops(body, OP_REDUCE_MAX), 1);
            ck_assert_int_eq(count_ops(body, OP_PARTIAL_SUM), 1);
            ck_assert_int_eq(count_ops(body, OP_REDUCE_SUM), 0);
            ck_assert_int_eq(body->first->attr[0].i, n - 2); /* pending */
        }
        ck_assert_int_gt(count_if(fn, dot_loop(fn, 0)->regions[0], is_mask), 0);
        ck_assert_int_eq(count_if(fn, dot_loop(fn, 1)->regions[0], is_mask), 0);
    }
}
END_TEST

/* One wait and one barrier a stage, under a condition; all copies of a stage stand there. */
START_TEST(blocks_of_a_stage)
{
    schedule_params p = stages(2);
    schedule_result r;

    p.stage_blocks = 2;
    const ir_fn *fn = made(attention, "T=bf16,D=64,DV=64,CAUSAL=true,BLOCK_M=128,BLOCK_N=64", p,
                           &r)->kernel;
    ck_assert_int_eq(r.shared_bytes, (128 + 4 * (64 + 64)) * 64 * 2);
    for (int i = 0; i < 2; i++) {
        const ir_block *body = dot_loop(fn, i)->regions[0];
        const ir_op *first = body->first;
        while (first->code != OP_IF)
            first = first->next;
        ck_assert_int_eq(count_ops(body, OP_BARRIER), 1);
        ck_assert_int_eq(count_ops(first->regions[0], OP_BARRIER), 1);
        ck_assert_int_eq(count_ops(first->regions[0], OP_COPY_WAIT), 1);
        ck_assert_int_eq(count_ops(first->regions[0], OP_COPY_COMMIT), 1);
        ck_assert_int_eq(count_ops(first->regions[0], OP_COPY_ASYNC), 4);
        ck_assert_int_eq(count_ops(body, OP_COPY_ASYNC), 4);
        ck_assert_int_eq(count_ops(body, OP_MMA), 2);
    }
    p.stage_blocks = 3;
    ck_assert_int_eq(schedule_make(schedule_lower(attention, d128, 16), 80, p, NULL), TW_E_ARG);
    error_clear();
}
END_TEST

/* Sums of what is rounded are one product more; the exact ones are not. */
START_TEST(sums_by_the_matrix_unit)
{
    const ir_fn *fn = made("kernels/variants/attention_rounded.tw", d128, stages(2), NULL)->kernel;

    for (int i = 0; i < 2; i++) {
        const ir_block *body = dot_loop(fn, i)->regions[0];
        ck_assert_int_eq(count_ops(body, OP_MMA_SUM), 1);
        ck_assert_int_eq(count_ops(body, OP_REDUCE_SUM) + count_ops(body, OP_PARTIAL_SUM), 0);
    }
    fn = made(attention, d128, stages(2), NULL)->kernel;
    ck_assert_int_eq(count_ops(fn->body, OP_MMA_SUM), 0);
}
END_TEST

/* Nothing drains between the loops, and the second copies without zero fill. */
START_TEST(attention_seam)
{
    const ir_fn *fn = made(attention, d128, stages(2), NULL)->kernel;
    const ir_op *first = dot_loop(fn, 0), *second = dot_loop(fn, 1);

    for (const ir_op *op = first->next; op != second; op = op->next)
        ck_assert(op->code != OP_COPY_WAIT && op->code != OP_BARRIER &&
                  op->code != OP_COPY_ASYNC && op->code != OP_REDUCE_SUM);
    ck_assert_int_eq(first->nres, 5); /* m, l, acc and the two slot numbers run on */
    ck_assert_uint_eq(second->args[second->nargs - 1], first->res + 4);
    for IR_EACH_OP(op, second->regions[0]) {
        for (int i = 0; i < op->nregions; i++) {
            for IR_EACH_OP(in, op->regions[i])
                ck_assert(in->code != OP_COPY_ASYNC || in->attr[1].i == 15);
        }
    }
}
END_TEST

/* FlashAttention-2's order: V is copied under the product with K, K under the one with V. */
START_TEST(attention_one_stage)
{
    const ir_fn *fn = made(attention, d128, stages(1), NULL)->kernel;
    const ir_block *body = dot_loop(fn, 1)->regions[0];
    static const enum ir_opcode want[] = {OP_COPY_WAIT, OP_BARRIER, OP_COPY_ASYNC, OP_MMA,
                                          OP_COPY_WAIT, OP_BARRIER, OP_IF, OP_MMA};
    size_t at = 0;

    for IR_EACH_OP(op, body) {
        if (at < sizeof want / sizeof *want && op->code == want[at])
            at++;
    }
    ck_assert_uint_eq(at, sizeof want / sizeof *want);
    ck_assert_int_eq(count_ops(body, OP_BARRIER), 2);
    ck_assert_int_eq(count_ops(body, OP_COPY_WAIT), 2);
}
END_TEST

START_TEST(shared_memory_of_attention)
{
    schedule_params p = stages(1);
    schedule_result r;

    made(attention, d128, p, &r);
    ck_assert_int_eq(r.shared_bytes, (128 + 64 + 64) * 128 * 2);
    made(attention, d128, stages(2), &r);
    ck_assert_int_eq(r.shared_bytes, (128 + 2 * (64 + 64)) * 128 * 2);
    /* V takes the place of Q, which the first copy of K does not wait for */
    p.operand_registers = 1;
    made(attention, d128, p, &r);
    ck_assert_int_eq(r.shared_bytes, (128 + 64) * 128 * 2);
    ck_assert_int_eq(r.warps, 4);
    p.operand_registers = 2; /* and K */
    made(attention, d128, p, &r);
    ck_assert_int_eq(r.shared_bytes, (64 + 64) * 128 * 2);
    p = stages(2);
    p.operand_registers = 1;
    made(attention, d128, p, &r);
    ck_assert_int_eq(r.shared_bytes, (128 + 2 * (64 + 64)) * 128 * 2);
    p.operand_registers = 2;
    made(attention, d128, p, &r);
    ck_assert_int_eq(r.shared_bytes, 2 * (64 + 64) * 128 * 2);
}
END_TEST

START_TEST(left_operand_in_registers)
{
    schedule_params p = stages(2);
    p.operand_registers = 1;
    const ir_fn *fn = made(attention, d128, p, NULL)->kernel;

    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(count_if(fn, dot_loop(fn, i)->regions[0], factor_in_registers), 2);
    ck_assert_int_eq(count_ops(dot_loop(fn, 1)->regions[0], OP_BUFFER_LOAD), 0);
}
END_TEST

START_TEST(too_much_shared_memory)
{
    ir_module *m = schedule_lower(
        attention, "T=bf16,D=256,DV=256,CAUSAL=false,BLOCK_M=128,BLOCK_N=64", 16);

    ck_assert_int_eq(schedule_make(m, 89, stages(2), NULL), TW_E_LIMIT);
    ck_assert_ptr_nonnull(strstr(error_get()->text, "196608 bytes of shared memory"));
    ck_assert_ptr_nonnull(strstr(error_get()->text, "8.9 has 101376"));
    error_clear();
}
END_TEST

/* The accumulator and the scores, and what goes with them. */
START_TEST(registers_of_attention)
{
    schedule_result r;

    made(attention, d128, stages(2), &r);
    ck_assert_int_ge(r.registers, 128 + 64 + 50);
    ck_assert_int_le(r.registers, 300);
}
END_TEST

static int registers_on(int capability, const char *values, int warps, int lazy)
{
    schedule_params p = stages(1);
    schedule_result r;

    p.num_warps = warps;
    p.lazy_rescale = lazy;
    ir_module *m = schedule_lower(attention, values, 16);
    ck_assert_int_eq(schedule_make(m, capability, p, &r), TW_OK);
    return r.registers;
}

/* Each of 8 warps holds all of the accumulator; pieces of 4 rows of P, 36 columns of V. */
START_TEST(registers_of_a_product_in_fma)
{
    const char *values = "T=f32,D=144,DV=144,CAUSAL=false,BLOCK_M=32,BLOCK_N=32";
    int n = registers_on(120, values, 8, 1);

    ck_assert_int_ge(n, 144 + 4 * 4 + 36 + 55);
    ck_assert_int_le(n, 144 + 4 * 4 + 36 + 55 + 20);
    ck_assert_int_lt(registers_on(120, values, 4, 1), n - 80); /* the accumulator in 4 shares */
}
END_TEST

/* Where rows are reduced across warps, what they vote decides and shuffles follow: ptxas calls. */
START_TEST(registers_of_calls)
{
    const char *f32 = "T=f32,D=80,DV=80,CAUSAL=false,BLOCK_M=64,BLOCK_N=64";
    const char *bf16 = "T=bf16,D=80,DV=80,CAUSAL=false,BLOCK_M=64,BLOCK_N=64";

    ck_assert_int_ge(registers_on(80, f32, 8, 1) - registers_on(120, f32, 8, 1), 50);
    ck_assert_int_eq(registers_on(80, f32, 8, 0), registers_on(120, f32, 8, 0)); /* no vote */
    ck_assert_int_eq(registers_on(80, f32, 4, 1), registers_on(120, f32, 4, 1)); /* whole rows */
    ck_assert_int_eq(registers_on(80, bf16, 8, 1), registers_on(120, bf16, 8, 1));
}
END_TEST

START_TEST(too_many_registers)
{
    schedule_params p = stages(1);
    ir_module *m = schedule_lower(matmul, "T=bf16,BLOCK_M=256,BLOCK_N=256,BLOCK_K=16", 16);

    p.num_warps = 1;
    ck_assert_int_eq(schedule_make(m, 90, p, NULL), TW_E_LIMIT);
    ck_assert_ptr_nonnull(strstr(error_get()->text, "registers a thread"));
    error_clear();
}
END_TEST

START_TEST(parameters_out_of_bounds)
{
    schedule_params p = schedule_defaults();
    ir_module *m = schedule_lower(matmul, "T=bf16,BLOCK_M=64,BLOCK_N=64,BLOCK_K=64", 16);

    p.num_warps = 3;
    ck_assert_int_eq(schedule_make(m, 80, p, NULL), TW_E_ARG);
    p = stages(0);
    ck_assert_int_eq(schedule_make(m, 80, p, NULL), TW_E_ARG);
    error_clear();
}
END_TEST

/* What an assert tells of its program is the program of the text: the order stays. */
START_TEST(asserts_with_values_keep_the_order)
{
    for (int told = 0; told < 2; told++) {
        ir_module *m = schedule_lower("kernels/attention_fwd.tw",
                                      "T=bf16,D=64,DV=64,CAUSAL=true,BLOCK_M=64,BLOCK_N=64", 16);
        ir_builder b = ir_before(m->kernel, m->kernel->body->first);
        ir_val one = ir_const_int(&b, DT_I32, 1), yes = ir_binary(&b, OP_CMP_EQ, one, one);
        schedule_params p = stages(2);

        p.program_order = 1;
        ir_assert_values(&b, yes, &one, told, "one is {0}");
        ck_assert_int_eq(schedule_make(m, 80, p, NULL), TW_OK);
        ck_assert_int_eq(count_ops(m->kernel->body, OP_NUM_PROGRAMS), told ? 0 : 3);
    }
}
END_TEST

typedef struct rooms {
    const ir_fn *fn;
    int n;
} rooms;

static void check_room(ir_op *op, void *arg)
{
    rooms *x = arg;
    const ir_op *by = op->code == OP_DIV ? ir_def(x->fn, op->args[1]) : NULL;

    if (!by || by->code != OP_CONST_INT || ir_type_of(x->fn, op->res).dtype != DT_U64)
        return;
    ck_assert_int_ge(by->attr[0].i, 1);
    ck_assert_int_le(by->attr[0].i, INT32_MAX);
    x->n++;
}

/* Sections are counted by a division by the room in L2, of which a profile may say 1 or 2^50. */
START_TEST(sections_of_any_cache)
{
    const int64_t l2[] = {1, 4, 50 << 20, (int64_t)1 << 50};

    for (size_t i = 0; i < sizeof l2 / sizeof *l2; i++) {
        gpu_limits gpu = gpu_limits_of(80);
        schedule_params p = stages(2);
        ir_module *m = schedule_lower(attention, d128, 16);

        gpu.l2_bytes = l2[i];
        p.program_order = 1;
        ck_assert_int_eq(schedule_run(m, &gpu, &p, NULL, NULL, NULL), TW_OK);
        rooms found = {.fn = m->kernel};
        ir_walk(m->kernel->body, check_room, &found);
        ck_assert_int_eq(found.n, 1);
    }
}
END_TEST

/* Both factors are copied; the warps make a square; the result is stored in whole pieces. */
START_TEST(matmul_of_halves)
{
    const ir_fn *fn =
        made(matmul, "T=f16,BLOCK_M=128,BLOCK_N=128,BLOCK_K=32", stages(3), NULL)->kernel;
    const ir_block *body = dot_loop(fn, 0)->regions[0];
    const ir_op *op = body->first;

    ck_assert_int_eq(count_ops(body, OP_COPY_ASYNC), 2);
    ck_assert_int_eq(count_ops(body, OP_BARRIER), 1);
    while (op->code != OP_MMA)
        op = op->next;
    const ir_layout *acc = fn->layouts.at[ir_type_of(fn, op->res).layout];
    ck_assert_int_eq(acc->warps[0], 2);
    ck_assert_int_eq(acc->warps[1], 2);
    for (op = fn->body->last; op->code != OP_STORE;)
        op = op->prev;
    const ir_layout *out = fn->layouts.at[ir_type_of(fn, op->args[op->nargs - 1]).layout];
    ck_assert_int_eq(out->kind, LAYOUT_BLOCKED);
    ck_assert_int_eq(out->regs[1], 8);
}
END_TEST

/* f32 is exact: no matrix unit. */
START_TEST(matmul_of_floats)
{
    const ir_fn *fn =
        made(matmul, "T=f32,BLOCK_M=64,BLOCK_N=64,BLOCK_K=32", stages(2), NULL)->kernel;
    const ir_block *body = dot_loop(fn, 0)->regions[0];

    ck_assert_int_eq(count_ops(body, OP_MMA), 0);
    ck_assert_int_eq(count_ops(body, OP_DOT), 1);
    ck_assert_int_eq(count_ops(body, OP_COPY_ASYNC), 2);
}
END_TEST

/* Without facts about strides nothing can be copied asynchronously. */
START_TEST(matmul_of_what_is_not_aligned)
{
    ir_module *m = schedule_lower(matmul, "T=bf16,BLOCK_M=64,BLOCK_N=64,BLOCK_K=64", 2);

    ck_assert_int_eq(schedule_make(m, 80, stages(2), NULL), TW_OK);
    const ir_block *body = dot_loop(m->kernel, 0)->regions[0];
    ck_assert_int_eq(count_ops(body, OP_COPY_ASYNC), 0);
    ck_assert_int_eq(count_ops(body, OP_BUFFER_STORE), 2);
    ck_assert_int_eq(count_ops(body, OP_BARRIER), 2);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("schedule");
    TCase *c = tcase_create("kernels");

    tcase_add_checked_fixture(c, schedule_setup, schedule_teardown);
    tcase_add_test(c, attention_ring);
    tcase_add_test(c, blocks_of_a_stage);
    tcase_add_test(c, sums_by_the_matrix_unit);
    tcase_add_test(c, attention_seam);
    tcase_add_test(c, attention_one_stage);
    tcase_add_test(c, shared_memory_of_attention);
    tcase_add_test(c, left_operand_in_registers);
    tcase_add_test(c, too_much_shared_memory);
    tcase_add_test(c, registers_of_attention);
    tcase_add_test(c, registers_of_a_product_in_fma);
    tcase_add_test(c, registers_of_calls);
    tcase_add_test(c, too_many_registers);
    tcase_add_test(c, parameters_out_of_bounds);
    tcase_add_test(c, asserts_with_values_keep_the_order);
    tcase_add_test(c, sections_of_any_cache);
    tcase_add_test(c, matmul_of_halves);
    tcase_add_test(c, matmul_of_floats);
    tcase_add_test(c, matmul_of_what_is_not_aligned);
    suite_add_tcase(s, c);
    return s;
}
