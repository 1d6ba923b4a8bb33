/* Cases drawn from public bug reports about attention libraries and tile compilers, each on the
 * interpreter and on the CPU. */
#include "tests/support/numeric_kernels.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const char *const specs[] = {"interp", "cpu"};
enum { SPECS = sizeof specs / sizeof *specs };

static void open_attention(num_subject *s, int i)
{
    ck_assert(subject_open(s, specs[i], NULL, "attention_fwd", 5000));
}

static void set_all(num_tensor *t, float v)
{
    for (int64_t i = 0, n = num_elements(t); i < n; i++)
        *num_at(t, i) = v;
}

static void expect(num_subject *s, const num_tensor *t, int64_t i, double want, double tolerance)
{
    double got = *num_at(t, i);
    bool right = isinf(want) ? got == want : fabs(got - want) <= tolerance;

    if (!right && s->failures < 5)
        num_say("%s: %s[%lld] is %.9g, not %.9g\n", s->device.label, t->name, (long long)i, got,
                want);
    s->failures += !right;
}

/* ---- attention ---- */

/* A maximum that starts from a finite stand-in for -inf loses a row whose logits are all lower. */
START_TEST(logits_far_below_zero)
{
    attention_case c = {1, 1, 1, 1, 4, 16, 16, .scale = 1.0};
    attention_tensors t;
    num_subject s;

    open_attention(&s, _i);
    attention_alloc(&t, &c, NUM_AT_END);
    set_all(&t.q, 125.0f);
    set_all(&t.k, -100.0f);
    for (int64_t i = 0; i < 4 * 16; i++)
        *num_at(&t.v, i) = (float)(1 + i / 16);
    attention_compare(&s, &c, &t);
    expect(&s, &t.o, 0, 2.5, 1e-6);
    expect(&s, &t.lse, 0, -199998.61, 0.016);
    attention_free(&t);
    subject_close(&s);
}
END_TEST

/* lse is a natural logarithm: 8 equal logits of 0 give log(8), not 3. */
START_TEST(lse_is_natural)
{
    attention_case c = attention_sizes(1, 1, 1, 1, 8, 16, 16);
    attention_tensors t;
    num_subject s;

    open_attention(&s, _i);
    attention_alloc(&t, &c, NUM_AT_END);
    set_all(&t.q, 0.0f);
    set_all(&t.k, 1.0f);
    num_fill(&t.v, &s.random, 1.0);
    attention_compare(&s, &c, &t);
    expect(&s, &t.lse, 0, 2.0794415416798357, 1e-6);
    attention_free(&t);
    subject_close(&s);
}
END_TEST

/* Causal is aligned to the last key: with 4 queries on 2 keys the first two rows see nothing. */
START_TEST(more_queries_than_keys)
{
    static const double o[4] = {0, 0, 10, 15};
    attention_case c = {1, 1, 1, 4, 2, 16, 16, .causal = true};
    attention_tensors t;
    num_subject s;

    open_attention(&s, _i);
    attention_alloc(&t, &c, NUM_AT_START);
    set_all(&t.q, 0.0f);
    set_all(&t.k, 0.0f);
    for (int64_t i = 0; i < 2 * 16; i++)
        *num_at(&t.v, i) = i < 16 ? 10.0f : 20.0f;
    attention_compare(&s, &c, &t);
    for (int row = 0; row < 4; row++)
        expect(&s, &t.o, row * 16 + 3, o[row], 1e-5);
    expect(&s, &t.lse, 1, -INFINITY, 0);
    expect(&s, &t.lse, 2, 0.0, 1e-6);
    attention_free(&t);
    subject_close(&s);
}
END_TEST

