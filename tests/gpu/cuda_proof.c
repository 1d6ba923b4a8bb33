/* What the CUDA driver of the runtime does on a real GPU, in under a minute: a table of what was
 * tried, what came out, and figures. Needs a GPU and its driver, nothing else: the kernels but
 * one are PTX written by hand. Exit code 0: all is as it should be.
 *
 *   cuda_proof [device]      "cuda" if none is given */
#include "compiler/base/check.h"
#include "compiler/base/mem.h"
#include "runtime/clock.h"
#include "tests/gpu/cuda_proof.h"
#include <dlfcn.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { THREADS = 8, LAUNCHES = 400, ROUNDS = 25 };

tw_device *dev;
const char *spec = "cuda";
void *x;
static void *y;
static tw_context *cx;
static int failures;
static char log_text[4096];

/* ---- the table ------------------------------------------------------------------------------- */

void row(const char *what, bool ok, const char *format, ...)
{
    char text[400];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    text[strcspn(text, "\n")] = 0;
    printf("%-5s %-34s %s\n", ok ? "ok" : "WRONG", what, text);
    fflush(stdout);
    failures += !ok;
}

const char *said(void)
{
    const tw_error *e = tw_last_error();

    return e->diagnostic_count ? e->diagnostics[0].text : e->text;
}

void must(tw_status st, const char *what)
{
    if (st == TW_OK)
        return;
    row(what, false, "%s", tw_last_error()->text);
    exit(1);
}

static void keep_log(void *user, tw_log_level level, const char *text)
{
    (void)user, (void)level;
    snprintf(log_text, sizeof log_text, "%s", text);
}

/* ---- kernels --------------------------------------------------------------------------------- */

