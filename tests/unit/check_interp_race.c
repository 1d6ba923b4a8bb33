/* The race detector against a plain model: every thread has a whole vector clock, and every access
 * is kept and compared with all before it. Both must stop at the same access of random programs. */
#include "compiler/base/mem.h"
#include "compiler/target/interp/interp_race.h"
#include <check.h>
#include <stdlib.h>
#include <string.h>

#define WARPS 2
#define LANES 2 /* 0 and 1; HOLD_MANY is both */
#define THREADS (WARPS * LANES)
#define BYTES 3
#define EVENTS 4096

static uint64_t state;

static int random_below(int n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)(state >> 33) % n;
}

/* ---- the model ---- */

typedef struct event {
    int thread, byte;
    uint32_t clock;
    bool write;
} event;

typedef struct copy_part {
    int byte, group;                           /* group of the warp */
    uint32_t issued[THREADS], landed[THREADS]; /* the threads' clocks then; 0: not yet */
} copy_part;

static uint32_t knows[THREADS][THREADS];
static event events[EVENTS];
static int nevents;
static copy_part copies[EVENTS];
static int ncopies, committed;

static void model_reset(void)
{
    memset(knows, 0, sizeof knows);
    for (int t = 0; t < THREADS; t++)
        knows[t][t] = 1;
    nevents = ncopies = committed = 0;
}

/* All that these threads know, each knows; what they do next is new. */
static void meet(int first, int n)
{
    uint32_t all[THREADS] = {0};

    for (int t = first; t < first + n; t++)
        for (int u = 0; u < THREADS; u++)
            all[u] = knows[t][u] > all[u] ? knows[t][u] : all[u];
    for (int t = first; t < first + n; t++) {
        memcpy(knows[t], all, sizeof all);
        knows[t][t]++;
    }
}

static bool thread_access(int thread, int byte, bool write, int copy)
{
    bool ok = true;

    for (int i = 0; i < nevents; i++) {
        const event *e = &events[i];
        if (e->byte == byte && (e->write || write))
            ok &= e->clock <= knows[thread][e->thread];
    }
    for (int c = 0; c < ncopies; c++) {
        if (copies[c].byte != byte || c == copy)
            continue;
        for (int t = 0; t < THREADS; t++)
            ok &= copies[c].landed[t] && copies[c].landed[t] <= knows[thread][t];
    }
    if (copy < 0)
        events[nevents++] = (event){thread, byte, knows[thread][thread], write};
    return ok;
}

static bool model_access(int warp, int lane, int byte, bool write)
{
    bool ok = true;

    if (lane != HOLD_MANY)
        return thread_access(warp * LANES + lane, byte, write, -1);
    for (int l = 0; l < LANES; l++)
        ok &= thread_access(warp * LANES + l, byte, write, -1);
    return ok;
}

/* Every thread issues, at one time. */
static bool model_copy(int byte)
{
    bool ok = true;
    int c = ncopies;

    copies[c] = (copy_part){.byte = byte, .group = committed + 1};
    ncopies++;
    for (int t = 0; t < THREADS; t++)
        ok &= thread_access(t, byte, true, c);
    return ok;
}

static void model_wait(int warp, int pending)
{
    for (int l = 0; l < LANES; l++) {
        int t = warp * LANES + l;
        for (int c = 0; c < ncopies; c++) {
            if (!copies[c].landed[t] && copies[c].group + pending <= committed)
                copies[c].landed[t] = knows[t][t];
        }
        knows[t][t]++;
    }
}

/* ---- the two side by side ---- */

static race *r;

static bool detector_access(int warp, int lane, int byte, bool write)
{
    const race_access x = {.warp = warp, .lane = lane};
    race_report report;

    return write ? race_write(r, &x, byte, 1, &report) : race_read(r, &x, byte, 1, &report);
}

static bool detector_copy(int byte)
{
    race_copy *c = race_copy_new(r, 0, (1u << WARPS) - 1, -1);
    race_report report;
    bool ok = true;

    for (int w = 0; w < WARPS; w++) {
        const race_access x = {.warp = w, .lane = HOLD_MANY};
        ok &= race_copy_issue(r, c, &x, byte, 1, &report);
    }
    return ok;
}

