/* What statements and expressions mean, on every device: each row is the body of a kernel and the
 * integers that it must leave in r.
 *
 * In a body: x[i] = i + 1 (i32, 96 of them), y[i] = i / 2 (f32), n = 5, zero = 0, s = 2.5. r starts
 * as -99 everywhere. */
#include "tests/support/numeric_case.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS = 96, RESULTS = 8 };

static const struct {
    const char *spec, *target;
} device[] = {
    {"interp", NULL},         {"cpu", NULL}, {"cpu:1", "cpu-avx512"}, {"cpu:1", "cpu-avx2"},
    {"cpu:1", "cpu-generic"},
};
enum { DEVICES = sizeof device / sizeof *device };

typedef struct meaning {
    const char *what, *body;
    int32_t want[RESULTS];
} meaning;
#define REST -99

static const meaning row[] = {
    {"division rounds toward zero",
     "store(r[0], -7 / (n - 3)); store(r[1], 7 / (3 - n)); store(r[2], -7 % (n - 3));"
     "store(r[3], 7 % (3 - n));"
     "let t = (arange(4) - 7) / 2; store(r[4 :+ 4], t);",
     {-3, -3, -1, 1, -3, -3, -2, -2}},
    {"division by zero is 0, remainder the dividend",
     "store(r[0], n / zero); store(r[1], n % zero); store(r[2], zero / zero);"
     "store(r[3], -n % zero); store(r[4 :+ 2], arange(2) / zero); store(r[6 :+ 2], arange(2) % "
     "zero);",
     {0, 5, 0, -5, 0, 0, 0, 1}},
    {"the least integer",
     "let least = -2147483648 + zero; store(r[0], least / -1); store(r[1], least % -1);"
     "store(r[2], abs(least)); store(r[3], least - 1); store(r[4], least * 2);"
     "store(r[5], -least);",
     {INT32_MIN, 0, INT32_MIN, INT32_MAX, 0, INT32_MIN, REST, REST}},
    {"shifts take their count modulo the width",
     "store(r[0], n << (32 + zero)); store(r[1], n << 33 - 1 + zero); store(r[2], -n >> n);"
     "store(r[3], -8 >> zero + 1); store(r[4], 1 << 31 + zero);"
     "store(r[5], cast(cast(n, i64) << 62 + cast(zero, i64) >> 61, i32));",
     {5, 5, -1, -4, INT32_MIN, 2, REST, REST}},
    {"bits",
     "store(r[0], n & 6); store(r[1], n | 10); store(r[2], n ^ 1); store(r[3], ~n);",
     {4, 15, 4, -6, REST, REST, REST, REST}},
    {"a run-time step may be negative",
     "var t = 0; for i in range(88, -1 + zero, zero - 8) t += load(x[i]); store(r[0], t);"
     "var u = 0; for i in range(n, 10, zero - 3) u += 1; store(r[1], u);"
     "var v = 0; for i in range(0, n, zero) v += 1; store(r[2], v);"
     "var w = 0; for i in range(10, zero, -3) w = w * 100 + i; store(r[3], w);",
     {540, 0, 0, 10070401, REST, REST, REST, REST}},
    {"a range may be empty, and its bounds are taken once",
     "var t = 0, end = n; for i in range(end) { end = 100; t += 1; }"
     "store(r[0], t); store(r[1], end); for i in range(n, n) store(r[2], 1);"
     "for i in range(n, 3) store(r[3], 1);",
     {5, 100, REST, REST, REST, REST, REST, REST}},
    {"assignments happen at once",
     "var a = zero, b = 1; for i in range(10) a, b = b, a + b; store(r[0], a); store(r[1], b);"
     "var p = arange(2), q = arange(2) + 10; for i in range(3) p, q = q, p;"
     "store(r[2 :+ 2], p); store(r[4 :+ 2], q);",
     {55, 89, 10, 11, 0, 1, REST, REST}},
    {"branches change vars",
     "var v = 100, w = 101; if (n > 3) w += 42; else w += 43; store(r[0], v); store(r[1], w);"
     "if (n < 3) { v = 1; w = 2; } else if (n == 5) v = 3; store(r[2], v); store(r[3], w);"
     "var t = arange(2); if (n == 5) t = t + 7; store(r[4 :+ 2], t);",
     {100, 143, 3, 143, 7, 8, REST, REST}},
    {"while tests before each round",
     "var i = 0, t = 0; while (i < zero) { t += 1; i += 1; } store(r[0], t);"
     "while (i < n) { t += load(x[i]); i += 1; } store(r[1], t); store(r[2], i);"
     "var c = 27, steps = 0; while (c != 1) { c = c % 2 == 0 ? c / 2 : 3 * c + 1; steps += 1; }"
     "store(r[3], steps);",
     {0, 15, 5, 111, REST, REST, REST, REST}},
    {"loops inside loops carry what they assign",
     "var t = 0; for i in range(n) { for k in range(i) { if (k != 2) t += i * k; else t -= 1; } }"
     "store(r[0], t);"
     "var u = 1; for i in range(3) { var v = 0; while (v < i) { v += 1; u = u * 2 + v; } }"
     "store(r[1], u);",
     {0 * 1 + 2 * 1 + 3 * 1 - 1 + 4 * 1 - 1 + 4 * 3, ((1 * 2 + 1) * 2 + 1) * 2 + 2, REST, REST,
      REST, REST, REST, REST}},
    {"functions assign outer vars, and see the scope where they are defined",
     "var calls = 0; let k = 10;"
     "fn bump(by) { calls += by; return calls * k; }"
     "fn twice(by) { return bump(by) + bump(by); }"
     "store(r[0], twice(n)); store(r[1], calls);"
     "for i in range(3) { if (i == 1) twice(1); } store(r[2], calls);"
     "{ let k = n; store(r[3], bump(0) + k - n); }",
     {50 + 100, 10, 12, 120, REST, REST, REST, REST}},
    {"only the chosen side of a choice runs",
     "var a = 0; fn tick(v) { a += 1; return v; }"
     "let p = n > 3 ? tick(1) : tick(2) + tick(3); store(r[0], p); store(r[1], a);"
     "let q = n < 3 && tick(1) == 1; store(r[2], cast(q, i32)); store(r[3], a);"
     "let o = n < 3 || tick(1) == 1; store(r[4], cast(o, i32)); store(r[5], a);"
     "let e = n > 3 && tick(0) == 1; store(r[6], cast(e, i32)); store(r[7], a);",
     {1, 1, 0, 1, 1, 2, 0, 3}},
    {"reading outside of a tensor gives 0",
     "store(r[0], load(x[-1])); store(r[1], load(x[96])); store(r[2], load(x[n + 1000000]));"
     "store(r[3 :+ 4], load(x[94 :+ 4])); store(r[7], sum(load(x[-2 :+ 4]), 0));",
     {0, 0, 0, 95, 96, 0, 0, 3}},
    {"writing outside of a tensor does nothing",
     "store(r[-2 :+ 4], arange(4)); store(r[8], 1); store(r[6 :+ 16], 7); store(r[-1], 1);"
     "store(r[2147483647], 1); store(r[-2147483648 + zero], 1);",
     {2, 3, REST, REST, REST, REST, 7, 7}},
    {"casts from floats go toward zero and saturate",
     "let h = s * 1e9; store(r[0], cast(s, i32)); store(r[1], cast(-s, i32)); store(r[2], cast(h, "
     "i32));"
     "store(r[3], cast(-h, i32)); store(r[4], cast(h * inf, i32));"
     "store(r[5], cast((s - s) / (s - s), i32)); store(r[6], cast(cast(s - s, i1), i32));"
     "store(r[7], cast(cast(nan * s, i1), i32));",
     {2, -2, INT32_MAX, INT32_MIN, INT32_MAX, 0, 0, 1}},
    {"casts between integers wrap or extend",
     "let wide = cast(n, i64) * 4294967296 - 1; store(r[0], cast(wide, i32));"
     "store(r[1], cast(wide >> 32, i32)); store(r[2], cast(cast(-n, i64) >> 1, i32));"
     "store(r[3], cast(cast(n, i1), i32) + cast(cast(zero, i1), i32));"
     "store(r[4], cast(cast(9007199254740993 + cast(zero, i64), f32) / 1e9, i32));",
     {-1, 4, -3, 1, 9007199, REST, REST, REST}},
    {"a sum of truths counts",
     "let t = arange(256) >= zero; store(r[0], sum(t, 0));"
     "let u = broadcast((arange(128) < 100)[:, None], 128, 2); store(r[1], sum(sum(u, 0), 0));"
     "store(r[2 :+ 2], sum(u, 0));",
     {256, 200, 100, 100, REST, REST, REST, REST}},
    {"reductions, and axes",
     "let t = arange(3)[:, None] * 10 + arange(4)[None, :]; store(r[0 :+ 3], max(t, 1));"
     "store(r[3 :+ 4], min(t, 0)); store(r[7], sum(sum(t, 1), 0));",
     {3, 13, 23, 0, 1, 2, 3, 138}},
    {"trans, broadcast, where, clamp",
     "let t = trans(arange(2)[:, None] * 10 + arange(3)[None, :]); store(r[0 :+ 3], max(t, 1));"
     "store(r[3 :+ 2], max(t, 0)); store(r[5 :+ 3], clamp(where(arange(3) == 1, 100, -100), 0, "
     "n));",
     {10, 11, 12, 2, 12, 0, 5, 0}},
    {"argmax and argmin take the first, or the first NaN",
     "let v = nan * s, t = where(arange(4) >= 2, v, load(y[0 :+ 4]));"
     "store(r[0], argmax(t, 0)); store(r[1], argmin(t, 0));"
     "let u = arange(3)[:, None] * 10 % (n + 10) + (arange(4)[None, :] ^ 1) * 0;"
     "store(r[2 :+ 4], argmax(u, 0)); store(r[6], argmin(max(u, 1), 0));"
     "store(r[7], argmax(full(f32[5], -inf), 0));",
     {2, 2, 1, 1, 1, 1, 0, 0}},
    {"running sums and products",
     "store(r[0 :+ 4], cumsum(arange(4) + 1, 0)); store(r[4 :+ 4], cumprod(arange(4) - n, 0));",
     {1, 3, 6, 10, -5, 20, -60, 120}},
    {"reshape keeps the order of elements",
     "let t = arange(3)[:, None] * 10 + arange(4)[None, :], u = reshape(t, 2, 6);"
     "store(r[0 :+ 2], max(u, 1)); "
     "store(r[2 :+ 6], min(min(reshape(reshape(u, 12), 1, 2, 6), 1), 0));",
     {11, 23, 0, 1, 2, 3, 10, 11}},
    {"dot of integers wraps",
     "let a = arange(2)[:, None] * 2 + arange(2)[None, :] + 1; let b = dot(a, a, 100);"
     "store(r[0 :+ 2], max(b, 1)); store(r[2 :+ 2], min(b, 1));"
     "store(r[4 :+ 2], max(dot(a * 65536, a * 65536), 1));",
     {110, 122, 107, 115, 0, 0, REST, REST}},
    {"NaN in comparisons, maximum and reductions",
     "let v = nan * s; store(r[0], cast(v == v, i32) + cast(v < 1.0, i32) + cast(v >= 1.0, i32));"
     "store(r[1], cast(v != v, i32)); let t = where(arange(4) == 1, v, load(y[0 :+ 4]));"
     "let m = max(t, 0), k = min(t, 0), q = maximum(v, 1.0);"
     "store(r[2], cast(m != m, i32)); store(r[3], cast(k != k, i32)); store(r[4], cast(q != q, "
     "i32));"
     "store(r[5], cast(max(full(f32[4], -inf), 0) == -inf, i32));"
     "store(r[6], cast(exp2(-inf * s) == 0.0, i32));",
     {0, 1, 1, 1, 1, 1, 1, REST}},
    {"multiply and add are rounded apart",
     "let v = -0.25 / (s - 1.75); store(r[0], cast(v * (s - 1.75) + 0.25 == 0.0, i32));"
     "let w = 1.0 + s * 1.4305115e-07; store(r[1], cast(fma(w, w, -1.0) == w * w - 1.0, i32));",
     {1, 0, REST, REST, REST, REST, REST, REST}},
    {"a program knows the grid",
     "store(r[0], program_id(0) + 10 * num_programs(0));",
     {10, REST, REST, REST, REST, REST, REST, REST}},
};
enum { ROWS = sizeof row / sizeof *row };

