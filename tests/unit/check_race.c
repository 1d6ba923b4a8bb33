#include "tuner/race.h"
#include <check.h>
#include <math.h>

static uint64_t random_state;

static double uniform(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(random_state >> 11) / 9007199254740992.0;
}

/* A run on a shared machine: about `sigma` of noise, now and then a third longer, and a clock that
 * drifts by 20 % over hundreds of runs. */
static double run(double seconds, double sigma, int *now)
{
    double sum = -6.0;

    for (int i = 0; i < 12; i++)
        sum += uniform();
    double spike = uniform() < 0.05 ? 1.3 : 1.0;
    return seconds * exp(sigma * sum) * spike * (1.0 + 0.2 * sin((*now)++ / 60.0));
}

static enum race_verdict race_of(double challenger, double incumbent, double sigma, double noise,
                                 uint32_t *pairs)
{
    race r = {.noise = noise};
    int now = (int)(uniform() * 1000.0);
    enum race_verdict v;

    do {
        bool first = r.n % 2 == 0; /* who goes first alternates */
        double a = run(first ? challenger : incumbent, sigma, &now);
        double b = run(first ? incumbent : challenger, sigma, &now);
        race_add(&r, first ? a : b, first ? b : a);
    } while ((v = race_verdict(&r)) == RACE_GO_ON);
    *pairs = r.n;
    return v;
}

typedef struct tally {
    int slower, faster, even;
    double pairs;
} tally;

static tally many_knowing(double ratio, double sigma, double noise)
{
    tally t = {0};

    random_state = 7;
    for (int i = 0; i < 1000; i++) {
        uint32_t pairs;
        enum race_verdict v = race_of(ratio, 1.0, sigma, noise, &pairs);
        t.slower += v == RACE_SLOWER;
        t.faster += v == RACE_FASTER;
        t.even += v == RACE_EVEN;
        t.pairs += pairs / 1000.0;
    }
    return t;
}

static tally many(double ratio, double sigma)
{
    return many_knowing(ratio, sigma, 0.0);
}

START_TEST(losers_stop_early)
{
    tally t = many(1.6, 0.01);

    ck_assert_int_ge(t.slower, 995);
    ck_assert_double_lt(t.pairs, 1.5);
    t = many(1.2, 0.01);
    ck_assert_int_ge(t.slower, 990);
    ck_assert_double_lt(t.pairs, 3.0);
}
END_TEST

/* A pair has the noise of two runs. */
START_TEST(losers_stop_earlier_where_noise_is_known)
{
    tally t = many_knowing(1.06, 0.005, 0.0071);

    ck_assert_int_ge(t.slower, 990);
    ck_assert_double_lt(t.pairs, 3.0);
    ck_assert_double_gt(many(1.06, 0.005).pairs, 4.5);
    t = many_knowing(1.0, 0.02, 0.028);
    ck_assert_int_le(t.slower, many(1.0, 0.02).slower + 10);
    t = many_knowing(0.99, 0.01, 0.007); /* for half of what it is */
    ck_assert_int_le(t.slower, 20);
    t = many_knowing(1.0, 0.001, 0.0014);
    ck_assert_int_le(t.slower, 10);
}
END_TEST

START_TEST(a_real_gain_is_seen_through_the_noise)
{
    tally t = many(0.93, 0.02);

    ck_assert_int_ge(t.faster, 950);
    ck_assert_int_le(t.slower, 10);
    t = many(0.97, 0.01);
    ck_assert_int_ge(t.faster, 900);
    ck_assert_int_le(t.slower, 5);
}
END_TEST

START_TEST(equals_are_rarely_told_apart)
{
    tally t = many(1.0, 0.02);

    ck_assert_int_le(t.faster, 60);
    ck_assert_int_ge(t.even, 800);
}
END_TEST

START_TEST(a_little_slower_never_wins)
{
    tally t = many(1.03, 0.02);

    ck_assert_int_le(t.faster, 3);
}
END_TEST

START_TEST(medians_and_spreads)
{
    const double x[] = {5.0, 1.0, 100.0, 2.0, 3.0};

    ck_assert_double_eq(median_of(x, 5), 3.0);
    ck_assert_double_eq(median_of(x, 4), 3.5);
    ck_assert_double_eq(median_of(x, 1), 5.0);
    ck_assert_double_eq(median_of(x, 0), 0.0);
    ck_assert_double_eq(spread_of(x, 5), 2.0);
    ck_assert_double_eq(spread_of(x, 0), 0.0);
}
END_TEST

START_TEST(what_is_a_time)
{
    ck_assert(is_time(1e-9));
    ck_assert(!is_time(0.0));
    ck_assert(!is_time(-1.0));
    ck_assert(!is_time(NAN));
    ck_assert(!is_time(INFINITY));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("race");
    TCase *t = tcase_create("race");

    tcase_add_test(t, losers_stop_early);
    tcase_add_test(t, losers_stop_earlier_where_noise_is_known);
    tcase_add_test(t, a_real_gain_is_seen_through_the_noise);
    tcase_add_test(t, equals_are_rarely_told_apart);
    tcase_add_test(t, a_little_slower_never_wins);
    tcase_add_test(t, medians_and_spreads);
    tcase_add_test(t, what_is_a_time);
    suite_add_tcase(s, t);
    return s;
}
