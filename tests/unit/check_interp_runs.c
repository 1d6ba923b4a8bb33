/* The interpreter: control, faults, and programs that are run in turns. */
#include "compiler/base/mem.h"
#include "tests/support/interp_rig.h"
#include <check.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>

/* ---- control ---- */

/* (x, y) = (y, x + y), n times from (0, 1): the yield replaces both at once. */
START_TEST(a_yield_replaces_all_values_at_once)
{
    int32_t out[2] = {0, 0};
    rig r;

    irig_open(&r);
    irig_tensor(&r, DT_I32, 1);
    irig_begin(&r);
    ir_val init[2] = {irig_i32(&r, 0), irig_i32(&r, 1)};
    ir_op *loop = ir_for(&r.b, irig_i32(&r, 0), irig_i32(&r, 10), irig_i32(&r, 1), init, 2);
    ir_builder in = ir_at_end(r.fn, loop->regions[0]);
    ir_val x = loop->regions[0]->arg + 1, y = x + 1;
    ir_yield(&in, (ir_val[]){y, ir_binary(&in, OP_ADD, x, y)}, 2);
    for (int i = 0; i < 2; i++)
        ir_store(&r.b, ir_param_value(r.fn, 0), (ir_val[]){irig_i32(&r, i)}, (int32_t[]){0},
                 loop->res + (ir_val)i);
    irig_bind(&r, 0, out, 1, (int64_t[]){2});
    ck_assert_int_eq(irig_run(&r), TW_OK);
    ck_assert_int_eq(out[0], 55);
    ck_assert_int_eq(out[1], 89);
    irig_close(&r);
}
END_TEST

/* Sum of the counter and number of turns of for i = lo to hi step s. */
static void run_range(int64_t lo, int64_t hi, int64_t step, int64_t want_sum, int want_turns)
{
    int32_t out[2] = {-1, -1};
    rig r;

    irig_open(&r);
    irig_tensor(&r, DT_I32, 1);
    irig_begin(&r);
    ir_val init[2] = {irig_i32(&r, 0), irig_i32(&r, 0)};
    ir_op *loop = ir_for(&r.b, irig_i32(&r, lo), irig_i32(&r, hi), irig_i32(&r, step), init, 2);
    ir_val i = loop->regions[0]->arg;
    ir_builder in = ir_at_end(r.fn, loop->regions[0]);
    ir_val sum = ir_binary(&in, OP_ADD, i + 1, i);
    ir_val turns = ir_binary(&in, OP_ADD, i + 2, ir_const_int(&in, DT_I32, 1));
    ir_yield(&in, (ir_val[]){sum, turns}, 2);
    for (int k = 0; k < 2; k++)
        ir_store(&r.b, ir_param_value(r.fn, 0), (ir_val[]){irig_i32(&r, k)}, (int32_t[]){0},
                 loop->res + (ir_val)k);
    irig_bind(&r, 0, out, 1, (int64_t[]){2});
    r.launch.step_limit = 1000;
    ck_assert_int_eq(irig_run(&r), TW_OK);
    ck_assert_int_eq(out[0], (int32_t)want_sum);
    ck_assert_int_eq(out[1], want_turns);
    irig_close(&r);
}

START_TEST(loops_count_both_ways_and_stop_at_the_edge)
{
    run_range(0, 10, 3, 18, 4);
    run_range(88, -1, -8, 528, 12);
    run_range(5, 10, -3, 0, 0);
    run_range(10, 5, 3, 0, 0);
    run_range(0, 10, 0, 0, 0);
    run_range(INT32_MAX - 5, INT32_MAX, 4, (INT32_MAX - 5) + (int64_t)(INT32_MAX - 1), 2);
    run_range(INT32_MIN + 1, INT32_MIN, -7, INT32_MIN + 1, 1);
}
END_TEST

