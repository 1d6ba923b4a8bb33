/* The measuring part of scripts/demo_body.sh:
 *
 *   demo stages FILE             what each stage makes of the kernel in FILE
 *   demo correct FILE FOLDER     its results on the real input in FOLDER and on odd shapes, beside
 *                                float64 and the naive formula in f32; exit code 1 on a FAIL
 *   demo loop                    seconds that a plain C loop takes for the tuned problem
 *   demo launch FILE STORE CONFIG START
 *                                the tuned problem: milliseconds from START (date +%s.%N) to the
 * end of a first launch, a hash of the results, whether the code came from STORE, which layer knew
 * the configuration; CONFIG pins it, "" leaves it to the store */
#include "cli/npy.h"
#include "kernels/kernel_refs.h"
#include "tilewright.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HEADS = 4, LENGTH = 1024, WIDTH = 64 }; /* of the tuned problem */

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "demo: %s: %s\n", what, tw_last_error()->text);
    exit(1);
}

static void must(tw_status st, const char *what)
{
    if (st)
        give_up(what);
}

static void *room(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);

    if (!memory)
        give_up("out of memory");
    return memory;
}

static double now(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- attention problems ---------------------------------------------------------------------- */

typedef struct attention {
    const char *what;
    int64_t heads, kv_heads, rows, columns, width;
    bool causal;
    int64_t offset;
    float scale;
    float *q, *k, *v, *o, *lse;
} attention;

/* Sums of twelve uniform numbers: close enough to normal for inputs. */
static float *random_floats(int64_t count, uint32_t seed)
{
    float *out = room((size_t)count, sizeof *out);

    for (int64_t i = 0; i < count; i++) {
        uint32_t sum = 0;
        for (int n = 0; n < 12; n++) {
            seed = seed * 1664525u + 1013904223u;
            sum += seed >> 12;
        }
        out[i] = (float)sum / (float)(1u << 20) - 6.0f;
    }
    return out;
}

static int64_t output_size(const attention *a)
{
    return a->heads * a->rows * a->width;
}

static void fill(attention *a)
{
    a->scale = 1.0f / sqrtf((float)a->width);
    a->q = random_floats(output_size(a), 1);
    a->k = random_floats(a->kv_heads * a->columns * a->width, 2);
    a->v = random_floats(a->kv_heads * a->columns * a->width, 3);
}

static void make_outputs(attention *a)
{
    a->o = room((size_t)output_size(a), sizeof *a->o);
    a->lse = room((size_t)(a->heads * a->rows), sizeof *a->lse);
}

static void release(attention *a)
{
    free(a->q);
    free(a->k);
    free(a->v);
    free(a->o);
    free(a->lse);
}

typedef struct call {
    DLTensor tensor[5];
    int64_t shape[5][4];
    tw_arg arg[8];
} call;
enum { CALL_ARGS = 8 };

static void put_tensor(call *c, int i, const char *name, void *at, int rank, const int64_t *shape)
{
    memcpy(c->shape[i], shape, (size_t)rank * sizeof *shape);
    c->tensor[i] = (DLTensor){.data = at,
                              .device = {kDLCPU, 0},
                              .ndim = rank,
                              .dtype = {kDLFloat, 32, 1},
                              .shape = c->shape[i]};
    c->arg[i] = TW_TENSOR(name, &c->tensor[i]);
}

static void put_call(call *c, const attention *a)
{
    const int64_t q[] = {1, a->heads, a->rows, a->width};
    const int64_t k[] = {1, a->kv_heads, a->columns, a->width};

    put_tensor(c, 0, "q", a->q, 4, q);
    put_tensor(c, 1, "k", a->k, 4, k);
    put_tensor(c, 2, "v", a->v, 4, k);
    put_tensor(c, 3, "o", a->o, 4, q);
    put_tensor(c, 4, "lse", a->lse, 3, q);
    c->arg[5] = TW_BOOL("CAUSAL", a->causal);
    c->arg[6] = TW_INT("offset", a->offset);
    c->arg[7] = TW_F32("scale", a->scale);
}

static attention_problem reference_of(const attention *a)
{
    int64_t n = a->columns, d = a->width;

    return (attention_problem){
        .q = {a->q, {1, a->heads, a->rows, d}, {a->heads * a->rows * d, a->rows * d, d, 1}},
        .k = {a->k, {1, a->kv_heads, n, d}, {a->kv_heads * n * d, n * d, d, 1}},
        .v = {a->v, {1, a->kv_heads, n, d}, {a->kv_heads * n * d, n * d, d, 1}},
        .scale = (double)a->scale,
        .causal = a->causal,
        .offset = a->offset,
    };
}

/* ---- a session ------------------------------------------------------------------------------- */

typedef struct session {
    tw_context *cx;
    tw_device *dev;
    tw_kernel *kernel;
} session;

static session open_session(const char *file, const char *store)
{
    tw_config config = TW_CONFIG_INIT;
    session s;

    config.store_path = store;
    must(tw_context_create(&config, &s.cx), "context");
    must(tw_device_open(s.cx, "cpu", &s.dev), "device");
    must(tw_kernel_load(s.cx, file, NULL, &s.kernel), file);
    return s;
}

static void close_session(session *s)
{
    tw_kernel_destroy(s->kernel);
    tw_device_close(s->dev);
    tw_context_destroy(s->cx);
}

/* ---- stages ---------------------------------------------------------------------------------- */

static int stages(const char *file)
{
    attention a = {
        .heads = 2, .kv_heads = 1, .rows = 64, .columns = 64, .width = 64, .causal = true};
    session s = open_session(file, NULL);
    tw_device_info info = TW_DEVICE_INFO_INIT;
    tw_answer answer = TW_ANSWER_INIT;
    call c;

    fill(&a);
    make_outputs(&a);
    put_call(&c, &a);
    must(tw_query(s.kernel, s.dev, c.arg, CALL_ARGS, NULL, &answer), "compile");
    must(tw_device_query(s.dev, &info), "device");
    printf("   %d lines of text -> %d IR operations -> %.1f KiB of %s code for %s, in %.0f ms\n",
           answer.text_lines, answer.ir_ops, (double)answer.code_bytes / 1024.0, info.target,
           info.name, 1e3 * answer.compile_s);
    release(&a);
    close_session(&s);
    return 0;
}

/* ---- correct --------------------------------------------------------------------------------- */

/* The largest difference; infinite where one is not finite and the other something else. */
static double worst(const float *got, const double *want, int64_t count)
{
    double most = 0.0;

    for (int64_t i = 0; i < count; i++) {
        double x = (double)got[i];
        bool same = x == want[i] || (isnan(x) && isnan(want[i]));
        most = fmax(most, same ? 0.0 : isfinite(x - want[i]) ? fabs(x - want[i]) : INFINITY);
    }
    return most;
}

/* At most twice the naive formula's error, and where that has none, one rounding. */
static bool check(const session *s, attention *a)
{
    int64_t count = output_size(a), rows = a->heads * a->rows;
    double *o = room((size_t)count, sizeof *o), *lse = room((size_t)rows, sizeof *lse);
    float *naive = room((size_t)count, sizeof *naive);
    float *naive_lse = room((size_t)rows, sizeof *naive_lse);
    attention_problem p = reference_of(a);
    call c;

    make_outputs(a);
    put_call(&c, a);
    must(tw_launch(s->kernel, s->dev, NULL, c.arg, CALL_ARGS), a->what);
    attention_fwd_ref(&p, o, lse);
    attention_fwd_naive(&p, naive, naive_lse);
    for (int64_t i = 0; i < rows; i++)
        if (isinf(lse[i])) { /* the naive formula divides by 0 where a row sees nothing */
            naive_lse[i] = -INFINITY;
            memset(naive + i * a->width, 0, (size_t)a->width * sizeof *naive);
        }
    double error = worst(a->o, o, count), other = worst(naive, o, count);
    double lse_error = worst(a->lse, lse, rows), lse_other = worst(naive_lse, lse, rows);
    bool pass = error <= fmax(2.0 * other, 0x1p-24) && lse_error <= fmax(2.0 * lse_other, 0x1p-22);
    printf("   %-57s %.1e   naive %.1e   %s\n", a->what, fmax(error, lse_error),
           fmax(other, lse_other), pass ? "PASS" : "FAIL");
    free(o);
    free(lse);
    free(naive);
    free(naive_lse);
    return pass;
}

static float *read_array(const char *folder, const char *name, int64_t *heads, int64_t *rows)
{
    char path[4096];
    npy_error error;
    npy_array a;

    snprintf(path, sizeof path, "%s/smollm2_small_%s.npy", folder, name);
    if (npy_load(path, &a, &error) || a.rank != 4 || a.kind != 'f' || a.bytes != 4)
        give_up(path);
    *heads = a.shape[1];
    *rows = a.shape[2];
    return a.data;
}

static attention real_input(const char *folder)
{
    attention a = {.what = "a language model's layer: 9 heads on 3, N 197, causal",
                   .width = 64,
                   .causal = true,
                   .scale = 0.125f};

    a.q = read_array(folder, "q", &a.heads, &a.rows);
    a.k = read_array(folder, "k", &a.kv_heads, &a.columns);
    a.v = read_array(folder, "v", &a.kv_heads, &a.columns);
    return a;
}

static int correct(const char *file, const char *folder)
{
    attention cases[] = {
        real_input(folder),
        {"ragged: 101 rows, 77 columns, D 40", 3, 3, 101, 77, 40, .causal = false},
        {"grouped heads, causal, long: 8 on 2, N 1031", 8, 2, 1031, 1031, 16, .causal = true},
        {"decoding: 1 row, 997 columns, D 128", 4, 1, 1, 997, 128, .causal = true, .offset = 996},
        {"empty rows: the first 60 of 200 see nothing", 2, 1, 200, 140, 64, .causal = true,
         .offset = -60},
    };
    session s = open_session(file, NULL);
    bool pass = true;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (i > 0)
            fill(&cases[i]);
        pass &= check(&s, &cases[i]);
        release(&cases[i]);
    }
    close_session(&s);
    return pass ? 0 : 1;
}

