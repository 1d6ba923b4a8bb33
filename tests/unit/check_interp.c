#include "compiler/target/interp/interp.h"
#include "compiler/base/mem.h"
#include "compiler/ir/irbuild.h"
#include <check.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>

/* A kernel of up to four tensor parameters, built op by op, and the arguments of its launch. */
typedef struct rig {
    arena a;
    intern names;
    ir_module *m;
    ir_fn *fn;
    ir_builder b;
    interp_arg arg[4];
    interp_launch launch;
    interp_fault fault;
} rig;

static void rig_open(rig *r)
{
    memset(r, 0, sizeof *r);
    arena_init(&r->a);
    intern_init(&r->names, &r->a);
    r->m = ir_module_new(&r->a, &r->names);
    r->fn = r->m->kernel = ir_fn_new(r->m, "test");
    r->launch = (interp_launch){.arg = r->arg, .grid = {1, 1, 1}};
}

static int rig_tensor(rig *r, enum dtype t, int rank)
{
    static const char *const name[] = {"a", "b", "c", "d"};
    ir_param p = {.kind = PARAM_TENSOR, .name = name[r->fn->params.n], .type = type_view(t, rank)};

    return ir_add_param(r->fn, p);
}

static void rig_begin(rig *r)
{
    ir_fn_begin(r->fn);
    r->b = ir_at_end(r->fn, r->fn->body);
}

/* Contiguous storage for parameter p. */
static void rig_bind(rig *r, int p, void *base, int rank, const int64_t *extent)
{
    interp_view *v = &r->arg[p].view;
    int64_t step = 1;

    v->base = base;
    for (int d = rank - 1; d >= 0; d--) {
        v->extent[d] = extent[d];
        v->stride[d] = step;
        step *= extent[d];
    }
}

static tw_status rig_run(rig *r)
{
    ir_return(&r->b, NULL, 0);
    return interp_run(interp_prepare(&r->a, r->m), &r->launch, 0, INT64_MAX, &r->fault);
}

static void rig_close(rig *r)
{
    arena_release(&r->a);
    ck_assert_int_eq(mem_live(), 0);
}

static ir_val i32_of(rig *r, int64_t v)
{
    return ir_const_int(&r->b, DT_I32, v);
}

static ir_val f32_of(rig *r, double v)
{
    return ir_const_float(&r->b, DT_F32, v);
}

/* A kernel that ends with storing a value of n elements (or a scalar, n = 0) in parameter 0. */
static void store_all(rig *r, ir_val v, int32_t n)
{
    ir_store(&r->b, ir_param_value(r->fn, 0), (ir_val[]){i32_of(r, 0)}, &n, v);
}

/* ---- memory ---- */

START_TEST(ragged_ends_read_zero_and_stay_untouched)
{
    float x[5] = {1, 2, 3, 4, 5}, y[8] = {9, 9, 9, 9, 9, 9, 9, 9};
    rig r;

    rig_open(&r);
    int in = rig_tensor(&r, DT_F32, 1), out = rig_tensor(&r, DT_F32, 1);
    rig_begin(&r);
    ir_val at = ir_binary(&r.b, OP_MUL, ir_program_id(&r.b, 0), i32_of(&r, 4));
    ir_val v = ir_load(&r.b, ir_param_value(r.fn, in), &at, (int32_t[]){4});
    ir_store(&r.b, ir_param_value(r.fn, out), &at, (int32_t[]){4}, v);
    rig_bind(&r, in, x, 1, (int64_t[]){5});
    rig_bind(&r, out, y, 1, (int64_t[]){7});
    r.launch.grid[0] = 2;
    ck_assert_int_eq(rig_run(&r), TW_OK);
    static const float want[8] = {1, 2, 3, 4, 5, 0, 0, 9};
    ck_assert_mem_eq(y, want, sizeof want);
    rig_close(&r);
}
END_TEST

