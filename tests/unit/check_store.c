#include "compiler/base/mem.h"
#include "store/store.h"
#include "tests/support/store_fixture.h"
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static store *st;

static void setup(void)
{
    fixture_setup();
    st = fixture_open(fixture_path);
    ck_assert_int_eq(store_state(st), STORE_OK);
}

static void teardown(void)
{
    store_close(st);
    ck_assert_int_eq(mem_live(), 0);
    fixture_teardown();
}

static store_answer ask(const store_key *key)
{
    store_answer a;

    store_best(st, key, NULL, NULL, &a);
    return a;
}

static void put(const store_key *key, const char *config, double seconds)
{
    ck_assert_int_eq(store_put_best(st, key, config, seconds, 0.0), TW_OK);
}

static void reopen(void)
{
    store_close(st);
    st = fixture_open(fixture_path);
}

/* ---- layers --------------------------------------------------------------------------------- */

START_TEST(an_empty_store_knows_nothing)
{
    store_answer a = ask(fixture_key(64, 1024));

    ck_assert_int_eq(a.layer, TW_LAYER_DEFAULT);
    ck_assert_str_eq(a.config, "");
}
END_TEST

START_TEST(exact_survives_reopening)
{
    put(fixture_key(64, 1024), "BLOCK=64", 0.5);
    reopen();
    store_answer a = ask(fixture_key(64, 700)); /* the same bucket */
    ck_assert_int_eq(a.layer, TW_LAYER_EXACT);
    ck_assert_str_eq(a.config, "BLOCK=64");
    ck_assert_double_eq(a.seconds, 0.5);
    ck_assert_int_eq(fixture_warnings.count, 0);
}
END_TEST

START_TEST(a_new_best_replaces_the_old)
{
    put(fixture_key(64, 1024), "BLOCK=64", 0.5);
    put(fixture_key(64, 1024), "BLOCK=32", 0.9);
    ck_assert_str_eq(ask(fixture_key(64, 1024)).config, "BLOCK=32");
    ck_assert_int_eq(fixture_sql_int(fixture_path, "SELECT count(*) FROM best"), 1);
}
END_TEST

START_TEST(another_driver_is_a_layer_of_its_own)
{
    store_key *key = fixture_key(64, 1024);

    put(key, "BLOCK=64", 0.5);
    key->driver = "llvm-23/1";
    store_answer a = ask(key);
    ck_assert_int_eq(a.layer, TW_LAYER_OTHER_DRIVER);
    ck_assert_str_eq(a.config, "BLOCK=64");
    ck_assert_double_eq(a.seconds, 0.0);
    put(key, "BLOCK=128", 0.4);
    ck_assert_int_eq(ask(key).layer, TW_LAYER_EXACT);
    key->driver = "llvm-22/1"; /* the update forgot nothing */
    ck_assert_str_eq(ask(key).config, "BLOCK=64");
}
END_TEST

START_TEST(seeds_come_before_neighbours)
{
    static const store_seed seed[] = {{"other", "", "", "BLOCK=1"},
                                      {"k", "cpu-avx512", "", "BLOCK=2"},
                                      {"k", "cpu", "D=96", "BLOCK=3"},
                                      {"k", "cpu", "D=64, T:f32", "BLOCK=4"}};

    store_set_seeds(st, seed, 4);
    put(fixture_key(64, 1024), "BLOCK=64", 0.5);
    store_answer a = ask(fixture_key(64, 4096));
    ck_assert_int_eq(a.layer, TW_LAYER_SEED);
    ck_assert_str_eq(a.config, "BLOCK=4");
    ck_assert_int_eq(ask(fixture_key(64, 1024)).layer, TW_LAYER_EXACT);
    ck_assert_int_eq(ask(fixture_key(128, 1024)).layer, TW_LAYER_NEAREST_PROBLEM);
}
END_TEST