/* Only the upper half of the head dimension carries anything. */
START_TEST(the_whole_head_takes_part)
{
    attention_case c = attention_sizes(1, 1, 1, 20, 30, 128, 128);
    attention_tensors t;
    num_subject s;

    open_attention(&s, _i);
    attention_alloc(&t, &c, NUM_AT_END);
    num_fill(&t.q, &s.random, 1.0);
    num_fill(&t.k, &s.random, 1.0);
    num_fill(&t.v, &s.random, 1.0);
    for (int64_t i = 0; i < num_elements(&t.q); i++)
        *num_at(&t.q, i) *= i % 128 < 64 ? 0.0f : 1.0f;
    for (int64_t i = 0; i < num_elements(&t.k); i++)
        *num_at(&t.k, i) *= i % 128 < 64 ? 0.0f : 1.0f;
    attention_compare(&s, &c, &t);
    ck_assert(fabsf(*num_at(&t.lse, 0) - *num_at(&t.lse, 1)) > 1e-4f);
    attention_free(&t);
    subject_close(&s);
}
END_TEST

/* Lengths that are and are not multiples of the block, the smallest blocks first. */
START_TEST(lengths_around_the_block)
{
    static const int64_t length[] = {1, 16, 17, 127, 128, 129, 191, 192, 193};
    num_subject s;

    open_attention(&s, _i);
    for (size_t i = 0; i < sizeof length / sizeof *length; i++) {
        attention_case c = {1, 2, 2, length[i], length[i], 16, 16, .causal = i % 2};

        c.config = "BLOCK_M=128,BLOCK_N=128";
        attention_check(&s, &c, i % 2 ? NUM_AT_END : NUM_AT_START);
        c.causal = !c.causal;
        c.config = "BLOCK_M=16,BLOCK_N=16";
        attention_check(&s, &c, NUM_AT_END);
    }
    subject_close(&s);
}
END_TEST

START_TEST(an_empty_batch_is_a_success)
{
    attention_case c = attention_sizes(0, 10, 10, 3952, 16, 64, 64);
    num_subject s;

    open_attention(&s, _i);
    attention_check(&s, &c, NUM_AT_END);
    subject_close(&s);
}
END_TEST

/* A view in another order of dimensions gives the very bits that the dense tensor gives. */
START_TEST(a_swapped_view_changes_no_bit)
{
    attention_case dense = attention_sizes(2, 4, 4, 64, 64, 32, 32);
    attention_tensors a, b;
    num_subject s;

    open_attention(&s, _i);
    attention_alloc(&a, &dense, NUM_AT_END);
    num_fill(&a.q, &s.random, 1.0);
    num_fill(&a.k, &s.random, 1.0);
    num_fill(&a.v, &s.random, 1.0);
    attention_launch(&s, &dense, &a);
    for (int which = 0; which < 4; which++) {
        attention_case c = dense;
        enum num_layout *of[4] = {&c.q, &c.k, &c.v, &c.o};
        num_tensor *from[3] = {&a.q, &a.k, &a.v}, *to[3] = {&b.q, &b.k, &b.v};

        *of[which] = NUM_SWAPPED;
        attention_alloc(&b, &c, NUM_AT_END);
        for (int t = 0; t < 3; t++) {
            for (int64_t i = 0; i < num_elements(from[t]); i++)
                *num_at(to[t], i) = *num_at(from[t], i);
        }
        attention_launch(&s, &c, &b);
        s.cases++;
        for (int64_t i = 0; i < num_elements(&a.o); i++)
            ck_assert_mem_eq(num_at(&a.o, i), num_at(&b.o, i), sizeof(float));
        attention_free(&b);
    }
    attention_free(&a);
    subject_close(&s);
}
END_TEST

/* Longer than 16 bits can count. All zeros: o is 0 and lse is log(N). */
START_TEST(more_keys_than_16_bits_count)
{
    static const int64_t length[] = {32767, 32768, 33728, 65535, 65536};
    num_subject s;

    open_attention(&s, _i);
    for (size_t i = 0; i < sizeof length / sizeof *length; i++) {
        attention_case c = attention_sizes(1, 1, 1, 2, length[i], 16, 16);
        attention_tensors t;

        c.config = "BLOCK_M=16,BLOCK_N=128";
        attention_alloc(&t, &c, NUM_AT_END);
        set_all(&t.q, 0.0f);
        set_all(&t.k, 0.0f);
        set_all(&t.v, 0.0f);
        attention_launch(&s, &c, &t);
        s.cases++;
        for (int64_t j = 0; j < num_elements(&t.o); j++)
            expect(&s, &t.o, j, 0.0, 0.0);
        expect(&s, &t.lse, 1, log((double)length[i]), 1e-5);
        attention_free(&t);
    }
    subject_close(&s);
}
END_TEST

