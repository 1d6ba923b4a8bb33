/* Checking of launch arguments, on the signature of attention and on a small one of its own. No
 * code is compiled: a signature and a device that reaches host memory are all it takes. */
#include "runtime/args.h"
#include <check.h>
#include <limits.h>
#include <string.h>

#define SYM(i)                                                                                     \
    {                                                                                              \
        SIG_DIM_SYMBOL, i, 0                                                                       \
    }
#define CON(i)                                                                                     \
    {                                                                                              \
        SIG_DIM_CONST, i, 0                                                                        \
    }
enum { B, H, M, HK, N };
enum { T, D, DV, CAUSAL };

static const sig_param attention_param[] = {
    {"q", true, DIR_IN, DT_NONE, T, 4, {SYM(B), SYM(H), SYM(M), CON(D)}, false, NULL},
    {"k", true, DIR_IN, DT_NONE, T, 4, {SYM(B), SYM(HK), SYM(N), CON(D)}, false, NULL},
    {"v", true, DIR_IN, DT_NONE, T, 4, {SYM(B), SYM(HK), SYM(N), CON(DV)}, false, NULL},
    {"o", true, DIR_OUT, DT_NONE, T, 4, {SYM(B), SYM(H), SYM(M), CON(DV)}, false, NULL},
    {"lse", true, DIR_OUT, DT_F32, -1, 3, {SYM(B), SYM(H), SYM(M)}, false, NULL},
    {"scale", false, DIR_IN, DT_F32, -1, 0, {{0}}, true, NULL},
    {"offset", false, DIR_IN, DT_I32, -1, 0, {{0}}, true, NULL},
};
static const char *const attention_symbol[] = {"B", "H", "M", "HK", "N"};
static const sig_const attention_const[] = {
    {.name = "T", .kind = BIND_DTYPE, .dtypes = 1u << DT_F16 | 1u << DT_BF16 | 1u << DT_F32},
    {.name = "D", .kind = BIND_INT},
    {.name = "DV", .kind = BIND_INT},
    {.name = "CAUSAL", .kind = BIND_BOOL, .has_default = true},
};
static const sig_tune attention_tune[] = {{"BLOCK_M", 0, NULL}, {"BLOCK_N", 0, NULL}};
static const kernel_source attention = {.sig = {"attention_fwd", 7, 5, 4, 2, attention_param,
                                                attention_symbol, attention_const, attention_tune,
                                                40}};

static bool on_host(const tw_device *dev, DLDevice where)
{
    (void)dev;
    return where.device_type == kDLCPU;
}
static const driver host_like = {.name = "host", .reaches = on_host};
static tw_device device = {.drv = &host_like, .spec = "cpu"};
static tw_kernel kernel = {.source = &attention};

/* A call of attention that is right: B 2, H 4, M 5, HK 2, N 7, D 16, DV 32. */
typedef struct call {
    int64_t shape[5][4], stride[5][4];
    DLTensor tensor[5];
    tw_arg arg[10];
    size_t n;
    launch_args out;
} call;

static _Alignas(64) float memory[5][2048];

static void make(call *c)
{
    static const int64_t shape[5][4] = {
        {2, 4, 5, 16}, {2, 2, 7, 16}, {2, 2, 7, 32}, {2, 4, 5, 32}, {2, 4, 5, 0}};

    memset(c, 0, sizeof *c);
    for (int i = 0; i < 5; i++) {
        int rank = i == 4 ? 3 : 4;
        int64_t stride = 1;
        for (int d = rank - 1; d >= 0; d--) {
            c->shape[i][d] = shape[i][d];
            c->stride[i][d] = stride;
            stride *= shape[i][d];
        }
        c->tensor[i] = (DLTensor){memory[i],   {kDLCPU, 0},  rank, {kDLFloat, 32, 1},
                                  c->shape[i], c->stride[i], 0};
        c->arg[i] = TW_TENSOR(attention_param[i].name, &c->tensor[i]);
    }
    c->arg[5] = TW_BOOL("CAUSAL", true);
    c->arg[6] = TW_F32("scale", 0.25);
    c->n = 7;
}

static tw_status resolve(call *c)
{
    return runtime_resolve_args(&kernel, &device, c->arg, c->n, 0, &c->out);
}

