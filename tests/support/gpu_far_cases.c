/* Strides and offsets that 32 bits do not hold. Tensors take gigabytes of the device's memory. */
#include "tests/support/gpu_cases.h"
#include "tests/support/numeric_dtype.h"
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FAR ((int64_t)1 << 31)

/* ---- memory of which little is touched ------------------------------------------------------- */

typedef struct huge {
    num_device *d;
    char *at;
} huge;

/* False, and a line: the GPU has no room for it. */
static bool huge_open(huge *h, num_device *d, size_t size)
{
    void *at = NULL;
    tw_status st = tw_memory_alloc(d->dev, size, &at);

    *h = (huge){d, at};
    if (st == TW_E_NOMEM)
        num_say("skipped: no room for %zu MiB\n", size >> 20);
    else
        num_must(st, "device memory");
    return st == TW_OK;
}

static void huge_close(huge *h)
{
    tw_memory_free(h->d->dev, h->at);
}

static void put(const huge *h, size_t offset, const void *from, size_t size)
{
    num_must(tw_memory_copy(h->d->dev, h->at + offset, from, size, TW_COPY_TO_DEVICE, NULL), "put");
}

static void get(const huge *h, size_t offset, void *to, size_t size)
{
    num_must(tw_memory_copy(h->d->dev, to, h->at + offset, size, TW_COPY_FROM_DEVICE, NULL), "get");
}

static DLDevice place_of(num_device *d)
{
    tw_device_info info = TW_DEVICE_INFO_INIT;

    num_must(tw_device_query(d->dev, &info), "device");
    return info.memory;
}

/* ---- attention over members far apart -------------------------------------------------------- */

enum { FEW = 2, LINES = 20, WIDTH = 32, ROWS = FEW * FEW * LINES, ROW_BYTES = 2 * WIDTH };

typedef struct attention_rig {
    num_device d;
    tw_kernel *k;
    uint16_t host[4][ROWS * WIDTH]; /* q, k, v and the o of a launch where all are dense */
    void *dense[5];
    int64_t shape[4], stride[5][4];
    DLTensor dl[5];
} attention_rig;

/* Small numbers of bf16, all different. */
static void draw(attention_rig *r)
{
    num_random random = {9002};

    for (int t = 0; t < 4; t++)
        for (int i = 0; i < ROWS * WIDTH; i++)
            num_put(num_dtype_named("bf16"), r->host[t], i, (num_value){.f = num_normal(&random)});
}

static void attention_open(attention_rig *r)
{
    const int64_t shape[] = {FEW, FEW, LINES, WIDTH};
    DLDevice where = place_of(&r->d);

    memcpy(r->shape, shape, sizeof shape);
    draw(r);
    for (int t = 0; t < 5; t++) {
        size_t size = t < 4 ? sizeof r->host[0] : ROWS * sizeof(float);
        const int64_t dense[] = {FEW * LINES * WIDTH, LINES * WIDTH, WIDTH, 1};
        memcpy(r->stride[t], dense, sizeof dense);
        num_must(tw_memory_alloc(r->d.dev, size, &r->dense[t]), "device memory");
        r->dl[t] = (DLTensor){r->dense[t], where, 4, {kDLBfloat, 16, 1}, r->shape, r->stride[t], 0};
        if (t < 4)
            num_must(tw_memory_copy(r->d.dev, r->dense[t], r->host[t], size, TW_COPY_TO_DEVICE,
                                    NULL),
                     "copy");
    }
    r->dl[4] = (DLTensor){r->dense[4], where, 3, {kDLFloat, 32, 1}, r->shape, NULL, 0};
}

static void attention_run(attention_rig *r)
{
    const tw_arg args[] = {TW_TENSOR("q", &r->dl[0]), TW_TENSOR("k", &r->dl[1]),
                           TW_TENSOR("v", &r->dl[2]), TW_TENSOR("o", &r->dl[3]),
                           TW_TENSOR("lse", &r->dl[4])};

    num_must(tw_launch(r->k, r->d.dev, NULL, args, 5), "launch");
    num_must(tw_stream_sync(r->d.dev, NULL), "sync");
}

static size_t row_of(const int64_t step[3], int64_t i)
{
    return 2 * (size_t)(i / (FEW * LINES) * step[0] + i / LINES % FEW * step[1] +
                        i % LINES * step[2]);
}

