/* Every pass that a compile runs can be looked at: the tables of passes, against what a dump of
 * each shows and what --time counts. */
#include "tests/support/runtime_fixture.h"
#include "tilewright.h"
#include <check.h>
#include <stdio.h>
#include <string.h>

static const char *const passes[] = {
#define PASS(name, help) #name,
#define STEP(name)
#include "compiler/passes/passes.def"
};
static const char *const schedule[] = {
#define PASS(name, partial, help) #name,
#define STEP(name)
#include "compiler/schedule/schedule.def"
};
enum { PASSES = sizeof passes / sizeof *passes, SCHEDULE = sizeof schedule / sizeof *schedule };

static char heading[64];   /* of what must be dumped */
static int dumped, others; /* dumps under that heading, and of anything else */
static char times[2048];   /* passes in their order, a space behind each */

static void on_log(void *user, tw_log_level level, const char *text)
{
    const char *last = strrchr(text, ' ');

    (void)user;
    if (level == TW_LOG_DEBUG && strncmp(text, heading, strlen(heading)) == 0)
        dumped++;
    else if (level == TW_LOG_DEBUG && strncmp(text, "after ", 6) == 0)
        others++;
    else if (level == TW_LOG_INFO && strstr(text, " ms ") && last)
        snprintf(times + strlen(times), sizeof times - strlen(times), "%s ", last + 1);
}

static tw_context *cx;
static tw_kernel *kernel;

static void setup(void)
{
    tw_config cfg = TW_CONFIG_INIT;

    cfg.log = on_log;
    cfg.log_level = TW_LOG_DEBUG;
    RT_OK(tw_context_create(&cfg, &cx));
    RT_OK(tw_kernel_load(cx, "kernels/vector_add.tw", NULL, &kernel));
}

static void teardown(void)
{
    tw_kernel_destroy(kernel);
    tw_context_destroy(cx);
}

static tw_status compile(const char *path, const char *stage, const char *dump)
{
    tw_compile_options opt = TW_COMPILE_OPTIONS_INIT;
    char *data;
    size_t size;

    opt.target = path;
    opt.emit = stage;
    opt.set = "T=f32";
    opt.dump = dump;
    opt.time = !dump;
    dumped = others = 0;
    times[0] = 0;
    snprintf(heading, sizeof heading, "after %s (", dump ? dump : "");
    tw_status st = tw_kernel_compile(kernel, &opt, &data, &size);
    if (st == TW_OK)
        tw_free(data);
    return st;
}

/* Both for a stage before the target's own passes and for its code. */
static void check_dump(const char *path, const char *pass, bool runs)
{
    static const char *const stages[] = {"tir", "ll"};

    for (int i = 0; i < 2; i++) {
        if (runs) {
            RT_OK(compile(path, stages[i], pass));
            ck_assert_msg(dumped > 0, "%s, %s: no dump of %s", path, stages[i], pass);
        } else {
            RT_FAILS(compile(path, stages[i], pass), TW_E_ARG, "does not run for target");
            ck_assert_int_eq(dumped, 0);
        }
        ck_assert_int_eq(others, 0);
    }
}

START_TEST(each_pass_of_level_1)
{
    bool tails = strcmp(passes[_i], "peel_tails") == 0;
    bool checks = strcmp(passes[_i], "check_accesses") == 0;

    check_dump("cpu", passes[_i], !checks);
    check_dump("sm_80", passes[_i], !checks && !tails);
    RT_OK(tw_kernel_set_checked(kernel));
    check_dump("cpu", passes[_i], true);
}
END_TEST

START_TEST(each_pass_of_a_schedule)
{
    check_dump("sm_80", schedule[_i], true);
    check_dump("cpu", schedule[_i], false);
}
END_TEST

/* Nothing runs that is in no table. */
START_TEST(times_name_the_same_passes)
{
    static const char *const paths[] = {"cpu", "sm_80"};
    char text[sizeof times], *save = NULL;
    int own = 0;

    RT_OK(compile(paths[_i], "tir", NULL));
    memcpy(text, times, sizeof text);
    for (char *name = strtok_r(text, " ", &save); name; name = strtok_r(NULL, " ", &save)) {
        RT_OK(compile(paths[_i], "tir", name));
        ck_assert_msg(dumped > 0, "%s: no dump of %s", paths[_i], name);
        own += strcmp(name, _i == 0 ? "peel_tails" : "place_barriers") == 0;
    }
    ck_assert_int_eq(own, 1);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("dumps");
    TCase *t = tcase_create("dumps");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, each_pass_of_level_1, 0, PASSES);
    tcase_add_loop_test(t, each_pass_of_a_schedule, 0, SCHEDULE);
    tcase_add_loop_test(t, times_name_the_same_passes, 0, 2);
    suite_add_tcase(s, t);
    return s;
}