/* ---- loop ------------------------------------------------------------------------------------ */

static void attend_row(const attention *a, const float *restrict q, const float *restrict k,
                       const float *restrict v, float *restrict p, float *restrict o)
{
    float max = -INFINITY, sum = 0.0f;

    for (int64_t j = 0; j < a->columns; j++) {
        float s = 0.0f;
        for (int64_t d = 0; d < a->width; d++)
            s += q[d] * k[j * a->width + d];
        p[j] = s * a->scale;
        max = fmaxf(max, p[j]);
    }
    for (int64_t j = 0; j < a->columns; j++)
        sum += p[j] = expf(p[j] - max);
    for (int64_t d = 0; d < a->width; d++)
        o[d] = 0.0f;
    for (int64_t j = 0; j < a->columns; j++)
        for (int64_t d = 0; d < a->width; d++)
            o[d] += p[j] * v[j * a->width + d];
    for (int64_t d = 0; d < a->width; d++)
        o[d] /= sum;
}

static attention tuned_problem(void)
{
    attention a = {.what = "the tuned problem",
                   .heads = HEADS,
                   .kv_heads = HEADS,
                   .rows = LENGTH,
                   .columns = LENGTH,
                   .width = WIDTH};

    fill(&a);
    make_outputs(&a);
    return a;
}