START_TEST(while_tests_before_each_turn)
{
    for (int n = 0; n <= 5; n += 5) {
        int32_t out = -1;
        rig r;

        irig_open(&r);
        irig_tensor(&r, DT_I32, 1);
        irig_begin(&r);
        ir_val zero = irig_i32(&r, 0);
        ir_op *loop = ir_while(&r.b, &zero, 1);
        ir_builder head = ir_at_end(r.fn, loop->regions[0]);
        ir_val i = loop->regions[0]->arg;
        ir_condition(&head, ir_binary(&head, OP_CMP_LT, i, ir_const_int(&head, DT_I32, n)), &i, 1);
        ir_builder body = ir_at_end(r.fn, loop->regions[1]);
        ir_val one = ir_const_int(&body, DT_I32, 1);
        ir_val next = ir_binary(&body, OP_ADD, loop->regions[1]->arg, one);
        ir_yield(&body, &next, 1);
        irig_store(&r, loop->res, 0);
        irig_bind(&r, 0, &out, 1, (int64_t[]){1});
        r.launch.step_limit = 1000;
        ck_assert_int_eq(irig_run(&r), TW_OK);
        ck_assert_int_eq(out, n);
        irig_close(&r);
    }
}
END_TEST

START_TEST(an_if_runs_one_arm)
{
    int32_t out[4];
    rig r;

    irig_open(&r);
    irig_tensor(&r, DT_I32, 1);
    irig_begin(&r);
    ir_val id = ir_program_id(&r.b, 0);
    ir_val low = ir_binary(&r.b, OP_CMP_LT, id, irig_i32(&r, 2));
    ir_op *branch = ir_if(&r.b, low, (ir_type[]){type_scalar(DT_I32)}, 1);
    for (int arm = 0; arm < 2; arm++) {
        ir_builder b = ir_at_end(r.fn, branch->regions[arm]);
        ir_val v = ir_const_int(&b, DT_I32, arm ? 20 : 10);
        ir_yield(&b, &v, 1);
    }
    ir_store(&r.b, ir_param_value(r.fn, 0), &id, (int32_t[]){0}, branch->res);
    irig_bind(&r, 0, out, 1, (int64_t[]){4});
    r.launch.grid[0] = 4;
    ck_assert_int_eq(irig_run(&r), TW_OK);
    static const int32_t want[4] = {10, 10, 20, 20};
    ck_assert_mem_eq(out, want, sizeof want);
    irig_close(&r);
}
END_TEST

/* ---- faults ---- */

START_TEST(an_assert_stops_with_its_text)
{
    float out[2] = {9, 9};
    rig r;

    irig_open(&r);
    irig_tensor(&r, DT_F32, 1);
    irig_begin(&r);
    ir_val id = ir_program_id(&r.b, 0);
    ir_store(&r.b, ir_param_value(r.fn, 0), &id, (int32_t[]){0}, irig_f32(&r, 1));
    ir_assert(&r.b, ir_const_int(&r.b, DT_I1, 1), "water is wet");
    ir_assert(&r.b, ir_const_int(&r.b, DT_I1, 0), "the sky is up");
    irig_bind(&r, 0, out, 1, (int64_t[]){2});
    r.launch.grid[0] = 2;
    ck_assert_int_eq(irig_run(&r), TW_E_ASSERT);
    ck_assert_str_eq(r.fault.text, "the sky is up");
    ck_assert_int_eq(r.fault.op->code, OP_ASSERT);
    ck_assert_int_eq(r.fault.assert_index, 1);
    ck_assert_float_eq(out[1], 9.0f);
    irig_close(&r);
}
END_TEST

START_TEST(a_wrong_proof_is_our_bug)
{
    float out[4];
    rig r;

    irig_open(&r);
    irig_tensor(&r, DT_F32, 1);
    irig_begin(&r);
    ir_val at = irig_i32(&r, 2);
    ir_val v = ir_load(&r.b, ir_param_value(r.fn, 0), &at, (int32_t[]){3});
    ir_def(r.fn, v)->attr[1].i = 1;
    irig_store(&r, v, 3);
    irig_bind(&r, 0, out, 1, (int64_t[]){4});
    ck_assert_int_eq(irig_run(&r), TW_E_INTERNAL);
    ck_assert_str_eq(r.fault.text, "load: dimension 0 was proved inside, but 2..4 is not in 0..3");
    irig_close(&r);
}
END_TEST

START_TEST(an_endless_loop_meets_the_limit)
{
    rig r;

    irig_open(&r);
    irig_begin(&r);
    ir_op *loop = ir_while(&r.b, NULL, 0);
    ir_builder head = ir_at_end(r.fn, loop->regions[0]), body = ir_at_end(r.fn, loop->regions[1]);
    ir_condition(&head, ir_const_int(&head, DT_I1, 1), NULL, 0);
    ir_yield(&body, NULL, 0);
    r.launch.step_limit = 10000;
    ck_assert_int_eq(irig_run(&r), TW_E_LIMIT);
    irig_close(&r);
}
END_TEST

