/* The interpreter: memory and tiles. */
#include "compiler/base/mem.h"
#include "tests/support/interp_rig.h"
#include <check.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>

/* ---- memory ---- */

START_TEST(ragged_ends_read_zero_and_stay_untouched)
{
    float x[5] = {1, 2, 3, 4, 5}, y[8] = {9, 9, 9, 9, 9, 9, 9, 9};
    rig r;

    irig_open(&r);
    int in = irig_tensor(&r, DT_F32, 1), out = irig_tensor(&r, DT_F32, 1);
    irig_begin(&r);
    ir_val at = ir_binary(&r.b, OP_MUL, ir_program_id(&r.b, 0), irig_i32(&r, 4));
    ir_val v = ir_load(&r.b, ir_param_value(r.fn, in), &at, (int32_t[]){4});
    ir_store(&r.b, ir_param_value(r.fn, out), &at, (int32_t[]){4}, v);
    irig_bind(&r, in, x, 1, (int64_t[]){5});
    irig_bind(&r, out, y, 1, (int64_t[]){7});
    r.launch.grid[0] = 2;
    ck_assert_int_eq(irig_run(&r), TW_OK);
    static const float want[8] = {1, 2, 3, 4, 5, 0, 0, 9};
    ck_assert_mem_eq(y, want, sizeof want);
    irig_close(&r);
}
END_TEST

START_TEST(a_negative_start_and_a_row_outside_are_outside)
{
    float x[6] = {1, 2, 3, 4, 5, 6}, y[4] = {9, 9, 9, 9};
    rig r;

    for (int64_t row = -1; row <= 2; row++) {
        irig_open(&r);
        int out = irig_tensor(&r, DT_F32, 1), in = irig_tensor(&r, DT_F32, 2);
        irig_begin(&r);
        ir_val index[2] = {irig_i32(&r, row), irig_i32(&r, -2)};
        ir_val v = ir_load(&r.b, ir_param_value(r.fn, in), index, (int32_t[]){0, 4});
        irig_store(&r, v, 4);
        irig_bind(&r, in, x, 2, (int64_t[]){2, 3});
        irig_bind(&r, out, y, 1, (int64_t[]){4});
        ck_assert_int_eq(irig_run(&r), TW_OK);
        bool there = row == 0 || row == 1;
        float want[4] = {0, 0, there ? x[row * 3] : 0, there ? x[row * 3 + 1] : 0};
        ck_assert_mem_eq(y, want, sizeof want);
        irig_close(&r);
    }
}
END_TEST

START_TEST(strides_may_be_zero_negative_or_permuted)
{
    float x[12], y[8];
    rig r;

    for (int i = 0; i < 12; i++)
        x[i] = (float)i;
    irig_open(&r);
    int out = irig_tensor(&r, DT_F32, 1), in = irig_tensor(&r, DT_F32, 3);
    irig_begin(&r);
    ir_val index[3] = {irig_i32(&r, 0), irig_i32(&r, 0), irig_i32(&r, 0)};
    ir_val v = ir_load(&r.b, ir_param_value(r.fn, in), index, (int32_t[]){2, 2, 2});
    ir_type flat = type_tile(DT_F32, 1, (int32_t[]){8});
    ir_op *reshape = ir_build(&r.b, OP_RESHAPE, &v, 1, NULL, flat);
    irig_store(&r, reshape->res, 8);
    irig_bind(&r, out, y, 1, (int64_t[]){8});
    r.arg[in].view = (interp_view){x + 5, {0, -4, 1}, {2, 2, 2}};
    ck_assert_int_eq(irig_run(&r), TW_OK);
    static const float want[8] = {5, 6, 1, 2, 5, 6, 1, 2};
    ck_assert_mem_eq(y, want, sizeof want);
    irig_close(&r);
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
    irig_open(&r);
    int out = irig_tensor(&r, DT_F32, 2);
    irig_begin(&r);
    ir_val index[2] = {irig_i32(&r, 70000), irig_i32(&r, 1)};
    ir_store(&r.b, ir_param_value(r.fn, out), index, (int32_t[]){0, 0}, irig_f32(&r, 1.0));
    r.arg[out].view = (interp_view){big, {stride, 1}, {rows, 2}};
    ck_assert_int_eq(irig_run(&r), TW_OK);
    ck_assert_float_eq(big[70000 * stride + 1], 1.0f);
    ck_assert_float_eq(big[70000 * stride], 0.0f);
    irig_close(&r);
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

        irig_open(&r);
        int in = irig_tensor(&r, row[i].t, 1), out = irig_tensor(&r, row[i].t, 1);
        int seen = irig_tensor(&r, DT_F64, 1);
        irig_begin(&r);
        ir_val at = irig_i32(&r, 0);
        ir_val v = ir_load(&r.b, ir_param_value(r.fn, in), &at, (int32_t[]){0});
        ir_val d = row[i].t == DT_F64 ? v : ir_cast(&r.b, v, DT_F64);
        ir_val w = row[i].t == DT_F64 ? d : ir_cast(&r.b, d, row[i].t);
        ir_store(&r.b, ir_param_value(r.fn, out), &at, (int32_t[]){0}, w);
        ir_store(&r.b, ir_param_value(r.fn, seen), &at, (int32_t[]){0}, d);
        uint64_t bits = row[i].bits;
        irig_bind(&r, in, &bits, 1, (int64_t[]){1});
        irig_bind(&r, out, &back, 1, (int64_t[]){1});
        irig_bind(&r, seen, &wide, 1, (int64_t[]){1});
        ck_assert_int_eq(irig_run(&r), TW_OK);
        ck_assert_msg(wide == row[i].value, "%s: %a, not %a", dtype_name(row[i].t), wide,
                      row[i].value);
        ck_assert_msg(!memcmp(&back, &row[i].bits, (size_t)dtype_bytes(row[i].t)), "%s: %llx",
                      dtype_name(row[i].t), (unsigned long long)back);
        irig_close(&r);
    }
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
    irig_store(r, ir_build(&r->b, OP_RESHAPE, &tile, 1, NULL, flat)->res, n);
    irig_bind(r, 0, out, 1, (int64_t[]){n});
    ck_assert_int_eq(irig_run(r), TW_OK);
    for (int32_t i = 0; i < n; i++)
        ck_assert_msg(out[i] == want[i] || (isnan(out[i]) && isnan(want[i])),
                      "element %d is %g, not %g", i, (double)out[i], (double)want[i]);
    irig_close(r);
}

