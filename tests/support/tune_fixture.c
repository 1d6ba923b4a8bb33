#include "tests/support/tune_fixture.h"
#include "compiler/ir/irtext.h"
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

fake_device fake;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of last, now and broken */

static tw_status fake_launch(tw_device *dev, void *loaded, const driver_step *s, tw_stream *stream,
                             int32_t *failed)
{
    int64_t programs = s->grid[0];
    tw_status st = interp_driver.launch(dev, loaded, s, stream, failed);

    if (fake.pause_us)
        usleep((useconds_t)fake.pause_us);
    atomic_fetch_add(&fake.launches, 1);
    atomic_fetch_add(&fake.disturbed, atomic_load(&fake.compiling) > 0);
    pthread_mutex_lock(&lock);
    fake.last = programs;
    fake.now += fake.cost ? fake.cost(programs) : 0.0;
    fake.broken = fake.broken || programs == fake.breaks_at;
    bool broken = fake.broken;
    pthread_mutex_unlock(&lock);
    if (broken)
        return error_set(TW_E_DEVICE, "the fake is broken");
    if (programs == fake.fails_at)
        return error_set(TW_E_DEVICE, "this launch fails");
    if (programs == fake.wrong_at)
        ((float *)(void *)s->tensor[1].base)[s->tensor[1].extent[0] / 2] += 0.5f;
    return st;
}

static tw_status event_create(tw_device *dev, void **event)
{
    (void)dev;
    *event = calloc(1, sizeof(double));
    return *event ? TW_OK : TW_E_NOMEM;
}

static void event_destroy(tw_device *dev, void *event)
{
    (void)dev;
    free(event);
}

static tw_status event_record(tw_device *dev, void *event, tw_stream *stream)
{
    (void)dev, (void)stream;
    pthread_mutex_lock(&lock);
    *(double *)event = fake.now;
    pthread_mutex_unlock(&lock);
    return TW_OK;
}

static tw_status event_seconds(tw_device *dev, void *from, void *to, double *seconds)
{
    (void)dev;
    *seconds = *(double *)to - *(double *)from;
    return TW_OK;
}

static tw_status fake_sync(tw_device *dev, tw_stream *stream)
{
    (void)dev, (void)stream;
    return TW_OK;
}

static bool fake_lost(const tw_device *dev)
{
    (void)dev;
    pthread_mutex_lock(&lock);
    bool broken = fake.broken;
    pthread_mutex_unlock(&lock);
    return broken;
}

static tw_status fake_finish(tw_device *dev, artifact *art, arena *mem)
{
    (void)dev, (void)mem;
    atomic_fetch_add(&fake.compiled, 1);
    atomic_fetch_add(&fake.compiling, 1);
    tw_status st = fake.compiles ? fake.compiles(art) : TW_OK;
    atomic_fetch_sub(&fake.compiling, 1);
    if (fake.spills && strstr(art->launch_text, fake.spills))
        art->spill_bytes = fake.spilled;
    return st;
}

static tw_status fake_needs(const target *t, const target_input *in, target_needs *out)
{
    (void)t;
    *out = (target_needs){.code = ir_hash(in->module)};
    return TW_OK;
}

target fake_knowing_target, fake_dynamic_target;

static const sched_param threads_param = {
    .name = "threads", .help = "no matter", .lo = 1, .hi = 1024, .dynamic = true};

tw_device *fake_open(double (*cost)(int64_t programs))
{
    static driver table;
    tw_device *dev = rt_device("interp");

    table = interp_driver;
    table.name = "fake";
    table.launch = fake_launch;
    table.sync = fake_sync;
    table.lost = fake_lost;
    table.finish = fake_finish;
    table.event_create = event_create;
    table.event_destroy = event_destroy;
    table.event_record = event_record;
    table.event_seconds = event_seconds;
    dev->drv = &table;
    fake_knowing_target = interp_target;
    fake_knowing_target.needs = fake_needs;
    fake_dynamic_target = interp_target;
    fake_dynamic_target.sched = &threads_param;
    fake_dynamic_target.nsched = 1;
    memset(&fake, 0, sizeof fake);
    fake.cost = cost;
    return dev;
}

tw_device *fake_open_processor(void)
{
    static driver table;
    tw_device *dev = fake_open(NULL);

    table = *dev->drv;
    table.event_create = NULL;
    table.event_destroy = NULL;
    table.event_record = NULL;
    table.event_seconds = NULL;
    dev->drv = &table;
    return dev;
}

static tw_kernel *load(const char *text)
{
    tw_kernel *k = NULL;

    RT_OK(tw_kernel_load_text(rt_cx, "fake.tw", text, strlen(text), NULL, &k));
    return k;
}

#define SPACE "tune BLOCK in {64, 16, 32, 128, 256, 512}, M in {1, 2, 4}\ngrid (cdiv(N, BLOCK))\n"

tw_kernel *fake_kernel(void)
{
    return load("kernel fake(x: f32[N], out y: f32[N])\n" SPACE "{ let at = program_id(0) * BLOCK; "
                "store(y[at :+ BLOCK], load(x[at :+ BLOCK]) + 1.0); }\n");
}

tw_kernel *fake_inout_kernel(void)
{
    return load("kernel fake_inout(x: f32[N], inout y: f32[N])\n" SPACE
                "{ let at = program_id(0) * BLOCK; "
                "store(y[at :+ BLOCK], load(y[at :+ BLOCK]) + 1.0); }\n");
}

tw_kernel *fake_odd_kernel(void)
{
    return load(
        "kernel fake_odd(x: f32[N], out y: f32[N])\n"
        "tune BLOCK in {64, 4194304, 128}\n"
        "grid (cdiv(N, BLOCK))\n"
        "{ let id = program_id(0), at = id * BLOCK;\n"
        "  if (BLOCK != 128 || id < 16) store(y[at :+ BLOCK], load(x[at :+ BLOCK]) + 1.0);\n"
        "}\n");
}

tw_kernel *fake_long_kernel(int rounds)
{
    char text[512];

    snprintf(text, sizeof text,
             "kernel fake_long(x: f32[N], out y: f32[N])\n"
             "tune BLOCK in {64}\n"
             "grid (cdiv(N, BLOCK))\n"
             "{ let id = program_id(0), at = id * BLOCK;\n"
             "  let n = id == num_programs(0) - 1 ? %d : 0;\n"
             "  var sum = 0;\n"
             "  for i in range(0, n) sum = sum + i;\n"
             "  store(y[at :+ BLOCK], load(x[at :+ BLOCK]) + (sum == -1 ? 2.0 : 1.0));\n"
             "}\n",
             rounds);
    return load(text);
}