static int run_row(num_device *d, const meaning *m)
{
    static int32_t x[INPUTS], r[RESULTS];
    static float y[INPUTS];
    char source[2000];
    int64_t inputs = INPUTS, results = RESULTS;
    const DLDataType i32 = {kDLInt, 32, 1}, f32 = {kDLFloat, 32, 1};
    DLTensor tx = {x, {kDLCPU, 0}, 1, i32, &inputs, NULL, 0};
    DLTensor ty = {y, {kDLCPU, 0}, 1, f32, &inputs, NULL, 0};
    DLTensor tr = {r, {kDLCPU, 0}, 1, i32, &results, NULL, 0};
    const tw_arg args[] = {TW_TENSOR("x", &tx), TW_TENSOR("y", &ty), TW_TENSOR("r", &tr),
                           TW_INT("n", 5),      TW_INT("zero", 0),   TW_F32("s", 2.5)};
    tw_kernel *k = NULL;
    int bad = 0;

    for (int i = 0; i < INPUTS; i++) {
        x[i] = i + 1;
        y[i] = (float)i / 2;
    }
    for (int i = 0; i < RESULTS; i++)
        r[i] = REST;
    snprintf(source, sizeof source,
             "kernel t(x: i32[N], y: f32[N], inout r: i32[R], n: i32, zero: i32, s: f32) grid (1)\n"
             "{\n%s\n}\n",
             m->body);
    num_must(tw_kernel_load_text(d->cx, m->what, source, strlen(source), NULL, &k), m->what);
    num_must(num_try(d, k, args, 6, NULL), m->what);
    tw_kernel_destroy(k);
    for (int i = 0; i < RESULTS; i++) {
        if (r[i] == m->want[i])
            continue;
        printf("%s: %s: r[%d] is %d, not %d\n", d->label, m->what, i, r[i], m->want[i]);
        bad++;
    }
    return bad;
}