START_TEST(the_nearest_problem_answers)
{
    put(fixture_key(64, 256), "BLOCK=16", 0.5);
    put(fixture_key(64, 2048), "BLOCK=32", 0.5);
    put(fixture_key(128, 16384), "BLOCK=64", 0.5);
    store_answer a = ask(fixture_key(64, 4096));
    ck_assert_int_eq(a.layer, TW_LAYER_NEAREST_PROBLEM);
    ck_assert_str_eq(a.config, "BLOCK=32");
    ck_assert_double_eq(a.distance, 1.0);
    ck_assert_str_eq(ask(fixture_key(128, 8192)).config, "BLOCK=64");
}
END_TEST

START_TEST(another_dtype_is_no_neighbour)
{
    store_key *key = fixture_key(64, 256);

    put(key, "BLOCK=16", 0.5);
    store_coord problem[4];
    memcpy(problem, key->problem, sizeof problem);
    problem[0].text = "bf16";
    key->problem = problem;
    key->content.hi++;
    ck_assert_int_eq(ask(key).layer, TW_LAYER_DEFAULT);
}
END_TEST

START_TEST(the_nearest_device_answers_last)
{
    store_key *key = fixture_key(64, 256);
    store_coord other[3], near[3];

    memcpy(other, key->device, sizeof other);
    memcpy(near, key->device, sizeof near);
    other[1].value = 64;
    near[1].value = 4;
    key->device = other;
    put(key, "BLOCK=16", 0.5);
    key->device = near;
    put(key, "BLOCK=32", 0.5);
    store_answer a = ask(fixture_key(64, 256));
    ck_assert_int_eq(a.layer, TW_LAYER_NEAREST_DEVICE);
    ck_assert_str_eq(a.config, "BLOCK=32");
    put(fixture_key(64, 512), "BLOCK=64", 0.5); /* this device, another problem: before those */
    ck_assert_str_eq(ask(fixture_key(64, 256)).config, "BLOCK=64");
}
END_TEST

/* Rows made to say that they were measured elsewhere keep saying so. */
START_TEST(rows_of_another_device_are_neither_used_as_ours_nor_rewritten)
{
    put(fixture_key(64, 256), "BLOCK=16", 0.5);
    fixture_sql(fixture_path, "UPDATE keys SET device='name=gpu, threads=132, l2=52428800'");
    ck_assert_int_eq(ask(fixture_key(64, 256)).layer, TW_LAYER_NEAREST_DEVICE);
    put(fixture_key(64, 256), "BLOCK=32", 0.5);
    ck_assert_int_eq(fixture_sql_int(fixture_path, "SELECT count(*) FROM keys"), 2);
    ck_assert_int_eq(
        fixture_sql_int(fixture_path, "SELECT count(*) FROM keys WHERE device LIKE 'name=gpu%'"),
        1);
    ck_assert_str_eq(ask(fixture_key(64, 256)).config, "BLOCK=32");
}
END_TEST

static bool only_small(void *user, const char *config)
{
    (*(int *)user)++;
    return !strcmp(config, "BLOCK=16");
}

START_TEST(what_the_caller_refuses_is_skipped)
{
    int asked = 0;
    store_answer a;

    put(fixture_key(64, 256), "nonsense", 0.5);
    put(fixture_key(64, 512), "BLOCK=999", 0.5);
    put(fixture_key(64, 4096), "BLOCK=16", 0.5);
    store_best(st, fixture_key(64, 256), only_small, &asked, &a);
    ck_assert_int_eq(a.layer, TW_LAYER_NEAREST_PROBLEM);
    ck_assert_str_eq(a.config, "BLOCK=16");
    ck_assert_int_ge(asked, 3);
}
END_TEST

START_TEST(a_time_that_is_none_is_not_stored)
{
    static const double bad[] = {0.0, -1.0, INFINITY, -INFINITY, NAN};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_int_eq(store_put_best(st, fixture_key(64, 256), "BLOCK=16", bad[i], 0.0),
                         TW_E_STORE);
    ck_assert_int_eq(ask(fixture_key(64, 256)).layer, TW_LAYER_DEFAULT);
    put(fixture_key(64, 256), "BLOCK=16", 1.0); /* and one that was edited is no answer */
    fixture_sql(fixture_path, "UPDATE best SET seconds=-1");
    ck_assert_int_eq(ask(fixture_key(64, 256)).layer, TW_LAYER_DEFAULT);
}
END_TEST