static void rig_tile(rig *r)
{
    irig_open(r);
    irig_tensor(r, DT_F32, 1);
    irig_begin(r);
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
    run_tile(&r, ir_splat(&r.b, irig_f32(&r, 2.5), type_tile(DT_F32, 1, (int32_t[]){3})),
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
    ir_val x = six(&r), four = ir_splat(&r.b, irig_f32(&r, 4), ty);
    ir_val nan = ir_splat(&r.b, irig_f32(&r, NAN), ty);
    ir_val mixed = ir_where(&r.b, ir_binary(&r.b, OP_CMP_EQ, x, four), nan, x);
    run_tile(&r, ir_reduce(&r.b, OP_REDUCE_MAX, mixed, 1), (float[]){2, NAN}, 2);

    rig_tile(&r);
    ir_val big = ir_splat(&r.b, irig_f32(&r, 1), type_tile(DT_F32, 2, (int32_t[]){2, 3}));
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
    ir_val x = six(&r), hundred = irig_f32(&r, 100);
    ir_val acc = ir_splat(&r.b, hundred, type_tile(DT_F32, 2, (int32_t[]){2, 2}));
    ir_val d = ir_dot(&r.b, x, ir_trans(&r.b, x, (int[]){1, 0}), acc);
    run_tile(&r, d, (float[]){105, 114, 114, 150}, 4);
}
END_TEST

START_TEST(an_integer_dot_wraps)
{
    int32_t out = 0;
    rig r;

    irig_open(&r);
    irig_tensor(&r, DT_I32, 1);
    irig_begin(&r);
    ir_type row = type_tile(DT_I32, 2, (int32_t[]){1, 2}), one = row;
    ir_type column = type_tile(DT_I32, 2, (int32_t[]){2, 1});
    one.shape[1] = 1;
    ir_val big = irig_i32(&r, 65536);
    ir_val d = ir_dot(&r.b, ir_splat(&r.b, big, row), ir_splat(&r.b, big, column),
                      ir_splat(&r.b, irig_i32(&r, 7), one));
    ir_type flat = type_tile(DT_I32, 1, (int32_t[]){1});
    irig_store(&r, ir_build(&r.b, OP_RESHAPE, &d, 1, NULL, flat)->res, 1);
    irig_bind(&r, 0, &out, 1, (int64_t[]){1});
    ck_assert_int_eq(irig_run(&r), TW_OK);
    ck_assert_int_eq(out, 7);
    irig_close(&r);
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
        ir_val tiny = irig_f32(&r, 0x1p-24), v = irig_f32(&r, 1);
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

        irig_open(&r);
        int to = irig_tensor(&r, DT_F32, 1);
        int from[2] = {irig_tensor(&r, DT_F32, 1), irig_tensor(&r, DT_F32, 1)};
        ir_val v[2];
        irig_begin(&r);
        for (int i = 0; i < 2; i++) {
            ir_val zero = irig_i32(&r, 0);
            v[i] = ir_load(&r.b, ir_param_value(r.fn, from[i]), &zero, (int32_t[]){4});
        }
        irig_store(&r, ir_binary(&r.b, OP_RUNNING_MAX, v[0], v[1]), 4);
        irig_bind(&r, to, out, 1, (int64_t[]){4});
        irig_bind(&r, from[0], (void *)(uintptr_t)m, 1, (int64_t[]){4});
        irig_bind(&r, from[1], (void *)(uintptr_t)x, 1, (int64_t[]){4});
        r.launch.running_max_low = lowest;
        ck_assert_int_eq(irig_run(&r), TW_OK);
        ck_assert_mem_eq(out, lowest ? low : high, sizeof out);
        irig_close(&r);
    }
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("interp");
    TCase *memory = tcase_create("memory"), *tiles = tcase_create("tiles");

    tcase_add_test(memory, ragged_ends_read_zero_and_stay_untouched);
    tcase_add_test(memory, a_negative_start_and_a_row_outside_are_outside);
    tcase_add_test(memory, strides_may_be_zero_negative_or_permuted);
    tcase_add_test(memory, offsets_have_64_bits);
    tcase_add_test(memory, elements_of_every_dtype);
    tcase_add_test(tiles, shapes_move_elements);
    tcase_add_test(tiles, reductions_drop_their_axis);
    tcase_add_test(tiles, a_maximum_keeps_nan_and_a_sum_counts_truths);
    tcase_add_test(tiles, dot_adds_to_its_accumulator);
    tcase_add_test(tiles, an_integer_dot_wraps);
    tcase_add_test(tiles, f64_rounds_only_at_the_store);
    tcase_add_test(tiles, running_max_has_two_extremes);
    suite_add_tcase(s, memory);
    suite_add_tcase(s, tiles);
    return s;
}