START_TEST(a_negative_start_and_a_row_outside_are_outside)
{
    float x[6] = {1, 2, 3, 4, 5, 6}, y[4] = {9, 9, 9, 9};
    rig r;

    for (int64_t row = -1; row <= 2; row++) {
        rig_open(&r);
        int out = rig_tensor(&r, DT_F32, 1), in = rig_tensor(&r, DT_F32, 2);
        rig_begin(&r);
        ir_val index[2] = {i32_of(&r, row), i32_of(&r, -2)};
        ir_val v = ir_load(&r.b, ir_param_value(r.fn, in), index, (int32_t[]){0, 4});
        store_all(&r, v, 4);
        rig_bind(&r, in, x, 2, (int64_t[]){2, 3});
        rig_bind(&r, out, y, 1, (int64_t[]){4});
        ck_assert_int_eq(rig_run(&r), TW_OK);
        bool there = row == 0 || row == 1;
        float want[4] = {0, 0, there ? x[row * 3] : 0, there ? x[row * 3 + 1] : 0};
        ck_assert_mem_eq(y, want, sizeof want);
        rig_close(&r);
    }
}
END_TEST

START_TEST(strides_may_be_zero_negative_or_permuted)
{
    float x[12], y[8];
    rig r;

    for (int i = 0; i < 12; i++)
        x[i] = (float)i;
    rig_open(&r);
    int out = rig_tensor(&r, DT_F32, 1), in = rig_tensor(&r, DT_F32, 3);
    rig_begin(&r);
    ir_val index[3] = {i32_of(&r, 0), i32_of(&r, 0), i32_of(&r, 0)};
    ir_val v = ir_load(&r.b, ir_param_value(r.fn, in), index, (int32_t[]){2, 2, 2});
    ir_type flat = type_tile(DT_F32, 1, (int32_t[]){8});
    ir_op *reshape = ir_build(&r.b, OP_RESHAPE, &v, 1, NULL, flat);
    store_all(&r, reshape->res, 8);
    rig_bind(&r, out, y, 1, (int64_t[]){8});
    r.arg[in].view = (interp_view){x + 5, {0, -4, 1}, {2, 2, 2}};
    ck_assert_int_eq(rig_run(&r), TW_OK);
    static const float want[8] = {5, 6, 1, 2, 5, 6, 1, 2};
    ck_assert_mem_eq(y, want, sizeof want);
    rig_close(&r);
}
END_TEST

/* A row far beyond 2^31 elements, in memory that is reserved but never touched elsewhere. */
START_TEST(offsets_have_64_bits)
{
    const int64_t rows = 70001, stride = 32768;
    size_t size = (size_t)(rows * stride) * sizeof(float);
    float *big = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    rig r;

    ck_assert_ptr_ne(big, MAP_FAILED);
    rig_open(&r);
    int out = rig_tensor(&r, DT_F32, 2);
    rig_begin(&r);
    ir_val index[2] = {i32_of(&r, 70000), i32_of(&r, 1)};
    ir_store(&r.b, ir_param_value(r.fn, out), index, (int32_t[]){0, 0}, f32_of(&r, 1.0));
    r.arg[out].view = (interp_view){big, {stride, 1}, {rows, 2}};
    ck_assert_int_eq(rig_run(&r), TW_OK);
    ck_assert_float_eq(big[70000 * stride + 1], 1.0f);
    ck_assert_float_eq(big[70000 * stride], 0.0f);
    rig_close(&r);
    munmap(big, size);
}
END_TEST