/* ---- trials, list, clear -------------------------------------------------------------------- */

typedef struct seen {
    int n;
    tw_trial trial[8];
    tw_store_row row[8];
} seen;

static bool see_trial(void *user, const tw_trial *t)
{
    seen *s = user;

    s->trial[s->n++] = *t;
    return s->n < 8;
}

static bool see_row(void *user, const tw_store_row *r)
{
    seen *s = user;

    ck_assert_ptr_nonnull(strstr(r->problem, "T:f32"));
    ck_assert_ptr_nonnull(strstr(r->device, "name=box"));
    s->row[s->n++] = *r;
    return s->n < 8;
}

START_TEST(every_trial_is_kept)
{
    double sample[3] = {1.0, 2.0, 3.0};
    store_trial t = {TW_TRIAL_OK, "BLOCK=64", 2.0, 1.0, sample, 3, 40, 1024, 8, NULL};
    store_trial pruned = {TW_TRIAL_PRUNED, "BLOCK=512", NAN, 0.0, NULL, 0, 0, 0, 0, "too large"};
    seen s = {0};

    ck_assert_int_eq(store_put_trial(st, fixture_key(64, 256), &t), TW_OK);
    ck_assert_int_eq(store_put_trial(st, fixture_key(64, 256), &pruned), TW_OK);
    put(fixture_key(64, 256), "BLOCK=64", 2.0);
    ck_assert_int_eq(store_key_trials(st, fixture_key(64, 256), see_trial, &s), TW_OK);
    ck_assert_int_eq(s.n, 2);
    ck_assert_str_eq(s.trial[0].reason, "too large");
    ck_assert_int_eq(s.trial[0].state, TW_TRIAL_PRUNED);
    ck_assert_int_eq(s.trial[1].samples, 3);
    ck_assert_double_eq(s.trial[1].median_s, 2.0);

    seen rows = {0}, again = {0};
    ck_assert_int_eq(store_list(st, see_row, &rows), TW_OK);
    ck_assert_int_eq(rows.n, 1);
    ck_assert_int_eq(rows.row[0].trials, 2);
    ck_assert_int_eq(store_trials(st, rows.row[0].id, see_trial, &again), TW_OK);
    ck_assert_int_eq(again.n, 2);
    ck_assert_int_eq(store_trials(st, 12345, see_trial, &again), TW_OK);
    ck_assert_int_eq(again.n, 2);
    ck_assert_int_eq(fixture_sql_int(fixture_path, "SELECT sum(registers + shared) FROM trials"),
                     1064);
}
END_TEST

START_TEST(clear_takes_one_kernel_or_all)
{
    store_key *key = fixture_key(64, 256);
    int64_t removed = -1;
    seen s = {0};

    put(key, "BLOCK=64", 2.0);
    ck_assert_int_eq(store_artifact_put(st, (hash128){1, 1}, key, "code", 4), TW_OK);
    key->kernel = "second";
    key->content.hi = 99;
    put(key, "BLOCK=64", 2.0);
    ck_assert_int_eq(store_clear(st, "nobody", &removed), TW_OK);
    ck_assert_int_eq(removed, 0);
    ck_assert_int_eq(store_clear(st, "k", &removed), TW_OK);
    ck_assert_int_eq(removed, 1);
    ck_assert_int_eq(fixture_sql_int(fixture_path, "SELECT count(*) FROM artifacts"), 0);
    ck_assert_int_eq(store_list(st, see_row, &s), TW_OK);
    ck_assert_int_eq(s.n, 1);
    ck_assert_int_eq(store_clear(st, NULL, &removed), TW_OK);
    ck_assert_int_eq(removed, 1);
    ck_assert_int_eq(fixture_sql_int(fixture_path, "SELECT count(*) FROM keys"), 0);
}
END_TEST