tw_kernel *kernel(const proof_code *c)
{
    tw_kernel *k;

    must(proof_load(cx, c, &k), "load a kernel");
    return k;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static float host[N];
static int64_t shape[] = {N};

static DLTensor tensor_at(void *p)
{
    return (DLTensor){p, {kDLCUDA, cuda_of(dev)->ordinal}, 1, {kDLFloat, 32, 1}, shape, NULL, 0};
}

static void make_tensors(void)
{
    must(tw_memory_alloc(dev, sizeof host, &x), "memory");
    must(tw_memory_alloc(dev, sizeof host, &y), "memory");
    for (int i = 0; i < N; i++)
        host[i] = (float)i;
    must(tw_memory_copy(dev, x, host, sizeof host, TW_COPY_TO_DEVICE, NULL), "copy");
}

static tw_status launch_with(tw_kernel *k, DLTensor tx, DLTensor ty, CUstream stream)
{
    const tw_arg args[] = {TW_TENSOR("x", &tx), TW_TENSOR("y", &ty)};

    return tw_launch(k, dev, (tw_stream *)(void *)stream, args, 2);
}

tw_status launch(tw_kernel *k, CUstream stream)
{
    return launch_with(k, tensor_at(x), tensor_at(y), stream);
}

static float first_of(const void *p)
{
    float v = -1.0f;

    must(tw_memory_copy(dev, &v, p, sizeof v, TW_COPY_FROM_DEVICE, NULL), "copy");
    return v;
}

static void clear_first(void)
{
    const float zero = 0.0f;

    must(tw_memory_copy(dev, y, &zero, sizeof zero, TW_COPY_TO_DEVICE, NULL), "copy");
}

/* ---- calls that the library itself does not make --------------------------------------------- */

static CUresult (*stream_create)(CUstream *, unsigned);
static CUresult (*begin_capture)(CUstream, int);
static CUresult (*end_capture)(CUstream, void **);
static CUresult (*instantiate)(void **, void *, unsigned long long);
static CUresult (*graph_launch)(void *, CUstream);
static CUresult (*alloc_managed)(CUdeviceptr *, size_t, unsigned);

static void find(void *fn, const char *name)
{
    void *found = dlsym(cuda_of(dev)->api->library, name);

    if (!found)
        row(name, false, "the driver does not have it");
    memcpy(fn, &found, sizeof found);
}

static CUstream new_stream(void)
{
    CUstream s = NULL;
    cuda_scope scope;

    must(cuda_enter(cuda_of(dev)->cx, &scope), "context");
    if (stream_create(&s, 1) != CUDA_SUCCESS)
        row("cuStreamCreate", false, "failed");
    cuda_leave(cuda_of(dev)->cx, &scope);
    return s;
}

/* ---- linking --------------------------------------------------------------------------------- */

/* About 100 KB of PTX: what a kernel of attention has. */
static char *large_ptx(int seed)
{
    char *text = malloc(400000);
    size_t n = (size_t)sprintf(text,
                               "%s.visible .entry proof(.param .u64 y)\n%s"
                               "ld.param.u64 %%d3, [y];\nld.global.f32 %%f1, [%%d3];\n"
                               "ld.global.f32 %%f2, [%%d3+4];\n",
                               PTX_HEAD, PTX_BODY);

    for (int i = 0; i < 3000; i++)
        n += (size_t)sprintf(text + n, "fma.rn.f32 %%f%d, %%f%d, %%f%d, 0f3F8%05X;\n", 1 + i % 3,
                             1 + (i + 1) % 3, 1 + (i + 2) % 3, (unsigned)(i * 7 + seed));
    sprintf(text + n, "st.global.f32 [%%d3], %%f1;\nst.global.f32 [%%d3+4], %%f2;\n"
                      "st.global.f32 [%%d3+8], %%f3;\nret;\n}\n");
    return text;
}

static void *link_one(void *arg)
{
    char *text = large_ptx((int)(intptr_t)arg);
    const code_object ptx = {OBJECT_PTX, (uint32_t)strlen(text), (const uint8_t *)text};
    int32_t registers = 0, spills = 0;
    void *cubin = NULL;
    size_t size = 0;

    if (cuda_link(cuda_of(dev), &ptx, "proof", &cubin, &size, &registers, &spills) != TW_OK ||
        registers == 0)
        row("link", false, "%s", said());
    mem_free(cubin);
    free(text);
    return NULL;
}

static void prove_linking(void)
{
    pthread_t thread[THREADS];
    double start = clock_seconds();

    for (intptr_t i = 0; i < THREADS; i++)
        link_one((void *)i);
    double one_by_one = clock_seconds() - start;
    start = clock_seconds();
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, link_one, (void *)(i + 100));
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    double at_once = clock_seconds() - start;
    row("PTX to machine code, 8 texts", at_once < 0.7 * one_by_one,
        "%.0f ms one by one, %.0f ms in 8 threads: %.1f times as fast", one_by_one * 1e3,
        at_once * 1e3, one_by_one / at_once);
}

/* ---- launches -------------------------------------------------------------------------------- */

static void prove_launch(tw_kernel *add)
{
    double start = clock_seconds();
    int wrong = 0;

    must(launch(add, NULL), "first launch");
    must(tw_stream_sync(dev, NULL), "sync");
    double first = clock_seconds() - start;
    must(tw_memory_copy(dev, host, y, sizeof host, TW_COPY_FROM_DEVICE, NULL), "copy");
    for (int i = 0; i < N; i++)
        wrong += host[i] != (float)i + 1.0f;
    row("a launch, cold", wrong == 0, "%.1f ms, %d of %d elements wrong", first * 1e3, wrong, N);
}

static int by_size(const void *a, const void *b)
{
    double p = *(const double *)a, q = *(const double *)b;

    return (p > q) - (p < q);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_size);
    return v[n / 2];
}

