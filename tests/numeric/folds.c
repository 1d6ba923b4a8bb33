/* Reductions and scans with a function of the text, along every axis of tiles whose extents are no
 * multiple of anything, against the same in plain C. All values are exact. */
#include "tests/support/numeric_case.h"
#include "tests/support/numeric_dtype.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *spec, *target;
} device[] = {
    {"interp", NULL},         {"cpu", NULL}, {"cpu:1", "cpu-avx512"}, {"cpu:1", "cpu-avx2"},
    {"cpu:1", "cpu-generic"},
};
enum { DEVICES = sizeof device / sizeof *device, CELLS = 2048 };

typedef struct function {
    const char *name, *type, *body;
    double (*of)(double x, double y);
    bool commutes;
} function;

/* A bitwise exclusive or of what only the integers of 32 bits can hold. */
static double of_xor(double x, double y)
{
    return (double)((int32_t)x ^ (int32_t)y);
}
static double of_larger(double x, double y)
{
    return fabs(y) > fabs(x) || (fabs(y) == fabs(x) && y > x) ? y : x;
}
static double of_sum_modulo(double x, double y)
{
    double sum = x + y + 3.0; /* s = 3 */
    return sum - floor(sum / 61.0) * 61.0;
}
static double of_all(double x, double y)
{
    return x != 0.0 && y != 0.0;
}
static double of_second(double x, double y)
{
    return y == 0.0 ? x : y;
}