START_TEST(meanings)
{
    num_device d;
    int bad = 0;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (int i = 0; i < ROWS; i++)
        bad += run_row(&d, &row[i]);
    num_close(&d);
    ck_assert_int_eq(bad, 0);
}
END_TEST

/* ---- examples of the manual ------------------------------------------------------------------ */

enum { ROWS_OF_X = 64, COLUMNS = 128, LONGEST = 4000 };

/* What an example asserts must hold when it runs. */
static void run_example(num_device *d, const char *body, int line)
{
    static float x[ROWS_OF_X][COLUMNS], y[COLUMNS], z[ROWS_OF_X][COLUMNS];
    int64_t shape[] = {ROWS_OF_X, COLUMNS};
    const DLDataType f32 = {kDLFloat, 32, 1};
    DLTensor tx = {x, {kDLCPU, 0}, 2, f32, shape, NULL, 0};
    DLTensor ty = {y, {kDLCPU, 0}, 1, f32, shape + 1, NULL, 0};
    DLTensor tz = {z, {kDLCPU, 0}, 2, f32, shape, NULL, 0};
    const tw_arg args[] = {TW_TENSOR("x", &tx), TW_TENSOR("y", &ty), TW_TENSOR("z", &tz),
                           TW_INT("n", 5), TW_F32("s", 0.5)};
    num_random r = {11};
    char source[LONGEST + 200], name[40];
    tw_kernel *k = NULL;

    for (int i = 0; i < ROWS_OF_X * COLUMNS; i++)
        x[i / COLUMNS][i % COLUMNS] = (float)num_normal(&r);
    for (int i = 0; i < COLUMNS; i++)
        y[i] = (float)(8.0 * num_uniform(&r));
    snprintf(name, sizeof name, "LANGUAGE.md:%d", line);
    snprintf(
        source, sizeof source,
        "kernel example(x: f32[M, N], y: f32[N], out z: f32[M, N], n: i32, s: f32) grid (1) {\n"
        "%s\n}\n",
        body);
    num_must(tw_kernel_load_text(d->cx, name, source, strlen(source), NULL, &k), name);
    num_must(num_try(d, k, args, 5, NULL), name);
    tw_kernel_destroy(k);
}