/* The same kernel, three ways, interleaved; each round is waited for. */
static void prove_overhead(tw_kernel *add)
{
    double bare[ROUNDS], named[ROUNDS], bound[ROUNDS];
    DLTensor tx = tensor_at(x), ty = tensor_at(y);
    const tw_arg args[] = {TW_TENSOR("x", &tx), TW_TENSOR("y", &ty)};
    cuda_device *d = cuda_of(dev);
    uint64_t slots[] = {(uintptr_t)x, (uintptr_t)y, 128, 0};
    size_t size = sizeof slots;
    void *extra[] = {(void *)1, slots, (void *)2, &size, NULL};
    tw_bound *b;
    cuda_scope s;

    shape[0] = 128;
    must(tw_kernel_specialize(add, dev, args, 2, NULL, &b), "bind");
    CUfunction fn = d->loaded->entry[0];
    must(cuda_enter(d->cx, &s), "context");
    for (int r = 0; r < ROUNDS; r++) {
        double start = clock_seconds();
        for (int i = 0; i < LAUNCHES; i++)
            must(CUDA(d, cuLaunchKernel, fn, 1, 1, 1, 128, 1, 1, 0, NULL, NULL, extra), "bare");
        bare[r] = (clock_seconds() - start) / LAUNCHES;
        must(tw_stream_sync(dev, NULL), "sync");
        start = clock_seconds();
        for (int i = 0; i < LAUNCHES; i++)
            must(tw_launch(add, dev, NULL, args, 2), "named");
        named[r] = (clock_seconds() - start) / LAUNCHES;
        must(tw_stream_sync(dev, NULL), "sync");
        start = clock_seconds();
        for (int i = 0; i < LAUNCHES; i++)
            must(tw_bound_launch(b, NULL, args, 2), "bound");
        bound[r] = (clock_seconds() - start) / LAUNCHES;
        must(tw_stream_sync(dev, NULL), "sync");
    }
    cuda_leave(d->cx, &s);
    tw_bound_destroy(b);
    shape[0] = N;
    double base = median(bare, ROUNDS), by_name = median(named, ROUNDS) - base,
           by_bound = median(bound, ROUNDS) - base;
    row("library time of a warm launch", by_name < 1e-6 && by_bound < 1e-6,
        "%.0f ns by name, %.0f ns bound, over %.2f us of cuLaunchKernel", by_name * 1e9,
        by_bound * 1e9, base * 1e6);
}

static void prove_timing(tw_kernel *add)
{
    DLTensor tx = tensor_at(x), ty = tensor_at(y);
    const tw_arg args[] = {TW_TENSOR("x", &tx), TW_TENSOR("y", &ty)};
    double seconds = 0.0;

    for (int i = 0; i < 3; i++)
        must(tw_launch_timed(add, dev, NULL, args, 2, NULL, &seconds), "timed");
    row("timed by events, L2 flushed", seconds > 1e-6 && seconds < 1e-3, "%.1f us: %.2f TB/s",
        seconds * 1e6, 8.0 * N / seconds * 1e-12);
}

static void prove_workspaces(void)
{
    tw_kernel *k = kernel(&proof_count);
    CUstream one = new_stream(), two = new_stream();
    bool right = true;

    for (int i = 0; i < 20; i++) {
        clear_first();
        must(launch(k, i % 2 ? one : two), "count");
        must(tw_stream_sync(dev, (tw_stream *)(void *)(i % 2 ? one : two)), "sync");
        right &= first_of(y) == N / 128;
    }
    row("workspaces, counters, two streams", right, "%g of %d blocks counted, 20 launches",
        (double)first_of(y), N / 128);
    tw_kernel_destroy(k);
}

static void prove_shared(void)
{
    tw_kernel *k = kernel(&proof_shared);
    tw_status st = launch(k, NULL);

    row("100000 bytes of shared memory", st == TW_OK && first_of(y) == 127.0f, "y[0] = %g %s",
        (double)first_of(y), st ? said() : "");
    tw_kernel_destroy(k);
    k = kernel(&proof_too_shared);
    st = launch(k, NULL);
    row("300000 bytes of shared memory", st == TW_E_LIMIT, "%s", said());
    tw_kernel_destroy(k);
}

static void prove_large_grid(void)
{
    tw_kernel *k = kernel(&proof_last);
    double start = clock_seconds();

    clear_first();
    must(launch(k, NULL), "a large grid");
    must(tw_stream_sync(dev, NULL), "sync");
    row("2147549184 programs", first_of(y) == 1.0f, "the last one ran; %.2f s",
        clock_seconds() - start);
    tw_kernel_destroy(k);
}

