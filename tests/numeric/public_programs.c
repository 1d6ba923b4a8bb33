/* Cases drawn from public bug reports about tile languages, their compilers and their caches.
 * docs/CASES.md lists them. */
#include "tests/support/numeric_dtype.h"
#include "tests/support/numeric_kernels.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const specs[] = {"interp", "cpu"};
enum { SPECS = sizeof specs / sizeof *specs };

static tw_status try_text(num_device *d, const char *text, const char *config, const tw_arg *args,
                          size_t n)
{
    tw_launch_options options = TW_LAUNCH_OPTIONS_INIT;
    tw_kernel *k = NULL;

    options.config = config;
    num_must(tw_kernel_load_text(d->cx, "case.tw", text, strlen(text), NULL, &k), "load");
    tw_status st = num_try(d, k, args, n, &options);
    tw_kernel_destroy(k);
    return st;
}

static void run_text(int spec, const char *text, const tw_arg *args, size_t n)
{
    num_device d;

    ck_assert(num_open(&d, specs[spec], NULL));
    num_must(try_text(&d, text, NULL, args, n), "launch");
    num_close(&d);
}

static DLTensor vector(const char *type, void *at, int64_t *n)
{
    return num_vector(num_dtype_named(type), at, n);
}

/* ---- indices ---- */

/* 64 % (32 + i) is a multiple of 32 for the first lane alone. */
START_TEST(a_remainder_is_no_multiple)
{
    int32_t x[128], y[128];
    int64_t n = 128;

    for (int i = 0; i < 128; i++)
        x[i] = i;
    DLTensor tx = vector("i32", x, &n), ty = vector("i32", y, &n);
    run_text(_i,
             "kernel rest(x: i32[N], out y: i32[N]) grid (1) {\n"
             "    let at = 64 % (32 + arange(128));\n"
             "    store(y[0 :+ 128], load(x[at]));\n"
             "}\n",
             (tw_arg[]){TW_TENSOR("x", &tx), TW_TENSOR("y", &ty)}, 2);
    for (int i = 0; i < 128; i++)
        ck_assert_int_eq(y[i], 64 % (32 + i));
}
END_TEST

/* Each second lane goes 1000 elements further: the places are no run. */
START_TEST(a_scatter_that_jumps)
{
    static int32_t x[196], t[196], y[1200];
    int64_t n = 196, m = 1200;

    for (int i = 0; i < 196; i++) {
        x[i] = 7 * i;
        t[i] = i % 2;
    }
    for (int i = 0; i < 1200; i++)
        y[i] = -1;
    DLTensor tx = vector("i32", x, &n), tt = vector("i32", t, &n), ty = vector("i32", y, &m);
    run_text(_i,
             "kernel jump(x: i32[N], t: i32[N], inout y: i32[M]) grid (1) {\n"
             "    let i = arange(256);\n"
             "    let at = where(i < N, i + 1000 * load(t[0 :+ 256]), -1);\n"
             "    store(y[at], load(x[0 :+ 256]));\n"
             "}\n",
             (tw_arg[]){TW_TENSOR("x", &tx), TW_TENSOR("t", &tt), TW_TENSOR("y", &ty)}, 3);
    for (int i = 0; i < 1200; i++) {
        int from = i % 1000;
        bool there = from < 196 && i / 1000 == from % 2;
        ck_assert_int_eq(y[i], there ? 7 * from : -1);
    }
}
END_TEST