/* NaN and infinity in an input reach the rows that see them, and no other row. */
START_TEST(nan_stays_in_its_rows)
{
    attention_case c = {1, 1, 1, 70, 90, 16, 16, .causal = true};
    attention_tensors t;
    num_subject s;

    open_attention(&s, _i);
    attention_alloc(&t, &c, NUM_AT_END);
    num_fill(&t.q, &s.random, 1.0);
    num_fill(&t.k, &s.random, 1.0);
    num_fill(&t.v, &s.random, 1.0);
    *num_at(&t.q, 3 * 16 + 5) = NAN;
    *num_at(&t.q, 68 * 16) = INFINITY;
    attention_compare(&s, &c, &t);
    ck_assert(isnan(*num_at(&t.o, 3 * 16)) && isnan(*num_at(&t.lse, 3)));
    ck_assert(!isnan(*num_at(&t.o, 4 * 16)) && !isnan(*num_at(&t.lse, 4)));
    attention_free(&t);

    c.causal = false; /* every row sees the key */
    attention_alloc(&t, &c, NUM_AT_END);
    num_fill(&t.q, &s.random, 1.0);
    num_fill(&t.k, &s.random, 1.0);
    num_fill(&t.v, &s.random, 1.0);
    *num_at(&t.k, 89 * 16) = NAN;
    attention_compare(&s, &c, &t);
    attention_free(&t);
    subject_close(&s);
}
END_TEST

/* What a causal mask hides can change without a bit of the result changing. */
START_TEST(hidden_keys_change_nothing)
{
    attention_case c = {1, 2, 1, 70, 70, 16, 16, .causal = true, .has_offset = true, .offset = -3};
    attention_tensors t, u;
    num_subject s;

    open_attention(&s, _i);
    attention_alloc(&t, &c, NUM_AT_END);
    attention_alloc(&u, &c, NUM_AT_END);
    num_fill(&t.q, &s.random, 1.0);
    num_fill(&t.k, &s.random, 1.0);
    num_fill(&t.v, &s.random, 1.0);
    for (int64_t i = 0; i < num_elements(&t.q); i++)
        *num_at(&u.q, i) = *num_at(&t.q, i);
    for (int64_t i = 0; i < num_elements(&t.k); i++) {
        bool seen = i / 16 <= 40 - 3; /* by row 40 */

        *num_at(&u.k, i) = seen ? *num_at(&t.k, i) : 1e4f;
        *num_at(&u.v, i) = seen ? *num_at(&t.v, i) : -1e9f;
    }
    attention_launch(&s, &c, &t);
    attention_launch(&s, &c, &u);
    s.cases++;
    for (int64_t i = 0; i < num_elements(&t.o); i++) {
        bool same = !memcmp(num_at(&t.o, i), num_at(&u.o, i), sizeof(float));

        if (i / 16 % 70 <= 40)
            ck_assert_msg(same, "row %d", (int)(i / 16 % 70));
    }
    ck_assert(memcmp(num_at(&t.o, 41 * 16), num_at(&u.o, 41 * 16), sizeof(float)) != 0);
    attention_free(&t);
    attention_free(&u);
    subject_close(&s);
}
END_TEST

/* More members of a batch than 16 bits count, on the third dimension of the grid. */
START_TEST(batches_beyond_16_bits)
{
    num_subject s;

    open_attention(&s, _i);
    for (int64_t b = 65535; b <= 65536 && _i != 0; b++) { /* too many for the interpreter */
        attention_case c = {b, 1, 1, 1, 1, 16, 16, .config = "BLOCK_M=8,BLOCK_N=8"};

        attention_check(&s, &c, NUM_AT_END);
    }
    attention_case c = {1000, 1, 1, 1, 1, 16, 16, .config = "BLOCK_M=8,BLOCK_N=8"};
    attention_check(&s, &c, NUM_AT_END);
    subject_close(&s);
}
END_TEST