/* ---- captures -------------------------------------------------------------------------------- */

static void *captured(CUstream s, tw_status *st, tw_kernel *k)
{
    void *graph = NULL, *exec = NULL;
    cuda_scope scope;

    must(cuda_enter(cuda_of(dev)->cx, &scope), "context");
    CUresult begun = begin_capture(s, 0);
    *st = launch(k, s);
    CUresult ended = end_capture(s, &graph), made = graph ? instantiate(&exec, graph, 0) : 1;
    cuda_leave(cuda_of(dev)->cx, &scope);
    if (begun || ended || (*st == TW_OK && made))
        row("a capture", false, "results %d, %d, %d", begun, ended, made);
    return exec;
}

static bool replay(void *exec, CUstream s)
{
    cuda_scope scope;

    clear_first();
    must(cuda_enter(cuda_of(dev)->cx, &scope), "context");
    CUresult r = exec ? graph_launch(exec, s) : 1;
    cuda_leave(cuda_of(dev)->cx, &scope);
    must(tw_stream_sync(dev, (tw_stream *)(void *)s), "sync");
    return r == CUDA_SUCCESS && first_of(y) == N / 128;
}

static void prove_captures(void)
{
    CUstream s = new_stream();
    tw_kernel *k = kernel(&proof_count);
    tw_status st;

    captured(s, &st, k);
    char text[200];
    snprintf(text, sizeof text, "%s", said());
    row("a capture of what is not loaded", st == TW_E_UNSUPPORTED, "%s", text);
    must(launch(k, s), "count");
    must(tw_stream_sync(dev, (tw_stream *)(void *)s), "sync");
    void *exec = captured(s, &st, k);
    bool right = st == TW_OK;
    for (int i = 0; i < 5 && right; i++)
        right = replay(exec, s) && (launch(k, NULL), true);
    row("a captured launch with workspace", right, "replayed 5 times among other launches");
    tw_kernel_destroy(k);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void prove_memory(tw_kernel *add)
{
    cuda_device *d = cuda_of(dev);
    CUdeviceptr managed = 0;
    void *pinned = NULL;
    cuda_scope s;

    shape[0] = 1024;
    tw_status st = launch_with(add, tensor_at(x), tensor_at(host), NULL);
    row("a host pointer", st == TW_E_ARG, "%s", said());
    row("and the context", launch(add, NULL) == TW_OK && tw_stream_sync(dev, NULL) == TW_OK,
        "is as good as before");
    must(cuda_enter(d->cx, &s), "context");
    must(CUDA(d, cuMemHostAlloc, &pinned, 4096, 3), "pinned memory");
    alloc_managed(&managed, 4096, 1);
    cuda_leave(d->cx, &s);
    DLTensor from = tensor_at(pinned), to = tensor_at((void *)(uintptr_t)managed);
    from.device.device_type = kDLCUDAHost;
    to.device.device_type = kDLCUDAManaged;
    for (int i = 0; i < 1024; i++)
        ((float *)pinned)[i] = 2.0f;
    st = launch_with(add, from, to, NULL);
    st = st ? st : tw_stream_sync(dev, NULL);
    row("pinned and managed memory", st == TW_OK && *(float *)(uintptr_t)managed == 3.0f, "%s",
        st ? said() : "read and written");
    shape[0] = N;
    void *all;
    st = tw_memory_alloc(dev, (size_t)dev->gpu.memory_bytes * 2, &all);
    row("more memory than there is", st == TW_E_NOMEM, "%s", said());
}

/* Poisoned first, and with the first GPU's context current. */
static int wrong_on(tw_device *other, tw_kernel *add, void *from, void *to)
{
    tw_device *mine = dev;
    int wrong = 0;

    for (int i = 0; i < N; i++)
        host[i] = (float)i;
    must(tw_memory_copy(other, from, host, sizeof host, TW_COPY_TO_DEVICE, NULL), "copy");
    memset(host, 0xff, sizeof host);
    must(tw_memory_copy(other, to, host, sizeof host, TW_COPY_TO_DEVICE, NULL), "copy");
    dev = other;
    must(launch_with(add, tensor_at(from), tensor_at(to), NULL), "the other GPU");
    must(tw_stream_sync(other, NULL), "sync");
    must(tw_memory_copy(other, host, to, sizeof host, TW_COPY_FROM_DEVICE, NULL), "copy");
    dev = mine;
    for (int i = 0; i < N; i++)
        wrong += host[i] != (float)i + 1.0f;
    return wrong;
}

static void prove_second_gpu(tw_kernel *add)
{
    const cuda_api *api = cuda_of(dev)->api;
    CUcontext before = NULL, after = NULL;
    void *from, *to;
    tw_device *other;
    cuda_scope s;

    if (strcmp(dev->spec, "cuda:0") != 0 || tw_device_open(cx, "cuda:1", &other) != TW_OK) {
        row("a second GPU", true, "there is none here: not tried");
        return;
    }
    must(tw_memory_alloc(other, sizeof host, &from), "memory");
    must(tw_memory_alloc(other, sizeof host, &to), "memory");
    tw_status st = launch_with(add, tensor_at(x), tensor_at(to), NULL);
    row("memory of another GPU", st == TW_E_ARG, "%s", said());
    must(cuda_enter(cuda_of(dev)->cx, &s), "context");
    api->cuCtxGetCurrent(&before);
    int wrong = wrong_on(other, add, from, to);
    api->cuCtxGetCurrent(&after);
    cuda_leave(cuda_of(dev)->cx, &s);
    row("a launch on another GPU", wrong == 0 && before == after,
        "%d of %d elements wrong; what was current is%s", wrong, N, before == after ? "" : " not");
    tw_memory_free(other, from);
    tw_memory_free(other, to);
    tw_device_close(other);
}

static void prove_fork(tw_kernel *add)
{
    int pipes[2];
    char text[300] = "";

    if (pipe(pipes))
        return;
    pid_t child = fork();
    if (child == 0) {
        alarm(10);
        tw_status st = launch(add, NULL);
        snprintf(text, sizeof text, "%s", st ? tw_last_error()->text : "it worked");
        _exit(write(pipes[1], text, sizeof text) < 0 || st == TW_OK);
    }
    int status = 0;
    waitpid(child, &status, 0);
    close(pipes[1]);
    if (read(pipes[0], text, sizeof text - 1) < 0)
        text[0] = 0;
    close(pipes[0]);
    row("a child of fork()", WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s", text);
}

/* ---- faults ---------------------------------------------------------------------------------- */

/* A fault is final: every later use says what broke the context. */
static void prove_fault(tw_kernel *add)
{
    tw_kernel *k = kernel(&proof_fault);
    void *fresh = NULL;
    char text[160];

    must(launch(k, NULL), "the faulty launch");
    tw_status st = tw_stream_sync(dev, NULL);
    snprintf(text, sizeof text, "%s", said());
    row("a fault", st == TW_E_DEVICE, "%s", text);
    st = launch(add, NULL);
    row("  a launch after it", st == TW_E_DEVICE && strstr(said(), "context is broken"), "%s",
        st ? said() : "it was queued");
    st = tw_memory_alloc(dev, 4096, &fresh);
    row("  memory after it", st == TW_E_DEVICE && strstr(said(), "context is broken"), "%s",
        st ? said() : "it was given");
    tw_kernel_destroy(k);
}

/* What the driver itself does with a device that is opened anew; any answer but a crash will do. */
static void prove_reopened(void)
{
    void *fresh = NULL;

    tw_status st = tw_device_open(cx, spec, &dev);
    if (st == TW_OK)
        st = tw_memory_alloc(dev, 4096, &fresh);
    row("  opened anew in this process", st == TW_OK || st == TW_E_DEVICE, "%s",
        st ? said() : "it works again");
    tw_device_close(dev);
    dev = NULL;
}

static void prove_new_process(const char *self)
{
    char *argv[] = {(char *)(uintptr_t)self, (char *)(uintptr_t)spec, (char *)"one-launch", NULL};
    int status = 1;
    pid_t child;

    if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, argv, environ) == 0)
        waitpid(child, &status, 0);
    row("  a new process", WIFEXITED(status) && WEXITSTATUS(status) == 0, "exit code %d",
        WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

/* ---- all ------------------------------------------------------------------------------------- */

static void open_context(const char *path)
{
    tw_config cfg = TW_CONFIG_INIT;

    cfg.store_path = path;
    cfg.log = keep_log;
    cfg.log_level = TW_LOG_INFO;
    must(tw_context_create(&cfg, &cx), "context");
    must(tw_device_open(cx, spec, &dev), "open the device");
}

static void close_context(tw_kernel *k)
{
    tw_kernel_destroy(k);
    tw_device_close(dev);
    tw_context_destroy(cx);
}

static int one_launch(void)
{
    open_context(NULL);
    make_tensors();
    tw_kernel *add = kernel(&proof_add);
    must(launch(add, NULL), "a launch");
    must(tw_stream_sync(dev, NULL), "sync");
    bool right = first_of(y) == 1.0f;
    close_context(add);
    return right ? 0 : 1;
}

static void prove_store_and_fault(const char *path)
{
    double start = clock_seconds();

    open_context(path);
    make_tensors();
    double opened = clock_seconds();
    tw_kernel *add = kernel(&proof_add);
    must(launch(add, NULL), "warm store");
    must(tw_stream_sync(dev, NULL), "sync");
    double done = clock_seconds();
    row("the same with a warm store", strstr(log_text, "code from the store") != NULL,
        "%.1f ms beyond %.0f ms for the context; %s", (done - opened) * 1e3, (opened - start) * 1e3,
        log_text);
    prove_fault(add);
    tw_kernel_destroy(add);
    tw_device_close(dev);
    prove_reopened();
    tw_context_destroy(cx);
}

static void describe(double seconds)
{
    const gpu_profile *g = &dev->gpu;

    row("device", true, "%s, %s, capability %d, driver %s; %.0f ms", dev->spec, dev->name,
        g->limits.capability, g->driver, seconds * 1e3);
    row("limits", g->limits.shared_per_block > 0,
        "%d multiprocessors, %d bytes of shared memory a block, %d a multiprocessor, L2 %lld, %d "
        "MHz",
        g->limits.multiprocessors, g->limits.shared_per_block, g->limits.shared_per_sm,
        (long long)g->limits.l2_bytes, g->clock_mhz);
}

static void prove_all(void)
{
    tw_kernel *add = kernel(&proof_add);

    prove_launch(add);
    prove_linking();
    prove_overhead(add);
    prove_timing(add);
    prove_workspaces();
    prove_shared();
    prove_large_grid();
    prove_asserts();
    prove_checked_kernel();
    prove_captures();
    prove_memory(add);
    prove_second_gpu(add);
    prove_fork(add);
    close_context(add);
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/proofXXXXXX", path[64];
    double start = clock_seconds();

    if (argc > 1)
        spec = argv[1];
    cuda_test_target = &proof_target;
    if (argc > 2) /* for prove_new_process */
        return one_launch();
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/store.db", folder);
    open_context(path);
    describe(clock_seconds() - start);
    find(&stream_create, "cuStreamCreate");
    find(&begin_capture, "cuStreamBeginCapture_v2");
    find(&end_capture, "cuStreamEndCapture");
    find(&instantiate, "cuGraphInstantiateWithFlags");
    find(&graph_launch, "cuGraphLaunch");
    find(&alloc_managed, "cuMemAllocManaged");
    make_tensors();
    prove_all();
    prove_store_and_fault(path);
    prove_new_process(argv[0]);
    unlink(path);
    rmdir(folder);
    printf("%d wrong, %.1f s\n", failures, clock_seconds() - start);
    return failures != 0;
}