/* Every dtype through a load, a cast to f64 and back, and a store. */
START_TEST(elements_of_every_dtype)
{
    static const struct {
        enum dtype t;
        uint64_t bits;
        double value;
    } row[] = {
        {DT_I1, 1, 1},
        {DT_I8, 0x80, -128},
        {DT_U8, 0x80, 128},
        {DT_I16, 0xfffe, -2},
        {DT_U16, 0xfffe, 65534},
        {DT_I32, 0x80000000, -2147483648.0},
        {DT_U32, 0xffffffff, 4294967295.0},
        {DT_I64, 0xffffffffffffff00, -256},
        {DT_U64, 0x8000000000000000, 9223372036854775808.0},
        {DT_F16, 0x0000, 0.0},
        {DT_F16, 0x8000, -0.0},
        {DT_F16, 0x3c01, 1.0009765625},
        {DT_F16, 0x0001, 0x1p-24},
        {DT_F16, 0x83ff, -0x1.ff8p-15},
        {DT_F16, 0x7bff, 65504},
        {DT_F16, 0xfc00, -INFINITY},
        {DT_BF16, 0x3f81, 1.0078125},
        {DT_BF16, 0x0001, 0x1p-133},
        {DT_F32, 0x3f800001, 1.00000011920928955078125},
        {DT_F64, 0x3ff0000000000001, 1.0000000000000002220446049250313},
    };

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        uint64_t back = 0;
        double wide = 0;
        rig r;

        rig_open(&r);
        int in = rig_tensor(&r, row[i].t, 1), out = rig_tensor(&r, row[i].t, 1);
        int seen = rig_tensor(&r, DT_F64, 1);
        rig_begin(&r);
        ir_val at = i32_of(&r, 0);
        ir_val v = ir_load(&r.b, ir_param_value(r.fn, in), &at, (int32_t[]){0});
        ir_val d = row[i].t == DT_F64 ? v : ir_cast(&r.b, v, DT_F64);
        ir_val w = row[i].t == DT_F64 ? d : ir_cast(&r.b, d, row[i].t);
        ir_store(&r.b, ir_param_value(r.fn, out), &at, (int32_t[]){0}, w);
        ir_store(&r.b, ir_param_value(r.fn, seen), &at, (int32_t[]){0}, d);
        uint64_t bits = row[i].bits;
        rig_bind(&r, in, &bits, 1, (int64_t[]){1});
        rig_bind(&r, out, &back, 1, (int64_t[]){1});
        rig_bind(&r, seen, &wide, 1, (int64_t[]){1});
        ck_assert_int_eq(rig_run(&r), TW_OK);
        ck_assert_msg(wide == row[i].value, "%s: %a, not %a", dtype_name(row[i].t), wide,
                      row[i].value);
        ck_assert_msg(!memcmp(&back, &row[i].bits, (size_t)dtype_bytes(row[i].t)), "%s: %llx",
                      dtype_name(row[i].t), (unsigned long long)back);
        rig_close(&r);
    }
}
END_TEST

/* ---- control ---- */

/* (x, y) = (y, x + y), n times from (0, 1): the yield replaces both at once. */
START_TEST(a_yield_replaces_all_values_at_once)
{
    int32_t out[2] = {0, 0};
    rig r;

    rig_open(&r);
    rig_tensor(&r, DT_I32, 1);
    rig_begin(&r);
    ir_val init[2] = {i32_of(&r, 0), i32_of(&r, 1)};
    ir_op *loop = ir_for(&r.b, i32_of(&r, 0), i32_of(&r, 10), i32_of(&r, 1), init, 2);
    ir_builder in = ir_at_end(r.fn, loop->regions[0]);
    ir_val x = loop->regions[0]->arg + 1, y = x + 1;
    ir_yield(&in, (ir_val[]){y, ir_binary(&in, OP_ADD, x, y)}, 2);
    for (int i = 0; i < 2; i++)
        ir_store(&r.b, ir_param_value(r.fn, 0), (ir_val[]){i32_of(&r, i)}, (int32_t[]){0},
                 loop->res + (ir_val)i);
    rig_bind(&r, 0, out, 1, (int64_t[]){2});
    ck_assert_int_eq(rig_run(&r), TW_OK);
    ck_assert_int_eq(out[0], 55);
    ck_assert_int_eq(out[1], 89);
    rig_close(&r);
}
END_TEST