/* Two members of a batch 2^31 elements apart, in memory that is reserved but used only there: each
 * gives the bits that it gives alone. */
START_TEST(members_far_apart)
{
    enum { M = 20, D = 16, CELLS = M * D };
    const int64_t apart = ((int64_t)1 << 31) + 48;
    size_t size = (size_t)(apart + CELLS) * sizeof(float);
    attention_case c = attention_sizes(2, 1, 1, M, M, D, D);
    attention_tensors t;
    num_tensor *all[4] = {&t.q, &t.k, &t.v, &t.o};
    float *far[4], *near[4];
    num_subject s;

    open_attention(&s, _i);
    if (s.device.is_gpu) { /* has no such memory; tests/support/gpu_far_cases.c makes some there */
        tw_kernel_destroy(s.kernel);
        num_close(&s.device);
        return;
    }
    attention_alloc(&t, &c, NUM_AT_END);
    num_fill(&t.q, &s.random, 1.0);
    num_fill(&t.k, &s.random, 1.0);
    num_fill(&t.v, &s.random, 1.0);
    attention_compare(&s, &c, &t);
    for (int i = 0; i < 4; i++) {
        far[i] = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        ck_assert_ptr_ne(far[i], MAP_FAILED);
        near[i] = all[i]->base;
        for (int j = 0; j < 2 * CELLS; j++)
            far[i][j / CELLS * apart + j % CELLS] = i < 3 ? near[i][j] : -1.0f;
        all[i]->dl.data = far[i];
        all[i]->stride[0] = apart;
    }
    attention_launch(&s, &c, &t);
    ck_assert_mem_eq(far[3], near[3], CELLS * sizeof(float));
    ck_assert_mem_eq(far[3] + apart, near[3] + CELLS, CELLS * sizeof(float));
    for (int i = 0; i < 4; i++)
        munmap(far[i], size);
    attention_free(&t);
    subject_close(&s);
}
END_TEST

/* ---- other kernels of the library ---- */

/* The reduced precision of matrix units (10 bits) would give 16. */
START_TEST(an_f32_dot_is_a_full_one)
{
    num_tensor a, b, c;
    num_subject s;

    ck_assert(subject_open(&s, specs[_i], NULL, "matmul", 5001));
    num_alloc(&a, "a", 2, (int64_t[]){16, 16}, NUM_DENSE, NUM_AT_END);
    num_alloc(&b, "b", 2, (int64_t[]){16, 16}, NUM_DENSE, NUM_AT_END);
    num_alloc(&c, "c", 2, (int64_t[]){16, 16}, NUM_DENSE, NUM_AT_END);
    set_all(&a, 1.0f + 0x1p-12f);
    set_all(&b, 1.0f);
    tw_arg args[] = {TW_TENSOR("a", &a.dl), TW_TENSOR("b", &b.dl), TW_TENSOR("c", &c.dl)};
    num_must(num_try(&s.device, s.kernel, args, 3, NULL), "launch");
    s.cases++;
    for (int64_t i = 0; i < 256; i++)
        expect(&s, &c, i, 16.00390625, 0.0);
    num_free(&a);
    num_free(&b);
    num_free(&c);
    subject_close(&s);
}
END_TEST