/* The call fails and the message has both texts. */
static void refuse(call *c, const char *one, const char *two)
{
    ck_assert_int_eq(resolve(c), TW_E_ARG);
    const char *text = error_get()->text;
    ck_assert_msg(strstr(text, one) && strstr(text, two), "'%s' and '%s' in: %s", one, two, text);
    ck_assert_int_eq((int)error_get()->diagnostic_count, 1);
    ck_assert_str_eq(error_get()->diagnostics[0].id, "bad-argument");
}

START_TEST(a_right_call)
{
    static call c;

    make(&c);
    ck_assert_int_eq(resolve(&c), TW_OK);
    ck_assert_int_eq(c.out.p.cons[T].value, DT_F32);
    ck_assert_int_eq(c.out.p.cons[D].value, 16);
    ck_assert_int_eq(c.out.p.cons[DV].value, 32);
    ck_assert_int_eq(c.out.p.cons[CAUSAL].value, 1);
    ck_assert_str_eq(c.out.p.cons[CAUSAL].name, "CAUSAL");
    ck_assert_int_eq(c.out.p.symbol[M], 5);
    ck_assert_int_eq(c.out.p.symbol[HK], 2);
    ck_assert_int_eq(c.out.p.symbol[N], 7);
    ck_assert_uint_eq(c.out.given, 0x3f);
    ck_assert(c.out.scalar[5].f == 0.25);
    ck_assert(c.out.tensor[1].base == (char *)memory[1]);
    for (int i = 0; i < 4; i++) {
        ck_assert(c.out.p.facts[i].unit_inner);
        ck_assert_int_eq(c.out.p.facts[i].align, 16);
    }
    ck_assert_int_eq(c.out.p.facts[4].align, 4); /* rows of 5 floats */
    c.n = 5;                                     /* defaults */
    ck_assert_int_eq(resolve(&c), TW_OK);
    ck_assert_int_eq(c.out.p.cons[CAUSAL].value, 0);
    ck_assert_uint_eq(c.out.given, 0x1f);
}
END_TEST

START_TEST(any_order)
{
    static call c;

    make(&c);
    for (int i = 0; i < 3; i++) {
        tw_arg swap = c.arg[i];
        c.arg[i] = c.arg[6 - i];
        c.arg[6 - i] = swap;
    }
    ck_assert_int_eq(resolve(&c), TW_OK);
    ck_assert_int_eq(c.out.p.symbol[N], 7);
}
END_TEST

START_TEST(names)
{
    static call c;

    make(&c);
    c.arg[6].name = "scal";
    refuse(&c, "no parameter 'scal'", "did you mean 'scale'?");
    make(&c);
    c.arg[6].name = "q";
    refuse(&c, "'q'", "twice");
    make(&c);
    c.arg[6].name = NULL;
    refuse(&c, "argument 6", "no name");
    make(&c);
    c.arg[6].name = "BLOCK_M";
    refuse(&c, "'BLOCK_M' is a tune parameter", "configuration");
    make(&c);
    c.arg[6].name = "N";
    refuse(&c, "'N' is a dimension", "shapes");
    make(&c);
    c.arg[1] = c.arg[5];
    c.n = 5;
    refuse(&c, "tensor 'k'", "not given");
    ck_assert_int_eq(runtime_resolve_args(&kernel, &device, NULL, 3, 0, &c.out), TW_E_ARG);
}
END_TEST

START_TEST(dtype_and_rank)
{
    static call c;

    make(&c);
    c.tensor[4].dtype.bits = 64;
    refuse(&c, "'lse' must be f32", "f64");
    make(&c);
    c.tensor[1].dtype.bits = 16;
    refuse(&c, "'T' is f32 from the dtype of 'q'", "f16 from the dtype of 'k'");
    make(&c);
    c.tensor[0].dtype = (DLDataType){kDLInt, 32, 1};
    refuse(&c, "'q'", "may not be i32");
    make(&c);
    c.tensor[0].dtype.lanes = 4;
    refuse(&c, "'q'", "unknown");
    make(&c);
    c.tensor[2].ndim = 3;
    refuse(&c, "'v' must have 4 dimensions", "not 3");
    make(&c);
    c.tensor[2].shape = NULL;
    refuse(&c, "'v'", "shape is NULL");
    make(&c);
    c.arg[2].value.tensor = NULL;
    refuse(&c, "'v'", "is NULL");
    make(&c);
    c.arg[2] = TW_INT("v", 1);
    refuse(&c, "'v'", "must be a tensor");
    make(&c);
    c.arg[6] = TW_TENSOR("scale", &c.tensor[0]);
    refuse(&c, "'scale'", "a tensor is not a value of type f32");
}
END_TEST