/* ---- artifacts ------------------------------------------------------------------------------ */

static char *big_code(size_t *size)
{
    *size = 100000;
    char *code = mem_alloc(*size);

    for (size_t i = 0; i < *size; i++)
        code[i] = (char)(i * i >> 7);
    return code;
}

START_TEST(artifacts_come_back_byte_for_byte)
{
    size_t size, got_size = 0;
    char *code = big_code(&size);
    void *got = NULL;

    ck_assert(!store_artifact_get(st, (hash128){5, 6}, &got, &got_size));
    ck_assert_int_eq(store_artifact_put(st, (hash128){5, 6}, fixture_key(64, 1), code, size),
                     TW_OK);
    reopen();
    ck_assert(store_artifact_get(st, (hash128){5, 6}, &got, &got_size));
    ck_assert_uint_eq(got_size, size);
    ck_assert_mem_eq(got, code, size);
    ck_assert(!store_artifact_get(st, (hash128){5, 7}, &got, &got_size));
    ck_assert_int_eq(store_artifact_put(st, (hash128){5, 7}, NULL, code, 0), TW_E_STORE);
    mem_free(got);
    mem_free(code);
}
END_TEST

/* Any doubt is a miss, said once, and the next put repairs it. */
START_TEST(damaged_artifacts_are_a_miss)
{
    static const char *const damage[] = {
        "UPDATE artifacts SET packed=substr(packed,1,length(packed)-10)",
        "UPDATE artifacts SET packed=zeroblob(length(packed))",
        "UPDATE artifacts SET packed=packed||x'00112233'",
        "UPDATE artifacts SET sum='00000000000000000000000000000000'",
        "UPDATE artifacts SET sum='0'",
        "UPDATE artifacts SET size=size-1",
        "UPDATE artifacts SET size=9223372036854775807",
        "UPDATE artifacts SET packed=x''",
        "UPDATE artifacts SET size='junk'",
    };
    size_t size, got_size;
    char *code = big_code(&size);
    void *got = NULL;

    for (size_t i = 0; i < sizeof damage / sizeof damage[0]; i++) {
        hash128 id = {5, 6};
        ck_assert_int_eq(store_artifact_put(st, id, fixture_key(64, 1), code, size), TW_OK);
        fixture_sql(fixture_path, damage[i]);
        ck_assert_msg(!store_artifact_get(st, id, &got, &got_size), "%s", damage[i]);
        ck_assert_int_eq(store_artifact_put(st, id, fixture_key(64, 1), code, size), TW_OK);
        ck_assert(store_artifact_get(st, id, &got, &got_size));
        mem_free(got);
    }
    ck_assert_int_eq(fixture_warnings.count, 1);
    ck_assert_ptr_nonnull(strstr(fixture_warnings.last, "damaged"));
    mem_free(code);
}
END_TEST

/* ---- leases --------------------------------------------------------------------------------- */

START_TEST(a_lease_keeps_others_out_until_released)
{
    store *other = fixture_open(fixture_path);
    store_lease mine, theirs;
    int64_t holder = 0;

    ck_assert_int_eq(store_lease_try(st, fixture_key(64, 1), &mine, NULL), LEASE_TAKEN);
    ck_assert_int_eq(store_lease_try(other, fixture_key(64, 1), &theirs, &holder), LEASE_HELD);
    ck_assert_int_eq(holder, getpid());
    ck_assert_int_eq(store_lease_try(st, fixture_key(64, 1), &theirs, NULL), LEASE_HELD);
    ck_assert_int_eq(store_lease_try(other, fixture_key(64, 64), &theirs, NULL), LEASE_TAKEN);
    store_lease_release(other, &theirs);
    store_lease_release(st, &mine);
    ck_assert_int_eq(store_lease_try(other, fixture_key(64, 1), &theirs, NULL), LEASE_TAKEN);
    store_lease_release(other, &theirs);
    store_close(other);
}
END_TEST