/* q, k, v or o with a stride beyond 32 bits along one dimension gives the bits of the dense one. */
static void one_far(attention_rig *r, int which, int dim)
{
    static const int64_t count[] = {FEW, FEW, LINES};
    unsigned char row[ROW_BYTES];
    int64_t step[3];
    huge h;

    memcpy(step, r->stride[which], sizeof step);
    r->stride[which][dim] = step[dim] = (FAR / (count[dim] - 1) + 16) / 8 * 8;
    size_t size = row_of(step, ROWS - 1) + ROW_BYTES;
    if (huge_open(&h, &r->d, size)) {
        memset(row, 0x7f, sizeof row); /* NaN */
        for (int i = 0; i < ROWS; i++)
            put(&h, row_of(step, i), which < 3 ? (void *)&r->host[which][i * WIDTH] : row,
                sizeof row);
        r->dl[which].data = h.at;
        attention_run(r);
        for (int i = 0; i < ROWS; i++) {
            if (which == 3)
                get(&h, row_of(step, i), row, sizeof row);
            else
                num_must(tw_memory_copy(r->d.dev, row, (char *)r->dense[3] + ROW_BYTES * i,
                                        sizeof row, TW_COPY_FROM_DEVICE, NULL),
                         "copy");
            ck_assert_msg(!memcmp(row, &r->host[3][i * WIDTH], sizeof row),
                          "tensor %d far along %d: row %d of o", which, dim, i);
        }
        huge_close(&h);
    }
    r->dl[which].data = r->dense[which];
    r->stride[which][dim] = (int64_t[]){FEW * LINES * WIDTH, LINES * WIDTH, WIDTH}[dim];
}

void case_members_far_apart(const gpu_place *p)
{
    static attention_rig r;

    memset(&r, 0, sizeof r);
    if (!num_open(&r.d, p->spec, p->target))
        return;
    r.k = num_load(&r.d, "kernels/attention_fwd.tw");
    attention_open(&r);
    attention_run(&r);
    num_must(tw_memory_copy(r.d.dev, r.host[3], r.dense[3], sizeof r.host[3], TW_COPY_FROM_DEVICE,
                            NULL),
             "copy");
    for (int which = 0; which < 4; which++)
        for (int dim = 0; dim < 3; dim++)
            one_far(&r, which, dim);
    for (int t = 0; t < 5; t++)
        tw_memory_free(r.d.dev, r.dense[t]);
    tw_kernel_destroy(r.k);
    num_close(&r.d);
}

/* ---- offsets beyond 32 bits ------------------------------------------------------------------ */

static const char *const far_text =
    "kernel far(at: i32[K], inout y: f32[M, N]) grid (2) {\n"
    "    if (program_id(0) == 1) {\n"
    "        store(y[70000 * program_id(0) :+ 1, 0 :+ 1], full(f32[1, 1], 1.0));\n"
    "        store(y[load(at[0]), 0], 2.0);\n"
    "        for i in range(70002, 70003)\n"
    "            store(y[i :+ 4, 0 :+ 4], full(f32[4, 4], 3.0));\n"
    "        store(y[70003 + arange(2), 0 :+ 1], full(f32[2, 1], 4.0));\n"
    "        store(y[0, 0], load(y[70004, 0]) + load(y[1 + load(at[0]), 0]));\n"
    "    }\n"
    "}\n";
enum { FAR_ROWS = 70005, FAR_STRIDE = 32768 };

/* Where an offset of 32 bits, of elements or of bytes, would go. */
static size_t wrapped(int64_t row, bool bytes)
{
    return bytes ? (size_t)(uint32_t)(row * FAR_STRIDE * 4)
                 : (size_t)(row * FAR_STRIDE & INT32_MAX) * 4;
}

static float float_at(const huge *h, size_t offset)
{
    float v;

    get(h, offset, &v, sizeof v);
    return v;
}