START_TEST(dimensions_agree)
{
    static call c;

    make(&c);
    c.shape[2][2] = 8;
    refuse(&c, "'N' is 7 from dimension 2 of 'k'", "8 from dimension 2 of 'v'");
    make(&c);
    c.shape[1][3] = 8;
    refuse(&c, "'D' is 16 from dimension 3 of 'q'", "8 from dimension 3 of 'k'");
    make(&c);
    c.arg[6] = TW_INT("D", 64);
    refuse(&c, "'D' is 64 from the argument", "16 from dimension 3 of 'q'");
    make(&c);
    c.arg[6] = TW_TEXT("T", "bf16");
    refuse(&c, "'T' is bf16 from the argument", "f32 from the dtype of 'q'");
    make(&c);
    c.shape[0][1] = -1;
    refuse(&c, "'q'", "negative");
    make(&c);
    c.shape[0][1] = (int64_t)INT_MAX + 1;
    refuse(&c, "'q': dimension 1 is 2147483648", "2147483647");
}
END_TEST

/* Offsets of 64 bits in every product, and a span that no address holds. */
START_TEST(large_strides)
{
    static call c;

    make(&c);
    c.stride[0][1] = (int64_t)1 << 40;
    ck_assert_int_eq(resolve(&c), TW_OK);
    ck_assert(c.out.tensor[0].stride[1] == (int64_t)1 << 40);
    make(&c);
    c.stride[0][0] = INT64_MAX / 2;
    refuse(&c, "'q' spans", "more bytes");
    make(&c);
    c.stride[0][1] = INT64_MAX;
    refuse(&c, "'q' spans", "more bytes");
    make(&c);
    c.stride[0][0] = INT64_MIN;
    refuse(&c, "'q' spans", "more bytes");
    make(&c);
    c.tensor[0].byte_offset = UINT64_MAX - 15;
    c.tensor[0].data = (void *)(uintptr_t)64;
    c.stride[0][0] = 100000;
    refuse(&c, "'q' spans", "more bytes");
    make(&c);
    for (int i = 0; i < 4; i++)
        c.shape[0][i] = INT_MAX;
    c.shape[1][3] = INT_MAX;
    c.tensor[0].strides = NULL;
    refuse(&c, "'q' spans", "more bytes");
}
END_TEST

START_TEST(memory_of_the_device)
{
    static call c;

    make(&c);
    c.tensor[2].device = (DLDevice){kDLCUDA, 1};
    refuse(&c, "'v'", "device type 2, number 1");
    make(&c);
    c.tensor[2].data = NULL;
    refuse(&c, "'v'", "data is NULL");
    make(&c);
    c.tensor[2].byte_offset = 2;
    refuse(&c, "'v'", "aligned");
    make(&c);
    c.tensor[2].byte_offset = 4;
    ck_assert_int_eq(resolve(&c), TW_OK);
    ck_assert(c.out.tensor[2].base == (char *)memory[2] + 4);
    ck_assert_int_eq(c.out.p.facts[2].align, 4);
    make(&c);
    c.stride[0][2] = 0;
    ck_assert_int_eq(resolve(&c), TW_OK); /* inputs may repeat */
    make(&c);
    c.stride[3][2] = 0;
    refuse(&c, "'o' is written", "stride 0");
}
END_TEST

START_TEST(null_strides_are_compact)
{
    static call c;

    make(&c);
    c.tensor[0].strides = NULL;
    ck_assert_int_eq(resolve(&c), TW_OK);
    for (int d = 0; d < 4; d++)
        ck_assert_int_eq(c.out.tensor[0].stride[d], c.stride[0][d]);
}
END_TEST

START_TEST(facts_of_tensors)
{
    static call c;

    make(&c);
    c.stride[0][3] = 2;
    ck_assert_int_eq(resolve(&c), TW_OK);
    ck_assert(!c.out.p.facts[0].unit_inner);
    make(&c);
    c.stride[0][2] = 17;
    ck_assert_int_eq(resolve(&c), TW_OK);
    ck_assert_int_eq(c.out.p.facts[0].align, 4);
    make(&c);
    c.stride[0][2] = -16;
    c.tensor[0].data = memory[0] + 256;
    ck_assert_int_eq(resolve(&c), TW_OK);
    ck_assert_int_eq(c.out.p.facts[0].align, 16);
    make(&c); /* the stride of an extent of 1 says nothing */
    for (int i = 0; i < 5; i++)
        c.shape[i][0] = 1, c.stride[i][0] = 3;
    ck_assert_int_eq(resolve(&c), TW_OK);
    ck_assert_int_eq(c.out.p.facts[0].align, 16);
}
END_TEST