/* Neighbours at the edges of 16-bit rows: what lies outside reads 0. */
START_TEST(neighbours_outside_are_zero)
{
    uint16_t x[8], y[8];
    int64_t n = 8;

    for (int i = 0; i < 8; i++)
        num_put(num_dtype_named("f16"), x, i, (num_value){.f = i + 1});
    DLTensor tx = vector("f16", x, &n), ty = vector("f16", y, &n);
    run_text(_i,
             "kernel sum3(x: f16[N], out y: f16[N]) grid (1) {\n"
             "    let left = load(x[-1 :+ 8]), mid = load(x[0 :+ 8]), right = load(x[1 :+ 8]);\n"
             "    store(y[0 :+ 8], left + mid + right);\n"
             "}\n",
             (tw_arg[]){TW_TENSOR("x", &tx), TW_TENSOR("y", &ty)}, 2);
    for (int i = 0; i < 8; i++) {
        double want = (i ? i : 0) + (i + 1) + (i < 7 ? i + 2 : 0);
        ck_assert_double_eq(num_get(num_dtype_named("f16"), y, i).f, want);
    }
}
END_TEST

/* ---- integers ---- */

/* Products and sums beyond 32 bits, from run-time values of 32 and of 64. */
START_TEST(integers_of_64_bits)
{
    static const int64_t value[] = {2147483647, 2147483648, 4294967295, 4294967296, INT64_MAX, -1};
    int64_t y[8], n = 8;

    for (size_t i = 0; i < sizeof value / sizeof *value; i++) {
        DLTensor ty = vector("i64", y, &n);
        memset(y, 0, sizeof y);
        run_text(_i,
                 "kernel wide(out y: i64[N], v: i64, a: i32, b: i32, u: u64) grid (1) {\n"
                 "    store(y[0], v + 1);\n"
                 "    store(y[1], cast(a, i64) * cast(b, i64));\n"
                 "    store(y[2], cast(u >> 1, i64));\n"
                 "    store(y[3], 4294967295 + v * 0);\n"
                 "    store(y[4], 2147483648 + v * 0);\n"
                 "    store(y[5], -9223372036854775807 - 1 + v * 0);\n"
                 "}\n",
                 (tw_arg[]){TW_TENSOR("y", &ty), TW_INT("v", value[i]), TW_INT("a", 319),
                            TW_INT("b", 7864320), TW_TEXT("u", "18446744073709551615")},
                 5);
        ck_assert_int_eq(y[0], (int64_t)((uint64_t)value[i] + 1));
        ck_assert_int_eq(y[1], INT64_C(2508718080));
        ck_assert_int_eq(y[2], INT64_MAX);
        ck_assert_int_eq(y[3], INT64_C(4294967295));
        ck_assert_int_eq(y[4], INT64_C(2147483648));
        ck_assert_int_eq(y[5], INT64_MIN);
    }
}
END_TEST

/* ---- names ---- */

/* What other systems reserve is a name like any other. */
START_TEST(names_of_launch_options_are_free)
{
    int32_t y = 0;
    int64_t one = 1;
    DLTensor ty = vector("i32", &y, &one);

    run_text(_i,
             "kernel names[num_stages: int](out y: i32[N], num_warps: i32, stream: i32,\n"
             "                              threads: i32, device: i32) grid (1) {\n"
             "    store(y[0], num_warps + 10 * stream + 100 * threads + 1000 * device\n"
             "        + 10000 * num_stages);\n"
             "}\n",
             (tw_arg[]){TW_TENSOR("y", &ty), TW_INT("num_warps", 1), TW_INT("stream", 2),
                        TW_INT("threads", 3), TW_INT("device", 4), TW_INT("num_stages", 5)},
             6);
    ck_assert_int_eq(y, 54321);
}
END_TEST

/* ---- control and tiles ---- */