/* A long row of -inf with one finite entry: first, in the middle, last. */
START_TEST(one_finite_entry_in_a_long_row)
{
    static const char *const config[] = {"BLOCK_M=1,BLOCK_N=64", "BLOCK_M=1,BLOCK_N=4096", NULL};
    const int64_t n = 100000, at[3] = {0, 50000, 99999};
    num_tensor x, y;
    num_subject s;

    ck_assert(subject_open(&s, specs[_i], NULL, "softmax", 5002));
    num_alloc(&x, "x", 2, (int64_t[]){4, n}, NUM_DENSE, NUM_AT_END);
    num_alloc(&y, "y", 2, (int64_t[]){4, n}, NUM_DENSE, NUM_AT_END);
    set_all(&x, -INFINITY);
    for (int row = 0; row < 3; row++)
        *num_at(&x, row * n + at[row]) = 10.0f;
    tw_arg args[] = {TW_TENSOR("x", &x.dl), TW_TENSOR("y", &y.dl)};
    for (size_t i = 0; i < sizeof config / sizeof *config; i++) {
        tw_launch_options options = TW_LAUNCH_OPTIONS_INIT;

        options.config = config[i];
        num_must(num_try(&s.device, s.kernel, args, 2, &options), "launch");
        s.cases++;
        for (int64_t j = 0; j < 4 * n; j++)
            expect(&s, &y, j, j / n < 3 && j % n == at[j / n] ? 1.0 : 0.0, 0.0);
    }
    num_free(&x);
    num_free(&y);
    subject_close(&s);
}
END_TEST

/* Entries whose product with anything would round by more than an exponent holds. */
START_TEST(huge_entries)
{
    static const struct {
        float first, rest;
        double want_first, want_rest;
    } row[] = {{-1e30f, -1e30f, 1.0 / 128, 1.0 / 128},
               {3e38f, 3e38f, 1.0 / 128, 1.0 / 128},
               {-1e10f, 0.0f, 0.0, 1.0 / 64},
               {-3e38f, 3e38f, 0.0, 1.0 / 64}};
    enum { ROWS = sizeof row / sizeof *row, N = 128 };
    num_tensor x, y;
    num_subject s;

    ck_assert(subject_open(&s, specs[_i], NULL, "softmax", 5005));
    num_alloc(&x, "x", 2, (int64_t[]){ROWS, N}, NUM_DENSE, NUM_AT_END);
    num_alloc(&y, "y", 2, (int64_t[]){ROWS, N}, NUM_DENSE, NUM_AT_END);
    for (int64_t i = 0; i < ROWS * N; i++)
        *num_at(&x, i) = i % N < N / 2 ? row[i / N].first : row[i / N].rest;
    const tw_arg args[] = {TW_TENSOR("x", &x.dl), TW_TENSOR("y", &y.dl)};
    tw_launch_options options = TW_LAUNCH_OPTIONS_INIT;
    options.config = "BLOCK_M=4,BLOCK_N=64";
    num_must(num_try(&s.device, s.kernel, args, 2, &options), "launch");
    s.cases++;
    for (int64_t i = 0; i < ROWS * N; i++)
        expect(&s, &y, i, i % N < N / 2 ? row[i / N].want_first : row[i / N].want_rest, 1e-7);
    num_free(&x);
    num_free(&y);
    subject_close(&s);
}
END_TEST

/* The first launch sees an aligned base, the second one that is not, with the same kernel. */
START_TEST(aligned_then_not)
{
    static const enum num_layout dense[3] = {NUM_DENSE, NUM_DENSE, NUM_DENSE};
    static const enum num_layout odd[3] = {NUM_MISALIGNED, NUM_MISALIGNED, NUM_MISALIGNED};
    num_subject s;

    ck_assert(subject_open(&s, specs[_i], NULL, "vector_add", 5003));
    vector_add_check(&s, 4096, dense, NULL, NUM_AT_START);
    vector_add_check(&s, 4096, odd, NULL, NUM_AT_START);
    vector_add_check(&s, 4096, dense, NULL, NUM_AT_END);
    subject_close(&s);
}
END_TEST

START_TEST(nothing_then_something_then_nothing)
{
    static const enum num_layout dense[3] = {NUM_DENSE, NUM_DENSE, NUM_DENSE};
    num_subject s;

    ck_assert(subject_open(&s, specs[_i], NULL, "vector_add", 5004));
    vector_add_check(&s, 0, dense, NULL, NUM_AT_END);
    vector_add_check(&s, 100, dense, NULL, NUM_AT_END);
    vector_add_check(&s, 0, dense, NULL, NUM_AT_END);
    subject_close(&s);
}
END_TEST

/* ---- kernels of their own ---- */

