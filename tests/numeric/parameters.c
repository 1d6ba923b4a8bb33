/* Functions and enumerations as compile-time values of a launch, on every device. */
#include "tests/support/numeric_case.h"
#include <check.h>
#include <string.h>

static const struct {
    const char *spec, *target;
} device[] = {
    {"interp", NULL},         {"cpu", NULL}, {"cpu:1", "cpu-avx512"}, {"cpu:1", "cpu-avx2"},
    {"cpu:1", "cpu-generic"},
};
enum { DEVICES = sizeof device / sizeof *device, ROWS = 9, COLUMNS = 13 };

static const char text[] =
    "enum Sign { KEEP, FLIP }\n"
    "const WIDTH = 4;\n"
    "fn identity(s, row, col) { return s; }\n"
    "fn everything(row, col) { return true; }\n"
    "fn causal(row, col) { return col <= row; }\n"
    "fn slope(s, row, col) { return s + cast(col - row, f32) * 0.5; }\n"
    "kernel masked[score: fn(s, row, col) = identity, visible: fn(row, col) = everything,\n"
    "              SIGN: Sign = KEEP](x: f32[M, N], out y: f32[M, N])\n"
    "grid (cdiv(M, 8))\n"
    "{\n"
    "    let m0 = program_id(0) * 8;\n"
    "    let row = (m0 + arange(8))[:, None], col = arange(16)[None, :];\n"
    "    let s = score(load(x[m0 :+ 8, 0 :+ 16]), row, col);\n"
    "    let t = where(visible(row, col), s, -100.0);\n"
    "    store(y[m0 :+ 8, 0 :+ 16], SIGN == FLIP ? -t : t);\n"
    "}\n";

typedef struct variant {
    const char *score, *visible, *sign; /* NULL: the default */
    float (*s)(float x, int row, int col);
    bool (*v)(int row, int col);
    bool flip;
} variant;

static float same(float x, int row, int col) { (void)row, (void)col; return x; }
static float sloped(float x, int row, int col) { return x + (float)(col - row) * 0.5f; }
static float scaled(float x, int row, int col) { (void)row; return x * 2.0f + (float)col; }
static bool always(int row, int col) { (void)row, (void)col; return true; }
static bool below(int row, int col) { return col <= row; }
static bool near(int row, int col) { return row - col < 4 && row >= col; }

static const variant variants[] = {
    {NULL, NULL, NULL, same, always, false},
    {"slope", "causal", NULL, sloped, below, false},
    {"identity", "col <= row", "FLIP", same, below, true},
    {NULL, "{ let d = row - col; return d < WIDTH & d >= 0; }", "KEEP", same, near, false},
    {"slope(s, row, col)", "causal(row, col) & row - col < WIDTH", NULL, sloped, near, false},
    {"s * 2.0 + cast(col, f32)", NULL, "FLIP", scaled, always, true},
    {"s * 2 + cast(col, f32)", NULL, "FLIP", scaled, always, true},
};

static int check_variant(num_device *d, tw_kernel *k, const variant *v)
{
    float x[ROWS][COLUMNS], y[ROWS][COLUMNS];
    int64_t shape[2] = {ROWS, COLUMNS};
    DLTensor tx = {x, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0}, ty = tx;
    tw_arg args[5] = {TW_TENSOR("x", &tx), TW_TENSOR("y", &ty)};
    size_t n = 2;
    int bad = 0;

    ty.data = y;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i / COLUMNS][i % COLUMNS] = (float)(i % 17 - 8);
    if (v->score)
        args[n++] = TW_TEXT("score", v->score);
    if (v->visible)
        args[n++] = TW_TEXT("visible", v->visible);
    if (v->sign)
        args[n++] = TW_TEXT("SIGN", v->sign);
    num_must(num_try(d, k, args, n, NULL), v->visible ? v->visible : "default");
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            float want = v->v(i, j) ? v->s(x[i][j], i, j) : -100.0f;
            bad += y[i][j] != (v->flip ? -want : want);
        }
    return bad;
}

START_TEST(each_variant)
{
    num_device d;
    tw_kernel *k = NULL;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    num_must(tw_kernel_load_text(d.cx, "masked.tw", text, strlen(text), NULL, &k), "load");
    for (int round = 0; round < 2; round++) /* the second finds what the first compiled */
        for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
            ck_assert_int_eq(check_variant(&d, k, &variants[i]), 0);
    tw_kernel_destroy(k);
    num_close(&d);
}
END_TEST

START_TEST(what_a_launch_refuses)
{
    static const struct {
        tw_arg arg;
        tw_status st;
        const char *why;
    } row[] = {
        {{"visible", TW_ARG_TEXT, {.text = "slope"}}, TW_E_ARG, "fn(s, row, col)"},
        {{"visible", TW_ARG_TEXT, {.text = "s < 0.0"}}, TW_E_SOURCE, "nothing here is called 's'"},
        {{"visible", TW_ARG_TEXT, {.text = "row"}}, TW_E_SOURCE, "is i1, not i32"},
        {{"visible", TW_ARG_INT, {.i = 1}}, TW_E_ARG, "give its name or text"},
        {{"SIGN", TW_ARG_TEXT, {.text = "UP"}}, TW_E_ARG, "it has KEEP, FLIP"},
        {{"SIGN", TW_ARG_INT, {.i = 1}}, TW_E_ARG, "give a name as text"},
    };
    float x[4] = {0}, y[4];
    int64_t shape[2] = {2, 2};
    DLTensor tx = {x, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0}, ty = tx;
    num_device d;
    tw_kernel *k = NULL;

    ty.data = y;
    ck_assert(num_open(&d, "interp", NULL));
    num_must(tw_kernel_load_text(d.cx, "masked.tw", text, strlen(text), NULL, &k), "load");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        tw_arg args[3] = {TW_TENSOR("x", &tx), TW_TENSOR("y", &ty), row[i].arg};
        ck_assert_int_eq(tw_launch(k, d.dev, NULL, args, 3), row[i].st);
        ck_assert_msg(strstr(tw_last_error()->text, row[i].why) != NULL, "%s",
                      tw_last_error()->text);
    }
    tw_param_info info = TW_PARAM_INFO_INIT;
    num_must(tw_kernel_param(k, 3, &info), "param");
    ck_assert_str_eq(info.type, "fn(row, col)");
    num_must(tw_kernel_param(k, 4, &info), "param");
    ck_assert_str_eq(info.type, "Sign");
    tw_kernel_destroy(k);
    num_close(&d);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("parameters");
    TCase *t = tcase_create("values");

    tcase_add_loop_test(t, each_variant, 0, DEVICES);
    tcase_add_test(t, what_a_launch_refuses);
    suite_add_tcase(s, t);
    return s;
}