/* An if in a while in a while, with a reduction in each arm. */
START_TEST(reductions_in_nested_loops)
{
    int32_t y = 0, want = 0;
    int64_t one = 1;
    DLTensor ty = vector("i32", &y, &one);

    run_text(_i,
             "kernel nested(out y: i32[N], n: i32) grid (1) {\n"
             "    var t = arange(64), total = 0, i = 0;\n"
             "    while (i < n) {\n"
             "        var k = 0;\n"
             "        while (k < i) {\n"
             "            if ((i + k) % 2 == 0) total += max(t, 0); else total -= min(t, 0);\n"
             "            t = t + where(arange(64) % 2 == 0, 1, -1);\n"
             "            k += 1;\n"
             "        }\n"
             "        i += 1;\n"
             "    }\n"
             "    store(y[0], total);\n"
             "}\n",
             (tw_arg[]){TW_TENSOR("y", &ty), TW_INT("n", 7)}, 2);
    for (int i = 0, step = 0; i < 7; i++) {
        for (int k = 0; k < i; k++, step++) {
            int high = 62 + step > 63 - step ? 62 + step : 63 - step;
            int low = 1 - step < step ? 1 - step : step;
            want += (i + k) % 2 == 0 ? high : -low;
        }
    }
    ck_assert_int_eq(y, want);
}
END_TEST

/* A tile of 4 x 65536 with three loads and a sum: compiled, not unrolled for ever. Registers of
 * a GPU do not hold it. */
START_TEST(a_very_wide_tile)
{
    enum { WIDE = 65536 };
    static float x[3][4 * WIDE], y[4];
    int64_t shape[] = {4, WIDE}, four = 4;
    DLTensor t[3], ty = vector("f32", y, &four);
    num_device d;

    for (int i = 0; i < 3; i++) {
        t[i] = (DLTensor){x[i], {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0};
        for (int k = 0; k < 4 * WIDE; k++)
            x[i][k] = (float)((k / WIDE + 1) * (i + 1));
    }
    ck_assert(num_open(&d, specs[_i], NULL));
    tw_status st = try_text(
        &d,
        "kernel wide(a: f32[M, N], b: f32[M, N], c: f32[M, N], out y: f32[M]) grid (1) {\n"
        "    let s = load(a[0 :+ 4, 0 :+ 65536]) + load(b[0 :+ 4, 0 :+ 65536])\n"
        "        + load(c[0 :+ 4, 0 :+ 65536]);\n"
        "    store(y[0 :+ 4], sum(s, 1));\n"
        "}\n",
        NULL,
        (tw_arg[]){TW_TENSOR("a", &t[0]), TW_TENSOR("b", &t[1]), TW_TENSOR("c", &t[2]),
                   TW_TENSOR("y", &ty)},
        4);
    if (d.is_gpu)
        ck_assert(st == TW_E_LIMIT && strstr(tw_last_error()->text, "registers a thread"));
    else
        num_must(st, "launch");
    for (int i = 0; i < 4 && !d.is_gpu; i++)
        ck_assert_float_eq(y[i], 6.0f * (float)(i + 1) * WIDE);
    num_close(&d);
}
END_TEST

/* Products of tiles smaller than any matrix instruction takes. */
START_TEST(products_of_tiny_tiles)
{
    float a[64], y[64];
    int64_t shape[] = {8, 8};
    DLTensor ta = {a, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0}, ty = ta;

    ty.data = y;
    for (int i = 0; i < 64; i++)
        a[i] = (float)(i % 5 - 2);
    run_text(_i,
             "kernel tiny(a: f32[M, N], inout y: f32[M, N]) grid (1) {\n"
             "    let t = load(a[0 :+ 8, 0 :+ 8]), column = load(a[0 :+ 8, 0 :+ 1]);\n"
             "    store(y[0 :+ 8, 0 :+ 8], dot(t, t) + dot(column, trans(column)));\n"
             "}\n",
             (tw_arg[]){TW_TENSOR("a", &ta), TW_TENSOR("y", &ty)}, 2);
    for (int i = 0; i < 64; i++) {
        float want = a[i / 8 * 8] * a[i % 8 * 8];
        for (int k = 0; k < 8; k++)
            want += a[i / 8 * 8 + k] * a[k * 8 + i % 8];
        ck_assert_float_eq(y[i], want);
    }
}
END_TEST

/* Two products in a row, in every block that the tuner may take and in smaller ones. */
START_TEST(two_products_in_every_block)
{
    static const int block_m[] = {16, 32, 64, 96, 128, 192}, block_n[] = {16, 32, 64, 128};
    attention_case c = attention_sizes(1, 1, 1, 16, 16, 16, 16);
    num_subject s;

    ck_assert(subject_open(&s, specs[_i], NULL, "attention_fwd", 5100));
    for (int at = 0; at < 24; at += _i ? 1 : 5) {
        char config[64];
        snprintf(config, sizeof config, "BLOCK_M=%d,BLOCK_N=%d", block_m[at / 4], block_n[at % 4]);
        c.config = config;
        c.type = at % 2 ? "f32" : "f16";
        attention_check(&s, &c, NUM_AT_END);
    }
    subject_close(&s);
}
END_TEST

/* ---- caches ---- */

static char folder[64], path[96];

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/tw_programs_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/store.db", folder);
}