START_TEST(without_elements)
{
    static call c;

    make(&c);
    for (int i = 0; i < 5; i++) {
        c.shape[i][0] = 0;
        c.tensor[i].data = NULL;
        c.tensor[i].byte_offset = 8;
    }
    ck_assert_int_eq(resolve(&c), TW_OK);
    ck_assert_int_eq(c.out.p.symbol[B], 0);
    ck_assert_int_eq(c.out.p.facts[0].align, 16);
    make(&c); /* N = 0: k and v are empty, and may lie anywhere */
    c.shape[1][2] = c.shape[2][2] = 0;
    c.tensor[1].data = memory[3];
    ck_assert_int_eq(resolve(&c), TW_OK);
}
END_TEST

static tw_status with_scalar(call *c, tw_arg arg)
{
    make(c);
    c->arg[6] = arg;
    return resolve(c);
}

START_TEST(scalars_lose_nothing)
{
    static call c;

    ck_assert_int_eq(with_scalar(&c, TW_F32("scale", 0.1)), TW_OK);
    ck_assert(c.out.scalar[5].f == (double)0.1f);
    ck_assert_int_eq(with_scalar(&c, TW_INT("scale", 3)), TW_OK);
    ck_assert(c.out.scalar[5].f == 3.0);
    ck_assert_int_eq(with_scalar(&c, TW_INT("scale", (1 << 24) + 1)), TW_E_ARG);
    ck_assert_int_eq(with_scalar(&c, TW_F32("scale", 1e300)), TW_E_ARG);
    ck_assert_int_eq(with_scalar(&c, TW_F32("scale", 1.0 / 0.0)), TW_OK);
    ck_assert_int_eq(with_scalar(&c, TW_BOOL("scale", true)), TW_E_ARG);
    ck_assert_int_eq(with_scalar(&c, TW_TEXT("scale", "1e-3")), TW_OK);
    ck_assert(c.out.scalar[5].f == (double)1e-3f);
    ck_assert_int_eq(with_scalar(&c, TW_TEXT("scale", "1e-3x")), TW_E_ARG);
    ck_assert_int_eq(with_scalar(&c, TW_TEXT("scale", "")), TW_E_ARG);
    ck_assert_int_eq(with_scalar(&c, TW_TEXT("scale", NULL)), TW_OK); /* as if it were left out */
    ck_assert(!(c.out.given >> 5 & 1));
    ck_assert_int_eq(with_scalar(&c, TW_TEXT("scale", "1e999")), TW_E_ARG);
    ck_assert_int_eq(with_scalar(&c, TW_TEXT("scale", "1e39")), TW_E_ARG);
    ck_assert_int_eq(with_scalar(&c, TW_TEXT("scale", "1e-999")), TW_OK);
    ck_assert_int_eq(with_scalar(&c, TW_TEXT("scale", "-inf")), TW_OK);
    tw_arg odd = TW_F32("scale", 1.0);
    odd.kind = (tw_arg_kind)77;
    ck_assert_int_eq(with_scalar(&c, odd), TW_E_ARG);
    ck_assert_ptr_nonnull(strstr(tw_last_error()->text, "kind 77, which is no tw_arg_kind"));
    odd.name = "offset";
    ck_assert_int_eq(with_scalar(&c, odd), TW_E_ARG);
    ck_assert_int_eq(with_scalar(&c, TW_F32("offset", -2.0)), TW_OK);
    ck_assert_int_eq(c.out.scalar[6].i, -2);
    ck_assert_int_eq(with_scalar(&c, TW_F32("offset", 0.5)), TW_E_ARG);
    ck_assert_int_eq(with_scalar(&c, TW_F32("offset", 0.0 / 0.0)), TW_E_ARG);
    ck_assert_int_eq(with_scalar(&c, TW_INT("offset", (int64_t)1 << 31)), TW_E_ARG);
    ck_assert_int_eq(with_scalar(&c, TW_INT("offset", -((int64_t)1 << 31))), TW_OK);
    ck_assert_int_eq(with_scalar(&c, TW_TEXT("offset", "0x10")), TW_OK);
    ck_assert_int_eq(c.out.scalar[6].i, 16);
    ck_assert_int_eq(with_scalar(&c, TW_TEXT("offset", "99999999999999999999")), TW_E_ARG);
}
END_TEST

