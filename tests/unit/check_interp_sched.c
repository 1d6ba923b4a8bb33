/* The interpreter at level 2: schedules that are right give what level 1 gives, whatever the order
 * of warps and landings; each fault is reported with both ops, and its right twin is not. */
#include "compiler/ir/element.h"
#include "tests/support/ir_fixture.h"
#include "tests/support/sched_rig.h"
#include <check.h>
#include <math.h>
#include <string.h>

#define M 64
#define N 64
#define K 384

static uint16_t a16[M * K], b16[K * N];
static float fa[M * K], fb[K * N], c[M * N], want[M * N];

static float small(int i)
{
    return (float)(i * 37 % 17 - 8) / 4;
}

static void fill(void)
{
    memset(want, 0, sizeof want);
    memset(c, 0xff, sizeof c);
    for (int i = 0; i < M * K; i++) {
        fa[i] = small(i);
        element_write(DT_BF16, &a16[i], (ir_scalar){.f = fa[i]});
    }
    for (int i = 0; i < K * N; i++) {
        fb[i] = small(i + 5);
        element_write(DT_BF16, &b16[i], (ir_scalar){.f = fb[i]});
    }
    for (int i = 0; i < M; i++)
        for (int k = 0; k < K; k++)
            for (int j = 0; j < N; j++)
                want[i * N + j] += fa[i * K + k] * fb[k * N + j];
}

static void setup(void)
{
    ir_fixture_setup();
    fill();
}

static void bind_product(sched_rig *r)
{
    sched_bind(r, 0, a16, (int64_t[]){M, K});
    sched_bind(r, 1, b16, (int64_t[]){K, N});
    sched_bind(r, 2, c, (int64_t[]){M, N});
}

static void product_is_right(void)
{
    for (int i = 0; i < M * N; i++) {
        if (c[i] != want[i]) /* small numbers: exact */
            ck_abort_msg("element %d is %g, not %g", i, (double)c[i], (double)want[i]);
    }
}

static void all_mutants_are_found(sched_rig *r, int least)
{
    const char *missed;
    int n = sched_mutate(r, &missed);

    ck_assert_int_ge(n, least);
    ck_assert_str_eq(missed, "");
}

#define PRODUCT                                                                                   \
    "kernel @product<M, K, N>(in %a : view<bf16, 2>[M, K] unit align=16,\n"                       \
    "    in %b : view<bf16, 2>[K, N] unit align=16, out %c : view<f32, 2>[M, N],\n"               \
    "    dim %dm : i32 = M, dim %dk : i32 = K, dim %dn : i32 = N) {\n"                            \
    "%i0 = const.i 0 : i32\n%i1 = const.i 1 : i32\n%i2 = const.i 2 : i32\n%i64 = const.i 64 : i32\n" \
    "%blocks = const.i 6 : i32\n%f0 = const.f 0.0 : f32\n"

/* ---- copies in groups ---- */

/* Two buffers; one wait and one barrier in each iteration. */
static const char *const ring =
    "level 2 warps=4\n#acc = mma(warps=[4, 1])\n#sw = shared(row=128)\n" PRODUCT
    "%ra = alloc offset=0 : buf<bf16, [2, 64, 64]> #sw\n"
    "%rb = alloc offset=16384 : buf<bf16, [2, 64, 64]> #sw\n"
    "%sa0 = buffer.slot %ra, %i0 : buf<bf16, [1, 64, 64]> #sw\n"
    "%sb0 = buffer.slot %rb, %i0 : buf<bf16, [1, 64, 64]> #sw\n"
    "copy.async %a, %i0, %i0, %sa0 extent=[64, 64] inside=3 bytes=16\n"
    "copy.async %b, %i0, %i0, %sb0 extent=[64, 64] inside=3 bytes=16\n"
    "copy.commit\n"
    "%start = splat %f0 : f32[64, 64] #acc\n"
    "%sum = for %i = %i0 to %blocks step %i1 iter (%acc = %start : f32[64, 64] #acc) {\n"
    "  copy.wait pending=0\n  barrier id=0 warps=0\n"
    "  %next = add %i, %i1 : i32\n  %more = lt %next, %blocks : i1\n"
    "  if %more {\n"
    "    %ns = rem %next, %i2 : i32\n    %nk = mul %next, %i64 : i32\n"
    "    %na = buffer.slot %ra, %ns : buf<bf16, [1, 64, 64]> #sw\n"
    "    %nb = buffer.slot %rb, %ns : buf<bf16, [1, 64, 64]> #sw\n"
    "    copy.async %a, %i0, %nk, %na extent=[64, 64] inside=3 bytes=16\n"
    "    copy.async %b, %nk, %i0, %nb extent=[64, 64] inside=3 bytes=16\n"
    "    yield } else { yield }\n"
    "  copy.commit\n"
    "  %s = rem %i, %i2 : i32\n"
    "  %sa = buffer.slot %ra, %s : buf<bf16, [1, 64, 64]> #sw\n"
    "  %sb = buffer.slot %rb, %s : buf<bf16, [1, 64, 64]> #sw\n"
    "  %d = mma %sa, %sb, %acc tf32=0 : f32[64, 64] #acc\n"
    "  yield %d }\n"
    "store %c, %i0, %i0, %sum extent=[64, 64] inside=3\nreturn }\n";