/* Rows from the program's number, a loop, a ramp and from memory, for stores and for loads. */
void case_offsets_beyond_32_bits(const gpu_place *p)
{
    const float poison = -7.0f;
    int64_t shape[] = {FAR_ROWS, 1}, strides[] = {FAR_STRIDE, 1}, one = 1;
    int32_t index = 70001;
    num_device d;
    void *at;
    huge h;

    if (!num_open(&d, p->spec, p->target))
        return;
    if (huge_open(&h, &d, (size_t)FAR_ROWS * FAR_STRIDE * 4)) {
        num_must(tw_memory_alloc(d.dev, sizeof index, &at), "device memory");
        num_must(tw_memory_copy(d.dev, at, &index, sizeof index, TW_COPY_TO_DEVICE, NULL), "copy");
        for (int i = 0; i < 2 * 5; i++)
            put(&h, wrapped(70000 + i / 2, i % 2), &poison, sizeof poison);
        for (int64_t i = 70000; i < FAR_ROWS; i++)
            put(&h, (size_t)i * FAR_STRIDE * 4, &poison, sizeof poison);
        DLTensor ty = {h.at, place_of(&d), 2, {kDLFloat, 32, 1}, shape, strides, 0};
        DLTensor ti = {at, place_of(&d), 1, {kDLInt, 32, 1}, &one, NULL, 0};
        tw_kernel *k = num_load_text(&d, far_text);
        const tw_arg args[] = {TW_TENSOR("at", &ti), TW_TENSOR("y", &ty)};
        num_must(tw_launch(k, d.dev, NULL, args, 2), "launch");
        num_must(tw_stream_sync(d.dev, NULL), "sync");
        static const float want[] = {1, 2, 3, 4, 4};
        for (int i = 0; i < 5; i++) {
            ck_assert_float_eq(float_at(&h, (size_t)(70000 + i) * FAR_STRIDE * 4), want[i]);
            for (int bytes = 0; bytes < 2; bytes++)
                ck_assert_float_eq(float_at(&h, wrapped(70000 + i, bytes)), poison);
        }
        ck_assert_float_eq(float_at(&h, 0), 7.0f);
        tw_kernel_destroy(k);
        tw_memory_free(d.dev, at);
        huge_close(&h);
    }
    num_close(&d);
}

/* A bias of 4748835840 elements, for the last rows of the last head. */
void case_bias_beyond_32_bits(const gpu_place *p)
{
    enum { HEADS = 32, QUERIES = 12180, KEYS = 12184, D = 16, M = 16, LAST = QUERIES % M };
    int64_t q_[] = {1, HEADS, QUERIES, D}, k_[] = {1, HEADS, KEYS, D},
            b_[] = {1, HEADS, QUERIES, KEYS};
    const size_t bytes[] = {(size_t)HEADS * QUERIES * D * 2, (size_t)HEADS * KEYS * D * 2,
                            (size_t)HEADS * QUERIES * KEYS * 2, (size_t)HEADS * QUERIES * D * 2,
                            (size_t)HEADS * QUERIES * 4};
    static uint16_t zeros[KEYS * D];
    tw_launch_options options = TW_LAUNCH_OPTIONS_INIT;
    const uint16_t sixteen = 0x4c00;
    float lse[2];
    num_device d;
    huge h[5];
    int n = 0;

    if (!num_open(&d, p->spec, p->target))
        return;
    while (n < 5 && huge_open(&h[n], &d, bytes[n]))
        n++;
    if (n == 5) {
        DLDevice where = place_of(&d);
        const DLDataType f16 = {kDLFloat, 16, 1}, f32 = {kDLFloat, 32, 1};
        DLTensor q = {h[0].at, where, 4, f16, q_, NULL, 0};
        DLTensor k = {h[1].at, where, 4, f16, k_, NULL, 0}, v = k;
        DLTensor bias = {h[2].at, where, 4, f16, b_, NULL, 0};
        DLTensor o = {h[3].at, where, 4, f16, q_, NULL, 0};
        DLTensor l = {h[4].at, where, 3, f32, q_, NULL, 0};
        const tw_arg args[] = {TW_TENSOR("q", &q),       TW_TENSOR("k", &k), TW_TENSOR("v", &v),
                               TW_TENSOR("bias", &bias), TW_TENSOR("o", &o), TW_TENSOR("lse", &l)};
        put(&h[0], bytes[0] - LAST * D * 2, zeros, LAST * D * 2);
        put(&h[1], bytes[1] - sizeof zeros, zeros, sizeof zeros);
        for (int i = 0; i < LAST; i++)
            put(&h[2], bytes[2] - (size_t)(LAST - i) * KEYS * 2, zeros, KEYS * 2);
        put(&h[2], bytes[2] - (KEYS - 7) * 2, &sixteen, 2);
        options.config = "BLOCK_M=16,BLOCK_N=128";
        options.program_first = (int64_t)HEADS * ((QUERIES + M - 1) / M) - 1;
        options.program_count = 1;
        tw_kernel *kernel = num_load(&d, "kernels/variants/attention_bias.tw");
        num_must(tw_launch_with(kernel, d.dev, NULL, args, 6, &options), "launch");
        num_must(tw_stream_sync(d.dev, NULL), "sync");
        get(&h[4], bytes[4] - sizeof lse, lse, sizeof lse);
        ck_assert_float_eq_tol(lse[0], (float)log(KEYS), 1e-4f);
        ck_assert_float_eq_tol(lse[1], (float)log(exp(16.0) + KEYS - 1), 1e-4f);
        tw_kernel_destroy(kernel);
    }
    while (n > 0)
        huge_close(&h[--n]);
    num_close(&d);
}