static void drop_folder(void)
{
    unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
}

static tw_context *open_store(void)
{
    tw_config cfg = TW_CONFIG_INIT;
    tw_context *cx;

    cfg.store_path = path;
    num_must(tw_context_create(&cfg, &cx), "tw_context_create");
    return cx;
}

/* What text stores in y[0], in a context of its own over one store. */
static int32_t stored(int spec, const char *text, bool *known)
{
    tw_context *cx = open_store();
    tw_answer answer = TW_ANSWER_INIT;
    int32_t y = -1;
    int64_t one = 1;
    DLTensor ty = vector("i32", &y, &one);
    const tw_arg args[] = {TW_TENSOR("y", &ty)};
    tw_device *dev;
    tw_kernel *k;

    num_must(tw_device_open(cx, specs[spec], &dev), "tw_device_open");
    num_must(tw_kernel_load_text(cx, "k.tw", text, strlen(text), NULL, &k), "load");
    num_must(tw_launch(k, dev, NULL, args, 1), "launch");
    num_must(tw_query(k, dev, args, 1, NULL, &answer), "query");
    *known = answer.artifact_stored;
    tw_kernel_destroy(k);
    tw_device_close(dev);
    tw_context_destroy(cx);
    return y;
}

/* A constant outside of the kernel is part of what is compiled. */
START_TEST(an_edited_constant_has_its_effect)
{
    bool known;

    make_folder();
    ck_assert_int_eq(
        stored(_i, "const C = 123; kernel k(out y: i32[N]) grid (1) { store(y[0], C); }", &known),
        123);
    ck_assert(!known);
    ck_assert_int_eq(
        stored(_i, "const C = 1234; kernel k(out y: i32[N]) grid (1) { store(y[0], C); }", &known),
        1234);
    ck_assert(!known);
    drop_folder();
}
END_TEST

/* Names of values, comments and blank lines are not; the name of a kernel is, its code shows it. */
START_TEST(names_and_comments_are_not_compiled_again)
{
    bool known;

    make_folder();
    ck_assert_int_eq(
        stored(_i, "kernel a(out y: i32[N]) grid (1) { let v = 3; store(y[0], v); }", &known), 3);
    ck_assert(!known);
    ck_assert_int_eq(stored(_i,
                            "// the same\n\nkernel a(out y: i32[N]) grid (1)\n{\n    let w = 3;"
                            " // three\n    store(y[0], w);\n}\n",
                            &known),
                     3);
    ck_assert(known);
    drop_folder();
}
END_TEST

static bool count_row(void *user, const tw_store_row *row)
{
    int *n = user;

    ck_assert_str_eq(row->kernel, "matmul");
    ck_assert_int_gt(row->trials, 0);
    ++*n;
    return true;
}