START_TEST(a_ring_of_copies)
{
    sched_rig r;

    sched_open(&r, ring);
    bind_product(&r);
    sched_must_run(&r);
    product_is_right();
    all_mutants_are_found(&r, 3);
}
END_TEST

START_TEST(a_copy_pads_with_zeros)
{
    sched_rig r;

    sched_open(&r, ring);
    ir_first_of(r.m, OP_STORE)->attr[1].i = 0;
    for (int i = 0; i < 2; i++) {
        ir_op *copy = ir_first_of(r.m, OP_COPY_ASYNC);
        copy->attr[1].i = 0;
    }
    sched_bind(&r, 0, a16, (int64_t[]){M - 3, K});
    sched_bind(&r, 1, b16, (int64_t[]){K, N});
    sched_bind(&r, 2, c, (int64_t[]){M - 3, N});
    r.arg[0].view.stride[0] = K;
    tw_status st = sched_run(&r, r.m, 1);
    ck_assert_int_eq(st, TW_E_INTERNAL); /* the copies in the loop still say inside=3 */
    ck_assert(strstr(r.fault.text, "was proved inside") != NULL);
}
END_TEST

/* ---- roles, bulk copies, mbarriers, wgmma ---- */

static const char *const roles =
    "level 2 warps=5\n#acc = mma(warps=[4, 1])\n#sw = shared(row=128)\n" PRODUCT
    "%ra = alloc offset=0 : buf<bf16, [2, 64, 64]> #sw\n"
    "%rb = alloc offset=16384 : buf<bf16, [2, 64, 64]> #sw\n"
    "%full = mbar.alloc offset=32768 count=2 arrivals=1 : mbar\n"
    "%empty = mbar.alloc offset=32784 count=2 arrivals=4 : mbar\n"
    "barrier id=0 warps=0\n"
    "role first=4 warps=1 registers=24 {\n"
    "  for %i = %i0 to %blocks step %i1 {\n"
    "    %s = rem %i, %i2 : i32\n    %turn = div %i, %i2 : i32\n    %odd = rem %turn, %i2 : i32\n"
    "    %even = sub %i1, %odd : i32\n    %k = mul %i, %i64 : i32\n"
    "    %sa = buffer.slot %ra, %s : buf<bf16, [1, 64, 64]> #sw\n"
    "    %sb = buffer.slot %rb, %s : buf<bf16, [1, 64, 64]> #sw\n"
    "    mbar.wait %empty, %s, %even\n"
    "    mbar.expect %full, %s bytes=16384\n"
    "    copy.bulk %a, %i0, %k, %sa, %full, %s extent=[64, 64] inside=3\n"
    "    copy.bulk %b, %k, %i0, %sb, %full, %s extent=[64, 64] inside=3\n"
    "    yield }\n"
    "  yield }\n"
    "role first=0 warps=4 registers=240 {\n"
    "  %start = splat %f0 : f32[64, 64] #acc\n"
    "  %sum = for %i = %i0 to %blocks step %i1 iter (%acc = %start : f32[64, 64] #acc) {\n"
    "    %s = rem %i, %i2 : i32\n    %turn = div %i, %i2 : i32\n    %odd = rem %turn, %i2 : i32\n"
    "    %sa = buffer.slot %ra, %s : buf<bf16, [1, 64, 64]> #sw\n"
    "    %sb = buffer.slot %rb, %s : buf<bf16, [1, 64, 64]> #sw\n"
    "    mbar.wait %full, %s, %odd\n"
    "    %p = wgmma %sa, %sb, %acc tf32=0 : f32[64, 64] #acc\n"
    "    wgmma.commit\n"
    "    %d = wgmma.wait %p pending=0 : f32[64, 64] #acc\n"
    "    mbar.arrive %empty, %s\n"
    "    yield %d }\n"
    "  store %c, %i0, %i0, %sum extent=[64, 64] inside=3\n"
    "  yield }\n"
    "return }\n";

START_TEST(roles_with_engines)
{
    sched_rig r;

    sched_open(&r, roles);
    bind_product(&r);
    sched_must_run(&r);
    product_is_right();
    all_mutants_are_found(&r, 7);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("interp_sched");
    TCase *tc = tcase_create("interp_sched");

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, ir_fixture_teardown);
    tcase_add_test(tc, a_ring_of_copies);
    tcase_add_test(tc, a_copy_pads_with_zeros);
    tcase_add_test(tc, roles_with_engines);
    suite_add_tcase(s, tc);
    return s;
}
