/* Texts that would keep LLVM busy for minutes end soon, with a message; those just below are
 * compiled. */
#include "tilewright.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const paths[] = {"cpu-avx512", "cpu-avx2", "cpu-generic"};
enum { PATHS = sizeof paths / sizeof *paths, ROOM = 1 << 20 };

/* A kernel of `first`, then n statements in which %d is their number, then `last`. */
typedef struct text {
    const char *name, *first, *statement, *last;
    int n;
    tw_status want;
} text;

static const text texts[] = {
    {"a few transposed blocks", "",
     "store(y[%d :+ 64, 0 :+ 64], trans(load(x[0 :+ 64, 0 :+ 64])) + %d.5);\n", "", 20, TW_OK},
    {"many transposed blocks", "",
     "store(y[%d :+ 64, 0 :+ 64], trans(load(x[0 :+ 64, 0 :+ 64])) + %d.5);\n", "", 900,
     TW_E_LIMIT},
    {"one nest of masks", "let c = arange(64); var t = load(x[0 :+ 32, 0 :+ 64]);\n",
     "t = where(c[None, :] + n * %d < %d & n <= c[None, :], t, t + 1.0);\n",
     "store(y[0 :+ 64, 0 :+ 32], trans(t));\n", 1200, TW_E_LIMIT},
    {"dots", "var t = load(x[0 :+ 32, 0 :+ 32]);\n", "t = dot(t, trans(t), t + %d.0 * %d.0);\n",
     "store(y[0 :+ 32, 0 :+ 32], t);\n", 400, TW_E_LIMIT},
    {"gathers", "let j = load(z[0 :+ 32]);\n",
     "store(y[j + %d, 0 :+ 20], load(x[j * %d, 0 :+ 20]));\n", "", 800, TW_E_LIMIT},
    {"functions", "var t = load(x[0 :+ 24, 0 :+ 60]);\n",
     "t = sin(exp(t)) / log2(t + %d.0 * %d.0);\n", "store(y[0 :+ 60, 0 :+ 24], trans(t));\n", 600,
     TW_E_LIMIT},
    {"branches", "var t = load(x[0 :+ 4, 0 :+ 8]);\n",
     "if (n > %d) t = t + 1.0; else t = t * %d.0;\n", "store(y[0 :+ 4, 0 :+ 8], t);\n", 3000,
     TW_E_LIMIT},
    {"reductions of one tile", "let t = load(x[0 :+ 16, 0 :+ 64]); var s = 0.0;\n",
     "s += max(sum(t * %d.5 + %d.0, 1), 0);\n", "store(y[0, 0], s);\n", 25, TW_OK},
    {"reductions along the lanes", "let t = load(x[0, 0 :+ 64]); var s = 0.0;\n",
     "s += max(t * %d.5, 0) + min(t - %d.0, 0);\n", "store(y[0, 0], s);\n", 25, TW_OK},
};
enum { TEXTS = sizeof texts / sizeof *texts };

static size_t write_text(const text *t, char *out)
{
    size_t n = (size_t)snprintf(out, ROOM,
                                "kernel k(x: f32[M, N], out y: f32[N, M], inout z: i32[K], n: i32) "
                                "grid (1) {\n%s",
                                t->first);

    for (int i = 0; i < t->n && n < ROOM; i++)
        n += (size_t)snprintf(out + n, ROOM - n, t->statement, i, i + 1);
    n += (size_t)snprintf(out + n, ROOM - n, "%s}\n", t->last);
    ck_assert_uint_lt(n, ROOM);
    return n;
}

/* In the text, not before its body; the quoted line is part of the message. */
static void must_say_where(void)
{
    const tw_diagnostic *d = tw_last_error()->diagnostics;

    ck_assert_str_eq(d->id, "limit");
    ck_assert_msg(d->line >= 2 && d->column >= 1, "%s", tw_last_error()->text);
    ck_assert_str_eq(d->file, "k.tw");
    ck_assert_ptr_nonnull(strstr(tw_last_error()->text, " | "));
}