static void tune_matmul(tw_context *cx, int64_t m, int64_t n, int64_t k, const char *type)
{
    static float memory[3][128 * 128];
    const num_dtype *t = num_dtype_named(type);
    int64_t a_[] = {m, k}, b_[] = {k, n}, c_[] = {m, n};
    const DLDataType dl = {t->code, (uint8_t)t->bits, 1};
    DLTensor a = {memory[0], {kDLCPU, 0}, 2, dl, a_, NULL, 0},
             b = {memory[1], {kDLCPU, 0}, 2, dl, b_, NULL, 0},
             c = {memory[2], {kDLCPU, 0}, 2, dl, c_, NULL, 0};
    const tw_arg args[] = {TW_TENSOR("a", &a), TW_TENSOR("b", &b), TW_TENSOR("c", &c)};
    tw_tune_options options = TW_TUNE_OPTIONS_INIT;
    tw_device *dev;
    tw_kernel *kernel;

    options.budget_s = 0.2;
    num_must(tw_device_open(cx, "cpu:1", &dev), "tw_device_open");
    num_must(tw_kernel_load(cx, "kernels/matmul.tw", NULL, &kernel), "load");
    num_must(tw_tune(kernel, dev, args, 3, &options, NULL), "tune");
    tw_kernel_destroy(kernel);
    tw_device_close(dev);
}

/* Sizes and dtypes of one kernel are tuned apart, and what was known stays. */
START_TEST(each_problem_has_a_row_of_its_own)
{
    int n = 0;

    make_folder();
    tw_context *cx = open_store();
    tune_matmul(cx, 64, 64, 64, "f32");
    tune_matmul(cx, 64, 128, 128, "f32");
    tune_matmul(cx, 64, 64, 64, "f16");
    num_must(tw_store_list(cx, count_row, &n), "list");
    ck_assert_int_eq(n, 3);
    tw_context_destroy(cx);
    drop_folder();
}
END_TEST

/* No configuration of a kernel is within the limits: the error names kernel, size and limit. */
START_TEST(nothing_within_the_limits)
{
    float y = 0.0f;
    int64_t one = 1;
    DLTensor ty = vector("f32", &y, &one);
    const tw_arg args[] = {TW_TENSOR("y", &ty)};
    num_device d;

    ck_assert(num_open(&d, specs[_i], NULL));
    tw_status st = try_text(&d,
                            "kernel large(out y: f32[N]) tune B in {4194304, 8388608} grid (1) {\n"
                            "    store(y[0 :+ B], zeros(f32[B]));\n"
                            "}\n",
                            NULL, args, 1);
    const char *said = tw_last_error()->text;
    ck_assert_msg((st == TW_E_LIMIT || st == TW_E_SOURCE) && strstr(said, "4194304") &&
                      strstr(said, "1048576"),
                  "%s: %s", tw_status_name(st), said);
    num_close(&d);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    int first = num_first(1);
    Suite *s = suite_create("public programs");
    TCase *t = tcase_create("programs");

    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, a_remainder_is_no_multiple, first, SPECS);
    tcase_add_loop_test(t, a_scatter_that_jumps, first, SPECS);
    tcase_add_loop_test(t, neighbours_outside_are_zero, first, SPECS);
    tcase_add_loop_test(t, integers_of_64_bits, first, SPECS);
    tcase_add_loop_test(t, names_of_launch_options_are_free, first, SPECS);
    tcase_add_loop_test(t, reductions_in_nested_loops, first, SPECS);
    tcase_add_loop_test(t, a_very_wide_tile, first, SPECS);
    tcase_add_loop_test(t, products_of_tiny_tiles, first, SPECS);
    tcase_add_loop_test(t, two_products_in_every_block, first, SPECS);
    tcase_add_loop_test(t, an_edited_constant_has_its_effect, first, SPECS);
    tcase_add_loop_test(t, names_and_comments_are_not_compiled_again, first, SPECS);
    tcase_add_test(t, each_problem_has_a_row_of_its_own);
    tcase_add_loop_test(t, nothing_within_the_limits, first, SPECS);
    suite_add_tcase(s, t);
    return s;
}