START_TEST(compile_time_values)
{
    static call c;

    make(&c);
    c.arg[5] = TW_TEXT("CAUSAL", "true");
    ck_assert_int_eq(resolve(&c), TW_OK);
    ck_assert_int_eq(c.out.p.cons[CAUSAL].value, 1);
    c.arg[5] = TW_INT("CAUSAL", 2);
    refuse(&c, "'CAUSAL'", "bool");
    c.arg[5] = TW_TEXT("CAUSAL", "yes");
    refuse(&c, "'CAUSAL'", "bool");
    c.arg[5] = TW_TEXT("D", "16");
    ck_assert_int_eq(resolve(&c), TW_OK);
    c.arg[5] = TW_TEXT("T", "f33");
    refuse(&c, "'T'", "not a dtype");
    c.arg[5] = TW_TEXT("T", "i32");
    refuse(&c, "'T'", "not allow i32");
    c.arg[5] = TW_INT("T", 0);
    refuse(&c, "'T'", "as text");
}
END_TEST

START_TEST(by_position)
{
    static call c;
    tw_arg arg[8];

    make(&c);
    ck_assert_int_eq(resolve(&c), TW_OK);
    for (int i = 0; i < 5; i++)
        arg[i] = tw_arg_tensor(NULL, &c.tensor[i]);
    arg[5] = tw_arg_float(NULL, 0.5);
    arg[6] = tw_arg_int(NULL, 3);
    unsigned flag = RESOLVE_BY_POSITION;
    ck_assert_int_eq(runtime_resolve_args(&kernel, &device, arg, 7, flag, &c.out), TW_OK);
    ck_assert_int_eq(c.out.scalar[6].i, 3);
    ck_assert_int_eq(runtime_resolve_args(&kernel, &device, arg, 6, flag, &c.out), TW_OK);
    ck_assert_int_eq(runtime_resolve_args(&kernel, &device, arg, 8, flag, &c.out), TW_E_ARG);
    ck_assert_int_eq(runtime_resolve_args(&kernel, &device, arg, 4, flag, &c.out), TW_E_ARG);
    ck_assert_ptr_nonnull(strstr(error_get()->text, "'lse'"));
    c.out.p.cons[D].value = 64;
    ck_assert_int_eq(runtime_resolve_args(&kernel, &device, arg, 7, flag, &c.out), TW_E_ARG);
    ck_assert_ptr_nonnull(strstr(error_get()->text, "'D' is 64 from the specialisation"));
    c.out.p.cons[D].value = 16;
    arg[5] = tw_arg_text(NULL, "x");
    ck_assert_int_eq(runtime_resolve_args(&kernel, &device, arg, 7, flag, &c.out), TW_E_ARG);
    ck_assert_ptr_nonnull(strstr(error_get()->text, "'scale'"));
}
END_TEST

START_TEST(overlap_is_named)
{
    static call c;

    make(&c);
    c.tensor[3].data = memory[0];
    refuse(&c, "'o' (written) and 'q'", "overlap");
    make(&c);
    c.tensor[4].data = memory[3] + 100;
    refuse(&c, "'o' (written) and 'lse'", "overlap");
    make(&c);
    c.tensor[1].data = memory[0]; /* two inputs may */
    ck_assert_int_eq(resolve(&c), TW_OK);
    make(&c);
    c.tensor[3].data = (char *)memory[0] + sizeof(float) * 2 * 4 * 5 * 16; /* right behind q */
    ck_assert_int_eq(resolve(&c), TW_OK);
}
END_TEST

/* Every pair of small views of one buffer: a claim of "apart" must be true, and what the rule is
 * made for (common strides) must be seen. */
static bool touches(const tensor_arg *t, const char *byte)
{
    for (int64_t i = 0; i < t->extent[0]; i++)
        for (int64_t j = 0; j < t->extent[1]; j++) {
            const char *at = t->base + 4 * (i * t->stride[0] + j * t->stride[1]);
            if (byte >= at && byte < at + 4)
                return true;
        }
    return false;
}