/* Sum of the counter and number of turns of for i = lo to hi step s. */
static void run_range(int64_t lo, int64_t hi, int64_t step, int64_t want_sum, int want_turns)
{
    int32_t out[2] = {-1, -1};
    rig r;

    rig_open(&r);
    rig_tensor(&r, DT_I32, 1);
    rig_begin(&r);
    ir_val init[2] = {i32_of(&r, 0), i32_of(&r, 0)};
    ir_op *loop = ir_for(&r.b, i32_of(&r, lo), i32_of(&r, hi), i32_of(&r, step), init, 2);
    ir_val i = loop->regions[0]->arg;
    ir_builder in = ir_at_end(r.fn, loop->regions[0]);
    ir_val sum = ir_binary(&in, OP_ADD, i + 1, i);
    ir_val turns = ir_binary(&in, OP_ADD, i + 2, ir_const_int(&in, DT_I32, 1));
    ir_yield(&in, (ir_val[]){sum, turns}, 2);
    for (int k = 0; k < 2; k++)
        ir_store(&r.b, ir_param_value(r.fn, 0), (ir_val[]){i32_of(&r, k)}, (int32_t[]){0},
                 loop->res + (ir_val)k);
    rig_bind(&r, 0, out, 1, (int64_t[]){2});
    r.launch.step_limit = 1000;
    ck_assert_int_eq(rig_run(&r), TW_OK);
    ck_assert_int_eq(out[0], (int32_t)want_sum);
    ck_assert_int_eq(out[1], want_turns);
    rig_close(&r);
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

        rig_open(&r);
        rig_tensor(&r, DT_I32, 1);
        rig_begin(&r);
        ir_val zero = i32_of(&r, 0);
        ir_op *loop = ir_while(&r.b, &zero, 1);
        ir_builder head = ir_at_end(r.fn, loop->regions[0]);
        ir_val i = loop->regions[0]->arg;
        ir_condition(&head, ir_binary(&head, OP_CMP_LT, i, ir_const_int(&head, DT_I32, n)), &i, 1);
        ir_builder body = ir_at_end(r.fn, loop->regions[1]);
        ir_val one = ir_const_int(&body, DT_I32, 1);
        ir_val next = ir_binary(&body, OP_ADD, loop->regions[1]->arg, one);
        ir_yield(&body, &next, 1);
        store_all(&r, loop->res, 0);
        rig_bind(&r, 0, &out, 1, (int64_t[]){1});
        r.launch.step_limit = 1000;
        ck_assert_int_eq(rig_run(&r), TW_OK);
        ck_assert_int_eq(out, n);
        rig_close(&r);
    }
}
END_TEST

START_TEST(an_if_runs_one_arm)
{
    int32_t out[4];
    rig r;

    rig_open(&r);
    rig_tensor(&r, DT_I32, 1);
    rig_begin(&r);
    ir_val id = ir_program_id(&r.b, 0);
    ir_val low = ir_binary(&r.b, OP_CMP_LT, id, i32_of(&r, 2));
    ir_op *branch = ir_if(&r.b, low, (ir_type[]){type_scalar(DT_I32)}, 1);
    for (int arm = 0; arm < 2; arm++) {
        ir_builder b = ir_at_end(r.fn, branch->regions[arm]);
        ir_val v = ir_const_int(&b, DT_I32, arm ? 20 : 10);
        ir_yield(&b, &v, 1);
    }
    ir_store(&r.b, ir_param_value(r.fn, 0), &id, (int32_t[]){0}, branch->res);
    rig_bind(&r, 0, out, 1, (int64_t[]){4});
    r.launch.grid[0] = 4;
    ck_assert_int_eq(rig_run(&r), TW_OK);
    static const int32_t want[4] = {10, 10, 20, 20};
    ck_assert_mem_eq(out, want, sizeof want);
    rig_close(&r);
}
END_TEST

