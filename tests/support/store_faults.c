#include "tests/support/store_faults.h"
#include "compiler/base/mem.h"
#include "tests/support/store_fixture.h"
#include "tests/support/tune_fixture.h"
#include "tuner/tuner.h"
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { KEPT = 3, MOST_CALLS = 5000 };

static void remove_store(void)
{
    static const char *const sides[] = {"", "-wal", "-shm", "-journal"};
    char name[200];

    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "%s%s", fixture_path, sides[i]);
        unlink(name);
    }
}

/* ---- a store that holds something ---- */

typedef struct written { /* in the file, as the store said */
    bool trial, best, artifact;
} written;

static written put(store *st, int64_t d, const char *text)
{
    written w = {0};
    const double sample[] = {1.0, 2.0};
    const store_trial trial = {
        .state = TW_TRIAL_OK, .config = text, .median_s = 1.5, .sample = sample, .nsamples = 2};

    w.trial = store_put_trial(st, fixture_key(d, 1), &trial) == TW_OK;
    w.best = store_put_best(st, fixture_key(d, 1), text, 0.5, 0.0) == TW_OK;
    return w;
}

static void fill(void)
{
    store *st = fixture_open(fixture_path);

    for (int64_t d = 1; d <= KEPT; d++)
        ck_assert(put(st, d, "B=1").best);
    ck_assert_int_eq(store_artifact_put(st, (hash128){1, 1}, NULL, "kept", 4), TW_OK);
    store_close(st);
}

static void expect_best(store *st, int64_t d, const char *text, bool or_nothing, long n)
{
    store_answer a;

    store_best(st, fixture_key(d, 1), NULL, NULL, &a);
    if (or_nothing && a.layer != TW_LAYER_EXACT)
        return;
    ck_assert_msg(a.layer == TW_LAYER_EXACT && !strcmp(a.config, text),
                  "call %ld: key %d: %s instead of %s, layer %d", n, (int)d, a.config, text,
                  (int)a.layer);
}

static void expect_artifact(store *st, uint64_t id, const char *text, bool or_nothing, long n)
{
    void *bytes = NULL;
    size_t size = 0;
    bool found = store_artifact_get(st, (hash128){id, 1}, &bytes, &size);

    ck_assert_msg(found || or_nothing, "call %ld: artifact %d is lost", n, (int)id);
    ck_assert(!found || (size == 4 && !memcmp(bytes, text, 4)));
    mem_free(bytes);
}

static written use(long n)
{
    store_lease lease;
    store *st = fixture_open(fixture_path);

    expect_best(st, 1, "B=1", true, n);
    expect_artifact(st, 1, "kept", true, n);
    written w = put(st, 9, "B=9");
    expect_best(st, 9, "B=9", w.best, n); /* what is not in the file is in memory */
    w.artifact = store_artifact_put(st, (hash128){9, 1}, NULL, "more", 4) == TW_OK;
    expect_artifact(st, 9, "more", true, n);
    if (store_lease_try(st, fixture_key(2, 1), &lease, NULL) == LEASE_TAKEN)
        store_lease_release(st, &lease);
    store_close(st);
    return w;
}

/* Once the world is well again. */
static void expect_kept(written w, long n)
{
    store *st = fixture_open(fixture_path);

    ck_assert_msg(store_state(st) == STORE_OK, "call %ld: %s", n, store_why(st));
    for (int64_t d = 1; d <= KEPT; d++)
        expect_best(st, d, "B=1", false, n);
    expect_artifact(st, 1, "kept", false, n);
    if (w.best)
        expect_best(st, 9, "B=9", false, n);
    if (w.artifact)
        expect_artifact(st, 9, "more", false, n);
    store_close(st);
    ck_assert_int_ge(fixture_sql_int(fixture_path, "SELECT count(*) FROM trials"), KEPT + w.trial);
    ck_assert_int_eq(fixture_sql_int(fixture_path, "SELECT count(*) FROM pragma_integrity_check"
                                                   " WHERE integrity_check <> 'ok'"),
                     0);
}

long store_faults(const faults *f, enum faults_of how)
{
    bool reached = true;
    long n;

    for (n = 1; reached && n < MOST_CALLS; n++) {
        remove_store();
        fill();
        fixture_warnings.count = 0;
        f->arm(n, how);
        written w = use(n);
        reached = f->disarm();
        ck_assert_msg(fixture_warnings.count <= 1, "call %ld: %d warnings, the last is: %s", n,
                      fixture_warnings.count, fixture_warnings.last);
        ck_assert_msg(fixture_warnings.count == 1 || (w.trial && w.best && w.artifact),
                      "call %ld: something is not written, and nobody says so", n);
        expect_kept(w, n);
    }
    ck_assert_int_lt(n, MOST_CALLS);
    return n - 2;
}

/* ---- tuning ---- */

static double cost(int64_t programs)
{
    return 1e-3 * (double)programs;
}

static int lines_of(const char *text)
{
    int n = 0;

    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void tune_and_launch(long n)
{
    static rt_vector x, y;
    tw_tune_options opt = TW_TUNE_OPTIONS_INIT;
    tw_config cfg = TW_CONFIG_INIT;
    const tw_arg args[] = {TW_TENSOR("x", &x.t), TW_TENSOR("y", &y.t)};

    cfg.store_path = fixture_path;
    rt_log[0] = '\0';
    rt_context(&cfg, &tuner_table);
    tw_device *dev = fake_open(cost);
    tw_kernel *k = fake_kernel();
    rt_vector_init(&x, FAKE_N, 2.0f);
    rt_vector_init(&y, FAKE_N, 7.0f);
    opt.config = "BLOCK=512";
    RT_OK(tw_tune(k, dev, args, 2, &opt, NULL));
    ck_assert_float_eq(y.x[FAKE_N - 1], 7.0f);
    RT_OK(tw_launch(k, dev, NULL, args, 2));
    for (int i = 0; i < FAKE_N; i++)
        ck_assert_float_eq(y.x[i], 3.0f);
    tw_kernel_destroy(k);
    tw_device_close(dev);
    tw_context_destroy(rt_cx);
    rt_cx = NULL;
    ck_assert_msg(lines_of(rt_log) <= 1, "call %ld: %s", n, rt_log);
}

long tune_faults(const faults *f, enum faults_of how, long step)
{
    bool reached = true;
    long n, tried = 0;

    for (n = 1; reached && n < MOST_CALLS; n += n < 10 ? 1 : step) {
        remove_store();
        f->arm(n, how);
        tune_and_launch(n);
        reached = f->disarm();
        tried += reached;
    }
    ck_assert_int_lt(n, MOST_CALLS);
    return tried;
}
