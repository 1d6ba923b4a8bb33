/* How little stack calls need, as docs/EMBEDDING.md promises it to programs with threads of their
 * own. Sanitizers and code that is not optimized need more. */
#include "tilewright.h"
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined __OPTIMIZE__ && !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
enum { KNOWN = 64 << 10, ATTENTION = 128 << 10, DEEPEST = 1 << 20 };
#else
enum { KNOWN = 8 << 20, ATTENTION = KNOWN, DEEPEST = KNOWN };
#endif

static tw_context *cx;
static tw_device *dev;

static void setup(void)
{
    ck_assert_int_eq(tw_context_create(NULL, &cx), TW_OK);
    ck_assert_int_eq(tw_device_open(cx, "cpu:1", &dev), TW_OK);
}

static void teardown(void)
{
    tw_device_close(dev);
    tw_context_destroy(cx);
}

typedef struct call {
    tw_status (*run)(const struct call *c);
    tw_kernel *kernel;
    const char *text;
    tw_status st;
    char said[200];
} call;

static void *on_thread(void *at)
{
    call *c = at;

    c->st = c->run(c);
    snprintf(c->said, sizeof c->said, "%s", tw_last_error()->text);
    return NULL;
}

static void run_with(size_t stack, call *c)
{
    pthread_attr_t attributes;
    pthread_t thread;

    ck_assert_int_eq(pthread_attr_init(&attributes), 0);
    ck_assert_int_eq(pthread_attr_setstacksize(&attributes, stack), 0);
    ck_assert_int_eq(pthread_create(&thread, &attributes, on_thread, c), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    ck_assert_msg(c->st == TW_OK, "%s", c->said);
}

static tw_status attend(const call *c)
{
    static float q[2][100][64], o[2][100][64], lse[2][100];
    int64_t shape[] = {1, 2, 100, 64};
    DLTensor tq = {q, {kDLCPU, 0}, 4, {kDLFloat, 32, 1}, shape, NULL, 0}, to = tq, tl = tq;
    const tw_arg args[] = {TW_TENSOR("q", &tq), TW_TENSOR("k", &tq),   TW_TENSOR("v", &tq),
                           TW_TENSOR("o", &to), TW_TENSOR("lse", &tl), TW_BOOL("CAUSAL", true)};

    to.data = o;
    tl.data = lse;
    tl.ndim = 3;
    return tw_launch(c->kernel, dev, NULL, args, 6);
}

START_TEST(attention)
{
    call c = {.run = attend};

    ck_assert_int_eq(tw_kernel_load(cx, "kernels/attention_fwd.tw", NULL, &c.kernel), TW_OK);
    run_with(ATTENTION, &c); /* compiles */
    run_with(KNOWN, &c);
    tw_kernel_destroy(c.kernel);
}
END_TEST

/* 12 functions that call each other, 55 brackets deep, below 18 branches and a sum of 250: just
 * within the limits of the language. */
static char *deepest_text(void)
{
    enum { SIZE = 40000, FUNCTIONS = 12, BRACKETS = 55, BRANCHES = 18, TERMS = 250 };
    char *text = calloc(1, SIZE);
    FILE *f = fmemopen(text, SIZE, "w");

    ck_assert(text && f);
    for (int i = 0; i < FUNCTIONS; i++) {
        fprintf(f, "fn f%d(v) { return ", i);
        for (int k = 0; k < BRACKETS; k++)
            fputs("v * 1.5 + (", f);
        if (i)
            fprintf(f, "f%d(v)", i - 1);
        else
            fputs("v", f);
        for (int k = 0; k < BRACKETS; k++)
            fputs(")", f);
        fputs("; }\n", f);
    }
    fputs("kernel deep(out z: f32[N], n: i32) grid (1) { var t = 1.0;\n", f);
    for (int k = 0; k < BRANCHES; k++)
        fputs("if (n > 1) {", f);
    fputs("t = t", f);
    for (int k = 1; k < TERMS; k++)
        fputs("+t", f);
    fprintf(f, "; t = f%d(t);", FUNCTIONS - 1);
    for (int k = 0; k < BRANCHES; k++)
        fputs("}", f);
    fputs(" store(z[0], t); }\n", f);
    ck_assert_int_eq(fclose(f), 0);
    return text;
}

static tw_status dive(const call *c)
{
    float z[1];
    int64_t one = 1;
    DLTensor tz = {z, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &one, NULL, 0};
    const tw_arg args[] = {TW_TENSOR("z", &tz), TW_INT("n", 3)};
    tw_kernel *k;
    tw_status st = tw_kernel_load_text(cx, "deep.tw", c->text, strlen(c->text), NULL, &k);

    if (st)
        return st;
    st = tw_launch(k, dev, NULL, args, 2);
    tw_kernel_destroy(k);
    return st;
}

START_TEST(the_deepest_text)
{
    char *text = deepest_text();
    call c = {.run = dive, .text = text};

    run_with(DEEPEST, &c);
    free(text);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("stack");
    TCase *t = tcase_create("stack");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, attention);
    tcase_add_test(t, the_deepest_text);
    suite_add_tcase(s, t);
    return s;
}