/* ---- tiles ---- */

/* A 2 x 3 tile 0 1 2 / 3 4 5 in f32. */
static ir_val six(rig *r)
{
    ir_val v = ir_cast(&r->b, ir_arange(&r->b, 0, 6), DT_F32);

    return ir_build(&r->b, OP_RESHAPE, &v, 1, NULL, type_tile(DT_F32, 2, (int32_t[]){2, 3}))->res;
}

static void run_tile(rig *r, ir_val tile, const float *want, int32_t n)
{
    ir_type flat = type_tile(DT_F32, 1, &n);
    float out[64];

    ck_assert_int_le(n, 64);
    store_all(r, ir_build(&r->b, OP_RESHAPE, &tile, 1, NULL, flat)->res, n);
    rig_bind(r, 0, out, 1, (int64_t[]){n});
    ck_assert_int_eq(rig_run(r), TW_OK);
    for (int32_t i = 0; i < n; i++)
        ck_assert_msg(out[i] == want[i] || (isnan(out[i]) && isnan(want[i])),
                      "element %d is %g, not %g", i, (double)out[i], (double)want[i]);
    rig_close(r);
}

static void rig_tile(rig *r)
{
    rig_open(r);
    rig_tensor(r, DT_F32, 1);
    rig_begin(r);
}

START_TEST(shapes_move_elements)
{
    rig r;

    rig_tile(&r);
    run_tile(&r, ir_trans(&r.b, six(&r), (int[]){1, 0}), (float[]){0, 3, 1, 4, 2, 5}, 6);
    rig_tile(&r);
    ir_val row = ir_expand(&r.b, ir_cast(&r.b, ir_arange(&r.b, 7, 2), DT_F32), 1);
    run_tile(&r, ir_broadcast(&r.b, row, type_tile(DT_F32, 2, (int32_t[]){2, 3})),
             (float[]){7, 7, 7, 8, 8, 8}, 6);
    rig_tile(&r);
    run_tile(&r, ir_splat(&r.b, f32_of(&r, 2.5), type_tile(DT_F32, 1, (int32_t[]){3})),
             (float[]){2.5f, 2.5f, 2.5f}, 3);
}
END_TEST

START_TEST(reductions_drop_their_axis)
{
    rig r;

    rig_tile(&r);
    run_tile(&r, ir_reduce(&r.b, OP_REDUCE_SUM, six(&r), 0), (float[]){3, 5, 7}, 3);
    rig_tile(&r);
    run_tile(&r, ir_reduce(&r.b, OP_REDUCE_SUM, six(&r), 1), (float[]){3, 12}, 2);
    rig_tile(&r);
    run_tile(&r, ir_reduce(&r.b, OP_REDUCE_MAX, six(&r), 1), (float[]){2, 5}, 2);
    rig_tile(&r);
    run_tile(&r, ir_reduce(&r.b, OP_REDUCE_MIN, six(&r), 0), (float[]){0, 1, 2}, 3);
}
END_TEST

START_TEST(a_maximum_keeps_nan_and_a_sum_counts_truths)
{
    rig r;

    rig_tile(&r);
    ir_type ty = type_tile(DT_F32, 2, (int32_t[]){2, 3});
    ir_val x = six(&r), four = ir_splat(&r.b, f32_of(&r, 4), ty);
    ir_val nan = ir_splat(&r.b, f32_of(&r, NAN), ty);
    ir_val mixed = ir_where(&r.b, ir_binary(&r.b, OP_CMP_EQ, x, four), nan, x);
    run_tile(&r, ir_reduce(&r.b, OP_REDUCE_MAX, mixed, 1), (float[]){2, NAN}, 2);

    rig_tile(&r);
    ir_val big = ir_splat(&r.b, f32_of(&r, 1), type_tile(DT_F32, 2, (int32_t[]){2, 3}));
    ir_val truth = ir_binary(&r.b, OP_CMP_LT, big, six(&r));
    ir_val count = ir_reduce(&r.b, OP_REDUCE_SUM, truth, 1);
    ck_assert_int_eq(ir_type_of(r.fn, count).dtype, DT_I32);
    run_tile(&r, ir_cast(&r.b, count, DT_F32), (float[]){1, 3}, 2);
}
END_TEST