START_TEST(each_text)
{
    const text *t = &texts[_i / PATHS];
    tw_compile_options opt = TW_COMPILE_OPTIONS_INIT;
    char *source = malloc(ROOM), *data = NULL;
    tw_context *cx;
    tw_kernel *k;
    size_t size;

    ck_assert_ptr_nonnull(source);
    size_t n = write_text(t, source);
    ck_assert_int_eq(tw_context_create(NULL, &cx), TW_OK);
    ck_assert_int_eq(tw_kernel_load_text(cx, "k.tw", source, n, NULL, &k), TW_OK);
    opt.target = paths[_i % PATHS];
    opt.emit = "obj";
    tw_status st = tw_kernel_compile(k, &opt, &data, &size);
    ck_assert_msg(st == t->want, "%s for %s: %s: %s", t->name, opt.target, tw_status_name(st),
                  tw_last_error()->text);
    if (st == TW_E_LIMIT)
        must_say_where();
    tw_free(data);
    tw_kernel_destroy(k);
    tw_context_destroy(cx);
    free(source);
}
END_TEST

/* The same for GPUs, whose limits of memory count as well: far beyond them, too. */
static const struct {
    text text;
    const char *set, *why;
} on_gpus[] = {
    {{"dots", "var t = load(x[0 :+ 128, 0 :+ 128]);\n", "t = dot(t, t); // %d %d\n",
      "store(y[0 :+ 128, 0 :+ 128], t);\n", 300, TW_E_LIMIT},
     "", "more than 100000 instructions"},
    {{"one large tile", "let t = load(x[0 :+ 1024, 0 :+ 1024]);\n", "",
      "store(y[0, 0], sum(sum(dot(t, t), 0), 0));\n", 0, TW_E_LIMIT},
     "", "4194304 bytes of shared memory"},
    {{"large stages",
      "var t = zeros(f32[64, 64]);\n"
      "for i in range(0, n, 4096)\n"
      "    t = dot(load(x[0 :+ 64, i :+ 4096]), load(x[i :+ 4096, 0 :+ 64]), t);\n",
      "", "store(y[0 :+ 64, 0 :+ 64], t);\n", 0, TW_E_LIMIT},
     "num_stages=4", "bytes of shared memory"},
};

START_TEST(gpus)
{
    tw_compile_options opt = TW_COMPILE_OPTIONS_INIT;
    char *source = malloc(ROOM), *data = NULL;
    tw_context *cx;
    tw_kernel *k;
    size_t size;

    ck_assert_ptr_nonnull(source);
    size_t n = write_text(&on_gpus[_i].text, source);
    ck_assert_int_eq(tw_context_create(NULL, &cx), TW_OK);
    ck_assert_int_eq(tw_kernel_load_text(cx, "k.tw", source, n, NULL, &k), TW_OK);
    opt.target = "sm_89";
    opt.emit = "ptx";
    opt.set = on_gpus[_i].set;
    ck_assert_msg(tw_kernel_compile(k, &opt, &data, &size) == TW_E_LIMIT, "%s: %s",
                  on_gpus[_i].text.name, tw_last_error()->text);
    ck_assert_msg(strstr(tw_last_error()->text, on_gpus[_i].why) != NULL, "%s: %s",
                  on_gpus[_i].text.name, tw_last_error()->text);
    ck_assert_uint_eq(tw_last_error()->diagnostic_count, 1);
    ck_assert_ptr_nonnull(tw_last_error()->diagnostics[0].hint);
    must_say_where();
    tw_kernel_destroy(k);
    tw_context_destroy(cx);
    free(source);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("code limit");
    TCase *t = tcase_create("texts");

    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, each_text, 0, TEXTS * PATHS);
    tcase_add_loop_test(t, gpus, 0, sizeof on_gpus / sizeof *on_gpus);
    suite_add_tcase(s, t);
    return s;
}
