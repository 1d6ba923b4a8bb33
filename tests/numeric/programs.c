/* Small programs whose results are known: control flow, integers, truth values, tile shapes. Each
 * on the interpreter and on each code path of the CPU. */
#include "tests/support/numeric_case.h"
#include <check.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *spec, *target;
} device[] = {
    {"interp", NULL},
    {"cpu", NULL},
    {"cpu:1", "cpu-avx512"},
    {"cpu:1", "cpu-avx2"},
    {"cpu:1", "cpu-generic"},
};
enum { DEVICES = sizeof device / sizeof *device, RESULTS = 16, INPUTS = 64 };

/* The body of a kernel that sees x (f32: 1, 2, ..., 64), n (a scalar, 0 at run time but unknown
 * when it is compiled) and stores into y (i32, -1 before). */
typedef struct program {
    const char *name, *body;
    int32_t want[RESULTS]; /* what y holds afterwards */
    int count;             /* how many of them are compared */
} program;

static const program programs[] = {
    {"a loop that counts down by a step known at run time",
     "var s = 0.0, turns = 0;\n"
     "for i in range(n + 88, n - 1, n - 8) { s += load(x[i / 2]); turns += 1; }\n"
     "store(y[0], cast(s, i32)); store(y[1], turns);\n",
     {276, 12},
     2},
    {"loops without a turn",
     "var turns = 0;\n"
     "for i in range(5, n + 10, n - 3) turns += 1;\n"
     "for i in range(n + 10, 5) turns += 1;\n"
     "for i in range(0, 10, n) turns += 1;\n"
     "for i in range(n) turns += 1;\n"
     "store(y[0], turns);\n",
     {0},
     1},
    {"a loop at the end of the integers",
     "var turns = 0, last = 0;\n"
     "for i in range(n + 2147483640, 2147483647, 4) { turns += 1; last = i; }\n"
     "store(y[0], turns); store(y[1], last);\n",
     {2, 2147483644},
     2},
    {"while tests first",
     "var i = 0;\n"
     "while (i < n) i += 1;\n"
     "store(y[0], i);\n"
     "while (i < n + 5) i += 1;\n"
     "store(y[1], i);\n"
     "var c = n + 27, steps = 0;\n"
     "while (c != 1 && steps < 1000) { c = c % 2 == 0 ? c / 2 : 3 * c + 1; steps += 1; }\n"
     "store(y[2], steps);\n",
     {0, 5, 111},
     3},
    {"both sides of an assignment at once",
     "var a = n, b = n + 1;\n"
     "for i in range(10) a, b = b, a + b;\n"
     "store(y[0], a); store(y[1], b);\n"
     "var s = arange(4), t = arange(10, 14);\n"
     "for i in range(n + 3) s, t = t, s;\n"
     "store(y[2 :+ 4], s); store(y[6 :+ 4], t);\n",
     {55, 89, 10, 11, 12, 13, 0, 1, 2, 3},
     10},
    {"nested loops that carry scalars and tiles",
     "var total = 0, t = full(i32[4], 0);\n"
     "for i in range(n + 4) {\n"
     "    for j in range(i) {\n"
     "        if ((i + j) % 2 == 0) { total += i * j; t += arange(4); } else t = t * 2;\n"
     "    }\n"
     "    total += 100;\n"
     "}\n"
     "store(y[0], total); store(y[1 :+ 4], t);\n",
     {403, 0, 10, 20, 30},
     5},
    {"what an if assigns is seen after it",
     "var a = 1, t = arange(3);\n"
     "if (n == 0) { a = 2; t = t + 10; }\n"
     "if (n != 0) { a = 3; t = t + 100; } else { t = t * 2; }\n"
     "store(y[0], a); store(y[1 :+ 3], t);\n",
     {2, 20, 22, 24},
     4},
    {"only the chosen arm has effects",
     "var calls = 0;\n"
     "fn count(v: i32) { calls += 1; return v; }\n"
     "let a = n == 0 ? count(7) : count(8) + count(9);\n"
     "let b = n != 0 && count(1) == 1;\n"
     "let c = n == 0 || count(1) == 1;\n"
     "store(y[0], calls); store(y[1], a); store(y[2], cast(b, i32)); store(y[3], cast(c, i32));\n",
     {1, 7, 0, 1},
     4},
    {"division as in C, and by zero",
     "let a = n - 7, b = n + 7;\n"
     "store(y[0], a / 2); store(y[1], b / (n - 2)); store(y[2], a % 2); store(y[3], b % (n - 2));\n"
     "store(y[4], b / n); store(y[5], b % n); store(y[6], a / n + a % n);\n"
     "let least = n - 2147483647 - 1;\n"
     "store(y[7], least / (n - 1)); store(y[8], least % (n - 1));\n"
     "store(y[9], (n + 1) << (n + 33)); store(y[10], a >> (n + 1));\n",
     {-3, -3, -1, 1, 0, 7, -7, -2147483647 - 1, 0, 2, -4},
     11},
    {"64 bits",
     "let big = cast(n + 319, i64) * 7864320;\n"
     "store(y[0], cast(big / 1000000, i32)); store(y[1], cast(big > 2147483647, i32));\n"
     "store(y[2], cast(big, i32));\n"
     "store(y[3], cast((cast(n, i64) - 5) / 2, i32)); store(y[4], cast(big >> 30, i32));\n"
     "let t = cast(arange(4), i64) << 40;\n"
     "store(y[5 :+ 4], cast(t >> 38, i32));\n",
     {2508, 1, -1786249216, -2, 2, 0, 4, 8, 12},
     9},
    {"truth values",
     "let a = arange(8) % 2 == n, b = arange(8) < n + 4;\n"
     "store(y[0], sum(a & b, 0)); store(y[1], sum(a | b, 0)); store(y[2], sum(a ^ b, 0));\n"
     "store(y[3], sum(!a, 0)); store(y[4], sum(a == b, 0));\n"
     "store(y[5], cast(!(n == 0), i32)); store(y[6], cast(cast(n + 2, i1), i32));\n"
     "store(y[7], sum(cast(arange(8) & 2, i1), 0));\n",
     {2, 6, 4, 4, 4, 0, 1, 4},
     8},
    {"shapes",
     "let t = arange(3)[:, None] * 10 + arange(4)[None, :];\n"
     "let u = trans(t);\n"
     "store(y[0], sum(sum(u * (arange(4)[:, None] + 1), 1), 0));\n"
     "let v = trans(broadcast(t[None, :, :], 2, 3, 4), 2, 0, 1);\n"
     "store(y[1], max(max(max(v, 2), 1), 0));\n"
     "store(y[2 :+ 4], max(max(v, 2), 1));\n"
     "store(y[6 :+ 3], sum(t, 1)); store(y[9 :+ 4], min(t, 0));\n"
     "store(y[13], sum(sum(sum(v, 0), 0), 0));\n",
     {360, 23, 20, 21, 22, 23, 6, 46, 86, 0, 1, 2, 3, 276},
     14},
    {"dot of integers, any size",
     "let a = arange(3)[:, None] + arange(5)[None, :];\n"
     "let b = arange(5)[:, None] * 2 - arange(2)[None, :];\n"
     "let c = dot(a, b, full(i32[3, 2], 1000));\n"
     "store(y[0 :+ 2], max(c, 0)); store(y[2 :+ 2], min(c, 0)); store(y[4], sum(sum(c, 0), 0));\n"
     "let big = full(i32[2, 2], n + 65536);\n"
     "store(y[5], max(max(dot(big, big), 0), 0));\n",
     {1100, 1080, 1060, 1050, 6435, 0},
     6},
    {"slices at every edge",
     "store(y[0], cast(sum(load(x[n - 3 :+ 8]), 0), i32));\n"
     "store(y[1], cast(sum(load(x[n + 60 :+ 8]), 0), i32));\n"
     "store(y[2], cast(load(x[n - 1]) + load(x[n + 64]) + load(x[2147483647]), i32));\n"
     "store(y[3], cast(sum(load(x[2147483647 :+ 8]), 0) + load(x[n - 2147483647 - 1]), i32));\n"
     "store(y[n - 2 :+ 3], full(i32[3], 15)); store(y[n + 15 :+ 3], full(i32[3], 16));\n"
     "store(y[n - 1], 17); store(y[n + 16], 18);\n",
     {15, 250, 0, 0, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 16},
     16},
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

static int run_program(num_device *d, const program *p)
{
    float x[INPUTS];
    int32_t y[RESULTS + 4];
    int64_t nx = INPUTS, ny = RESULTS;
    DLTensor tx = {x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &nx, NULL, 0};
    DLTensor ty = {y + 2, {kDLCPU, 0}, 1, {kDLInt, 32, 1}, &ny, NULL, 0};
    tw_arg args[] = {TW_TENSOR("x", &tx), TW_TENSOR("y", &ty), TW_INT("n", 0)};
    char text[2048];
    tw_kernel *k = NULL;
    int bad = 0;

    for (int i = 0; i < INPUTS; i++)
        x[i] = (float)(i + 1);
    memset(y, 0xff, sizeof y);
    snprintf(text, sizeof text, "kernel p(x: f32[M], out y: i32[N], n: i32) grid (1) {\n%s}\n",
             p->body);
    num_must(tw_kernel_load_text(d->cx, p->name, text, strlen(text), NULL, &k), p->name);
    num_must(num_try(d, k, args, 3, NULL), p->name);
    tw_kernel_destroy(k);
    for (int i = 0; i < p->count; i++) {
        if (y[2 + i] != p->want[i])
            num_say("%s: %s: y[%d] is %d, not %d\n", d->label, p->name, i, y[2 + i], p->want[i]);
        bad += y[2 + i] != p->want[i];
    }
    bad += y[0] != -1 || y[1] != -1 || y[RESULTS + 2] != -1 || y[RESULTS + 3] != -1;
    return bad;
}

START_TEST(known_results)
{
    num_device d;
    int bad = 0;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (int i = 0; i < PROGRAMS; i++)
        bad += run_program(&d, &programs[i]);
    num_close(&d);
    ck_assert_int_eq(bad, 0);
}
END_TEST

/* Truth values in memory: a byte, of which any value but 0 is true; 0 or 1 is written. */
START_TEST(truth_values_in_memory)
{
    uint8_t x[5] = {0, 1, 2, 255, 0}, y[5] = {7, 7, 7, 7, 7};
    int64_t n = 5;
    DLTensor tx = {x, {kDLCPU, 0}, 1, {kDLBool, 8, 1}, &n, NULL, 0};
    DLTensor ty = {y, {kDLCPU, 0}, 1, {kDLBool, 8, 1}, &n, NULL, 0};
    tw_arg args[] = {TW_TENSOR("x", &tx), TW_TENSOR("y", &ty)};
    const char *text = "kernel t(x: i1[N], out y: i1[N]) grid (1) {\n"
                       "    let v = load(x[0 :+ 8]);\n"
                       "    store(y[0 :+ 8], v);\n"
                       "}\n";
    num_device d;
    tw_kernel *k = NULL;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    num_must(tw_kernel_load_text(d.cx, "t.tw", text, strlen(text), NULL, &k), "load");
    num_must(num_try(&d, k, args, 2, NULL), "launch");
    static const uint8_t want[5] = {0, 1, 1, 1, 0};
    ck_assert_mem_eq(y, want, sizeof want);
    tw_kernel_destroy(k);
    num_close(&d);
}
END_TEST

/* Every program of a grid of three dimensions runs once, and knows where it is. */
START_TEST(programs_of_a_grid)
{
    enum { X = 5, Y = 3, Z = 4 };
    int32_t y[Z][Y][X];
    int64_t shape[3] = {Z, Y, X};
    DLTensor ty = {y, {kDLCPU, 0}, 3, {kDLInt, 32, 1}, shape, NULL, 0};
    tw_arg args[] = {TW_TENSOR("y", &ty)};
    const char *text =
        "kernel g(inout y: i32[P, Q, R]) grid (R, Q, P) {\n"
        "    let i = program_id(0), j = program_id(1), k = program_id(2);\n"
        "    let size = num_programs(0) * 100 + num_programs(1) * 10 + num_programs(2);\n"
        "    store(y[k, j, i], load(y[k, j, i]) + size * 1000 + k * 100 + j * 10 + i);\n"
        "}\n";
    num_device d;
    tw_kernel *k = NULL;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    memset(y, 0, sizeof y);
    num_must(tw_kernel_load_text(d.cx, "g.tw", text, strlen(text), NULL, &k), "load");
    num_must(num_try(&d, k, args, 1, NULL), "launch");
    for (int c = 0; c < Z; c++)
        for (int b = 0; b < Y; b++)
            for (int a = 0; a < X; a++)
                ck_assert_int_eq(y[c][b][a], 534000 + c * 100 + b * 10 + a);
    tw_kernel_destroy(k);
    num_close(&d);
}
END_TEST

/* The last program of a grid with 2^32 of them. */
START_TEST(a_grid_of_more_than_32_bits)
{
    int32_t flag = 0;
    int64_t one = 1;
    DLTensor ty = {&flag, {kDLCPU, 0}, 1, {kDLInt, 32, 1}, &one, NULL, 0};
    tw_arg args[] = {TW_TENSOR("y", &ty)};
    tw_launch_options options = TW_LAUNCH_OPTIONS_INIT;
    const char *text =
        "kernel g(out y: i32[N]) grid (16384, 16384, 16) {\n"
        "    if (program_id(0) == 16383 && program_id(1) == 16383 && program_id(2) == 15)\n"
        "        store(y[0], 1);\n"
        "}\n";
    num_device d;
    tw_kernel *k = NULL;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    options.program_first = ((int64_t)1 << 32) - 2;
    options.program_count = 2;
    num_must(tw_kernel_load_text(d.cx, "g.tw", text, strlen(text), NULL, &k), "load");
    num_must(num_try(&d, k, args, 1, &options), "launch");
    ck_assert_int_eq(flag, 1);
    tw_kernel_destroy(k);
    num_close(&d);
}
END_TEST

START_TEST(an_assert_that_fails)
{
    int64_t one = 1;
    int32_t y = 0;
    DLTensor ty = {&y, {kDLCPU, 0}, 1, {kDLInt, 32, 1}, &one, NULL, 0};
    const char *text = "kernel a(out y: i32[N], n: i32) grid (4) {\n"
                       "    assert(n < 10);\n"
                       "    assert(program_id(0) != n, \"no program is number n\");\n"
                       "    store(y[0], 1);\n"
                       "}\n";
    num_device d;
    tw_kernel *k = NULL;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    num_must(tw_kernel_load_text(d.cx, "a.tw", text, strlen(text), NULL, &k), "load");
    for (int n = 2; n < 14; n += 3) {
        tw_arg args[] = {TW_TENSOR("y", &ty), TW_INT("n", n)};
        tw_status st = num_try(&d, k, args, 2, NULL);
        const char *said = tw_last_error()->text;

        ck_assert_int_eq(st, n == 5 || n == 8 ? TW_OK : TW_E_ASSERT);
        if (n == 2)
            ck_assert_msg(strstr(said, "no program is number n") && strstr(said, "a.tw:3"), "%s",
                          said);
        if (n == 11)
            ck_assert_msg(strstr(said, "a.tw:2") != NULL, "%s", said);
    }
    tw_kernel_destroy(k);
    num_close(&d);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("programs");
    TCase *t = tcase_create("everywhere");

    tcase_add_loop_test(t, known_results, 0, DEVICES);
    tcase_add_loop_test(t, truth_values_in_memory, 0, DEVICES);
    tcase_add_loop_test(t, programs_of_a_grid, 0, DEVICES);
    tcase_add_loop_test(t, a_grid_of_more_than_32_bits, 0, DEVICES);
    tcase_add_loop_test(t, an_assert_that_fails, 0, DEVICES);
    suite_add_tcase(s, t);
    return s;
}