START_TEST(dot_adds_to_its_accumulator)
{
    rig r;

    rig_tile(&r);
    ir_val x = six(&r), hundred = f32_of(&r, 100);
    ir_val acc = ir_splat(&r.b, hundred, type_tile(DT_F32, 2, (int32_t[]){2, 2}));
    ir_val d = ir_dot(&r.b, x, ir_trans(&r.b, x, (int[]){1, 0}), acc);
    run_tile(&r, d, (float[]){105, 114, 114, 150}, 4);
}
END_TEST

START_TEST(an_integer_dot_wraps)
{
    int32_t out = 0;
    rig r;

    rig_open(&r);
    rig_tensor(&r, DT_I32, 1);
    rig_begin(&r);
    ir_type row = type_tile(DT_I32, 2, (int32_t[]){1, 2}), one = row;
    ir_type column = type_tile(DT_I32, 2, (int32_t[]){2, 1});
    one.shape[1] = 1;
    ir_val big = i32_of(&r, 65536);
    ir_val d = ir_dot(&r.b, ir_splat(&r.b, big, row), ir_splat(&r.b, big, column),
                      ir_splat(&r.b, i32_of(&r, 7), one));
    ir_type flat = type_tile(DT_I32, 1, (int32_t[]){1});
    store_all(&r, ir_build(&r.b, OP_RESHAPE, &d, 1, NULL, flat)->res, 1);
    rig_bind(&r, 0, &out, 1, (int64_t[]){1});
    ck_assert_int_eq(rig_run(&r), TW_OK);
    ck_assert_int_eq(out, 7);
    rig_close(&r);
}
END_TEST

/* 1 + 2^-24 (twice) is 1 in f32 whichever addition comes first, and not in double. */
START_TEST(f64_rounds_only_at_the_store)
{
    static const float want[2] = {1.0f, 1.00000011920928955078125f};

    for (int exact = 0; exact < 2; exact++) {
        rig r;

        rig_tile(&r);
        r.launch.f64 = exact;
        ir_val tiny = f32_of(&r, 0x1p-24), v = f32_of(&r, 1);
        v = ir_binary(&r.b, OP_ADD, ir_binary(&r.b, OP_ADD, v, tiny), tiny);
        run_tile(&r, ir_splat(&r.b, v, type_tile(DT_F32, 1, (int32_t[]){1})), &want[exact], 1);
    }
}
END_TEST

START_TEST(running_max_has_two_extremes)
{
    static const float m[4] = {-INFINITY, 0, 0, 0}, x[4] = {3, 3, 20, -5};
    static const float high[4] = {3, 3, 20, 0}, low[4] = {3, 0, 12, 0};

    for (int lowest = 0; lowest < 2; lowest++) {
        float out[4];
        rig r;

        rig_open(&r);
        int to = rig_tensor(&r, DT_F32, 1);
        int from[2] = {rig_tensor(&r, DT_F32, 1), rig_tensor(&r, DT_F32, 1)};
        ir_val v[2];
        rig_begin(&r);
        for (int i = 0; i < 2; i++) {
            ir_val zero = i32_of(&r, 0);
            v[i] = ir_load(&r.b, ir_param_value(r.fn, from[i]), &zero, (int32_t[]){4});
        }
        store_all(&r, ir_binary(&r.b, OP_RUNNING_MAX, v[0], v[1]), 4);
        rig_bind(&r, to, out, 1, (int64_t[]){4});
        rig_bind(&r, from[0], (void *)(uintptr_t)m, 1, (int64_t[]){4});
        rig_bind(&r, from[1], (void *)(uintptr_t)x, 1, (int64_t[]){4});
        r.launch.running_max_low = lowest;
        ck_assert_int_eq(rig_run(&r), TW_OK);
        ck_assert_mem_eq(out, lowest ? low : high, sizeof out);
        rig_close(&r);
    }
}
END_TEST

