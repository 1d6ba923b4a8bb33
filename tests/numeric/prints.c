/* print: the same text on the interpreter and on each code path, of every dtype and of tiles with
 * any layout in scratch; nothing where nobody listens, or the caller asks for quiet. */
#include "tests/support/numeric_case.h"
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
enum { DEVICES = sizeof device / sizeof *device };

typedef struct heard {
    char text[16384];
    int prints, others;
} heard;

static void hear(void *user, tw_log_level level, const char *text)
{
    heard *h = user;

    if (level != TW_LOG_PRINT) {
        h->others++;
        return;
    }
    h->prints++;
    strncat(h->text, text, sizeof h->text - strlen(h->text) - 2);
    strcat(h->text, "\n");
}

typedef struct session {
    tw_context *cx;
    tw_device *dev;
    heard heard;
} session;

/* False when this machine cannot run the code path. */
static bool open_session(session *s, int which)
{
    tw_config config = TW_CONFIG_INIT;

    memset(s, 0, sizeof *s);
    config.log = hear;
    config.log_user = &s->heard;
    config.log_level = TW_LOG_ERROR;
    num_must(tw_context_create(&config, &s->cx), "context");
    num_must(tw_device_open(s->cx, device[which].spec, &s->dev), "device");
    tw_status st =
        device[which].target ? tw_device_force_target(s->dev, device[which].target) : TW_OK;
    if (st == TW_OK)
        return true;
    ck_assert_int_eq(st, TW_E_UNSUPPORTED);
    tw_device_close(s->dev);
    tw_context_destroy(s->cx);
    return false;
}

static void run(session *s, const char *text, const tw_launch_options *opt)
{
    static float x[64], y[64];
    int64_t n = 64;
    const num_dtype *f32 = num_dtype_named("f32");
    DLTensor tx = num_vector(f32, x, &n), ty = num_vector(f32, y, &n);
    tw_kernel *k;

    for (int i = 0; i < 64; i++)
        x[i] = (float)(i % 7) * 0.25f - 0.5f;
    s->heard = (heard){0};
    num_must(tw_kernel_load_text(s->cx, "p.tw", text, strlen(text), NULL, &k), text);
    num_must(tw_launch_with(k, s->dev, NULL, (tw_arg[]){TW_TENSOR("x", &tx), TW_TENSOR("y", &ty)},
                            2, opt),
             text);
    tw_kernel_destroy(k);
}

static void close_session(session *s)
{
    tw_device_close(s->dev);
    tw_context_destroy(s->cx);
}

static const char every[] =
    "kernel k(x: f32[N], out y: f32[N]) grid (1, 2) {\n"
    "    let t = load(x[0 :+ 5]), p = program_id(1);\n"
    "    print(t);\n"
    "    print(\"double\", cast(t, f64) / 3.0);\n"
    "    print(cast(t, bf16)); print(cast(t, f16) + 1.0);\n"
    "    print(t > 0.0); print(cast(arange(3), u8) - 1); print(cast(arange(2), i8) - 1);\n"
    "    print(cast(arange(2), u64) - 1); print(cast(arange(2), i64) * -3000000000);\n"
    "    print(cast(arange(2), u32) - 1); print(cast(arange(2), i16)); print(cast(arange(2), "
    "u16));\n"
    "    print(p); print(p > 0); print(-inf); print(cast(p, bf16) + 0.5); print(cast(p, u64) - "
    "1);\n"
    "    let m = reshape(cast(arange(60), f32) / 8.0, 5, 12);\n"
    "    print(trans(m));\n"
    "    print(reshape(arange(2 * 3 * 2), 2, 3, 2));\n"
    "    store(y[0 :+ 5], t);\n"
    "}\n";