/* A dead process, a reused process id, silence, a clock that went back. */
START_TEST(a_dead_owner_keeps_nobody_out)
{
    static const char *const death[] = {
        "UPDATE leases SET pid=2147483600",
        "UPDATE leases SET started=started-5",
        "UPDATE leases SET renewed=renewed-16000",
        "UPDATE leases SET renewed=renewed+3600000",
        "UPDATE leases SET place='elsewhere', renewed=renewed-16000",
    };

    for (size_t i = 0; i < sizeof death / sizeof death[0]; i++) {
        store_lease first, second;
        ck_assert_int_eq(store_lease_try(st, fixture_key(64, 1), &first, NULL), LEASE_TAKEN);
        fixture_sql(fixture_path, death[i]);
        ck_assert_msg(store_lease_try(st, fixture_key(64, 1), &second, NULL) == LEASE_TAKEN, "%s",
                      death[i]);
        first.renewed_ms = 0;
        ck_assert(!store_lease_renew(st, &first)); /* who lost it is told */
        second.renewed_ms = 0;
        ck_assert(store_lease_renew(st, &second));
        store_lease_release(st, &first); /* and cannot drop the other's */
        ck_assert_int_eq(store_lease_try(st, fixture_key(64, 1), &first, NULL), LEASE_HELD);
        store_lease_release(st, &second);
    }
}
END_TEST

START_TEST(an_owner_elsewhere_is_believed_while_it_speaks)
{
    store_lease lease;

    ck_assert_int_eq(store_lease_try(st, fixture_key(64, 1), &lease, NULL), LEASE_TAKEN);
    fixture_sql(fixture_path, "UPDATE leases SET place='elsewhere', pid=2147483600");
    ck_assert_int_eq(store_lease_try(st, fixture_key(64, 1), &lease, NULL), LEASE_HELD);
}
END_TEST

/* ---- the object ----------------------------------------------------------------------------- */

START_TEST(what_we_create_is_for_its_user_alone)
{
    char path[256];
    struct stat s;
    mode_t before = umask(0);

    snprintf(path, sizeof path, "%s/a/b/new.db", fixture_dir);
    store *other = fixture_open(path);
    ck_assert_int_eq(store_state(other), STORE_OK);
    ck_assert_int_eq(store_put_best(other, fixture_key(64, 1), "B=1", 1.0, 0.0), TW_OK);
    umask(before);
    ck_assert_int_eq(stat(path, &s), 0);
    ck_assert_uint_eq(s.st_mode & 0777, 0600);
    strcat(path, "-wal");
    ck_assert_int_eq(stat(path, &s), 0);
    ck_assert_uint_eq(s.st_mode & 0777, 0600);
    snprintf(path, sizeof path, "%s/a/b", fixture_dir);
    ck_assert_int_eq(stat(path, &s), 0);
    ck_assert_uint_eq(s.st_mode & 0777, 0700);
    store_close(other);
}
END_TEST

START_TEST(without_a_path_it_lives_in_memory)
{
    store_lease lease, second;
    seen s = {0};

    store_close(st);
    st = fixture_open(NULL);
    ck_assert_int_eq(store_state(st), STORE_MEMORY);
    ck_assert_ptr_null(store_why(st));
    put(fixture_key(64, 1), "BLOCK=1", 1.0);
    ck_assert_int_eq(ask(fixture_key(64, 1)).layer, TW_LAYER_EXACT);
    ck_assert_int_eq(store_lease_try(st, fixture_key(64, 1), &lease, NULL), LEASE_TAKEN);
    ck_assert_int_eq(store_lease_try(st, fixture_key(64, 1), &second, NULL), LEASE_HELD);
    store_lease_release(st, &lease);
    ck_assert_int_eq(store_lease_try(st, fixture_key(64, 1), &second, NULL), LEASE_TAKEN);
    ck_assert_int_eq(store_list(st, see_row, &s), TW_E_STORE);
    ck_assert_int_eq(store_artifact_put(st, (hash128){1, 1}, NULL, "code", 4), TW_E_STORE);
    ck_assert_int_eq(fixture_warnings.count, 0);
    store_close(st);
    st = NULL;
    tw_last_error();
}
END_TEST