/* ---- faults ---- */

START_TEST(an_assert_stops_with_its_text)
{
    float out[2] = {9, 9};
    rig r;

    rig_open(&r);
    rig_tensor(&r, DT_F32, 1);
    rig_begin(&r);
    ir_val id = ir_program_id(&r.b, 0);
    ir_store(&r.b, ir_param_value(r.fn, 0), &id, (int32_t[]){0}, f32_of(&r, 1));
    ir_assert(&r.b, ir_const_int(&r.b, DT_I1, 1), "water is wet");
    ir_assert(&r.b, ir_const_int(&r.b, DT_I1, 0), "the sky is up");
    rig_bind(&r, 0, out, 1, (int64_t[]){2});
    r.launch.grid[0] = 2;
    ck_assert_int_eq(rig_run(&r), TW_E_ASSERT);
    ck_assert_str_eq(r.fault.text, "the sky is up");
    ck_assert_int_eq(r.fault.op->code, OP_ASSERT);
    ck_assert_int_eq(r.fault.assert_index, 1);
    ck_assert_float_eq(out[1], 9.0f);
    rig_close(&r);
}
END_TEST

START_TEST(a_wrong_proof_is_our_bug)
{
    float out[4];
    rig r;

    rig_open(&r);
    rig_tensor(&r, DT_F32, 1);
    rig_begin(&r);
    ir_val at = i32_of(&r, 2);
    ir_val v = ir_load(&r.b, ir_param_value(r.fn, 0), &at, (int32_t[]){3});
    ir_def(r.fn, v)->attr[1].i = 1;
    store_all(&r, v, 3);
    rig_bind(&r, 0, out, 1, (int64_t[]){4});
    ck_assert_int_eq(rig_run(&r), TW_E_INTERNAL);
    ck_assert_str_eq(r.fault.text,
                     "load: dimension 0 was proved inside, but 2..4 is not in 0..3");
    rig_close(&r);
}
END_TEST

START_TEST(an_endless_loop_meets_the_limit)
{
    rig r;

    rig_open(&r);
    rig_begin(&r);
    ir_op *loop = ir_while(&r.b, NULL, 0);
    ir_builder head = ir_at_end(r.fn, loop->regions[0]), body = ir_at_end(r.fn, loop->regions[1]);
    ir_condition(&head, ir_const_int(&head, DT_I1, 1), NULL, 0);
    ir_yield(&body, NULL, 0);
    r.launch.step_limit = 10000;
    ck_assert_int_eq(rig_run(&r), TW_E_LIMIT);
    rig_close(&r);
}
END_TEST

START_TEST(no_memory_is_a_status)
{
    rig r;

    rig_open(&r);
    rig_begin(&r);
    ir_return(&r.b, NULL, 0);
    const interp_program *p = interp_prepare(&r.a, r.m);
    for (long n = 1; n <= 3; n++) {
        mem_fail_after(n);
        ck_assert_int_eq(interp_run(p, &r.launch, 0, 1, NULL), TW_E_NOMEM);
        mem_fail_after(0);
    }
    ck_assert_int_eq(interp_run(p, &r.launch, 0, 1, NULL), TW_OK);
    rig_close(&r);
}
END_TEST

/* ---- programs and agents ---- */