static void run_text(int i, const char *text, tw_arg *args, size_t n)
{
    num_device d;

    ck_assert(num_open(&d, specs[i], NULL));
    tw_kernel *k = num_load_text(&d, text);
    num_must(num_try(&d, k, args, n, NULL), "launch");
    tw_kernel_destroy(k);
    num_close(&d);
}

/* With a contracted v * s + 0.25 the root would be of -7.45e-9. */
START_TEST(no_contraction_behind_the_text)
{
    float x = 0.75f, y = -1.0f;
    int64_t one = 1;
    DLTensor tx = {&x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &one, NULL, 0};
    DLTensor ty = {&y, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &one, NULL, 0};

    run_text(_i,
             "kernel root(x: f32[N], out y: f32[N]) grid (1) {\n"
             "    let s = load(x[0 :+ 8]);\n"
             "    let v = -0.25 / s;\n"
             "    store(y[0 :+ 8], sqrt(v * s + 0.25));\n"
             "}\n",
             (tw_arg[]){TW_TENSOR("x", &tx), TW_TENSOR("y", &ty)}, 2);
    ck_assert(y == 0.0f);
}
END_TEST

START_TEST(a_sum_of_truths_is_wide)
{
    int32_t y = -1;
    int64_t one = 1;
    DLTensor ty = {&y, {kDLCPU, 0}, 1, {kDLInt, 32, 1}, &one, NULL, 0};

    run_text(_i,
             "kernel truths(out y: i32[N]) grid (1) {\n"
             "    let t = full(i1[128, 2], true);\n"
             "    store(y[0], sum(sum(t, 1), 0));\n"
             "}\n",
             (tw_arg[]){TW_TENSOR("y", &ty)}, 1);
    ck_assert_int_eq(y, 256);
}
END_TEST

/* Both extremes keep NaN; zeros compare as IEEE says, whatever their sign. */
START_TEST(extremes_keep_nan)
{
    float x[8] = {3, NAN, 1, 2, 5, 4, -0.0f, 0.0f}, y[6];
    int64_t eight = 8, six = 6;
    DLTensor tx = {x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &eight, NULL, 0};
    DLTensor ty = {y, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &six, NULL, 0};

    run_text(_i,
             "kernel extremes(x: f32[N], out y: f32[P]) grid (1) {\n"
             "    let a = load(x[0 :+ 4]), b = load(x[4 :+ 4]);\n"
             "    store(y[0], min(a, 0));\n"
             "    store(y[1], max(a, 0));\n"
             "    store(y[2], min(b, 0));\n"
             "    store(y[3], max(b, 0));\n"
             "    store(y[4], max(maximum(a, b), 0));\n"
             "    store(y[5], max(minimum(b, a), 0));\n"
             "}\n",
             (tw_arg[]){TW_TENSOR("x", &tx), TW_TENSOR("y", &ty)}, 2);
    ck_assert(isnan(y[0]) && isnan(y[1]) && isnan(y[4]) && isnan(y[5]));
    ck_assert(y[2] == 0.0f && y[3] == 5.0f);
}
END_TEST

/* Rows 1185 apart: a base that is a multiple of 16 says nothing about the rows. */
START_TEST(rows_1185_apart)
{
    enum { ROWS = 4, COLUMNS = 64, APART = 1185 };
    _Alignas(64) static float x[ROWS * APART], y[ROWS * APART];
    int64_t shape[2] = {ROWS, COLUMNS}, stride[2] = {APART, 1};
    DLTensor tx = {x, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, stride, 0};
    DLTensor ty = {y, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, stride, 0};

    for (int i = 0; i < ROWS * APART; i++) {
        x[i] = (float)i;
        y[i] = -1.0f;
    }
    run_text(_i,
             "kernel copy(x: f32[M, N], out y: f32[M, N]) grid (1) {\n"
             "    store(y[0 :+ 4, 0 :+ 64], load(x[0 :+ 4, 0 :+ 64]));\n"
             "}\n",
             (tw_arg[]){TW_TENSOR("x", &tx), TW_TENSOR("y", &ty)}, 2);
    for (int i = 0; i < ROWS * APART; i++)
        ck_assert_float_eq(y[i], i % APART < COLUMNS ? x[i] : -1.0f);
}
END_TEST