#define THREADS 8
#define ROUNDS 25

static void *work(void *arg)
{
    int64_t id = (int64_t)(intptr_t)arg;
    store_coord problem = {"M", COORD_VALUE, NULL, id}, device = {"n", COORD_VALUE, NULL, 1};
    store_key key = {"k", {1, 1}, &problem, 1, "cpu", &device, 1, "d"};

    for (int i = 0; i < ROUNDS; i++) {
        store_trial t = {.state = TW_TRIAL_OK, .config = "B=1", .median_s = 1.0};
        store_answer a;
        if (store_put_trial(st, &key, &t) != TW_OK ||
            store_put_best(st, &key, "B=1", 1.0, 0.0) != TW_OK)
            return "not stored";
        store_best(st, &key, NULL, NULL, &a);
        if (a.layer != TW_LAYER_EXACT)
            return "not found";
    }
    return NULL;
}

START_TEST(threads_share_one_store)
{
    pthread_t thread[THREADS];

    for (intptr_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, work, (void *)i), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed = NULL;
        pthread_join(thread[i], &failed);
        ck_assert_ptr_null(failed);
    }
    ck_assert_int_eq(fixture_sql_int(fixture_path, "SELECT count(*) FROM trials"),
                     THREADS * ROUNDS);
}
END_TEST

START_TEST(no_memory_is_survived)
{
    store_trial t = {.state = TW_TRIAL_OK, .config = "B=1", .median_s = 1.0};
    bool any_failed = false;

    for (long n = 1; n < 60; n++) {
        store *small = NULL;
        store_answer a;
        size_t size;
        void *bytes = NULL;
        mem_fail_after(n);
        tw_status status = store_open(fixture_path, NULL, NULL, &small);
        if (status == TW_OK) {
            any_failed |= store_put_trial(small, fixture_key(64, 1), &t) == TW_E_NOMEM;
            any_failed |= store_artifact_put(small, (hash128){1, 2}, fixture_key(64, 1), "code",
                                             4) == TW_E_NOMEM;
            store_best(small, fixture_key(64, 1), NULL, NULL, &a);
            if (store_artifact_get(small, (hash128){1, 2}, &bytes, &size))
                mem_free(bytes);
        } else {
            ck_assert_int_eq(status, TW_E_NOMEM);
        }
        mem_fail_after(0);
        store_close(small);
    }
    ck_assert(any_failed);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("store");
    TCase *t = tcase_create("store");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, an_empty_store_knows_nothing);
    tcase_add_test(t, exact_survives_reopening);
    tcase_add_test(t, a_new_best_replaces_the_old);
    tcase_add_test(t, another_driver_is_a_layer_of_its_own);
    tcase_add_test(t, seeds_come_before_neighbours);
    tcase_add_test(t, the_nearest_problem_answers);
    tcase_add_test(t, another_dtype_is_no_neighbour);
    tcase_add_test(t, the_nearest_device_answers_last);
    tcase_add_test(t, rows_of_another_device_are_neither_used_as_ours_nor_rewritten);
    tcase_add_test(t, what_the_caller_refuses_is_skipped);
    tcase_add_test(t, a_time_that_is_none_is_not_stored);
    tcase_add_test(t, every_trial_is_kept);
    tcase_add_test(t, clear_takes_one_kernel_or_all);
    tcase_add_test(t, artifacts_come_back_byte_for_byte);
    tcase_add_test(t, damaged_artifacts_are_a_miss);
    tcase_add_test(t, a_lease_keeps_others_out_until_released);
    tcase_add_test(t, a_dead_owner_keeps_nobody_out);
    tcase_add_test(t, an_owner_elsewhere_is_believed_while_it_speaks);
    tcase_add_test(t, what_we_create_is_for_its_user_alone);
    tcase_add_test(t, without_a_path_it_lives_in_memory);
    tcase_add_test(t, threads_share_one_store);
    tcase_add_test(t, no_memory_is_survived);
    suite_add_tcase(s, t);
    return s;
}