static const char wanted[] =
    "t (p.tw:3), program 0, 0, 0: f32[5]\n"
    "[ -0.5  -0.25      0   0.25    0.5]\n"
    "double (p.tw:4), program 0, 0, 0: f64[5]\n"
    "[ -0.1666666667  -0.08333333333               0   0.08333333333"
                             "    0.1666666667]\n"
                             "cast(t, bf16) (p.tw:5), program 0, 0, 0: bf16[5]\n"
    "[ -0.5  -0.25      0   0.25    0.5]\n"
    "cast(t, f16) + 1.0 (p.tw:5), program 0, 0, 0: f16[5]\n"
    "[ 0.5  0.75     1  1.25   1.5]\n"
    "t > 0.0 (p.tw:6), program 0, 0, 0: i1[5]\n"
    "[0  0  0  1  1]\n"
    "cast(arange(3), u8) - 1 (p.tw:6), program 0, 0, 0: u8[3]\n"
    "[255    0    1]\n"
    "cast(arange(2), i8) - 1 (p.tw:6), program 0, 0, 0: i8[2]\n"
    "[-1   0]\n"
    "cast(arange(2), u64) - 1 (p.tw:7), program 0, 0, 0: u64[2]\n"
    "[18446744073709551615                     0]\n"
    "cast(arange(2), i64) * -3000000000 (p.tw:7), program 0, 0, 0: i64[2]\n"
    "[          0  -3000000000]\n"
    "cast(arange(2), u32) - 1 (p.tw:8), program 0, 0, 0: u32[2]\n"
    "[4294967295           0]\n"
    "cast(arange(2), i16) (p.tw:8), program 0, 0, 0: i16[2]\n"
    "[0  1]\n"
    "cast(arange(2), u16) (p.tw:8), program 0, 0, 0: u16[2]\n"
    "[0  1]\n"
    "p (p.tw:9), program 0, 0, 0: i32 0\n"
    "p > 0 (p.tw:9), program 0, 0, 0: i1 0\n"
    "-inf (p.tw:9), program 0, 0, 0: f32 -inf\n"
    "cast(p, bf16) + 0.5 (p.tw:9), program 0, 0, 0: bf16 0.5\n"
    "cast(p, u64) - 1 (p.tw:9), program 0, 0, 0: u64 18446744073709551615\n"
    "trans(m) (p.tw:11), program 0, 0, 0: f32[12, 5]\n"
    "[[    0    1.5      3    4.5      6]\n"
    " [0.125  1.625  3.125  4.625  6.125]\n"
    " [ 0.25   1.75   3.25   4.75   6.25]\n"
    " ...\n"
    " [1.125  2.625  4.125  5.625  7.125]\n"
    " [ 1.25   2.75   4.25   5.75   7.25]\n"
    " [1.375  2.875  4.375  5.875  7.375]]\n"
    "reshape(arange(2 * 3 * 2), 2, 3, 2) (p.tw:12), program 0, 0, 0: "
    "i32[2, 3, 2]\n"
    "[[[ 0   1]\n  [ 2   3]\n  [ 4   5]]\n"
    " [[ 6   7]\n  [ 8   9]\n  [10  11]]]\n";

START_TEST(every_dtype)
{
    tw_launch_options opt = TW_LAUNCH_OPTIONS_INIT;
    session s;

    if (!open_session(&s, _i))
        return;
    opt.program_count = 1;
    run(&s, every, &opt);
    ck_assert_str_eq(s.heard.text, wanted);
    ck_assert_int_eq(s.heard.others, 0);
    run(&s, every, NULL);
    ck_assert_ptr_nonnull(strstr(s.heard.text, "p (p.tw:9), program 0, 1, 0: i32 1\n"));
    opt.quiet = true;
    run(&s, every, &opt);
    ck_assert_int_eq(s.heard.prints, 0);
    close_session(&s);
}
END_TEST

/* In a loop, of what it carries, of operands of a dot, and of what is stored after it. */
START_TEST(among_others)
{
    static const char text[] =
        "kernel k(x: f32[N], out y: f32[N]) grid (1) {\n"
        "    var acc = zeros(f32[4, 4]), a = reshape(load(x[0 :+ 16]), 4, 4);\n"
        "    for i in range(2) {\n"
        "        let h = cast(a, bf16);\n"
        "        acc = dot(h, trans(h), acc);\n"
        "        print(\"h\", h); print(acc);\n"
        "        a = a + 1.0;\n"
        "    }\n"
        "    print(a);\n"
        "    store(y[0 :+ 16], reshape(acc * 2.0, 16));\n"
        "}\n";
    static const char rows[] = "acc (p.tw:6), program 0, 0, 0: f32[4, 4]\n"
                               "[[  0.375  -0.5625     0.25  -0.6875]\n"
                               " [-0.5625   2.0625   -0.125     0.75]\n"
                               " [   0.25   -0.125    0.375  -0.4375]\n"
                               " [-0.6875     0.75  -0.4375    1.875]]\n";
    session s;

    if (!open_session(&s, _i))
        return;
    run(&s, text, NULL);
    ck_assert_int_eq(s.heard.prints, 5);
    ck_assert_msg(strstr(s.heard.text, rows) != NULL, "%s", s.heard.text);
    ck_assert_ptr_nonnull(strstr(s.heard.text, "h (p.tw:6), program 0, 0, 0: bf16[4, 4]\n"
                                               "[[ 0.5  0.75     1  1.25]\n"));
    ck_assert_ptr_nonnull(strstr(s.heard.text, "a (p.tw:9), program 0, 0, 0: f32[4, 4]\n"
                                               "[[ 1.5  1.75     2  2.25]\n"));
    close_session(&s);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("prints");
    TCase *t = tcase_create("log");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, every_dtype, 0, DEVICES);
    tcase_add_loop_test(t, among_others, 0, DEVICES);
    suite_add_tcase(s, t);
    return s;
}