/* An element 2293760000 elements from the base, its row taken from a ramp, from the program's
 * number and from memory. The memory is reserved, and touched only there. */
START_TEST(offsets_beyond_32_bits)
{
    const int64_t rows = 70003, stride = 32768;
    size_t size = (size_t)(rows * stride) * sizeof(float);

    if (num_first(1)) /* memory of the host only, as above */
        return;
    float *big = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int32_t index = 70001;
    int64_t shape[2] = {rows, 1}, strides[2] = {stride, 1}, one = 1;

    ck_assert_ptr_ne(big, MAP_FAILED);
    DLTensor ty = {big, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, strides, 0};
    DLTensor ti = {&index, {kDLCPU, 0}, 1, {kDLInt, 32, 1}, &one, NULL, 0};
    run_text(_i,
             "kernel far(at: i32[K], out y: f32[M, N]) grid (2) {\n"
             "    if (program_id(0) == 1) {\n"
             "        store(y[70000 * program_id(0) :+ 1, 0 :+ 1], full(f32[1, 1], 1.0));\n"
             "        store(y[load(at[0]), 0], 2.0);\n"
             "        for i in range(70002, 70003)\n"
             "            store(y[i :+ 4, 0 :+ 4], full(f32[4, 4], 3.0));\n"
             "    }\n"
             "}\n",
             (tw_arg[]){TW_TENSOR("at", &ti), TW_TENSOR("y", &ty)}, 2);
    for (int i = 0; i < 3; i++)
        ck_assert_float_eq(big[(70000 + i) * stride], 1.0f + (float)i);
    ck_assert_float_eq(big[70002 * stride + 1], 0.0f);
    munmap(big, size);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    int first = num_first(1);
    Suite *s = suite_create("public cases");
    TCase *a = tcase_create("attention"), *k = tcase_create("kernels"), *t = tcase_create("text");

    tcase_add_loop_test(a, logits_far_below_zero, first, SPECS);
    tcase_add_loop_test(a, lse_is_natural, first, SPECS);
    tcase_add_loop_test(a, more_queries_than_keys, first, SPECS);
    tcase_add_loop_test(a, the_whole_head_takes_part, first, SPECS);
    tcase_add_loop_test(a, lengths_around_the_block, first, SPECS);
    tcase_add_loop_test(a, an_empty_batch_is_a_success, first, SPECS);
    tcase_add_loop_test(a, a_swapped_view_changes_no_bit, first, SPECS);
    tcase_add_loop_test(a, more_keys_than_16_bits_count, first, SPECS);
    tcase_add_loop_test(a, nan_stays_in_its_rows, first, SPECS);
    tcase_add_loop_test(a, hidden_keys_change_nothing, first, SPECS);
    tcase_add_loop_test(a, batches_beyond_16_bits, first, SPECS);
    tcase_add_loop_test(a, members_far_apart, first, NUM_HUGE ? SPECS : 0);
    tcase_add_loop_test(k, an_f32_dot_is_a_full_one, first, SPECS);
    tcase_add_loop_test(k, one_finite_entry_in_a_long_row, first, SPECS);
    tcase_add_loop_test(k, huge_entries, first, SPECS);
    tcase_add_loop_test(k, aligned_then_not, first, SPECS);
    tcase_add_loop_test(k, nothing_then_something_then_nothing, first, SPECS);
    tcase_add_loop_test(t, no_contraction_behind_the_text, first, SPECS);
    tcase_add_loop_test(t, a_sum_of_truths_is_wide, first, SPECS);
    tcase_add_loop_test(t, extremes_keep_nan, first, SPECS);
    tcase_add_loop_test(t, rows_1185_apart, first, SPECS);
    tcase_add_loop_test(t, offsets_beyond_32_bits, first, NUM_HUGE ? SPECS : 0);
    suite_add_tcase(s, a);
    suite_add_tcase(s, k);
    suite_add_tcase(s, t);
    return s;
}