static void barrier(void)
{
    for (int w = 0; w < WARPS; w++)
        race_release(r, w, race_clock_at(r, 0));
    for (int w = 0; w < WARPS; w++)
        race_acquire(r, w, race_clock_at(r, 0));
    race_clock_clear(r, race_clock_at(r, 0));
    meet(0, THREADS);
}

/* One step of both; false when it is a race. */
static bool step(bool *same)
{
    int warp = random_below(WARPS), byte = random_below(BYTES), lane = random_below(LANES + 1);
    bool want = true, got = true, write = random_below(2);

    switch (random_below(10)) {
    case 0:
    case 1:
        barrier();
        break;
    case 2:
        race_order_lanes(r, warp);
        meet(warp * LANES, LANES);
        break;
    case 3:
        want = model_copy(byte);
        got = detector_copy(byte);
        break;
    case 4:
        for (int w = 0; w < WARPS; w++)
            race_commit(r, w);
        committed++;
        break;
    case 5:
    case 6: {
        int pending = random_below(2);
        race_wait(r, warp, pending);
        model_wait(warp, pending);
        break;
    }
    default:
        lane = lane == LANES ? HOLD_MANY : lane;
        if (write && lane == HOLD_MANY)
            lane = 0; /* the first copy writes */
        want = model_access(warp, lane, byte, write);
        got = detector_access(warp, lane, byte, write);
    }
    *same = want == got;
    return want;
}

/* Would the step be a race? Most that would are left out, so that programs grow long. */
static bool is_dull(void)
{
    uint64_t before = state;
    int e = nevents, c = ncopies, warp = random_below(WARPS), byte = random_below(BYTES);
    int lane = random_below(LANES + 1);
    bool write = random_below(2), ok = true;
    int what = random_below(10);

    if (what == 3)
        ok = model_copy(byte);
    else if (what > 6)
        ok = model_access(warp, lane < LANES ? lane : write ? 0 : HOLD_MANY, byte, write);
    nevents = e;
    ncopies = c;
    bool dull = !ok && random_below(8);
    if (!dull)
        state = before;
    return dull;
}

START_TEST(stops_where_the_model_stops)
{
    const race_shape shape = {WARPS, 0, BYTES, 1, false};
    long steps = 0, races = 0;

    r = race_new(&shape);
    ck_assert_ptr_nonnull(r);
    for (uint32_t seed = 1; seed <= 3000; seed++) {
        bool same = true, ok = true;
        state = seed;
        race_reset(r);
        model_reset();
        for (int i = 0; i < 400 && ok; i++, steps++) {
            if (is_dull())
                continue;
            ok = step(&same);
            if (!same)
                ck_abort_msg("seed %u, step %d: the model says %s", seed, i, ok ? "right" : "race");
        }
        races += !ok;
    }
    race_free(r);
    ck_assert_int_gt(races, 2000);
    ck_assert_int_gt(steps, 20000);
    ck_assert_int_eq(mem_live(), 0);
}
END_TEST

/* Elements of tensors: more than the table begins with, and atomic ones. */
START_TEST(elements_are_kept_apart)
{
    const race_shape shape = {2, 0, 0, 1, false};
    static float x[5000];
    race_report report;
    race_access a = {.warp = 0, .lane = 3, .op = 7}, b = {.warp = 1, .lane = 3, .op = 8};

    r = race_new(&shape);
    for (int i = 0; i < 5000; i++)
        ck_assert(race_write_element(r, &a, &x[i], i < 10, &report));
    ck_assert(race_write_element(r, &b, &x[3], true, &report));
    ck_assert(!race_write_element(r, &b, &x[30], true, &report));
    ck_assert(!race_read_element(r, &b, &x[4999], &report));
    ck_assert_int_eq(report.kind, RACE_ORDER);
    ck_assert_int_eq(report.before, 7);
    ck_assert(race_read_element(r, &a, &x[4999], &report));
    a.lane = 4;
    ck_assert(!race_read_element(r, &a, &x[4998], &report));
    ck_assert_int_eq(report.kind, RACE_LANES);
    race_free(r);
    ck_assert_int_eq(mem_live(), 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("interp_race");
    TCase *tc = tcase_create("interp_race");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, stops_where_the_model_stops);
    tcase_add_test(tc, elements_are_kept_apart);
    suite_add_tcase(s, tc);
    return s;
}