static bool really_overlap(const tensor_arg *a, const tensor_arg *b)
{
    for (int64_t i = 0; i < a->extent[0]; i++)
        for (int64_t j = 0; j < a->extent[1]; j++)
            if (touches(b, a->base + 4 * (i * a->stride[0] + j * a->stride[1])))
                return true;
    return false;
}

START_TEST(claims_of_apart_are_true)
{
    static char buffer[4096];
    uint64_t seed = 1;
    int apart = 0, really = 0;

    for (int n = 0; n < 200000; n++) {
        tensor_arg t[2];
        for (int i = 0; i < 2; i++) {
            int64_t draw[5];
            for (int k = 0; k < 5; k++) {
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                draw[k] = (int64_t)(seed >> 40);
            }
            t[i] = (tensor_arg){.base = buffer + 2048 + 4 * (draw[0] % 40),
                                .extent = {1 + draw[1] % 4, 1 + draw[2] % 4},
                                .stride = {draw[3] % 25 - 12, draw[4] % 9 - 4}};
        }
        bool claim = !tensors_may_overlap(&t[0], 2, 4, &t[1], 2, 4);
        bool truth = !really_overlap(&t[0], &t[1]);
        ck_assert(!claim || truth);
        ck_assert(claim == !tensors_may_overlap(&t[1], 2, 4, &t[0], 2, 4));
        apart += claim;
        really += truth;
    }
    ck_assert_int_gt(apart, 0);
    ck_assert_int_gt(really, apart);
}
END_TEST

static tensor_arg view(void *base, int64_t offset, int64_t e0, int64_t s0, int64_t e1, int64_t s1,
                       int64_t e2, int64_t s2)
{
    return (tensor_arg){
        .base = (char *)base + 4 * offset, .extent = {e0, e1, e2}, .stride = {s0, s1, s2}};
}

START_TEST(slices_of_one_buffer_are_apart)
{
    static char buf[4096];
    tensor_arg a, b;

    /* q and k of a packed projection [N 9, 3, H 2, D 4] */
    a = view(buf, 0, 9, 24, 2, 4, 4, 1);
    b = view(buf, 8, 9, 24, 2, 4, 4, 1);
    ck_assert(!tensors_may_overlap(&a, 3, 4, &b, 3, 4));
    b = view(buf, 7, 9, 24, 2, 4, 4, 1); /* one element too early */
    ck_assert(tensors_may_overlap(&a, 3, 4, &b, 3, 4));
    /* columns 0..1 and 2..3 of other rows of one matrix */
    a = view(buf, 0, 3, 10, 2, 1, 1, 0);
    b = view(buf, 22, 2, 10, 2, 1, 1, 0);
    ck_assert(!tensors_may_overlap(&a, 3, 4, &b, 3, 4));
    /* even and odd elements; and the odd ones from the end */
    a = view(buf, 0, 8, 2, 1, 0, 1, 0);
    b = view(buf, 15, 8, -2, 1, 0, 1, 0);
    ck_assert(!tensors_may_overlap(&a, 3, 4, &b, 3, 4));
    b = view(buf, 14, 8, -2, 1, 0, 1, 0);
    ck_assert(tensors_may_overlap(&a, 3, 4, &b, 3, 4));
    /* heads 0 and 1 of [B 2, H 2, M 3, D 4], transposed in b */
    a = view(buf, 0, 2, 24, 3, 4, 4, 1);
    b = view(buf, 12, 2, 24, 4, 1, 3, 4);
    ck_assert(!tensors_may_overlap(&a, 3, 4, &b, 3, 4));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("args");
    TCase *t = tcase_create("args");

    tcase_add_test(t, a_right_call);
    tcase_add_test(t, any_order);
    tcase_add_test(t, names);
    tcase_add_test(t, dtype_and_rank);
    tcase_add_test(t, dimensions_agree);
    tcase_add_test(t, large_strides);
    tcase_add_test(t, memory_of_the_device);
    tcase_add_test(t, null_strides_are_compact);
    tcase_add_test(t, facts_of_tensors);
    tcase_add_test(t, without_elements);
    tcase_add_test(t, scalars_lose_nothing);
    tcase_add_test(t, compile_time_values);
    tcase_add_test(t, by_position);
    tcase_add_test(t, overlap_is_named);
    tcase_add_test(t, claims_of_apart_are_true);
    tcase_add_test(t, slices_of_one_buffer_are_apart);
    suite_add_tcase(s, t);
    return s;
}