/* The inputs are integers from -60 to 60; `second` keeps the last that is not 0. */
static const function functions[] = {
    {"xor", "i32", "return a ^ b;", of_xor, true},
    {"larger", "f32", "return where(abs(b) > abs(a) | (abs(b) == abs(a) & b > a), b, a);",
     of_larger, true},
    {"larger", "bf16", "return abs(b) > abs(a) || abs(b) == abs(a) && b > a ? b : a;", of_larger,
     true},
    {"modulo", "f64", "let c = a + b + cast(s, f64); return c - floor(c / 61.0) * 61.0;",
     of_sum_modulo, true},
    {"modulo", "i64", "let c = a + b + 3; let r = c % 61; return r < 0 ? r + 61 : r;",
     of_sum_modulo, true},
    {"all", "i1", "return a & b;", of_all, true},
    {"second", "f32", "return b == 0.0 ? a : b;", of_second, false},
    {"second", "i8", "return where(b == 0, a, b);", of_second, false},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static const int shapes[][3] = {{1, 1, 1},  {1, 1, 2},  {3, 1, 5},  {1, 7, 16}, {2, 17, 3},
                                {5, 4, 37}, {1, 33, 8}, {7, 20, 9}, {1, 1, 130}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static double x[CELLS], want[CELLS], got[CELLS];

static void reference(const function *f, const int *n, int axis, bool scan)
{
    int inner = 1, cells = n[0] * n[1] * n[2];

    for (int d = axis + 1; d < 3; d++)
        inner *= n[d];
    for (int i = 0; i < cells / n[axis]; i++) {
        int first = i / inner * n[axis] * inner + i % inner;
        double v = x[first];
        for (int k = 0; k < n[axis]; k++) {
            v = k ? f->of(v, x[first + k * inner]) : v;
            if (scan)
                want[first + k * inner] = v;
        }
        if (!scan)
            want[i] = v;
    }
}

/* The same on the device. The tile is a row of x, reshaped; x and the result are f64. */
static void launch(num_device *d, const function *f, const int *n, int axis, bool scan)
{
    int cells = n[0] * n[1] * n[2];
    int64_t in = cells, out = scan ? cells : cells / n[axis];
    char source[1200], to[64];
    const num_dtype *f64 = num_dtype_named("f64");
    bool i1 = !strcmp(f->type, "i1");

    snprintf(to, sizeof to, i1 ? "t != 0.0" : "cast(t, %s)", f->type);
    snprintf(source, sizeof source,
             "kernel fold(x: f64[M], out y: f64[N], s: f32 = 3.0) grid (1) {\n"
             "    fn f(a, b) { %s }\n"
             "    let t = reshape(load(x[0 :+ %d]), %d, %d, %d);\n"
             "    let r = %s(%s, %d, f);\n"
             "    store(y[0 :+ %d], reshape(cast(r, f64), %d));\n"
             "}\n",
             f->body, cells, n[0], n[1], n[2], scan ? "scan" : "reduce", to, axis, (int)out,
             (int)out);
    DLTensor tx = num_vector(f64, x, &in), ty = num_vector(f64, got, &out);
    for (int i = 0; i < CELLS; i++)
        got[i] = (double)NAN;
    bool ran = num_run_text(d, source, (tw_arg[]){TW_TENSOR("x", &tx), TW_TENSOR("y", &ty)}, 2);
    for (int i = 0; ran && i < out; i++)
        ck_assert_msg(got[i] == want[i],
                      "%s: %s of %s, %s along %d of %dx%dx%d: element %d is %g, not %g", d->label,
                      scan ? "scan" : "reduce", f->type, f->name, axis, n[0], n[1], n[2], i, got[i],
                      want[i]);
}

START_TEST(each_function)
{
    num_random random = {17};
    num_device d;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (int i = 0, k = 0; i < FUNCTIONS; i++)
        for (int s = 0; s < SHAPES; s++)
            for (int axis = 0; axis < 3; axis++)
                for (int scan = 0; scan < 2; scan++) {
                    if ((!functions[i].commutes && !scan) || k++ % num_thin(7))
                        continue;
                    bool i1 = !strcmp(functions[i].type, "i1");
                    for (int c = 0; c < CELLS; c++) {
                        double v = (double)num_below(&random, 121) - 60;
                        v = num_below(&random, i1 ? 12 : 4) ? v : 0;
                        x[c] = i1 ? v != 0 : v;
                    }
                    reference(&functions[i], shapes[s], axis, scan);
                    launch(&d, &functions[i], shapes[s], axis, scan);
                }
    num_close(&d);
}
END_TEST

/* In a loop, of what the loop carries, and fused with nothing: what surrounds it is not disturbed.
 */
START_TEST(among_others)
{
    static const char text[] =
        "kernel among(x: f32[M, N], out y: f32[M], out z: f32[1]) grid (1) {\n"
        "    fn add(a, b) { return a + b; }\n"
        "    var t = load(x[0 :+ 6, 0 :+ 20]), total = 0.0;\n"
        "    for i in range(3) {\n"
        "        let r = reduce(t, 1, add);\n"
        "        t = t + 1.0 - r[:, None] * 0.0;\n"
        "        total += reduce(r, 0, add) + sum(r, 0) - max(r, 0) * 0.0;\n"
        "    }\n"
        "    store(y[0 :+ 6], reduce(reduce(reshape(t, 6, 4, 5), 1, add), 1, add));\n"
        "    store(z[0], total);\n"
        "}\n";
    float in[6][20], y[6], z[1];
    int64_t sx[] = {6, 20}, sy = 6, sz = 1;
    const num_dtype *f32 = num_dtype_named("f32");
    double sum = 0.0;
    num_device d;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (int i = 0; i < 120; i++)
        sum += in[i / 20][i % 20] = (float)(i % 13);
    DLTensor tx = {in, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, sx, NULL, 0};
    DLTensor ty = num_vector(f32, y, &sy), tz = num_vector(f32, z, &sz);
    ck_assert(num_run_text(
        &d, text, (tw_arg[]){TW_TENSOR("x", &tx), TW_TENSOR("y", &ty), TW_TENSOR("z", &tz)}, 3));
    for (int i = 0; i < 6; i++) {
        double row = 60.0;
        for (int j = 0; j < 20; j++)
            row += (double)in[i][j];
        ck_assert_double_eq((double)y[i], row);
    }
    ck_assert_double_eq((double)z[0], 2.0 * (3.0 * sum + 120.0 * 3.0));
    num_close(&d);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("folds");
    TCase *t = tcase_create("functions");

    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, each_function, 0, DEVICES);
    tcase_add_loop_test(t, among_others, 0, DEVICES);
    suite_add_tcase(s, t);
    return s;
}