START_TEST(no_memory_is_a_status)
{
    rig r;

    irig_open(&r);
    irig_begin(&r);
    ir_return(&r.b, NULL, 0);
    const interp_program *p = interp_prepare(&r.a, r.m);
    for (long n = 1; n <= 3; n++) {
        mem_fail_after(n);
        ck_assert_int_eq(interp_run(p, &r.launch, 0, 1, NULL), TW_E_NOMEM);
        mem_fail_after(0);
    }
    ck_assert_int_eq(interp_run(p, &r.launch, 0, 1, NULL), TW_OK);
    irig_close(&r);
}
END_TEST

/* ---- programs and agents ---- */

/* Program (x, y, z) of the grid adds one to out[z][y][x]. */
static void build_count(rig *r)
{
    irig_open(r);
    irig_tensor(r, DT_I32, 3);
    irig_begin(r);
    ir_val view = ir_param_value(r->fn, 0);
    ir_val at[3] = {ir_program_id(&r->b, 2), ir_program_id(&r->b, 1), ir_program_id(&r->b, 0)};
    ir_val v = ir_load(&r->b, view, at, (int32_t[]){0, 0, 0});
    ir_store(&r->b, view, at, (int32_t[]){0, 0, 0}, ir_binary(&r->b, OP_ADD, v, irig_i32(r, 1)));
    ir_return(&r->b, NULL, 0);
}

START_TEST(some_programs_of_a_grid)
{
    int32_t out[24] = {0};
    rig r;

    build_count(&r);
    irig_bind(&r, 0, out, 3, (int64_t[]){4, 3, 2});
    const interp_program *p = interp_prepare(&r.a, r.m);
    memcpy(r.launch.grid, (int64_t[]){2, 3, 4}, sizeof r.launch.grid);
    ck_assert_int_eq(interp_run(p, &r.launch, 5, 3, NULL), TW_OK);
    ck_assert_int_eq(interp_run(p, &r.launch, 22, 100, NULL), TW_OK);
    for (int i = 0; i < 24; i++)
        ck_assert_int_eq(out[i], (i >= 5 && i < 8) || i >= 22);
    r.launch.grid[1] = 0;
    ck_assert_int_eq(interp_run(p, &r.launch, 0, 100, NULL), TW_OK);
    ck_assert_int_eq(out[0], 0);
    irig_close(&r);
}
END_TEST

START_TEST(agents_take_turns_at_any_op)
{
    int32_t out[2] = {0};
    interp_agent *ag[2];
    int live = 2;
    rig r;

    build_count(&r);
    irig_bind(&r, 0, out, 3, (int64_t[]){1, 1, 2});
    const interp_program *p = interp_prepare(&r.a, r.m);
    for (int i = 0; i < 2; i++) {
        ag[i] = interp_agent_create(p, &r.launch);
        interp_agent_start(ag[i], (int64_t[]){i, 0, 0});
    }
    while (live) {
        for (int i = 0; i < 2; i++) {
            if (interp_agent_next(ag[i]))
                live -= interp_step(ag[i]) == INTERP_DONE;
        }
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(out[i], 1);
        ck_assert_int_eq(interp_agent_value(ag[i], r.fn->body->first->next->next->res)->i, i);
        interp_agent_destroy(ag[i]);
    }
    irig_close(&r);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("interp runs");
    TCase *control = tcase_create("control"), *faults = tcase_create("faults");
    TCase *agents = tcase_create("agents");

    tcase_add_test(control, a_yield_replaces_all_values_at_once);
    tcase_add_test(control, loops_count_both_ways_and_stop_at_the_edge);
    tcase_add_test(control, while_tests_before_each_turn);
    tcase_add_test(control, an_if_runs_one_arm);
    tcase_add_test(faults, an_assert_stops_with_its_text);
    tcase_add_test(faults, a_wrong_proof_is_our_bug);
    tcase_add_test(faults, an_endless_loop_meets_the_limit);
    tcase_add_test(faults, no_memory_is_a_status);
    tcase_add_test(agents, some_programs_of_a_grid);
    tcase_add_test(agents, agents_take_turns_at_any_op);
    suite_add_tcase(s, control);
    suite_add_tcase(s, faults);
    suite_add_tcase(s, agents);
    return s;
}