/* Of the ```tw blocks those that are the body of a kernel; a GPU does not print. */
START_TEST(examples_of_the_manual)
{
    static char body[LONGEST];
    FILE *f = fopen("docs/LANGUAGE.md", "r");
    char text[400];
    size_t length = 0;
    int line = 0, begins = 0, ran = 0;
    num_device d;

    ck_assert_ptr_nonnull(f);
    bool here = num_open(&d, device[_i].spec, device[_i].target);
    for (; here && fgets(text, sizeof text, f); line++) {
        if (strcmp(text, "```tw\n") == 0) {
            begins = line + 1, length = 0, body[0] = '\0';
        } else if (begins && strcmp(text, "```\n") == 0) {
            if (!strstr(body, "kernel ") && !(d.is_gpu && strstr(body, "print(")))
                run_example(&d, body, begins), ran++;
            begins = 0;
        } else if (begins) {
            length += (size_t)snprintf(body + length, LONGEST - length, "%s", text);
            ck_assert_uint_lt(length, LONGEST);
        }
    }
    fclose(f);
    ck_assert(!here || ran >= 14);
    if (here)
        num_close(&d);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("language semantics");
    TCase *c = tcase_create("semantics");

    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, meanings, 0, DEVICES);
    tcase_add_loop_test(c, examples_of_the_manual, 0, DEVICES);
    suite_add_tcase(s, c);
    return s;
}