/* The better of two runs. */
static int loop(void)
{
    attention a = tuned_problem();
    float *p = room((size_t)a.columns, sizeof *p);
    double best = INFINITY;

    for (int run = 0; run < 2; run++) {
        double start = now(CLOCK_MONOTONIC);
        for (int64_t i = 0; i < a.heads * a.rows; i++) {
            int64_t head = i / a.rows * a.columns * a.width;
            attend_row(&a, a.q + i * a.width, a.k + head, a.v + head, p, a.o + i * a.width);
        }
        best = fmin(best, now(CLOCK_MONOTONIC) - start);
    }
    printf("%.6f %g\n", best, (double)a.o[output_size(&a) - 1]);
    free(p);
    release(&a);
    return 0;
}

/* ---- launch ---------------------------------------------------------------------------------- */

static uint64_t hash_of(const void *data, size_t size, uint64_t hash)
{
    const unsigned char *at = data;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * 0x100000001b3u; /* FNV-1a */
    return hash;
}

static int launch(const char *file, const char *store, const char *config, double start)
{
    session s = open_session(file, *store ? store : NULL);
    tw_launch_options opt = TW_LAUNCH_OPTIONS_INIT;
    tw_answer answer = TW_ANSWER_INIT;
    double opened = now(CLOCK_REALTIME);
    attention a = tuned_problem();
    double filled = now(CLOCK_REALTIME);
    call c;

    put_call(&c, &a);
    opt.config = *config ? config : NULL;
    opt.program_count = 1; /* the time of a launch that computes next to nothing */
    must(tw_launch_with(s.kernel, s.dev, NULL, c.arg, CALL_ARGS, &opt), "first launch");
    double done = now(CLOCK_REALTIME) - start - (filled - opened); /* inputs are not counted */
    opt.program_count = 0;
    must(tw_launch_with(s.kernel, s.dev, NULL, c.arg, CALL_ARGS, &opt), "launch");
    must(tw_query(s.kernel, s.dev, c.arg, CALL_ARGS, &opt, &answer), "query");
    uint64_t hash = hash_of(a.o, (size_t)output_size(&a) * sizeof *a.o, 0xcbf29ce484222325u);
    printf("%.0f %016llx %d %s\n", 1e3 * done, (unsigned long long)hash, answer.artifact_stored,
           tw_layer_text(answer.layer));
    release(&a);
    close_session(&s);
    return 0;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";

    if (strcmp(mode, "stages") == 0 && argc == 3)
        return stages(argv[2]);
    if (strcmp(mode, "correct") == 0 && argc == 4)
        return correct(argv[2], argv[3]);
    if (strcmp(mode, "loop") == 0 && argc == 2)
        return loop();
    if (strcmp(mode, "launch") == 0 && argc == 6)
        return launch(argv[2], argv[3], argv[4], atof(argv[5]));
    fputs("usage: demo stages FILE | correct FILE FOLDER | loop | launch FILE STORE CONFIG START\n",
          stderr);
    return 2;
}
