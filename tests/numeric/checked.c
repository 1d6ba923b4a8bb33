/* Checked mode: each access and integer division that a kernel can hardly mean fails with its line,
 * its values and its program; what kernels do mean, ragged ends above all, gives the same results.
 */
#include "tests/support/kernel_tables.h"
#include "tests/support/numeric_dtype.h"
#include <check.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *spec, *target;
} device[] = {
    {"interp", NULL},      {"cpu:1", NULL},          {"cpu:1", "cpu-avx512"},
    {"cpu:1", "cpu-avx2"}, {"cpu:1", "cpu-generic"},
};
enum { DEVICES = sizeof device / sizeof *device, M = 5, N = 20 };

/* One statement of a kernel that sees x: f32[5, 20], t: i32[8] (0, 3, 6, ... 21), y: i32[N], n = 0.
 */
typedef struct mistake {
    const char *statement, *message; /* NULL: there is none */
} mistake;

static const mistake mistakes[] = {
    {"store(y[0], cast(load(x[n + 4, 19]), i32));", NULL},
    {"store(y[0], cast(load(x[n + 5, 0]), i32));",
     "index 5 of dimension 0 of 'x' is outside of its extent of 5 (c.tw:3), in program 0, 1, 0"},
    {"store(y[0], cast(load(x[0, n - 1]), i32));",
     "index -1 of dimension 1 of 'x' is outside of its extent of 20 (c.tw:3)"},
    {"let a = load(x[n + 4 :+ 4, n - 7 :+ 8]); store(y[0], cast(sum(sum(a, 0), 0), i32));", NULL},
    {"let a = load(x[n :+ 4, n - 8 :+ 8]); store(y[0], cast(sum(sum(a, 0), 0), i32));",
     "no element of -8 :+ 8 lies in dimension 1 of 'x', whose extent is 20 (c.tw:3)"},
    {"store(y[n + 20 :+ 4], 1);",
     "no element of 20 :+ 4 lies in dimension 0 of 'y', whose extent is 20 (c.tw:3)"},
    {"atomic_add(y[n + 20], 1);",
     "index 20 of dimension 0 of 'y' is outside of its extent of 20 (c.tw:3)"},
    {"let i = load(t[:]); atomic_add(y[where(i > 17, -1, i)], 1);", NULL},
    {"let i = load(t[:]); atomic_add(y[i], 1);",
     "indices from 0 to 21 of dimension 0 of 'y' leave its extent of 20 (-1 means no element) "
     "(c.tw:3)"},
    {"let i = load(t[:]) - 2; store(y[i], i);", "indices from -2 to 19 of dimension 0 of 'y'"},
    {"store(y[0], 7 / n);", "an integer is divided by 0 (c.tw:3)"},
    {"store(y[0], 7 % (n + 1));", NULL},
    {"store(y[0], cast(cast(7, u8) % cast(n, u8), i32));", "an integer is divided by 0 (c.tw:3)"},
    {"store(y[0 :+ 8], 100 / load(t[:]));", "an integer is divided by 0 (c.tw:3)"},
    {"store(y[0 :+ 8], 100 / (load(t[:]) + 1));", NULL},
    {"let m = load(t[:])[:, None] + load(t[:])[None, :]; store(y[0], sum(sum(5 / m, 0), 0));",
     "an integer is divided by 0 (c.tw:3)"},
    {"store(y[0], n == 0 ? 3 : 7 / n);", NULL},
    {"store(y[0], n != 0 && 7 / n > 1 ? 3 : 4);", NULL},
    {"store(y[0], cast(1.0 / cast(n, f32) > 0.0, i32));", NULL},
    {"fn f(a, b) { return a / b; } store(y[0], reduce(load(t[:]), 0, f));", NULL},
    {"for i in range(6) { if (i > 4) store(y[i], cast(load(x[i, 0]), i32)); }",
     "index 5 of dimension 0 of 'x' is outside of its extent of 5 (c.tw:3)"},
    {"assert(n > 0, \"n {0} is above 0\");", "assert failed: n {0} is above 0 (c.tw:3)"},
};
enum { MISTAKES = sizeof mistakes / sizeof *mistakes };