/* Program (x, y, z) of the grid adds one to out[z][y][x]. */
static void build_count(rig *r)
{
    rig_open(r);
    rig_tensor(r, DT_I32, 3);
    rig_begin(r);
    ir_val view = ir_param_value(r->fn, 0);
    ir_val at[3] = {ir_program_id(&r->b, 2), ir_program_id(&r->b, 1), ir_program_id(&r->b, 0)};
    ir_val v = ir_load(&r->b, view, at, (int32_t[]){0, 0, 0});
    ir_store(&r->b, view, at, (int32_t[]){0, 0, 0}, ir_binary(&r->b, OP_ADD, v, i32_of(r, 1)));
    ir_return(&r->b, NULL, 0);
}

START_TEST(some_programs_of_a_grid)
{
    int32_t out[24] = {0};
    rig r;

    build_count(&r);
    rig_bind(&r, 0, out, 3, (int64_t[]){4, 3, 2});
    const interp_program *p = interp_prepare(&r.a, r.m);
    memcpy(r.launch.grid, (int64_t[]){2, 3, 4}, sizeof r.launch.grid);
    ck_assert_int_eq(interp_run(p, &r.launch, 5, 3, NULL), TW_OK);
    ck_assert_int_eq(interp_run(p, &r.launch, 22, 100, NULL), TW_OK);
    for (int i = 0; i < 24; i++)
        ck_assert_int_eq(out[i], (i >= 5 && i < 8) || i >= 22);
    r.launch.grid[1] = 0;
    ck_assert_int_eq(interp_run(p, &r.launch, 0, 100, NULL), TW_OK);
    ck_assert_int_eq(out[0], 0);
    rig_close(&r);
}
END_TEST

START_TEST(agents_take_turns_at_any_op)
{
    int32_t out[2] = {0};
    interp_agent *ag[2];
    int live = 2;
    rig r;

    build_count(&r);
    rig_bind(&r, 0, out, 3, (int64_t[]){1, 1, 2});
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
    rig_close(&r);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("interp");
    TCase *memory = tcase_create("memory"), *control = tcase_create("control");
    TCase *tiles = tcase_create("tiles"), *faults = tcase_create("faults");
    TCase *agents = tcase_create("agents");

    tcase_add_test(memory, ragged_ends_read_zero_and_stay_untouched);
    tcase_add_test(memory, a_negative_start_and_a_row_outside_are_outside);
    tcase_add_test(memory, strides_may_be_zero_negative_or_permuted);
    tcase_add_test(memory, offsets_have_64_bits);
    tcase_add_test(memory, elements_of_every_dtype);
    tcase_add_test(control, a_yield_replaces_all_values_at_once);
    tcase_add_test(control, loops_count_both_ways_and_stop_at_the_edge);
    tcase_add_test(control, while_tests_before_each_turn);
    tcase_add_test(control, an_if_runs_one_arm);
    tcase_add_test(tiles, shapes_move_elements);
    tcase_add_test(tiles, reductions_drop_their_axis);
    tcase_add_test(tiles, a_maximum_keeps_nan_and_a_sum_counts_truths);
    tcase_add_test(tiles, dot_adds_to_its_accumulator);
    tcase_add_test(tiles, an_integer_dot_wraps);
    tcase_add_test(tiles, f64_rounds_only_at_the_store);
    tcase_add_test(tiles, running_max_has_two_extremes);
    tcase_add_test(faults, an_assert_stops_with_its_text);
    tcase_add_test(faults, a_wrong_proof_is_our_bug);
    tcase_add_test(faults, an_endless_loop_meets_the_limit);
    tcase_add_test(faults, no_memory_is_a_status);
    tcase_add_test(agents, some_programs_of_a_grid);
    tcase_add_test(agents, agents_take_turns_at_any_op);
    suite_add_tcase(s, memory);
    suite_add_tcase(s, control);
    suite_add_tcase(s, tiles);
    suite_add_tcase(s, faults);
    suite_add_tcase(s, agents);
    return s;
}