static tw_status launch(num_device *d, const char *statement, bool checked, int32_t *y)
{
    static float x[M * N];
    static int32_t t[8] = {0, 3, 6, 9, 12, 15, 18, 21};
    int64_t sx[] = {M, N}, st = 8, sy = N;
    const num_dtype *i32 = num_dtype_named("i32");
    tw_launch_options opt = TW_LAUNCH_OPTIONS_INIT;
    char text[600];
    tw_kernel *k;

    snprintf(text, sizeof text,
             "kernel c(x: f32[M, N], t: i32[8], inout y: i32[P], n: i32) grid (1, 2) {\n"
             "    let p = program_id(1);\n"
             "    %s\n"
             "}\n",
             statement);
    for (int i = 0; i < M * N; i++)
        x[i] = (float)i;
    for (int i = 0; i < N; i++)
        y[i] = -1;
    DLTensor tx = {x, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, sx, NULL, 0};
    DLTensor tt = num_vector(i32, t, &st), ty = num_vector(i32, y, &sy);
    num_must(tw_kernel_load_text(d->cx, "c.tw", text, strlen(text), NULL, &k), text);
    if (checked)
        num_must(tw_kernel_set_checked(k), "checked");
    opt.program_first = opt.program_count = 1;
    tw_status got = num_try(
        d, k,
        (tw_arg[]){TW_TENSOR("x", &tx), TW_TENSOR("t", &tt), TW_TENSOR("y", &ty), TW_INT("n", 0)},
        4, &opt);
    tw_kernel_destroy(k);
    return got;
}

START_TEST(each_mistake)
{
    int32_t plain[N], checked[N];
    num_device d;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (int i = 0; i < MISTAKES; i++) {
        const mistake *m = &mistakes[i];
        tw_status st = launch(&d, m->statement, true, checked);
        if (m->message) {
            ck_assert_msg(st == TW_E_ASSERT, "%s: %s: status %d", d.label, m->statement, (int)st);
            ck_assert_msg(strstr(tw_last_error()->text, m->message) != NULL,
                          "%s: %s\nsays %s\nnot %s", d.label, m->statement, tw_last_error()->text,
                          m->message);
        } else {
            num_must(st, m->statement);
        }
        if (strstr(m->statement, "assert"))
            continue;
        num_must(launch(&d, m->statement, false, plain), m->statement);
        ck_assert(m->message || !memcmp(plain, checked, sizeof plain));
    }
    num_close(&d);
}
END_TEST

/* The kernels of the library mean all that they do. */
START_TEST(library)
{
    static const struct {
        const char *name;
        void (*table)(num_subject *, int);
    } kernels[] = {
        {"matmul", matmul_table}, {"softmax", softmax_table}, {"vector_add", vector_add_table}};
    num_subject s;

    for (int i = 0; i < 3; i++) {
        if (!subject_open(&s, device[_i].spec, device[_i].target, kernels[i].name, 77))
            return;
        num_must(tw_kernel_set_checked(s.kernel), "checked");
        kernels[i].table(&s, 12);
        subject_close(&s);
    }
    ck_assert(subject_open(&s, device[_i].spec, device[_i].target, "attention_fwd", 78));
    num_must(tw_kernel_set_checked(s.kernel), "checked");
    for (int i = 0; i < 4; i++) {
        attention_case c =
            attention_sizes(1, 2, 1, i == 3 ? 0 : 33 + 40 * i, i == 2 ? 0 : 70, 16, 16);
        c.causal = i % 2;
        c.has_offset = i == 1;
        c.offset = -40; /* rows that see nothing */
        attention_check(&s, &c, NUM_AT_END);
    }
    subject_close(&s);
}
END_TEST

START_TEST(too_late)
{
    static const char text[] = "kernel c(out y: i32[N]) grid (1) { store(y[0], 1); }";
    int32_t y[4];
    int64_t n = 4;
    num_device d;
    tw_kernel *k;

    ck_assert(num_open(&d, device[_i].spec, NULL));
    DLTensor ty = num_vector(num_dtype_named("i32"), y, &n);
    num_must(tw_kernel_load_text(d.cx, "c.tw", text, strlen(text), NULL, &k), text);
    num_must(num_try(&d, k, (tw_arg[]){TW_TENSOR("y", &ty)}, 1, NULL), text);
    ck_assert_int_eq(tw_kernel_set_checked(k), TW_E_ARG);
    ck_assert_int_eq(tw_kernel_set_checked(NULL), TW_E_ARG);
    tw_kernel_destroy(k);
    num_close(&d);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("checked");
    TCase *t = tcase_create("asserts");

    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, each_mistake, 0, DEVICES);
    tcase_add_loop_test(t, library, 0, DEVICES);
    tcase_add_loop_test(t, too_late, 0, 2);
    suite_add_tcase(s, t);
    return s;
}
