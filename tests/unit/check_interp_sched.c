/* The interpreter at level 2: schedules that are right give what level 1 gives, whatever the order
 * of warps and landings; each fault is reported with both ops, and its right twin is not. */
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "compiler/ir/element.h"
#include "tests/support/ir_fixture.h"
#include "tests/support/sched_rig.h"
#include <check.h>
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

#define PRODUCT                                                                                    \
    "kernel @product<M, K, N>(in %a : view<bf16, 2>[M, K] unit align=16,\n"                        \
    "    in %b : view<bf16, 2>[K, N] unit align=16, out %c : view<f32, 2>[M, N],\n"                \
    "    dim %dm : i32 = M, dim %dk : i32 = K, dim %dn : i32 = N) {\n"                             \
    "%i0 = const.i 0 : i32\n%i1 = const.i 1 : i32\n%i2 = const.i 2 : i32\n%i64 = const.i 64 : "    \
    "i32\n"                                                                                        \
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

START_TEST(the_ring_waits_one_block_later)
{
    sched_rig r;

    sched_open(&r, ring);
    bind_product(&r);
    ir_first_of(r.m, OP_COPY_WAIT)->attr[0].i = 1;
    sched_must_fail(&r, (const char *[]){"'mma'", "'copy.async'", "has not landed", NULL});
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

/* ---- what level 1 computes, in many layouts ---- */

static float x2[40 * 48], flat_y[40 * 48], part_y[40 * 48];
static int32_t counts1[64], counts2[64];

/* The text as one of level 1: without its head and the names of layouts. */
static const char *flat(const char *text)
{
    strbuf out;

    sb_init(&out, &ir_arena);
    for (text = strstr(text, "kernel @"); *text;) {
        if (text[0] == ' ' && text[1] == '#') {
            text += 2 + strcspn(text + 2, " ,\n)");
            continue;
        }
        sb_char(&out, *text++);
    }
    return out.s;
}

static tw_status run_flat(const char *text, float *y, int32_t *counts)
{
    sched_rig r;

    memset(y, 0xff, sizeof flat_y);
    memset(counts, 0, sizeof counts1);
    sched_open(&r, text);
    sched_bind(&r, 0, x2, (int64_t[]){37, 45});
    sched_bind(&r, 1, y, (int64_t[]){37, 45});
    sched_bind(&r, 2, counts, (int64_t[]){64});
    tw_status st = sched_run(&r, r.m, 3);
    ck_assert_msg(st == TW_OK, "%s: %s", tw_status_name(st), r.fault.text);
    return st;
}

/* Layouts of f32[32, 64] that keep rows in one warp. */
static const char *const row_layouts[] = {
    "mma(warps=[2, 1])",
    "mma_a(warps=[2, 1])",
    "mma_a(warps=[1, 2])",
    "blocked(regs=[1, 4], lanes=[8, 4], warps=[2, 1], order=[1, 0])",
    "blocked(regs=[2, 2], lanes=[1, 32], warps=[2, 1], order=[0, 1])",
    "blocked(regs=[4, 1], lanes=[4, 4], warps=[1, 1], order=[1, 0])",
};

static void same_as_level_1(const char *statements)
{
    for (size_t i = 0; i < sizeof row_layouts / sizeof *row_layouts; i++) {
        for (size_t k = 0; k < sizeof x2 / sizeof *x2; k++)
            x2[k] = small((int)(k * 7 + i));
        const char *text = arena_printf(
            &ir_arena,
            "level 2 warps=2\n#t = %s\n#r = slice(#t, dim=1)\n#c = slice(#t, dim=0)\n"
            "#u = trans(#t, perm=[1, 0])\n#v = slice(#u, dim=0)\n"
            "kernel @k<M, N, C>(in %%x : view<f32, 2>[M, N], out %%y : view<f32, 2>[M, N],\n"
            "    inout %%n : view<i32, 1>[C], dim %%dm : i32 = M, dim %%dn : i32 = N,\n"
            "    dim %%dc : i32 = C) {\n"
            "%%i0 = const.i 0 : i32\n%%i1 = const.i 1 : i32\n%%i3 = const.i 3 : i32\n"
            "%%a = load %%x, %%i0, %%i0 extent=[32, 64] inside=0 : f32[32, 64] #t\n"
            "%s\nstore %%y, %%i0, %%i0, %%z extent=[32, 64] inside=0\nreturn }\n",
            row_layouts[i], statements);
        run_flat(text, part_y, counts2);
        run_flat(flat(text), flat_y, counts1);
        ck_assert_msg(!memcmp(flat_y, part_y, sizeof flat_y), "layout %s:\n%s", row_layouts[i],
                      statements);
        ck_assert(!memcmp(counts1, counts2, sizeof counts1));
    }
}

START_TEST(tiles_are_computed_in_parts)
{
    same_as_level_1("%z = mul %a, %a : f32[32, 64] #t");
    same_as_level_1("%top = reduce_max %a axis=1 : f32[32] #r\n"
                    "%e = expand_dims %top axis=1 : f32[32, 1] #t\n"
                    "%w = broadcast %e : f32[32, 64] #t\n%d = sub %a, %w : f32[32, 64] #t\n"
                    "%z = exp %d : f32[32, 64] #t");
    same_as_level_1("%z = scan_sum %a axis=1 : f32[32, 64] #t");
    same_as_level_1("%q = arange 5 : i32[64] #c\n%e = expand_dims %q axis=0 : i32[1, 64] #t\n"
                    "%w = broadcast %e : i32[32, 64] #t\n%z = cast %w : f32[32, 64] #t");
    same_as_level_1("%q = arange 0 : i32[32] #r\n%e = expand_dims %q axis=1 : i32[32, 1] #t\n"
                    "%w = broadcast %e : i32[32, 64] #t\n%f = cast %w : f32[32, 64] #t\n"
                    "%z = add %a, %f : f32[32, 64] #t");
    same_as_level_1("%q = trans %a perm=[1, 0] : f32[64, 32] #u\n"
                    "%s = reduce_sum %q axis=0 : f32[32] #v\n"
                    "%e = expand_dims %s axis=0 : f32[1, 32] #u\n"
                    "%w = broadcast %e : f32[64, 32] #u\n"
                    "%z = trans %w perm=[1, 0] : f32[32, 64] #t");
    same_as_level_1("%z = for %i = %i0 to %i3 step %i1 iter (%v = %a : f32[32, 64] #t) {\n"
                    "%n2 = add %v, %a : f32[32, 64] #t\nyield %n2 }");
}
END_TEST

START_TEST(tiles_of_indices_go_where_their_dimension_is)
{
    same_as_level_1("%q = arange 0 : i32[32] #r\n%three = splat %i3 : i32[32] #r\n"
                    "%p = mul %q, %three : i32[32] #r\n"
                    "%z = load %x, %p, %i1 extent=[32, 64] inside=0 : f32[32, 64] #t");
    same_as_level_1("%q = arange 0 : i32[64] #c\n%three = splat %i3 : i32[64] #c\n"
                    "%p = rem %q, %three : i32[64] #c\n"
                    "%z = load %x, %i0, %p extent=[32, 64] inside=0 : f32[32, 64] #t");
    same_as_level_1("%q = arange 0 : i32[32] #r\n%three = splat %i3 : i32[32] #r\n"
                    "%p = rem %q, %three : i32[32] #r\n"
                    "%old = atomic_add %n, %p, %q extent=[32] inside=0 : i32[32] #r\n"
                    "%s = atomic_add %n, %i3, %i1 extent=[0] inside=0 : i32\n"
                    "%f = cast %s : f32\n%w = splat %f : f32[32, 64] #t\n"
                    "%z = add %a, %w : f32[32, 64] #t");
}
END_TEST

/* ---- products ---- */

/* y = a b, with the factors of 64 x 64 as the text takes them from slots %s (a) and %t (b). */
static void product_of(const char *layouts, const char *type, const char *steps)
{
    sched_rig r;

    sched_open(&r,
               arena_printf(&ir_arena,
                            "level 2 warps=4\n%s\n#sw = shared(row=128)\n"
                            "#swT = trans(#sw, perm=[1, 0])\n"
                            "kernel @k<D>(in %%a : view<%s, 2>[D, D] unit align=16,\n"
                            "    in %%b : view<%s, 2>[D, D] unit align=16,\n"
                            "    out %%c : view<f32, 2>[D, D], dim %%d : i32 = D) {\n"
                            "%%i0 = const.i 0 : i32\n%%f0 = const.f 0.0 : f32\n"
                            "%%none = splat %%f0 : f32[64, 64] #acc\n"
                            "%%ba = alloc offset=-1 : buf<%s, [1, 64, 64]> #sw\n"
                            "%%bb = alloc offset=-1 : buf<%s, [1, 64, 64]> #sw\n"
                            "%%s = buffer.slot %%ba, %%i0 : buf<%s, [1, 64, 64]> #sw\n"
                            "%%t = buffer.slot %%bb, %%i0 : buf<%s, [1, 64, 64]> #sw\n"
                            "copy.async %%a, %%i0, %%i0, %%s extent=[64, 64] inside=0 bytes=16\n"
                            "copy.async %%b, %%i0, %%i0, %%t extent=[64, 64] inside=0 bytes=16\n"
                            "copy.commit\ncopy.wait pending=0\nbarrier id=0 warps=0\n%s\n"
                            "store %%c, %%i0, %%i0, %%p extent=[64, 64] inside=0\nreturn }\n",
                            layouts, type, type, type, type, type, type, steps));
    bool half = !strcmp(type, "bf16");
    sched_bind(&r, 0, half ? (void *)a16 : (void *)fa, (int64_t[]){60, 64});
    sched_bind(&r, 1, half ? (void *)b16 : (void *)fb, (int64_t[]){64, 64});
    sched_bind(&r, 2, c, (int64_t[]){60, 64});
    memset(c, 0xff, sizeof c);
    sched_must_run(&r);
}

static void check_product(bool a_is_turned, bool b_is_turned)
{
    for (int i = 0; i < 60; i++)
        for (int j = 0; j < 64; j++) {
            float sum = 0;
            for (int k = 0; k < 64; k++) {
                int ra = a_is_turned ? k : i, ca = a_is_turned ? i : k;
                float u = ra < 60 ? fa[ra * 64 + ca] : 0; /* rows beyond the tensor are zeros */
                sum += u * fb[b_is_turned ? j * 64 + k : k * 64 + j];
            }
            if (c[i * 64 + j] != sum)
                ck_abort_msg("%d, %d: %g, not %g", i, j, (double)c[i * 64 + j], (double)sum);
        }
}

START_TEST(factors_are_read_as_they_stand_and_turned)
{
    const char *four = "#acc = mma(warps=[4, 1])", *split = "#acc = mma(warps=[2, 2])";
    const char *turn_b = "%u = buffer.trans %t perm=[1, 0] : buf<bf16, [1, 64, 64]> #swT\n"
                         "%p = mma %s, %u, %none tf32=0 : f32[64, 64] #acc";
    const char *turn_a = "%u = buffer.trans %s perm=[1, 0] : buf<bf16, [1, 64, 64]> #swT\n"
                         "%p = mma %u, %t, %none tf32=0 : f32[64, 64] #acc";

    product_of(four, "bf16", "%p = mma %s, %t, %none tf32=0 : f32[64, 64] #acc");
    check_product(false, false);
    product_of(split, "bf16", turn_b);
    check_product(false, true);
    product_of(split, "bf16", turn_a);
    check_product(true, false);
    product_of("#acc = mma(warps=[4, 1])\n#a = mma_a(warps=[4, 1])", "bf16",
               "%q = buffer.load %s : bf16[64, 64] #a\n"
               "%p = mma %q, %t, %none tf32=0 : f32[64, 64] #acc");
    check_product(false, false);
}
END_TEST

START_TEST(f32_is_exact_by_dot_and_rounded_by_tf32)
{
    product_of("#acc = blocked(regs=[4, 4], lanes=[4, 8], warps=[4, 1], order=[1, 0])", "f32",
               "%p = dot %s, %t, %none : f32[64, 64] #acc");
    check_product(false, false);
    product_of("#acc = mma(warps=[4, 1])", "f32",
               "%p = mma %s, %t, %none tf32=1 : f32[64, 64] #acc");
    check_product(false, false); /* small numbers are numbers of tf32 */
    memset(fa, 0, sizeof fa);
    memset(fb, 0, sizeof fb);
    fa[0] = 1.0f + 0x1p-10f + 0x1p-11f; /* a tie: away from zero */
    fa[64] = -1.0f - 0x1p-12f;          /* below the half */
    fb[0] = 1.0f;
    product_of("#acc = mma(warps=[4, 1])", "f32",
               "%p = mma %s, %t, %none tf32=1 : f32[64, 64] #acc");
    ck_assert(c[0] == 1.0f + 0x1p-9f && c[64] == -1.0f);
}
END_TEST

/* ---- warps that go different ways ---- */

START_TEST(votes_are_of_each_warp)
{
    sched_rig r;
    static float in[64 * 64], out[64 * 64];

    for (int i = 0; i < 64 * 64; i++)
        in[i] = i == 20 * 64 + 3 ? 5.0f : 0.0f; /* one element of warp 1 */
    sched_open(&r, "level 2 warps=4\n#acc = mma(warps=[4, 1])\n"
                   "kernel @k<D>(in %x : view<f32, 2>[D, D], out %y : view<f32, 2>[D, D],\n"
                   "    dim %d : i32 = D) {\n%i0 = const.i 0 : i32\n%f1 = const.f 1.0 : f32\n"
                   "%ones = splat %f1 : f32[64, 64] #acc\n"
                   "%t = load %x, %i0, %i0 extent=[64, 64] inside=0 : f32[64, 64] #acc\n"
                   "%big = lt %ones, %t : i1[64, 64] #acc\n%any = vote.any %big : i1\n"
                   "%z = if %any : f32[64, 64] #acc {\nyield %ones } else {\nyield %t }\n"
                   "store %y, %i0, %i0, %z extent=[64, 64] inside=0\nreturn }\n");
    sched_bind(&r, 0, in, (int64_t[]){64, 64});
    sched_bind(&r, 1, out, (int64_t[]){64, 64});
    sched_must_run(&r);
    for (int i = 0; i < 64; i++)
        ck_assert(out[i * 64] == (i >= 16 && i < 32 ? 1.0f : 0.0f));
}
END_TEST

/* Of 8 columns a lane holds two in a row: part j of a row is of columns n / 2 % 4 == j. */
START_TEST(parts_of_a_sum_are_of_each_lane)
{
    sched_rig r;
    static float in[64 * 64], out[64 * 4];

    for (int i = 0; i < 64 * 64; i++)
        in[i] = (float)(i * 7 % 61 - 30);
    sched_open(&r, "level 2 warps=4\n#acc = mma(warps=[4, 1])\n#parts = lanes(#acc, dim=1)\n"
                   "kernel @k<D, 4>(in %x : view<f32, 2>[D, D], out %y : view<f32, 2>[D, 4],\n"
                   "    dim %d : i32 = D) {\n%i0 = const.i 0 : i32\n"
                   "%t = load %x, %i0, %i0 extent=[64, 64] inside=0 : f32[64, 64] #acc\n"
                   "%p = partial_sum %t axis=1 : f32[64, 4] #parts\n"
                   "store %y, %i0, %i0, %p extent=[64, 4] inside=0\nreturn }\n");
    sched_bind(&r, 0, in, (int64_t[]){64, 64});
    sched_bind(&r, 1, out, (int64_t[]){64, 4});
    sched_must_run(&r);
    for (int i = 0; i < 64 * 4; i++) {
        float sum = 0;
        for (int n = 0; n < 64; n++)
            sum += n / 2 % 4 == i % 4 ? in[i / 4 * 64 + n] : 0.0f;
        ck_assert(out[i] == sum); /* small numbers: exact */
    }
}
END_TEST

/* The sums of what a factor holds, rounded to bf16 and not. */
START_TEST(rows_of_a_factor_are_added_up)
{
    sched_rig r;
    static float in[64 * 48], out[64];

    for (int i = 0; i < 64 * 48; i++)
        in[i] = (float)(i * 7 % 61 - 30);
    in[3] = 257.0f; /* bf16: 256 */
    sched_open(&r, "level 2 warps=4\n#acc = mma(warps=[4, 1])\n#rows = slice(#acc, dim=1)\n"
                   "kernel @k<M, N>(in %x : view<f32, 2>[M, N], out %y : view<f32, 1>[M],\n"
                   "    dim %m : i32 = M, dim %n : i32 = N) {\n%i0 = const.i 0 : i32\n"
                   "%t = load %x, %i0, %i0 extent=[64, 48] inside=0 : f32[64, 48] #acc\n"
                   "%c = cast %t : bf16[64, 48] #acc\n%s = mma.sum %c : f32[64] #rows\n"
                   "store %y, %i0, %s extent=[64] inside=0\nreturn }\n");
    sched_bind(&r, 0, in, (int64_t[]){64, 48});
    sched_bind(&r, 1, out, (int64_t[]){64});
    sched_must_run(&r);
    for (int i = 0; i < 64; i++) {
        float sum = i == 0 ? -1.0f : 0.0f;
        for (int n = 0; n < 48; n++)
            sum += in[i * 48 + n];
        ck_assert(out[i] == sum);
    }
}
END_TEST

static int prints;
static float printed[32];

static void take_print(void *user, int32_t index, const int64_t program[3], const void *elements)
{
    (void)user, (void)program;
    prints++;
    ck_assert_int_eq(index, 0);
    memcpy(printed, elements, sizeof printed);
}

START_TEST(what_is_printed_comes_from_all_warps_once)
{
    sched_rig r;

    sched_open(&r, "level 2 warps=2\n#b = blocked(regs=[1], lanes=[8], warps=[2], order=[0])\n"
                   "kernel @k() {\n%a = arange 0 : i32[32] #b\n%f = cast %a : f32[32] #b\n"
                   "print %f \"f\"\nreturn }\n");
    r.launch.print = take_print;
    prints = 0;
    ck_assert_int_eq(sched_run(&r, r.m, 1), TW_OK);
    ck_assert_int_eq(prints, 1);
    for (int i = 0; i < 32; i++)
        ck_assert(printed[i] == (float)i);
}
END_TEST

/* ---- schedules at random ---- */

/* Takes a line away, moves it, or counts one more in it. */
static void damage_line(char *text, uint32_t pick, uint32_t how)
{
    char *line = strstr(text, "%i1 = ");
    char copy[256];

    if (!line)
        return;

    for (pick %= 40; pick > 0 && strchr(line, '\n'); pick--)
        line = strchr(line, '\n') + 1;
    size_t n = strcspn(line, "\n") + 1;
    if (line[n - 1] != '\n' || strcspn(line, "{}") < n || n >= sizeof copy)
        return;
    memcpy(copy, line, n);
    if (how % 3 == 2) {
        char *digit = strpbrk(line, "123456789");
        if (digit && digit < line + n)
            *digit = (char)('0' + (*digit - '0') % 9 + 1);
        return;
    }
    memmove(line, line + n, strlen(line + n) + 1);
    char *next = strchr(line, '\n');
    if (how % 3 == 1 && next) {
        memmove(next + 1 + n, next + 1, strlen(next + 1) + 1);
        memcpy(next + 1, copy, n);
    }
}

static tw_status run_damaged(void *arg)
{
    sched_rig r;
    ir_module *m = ir_try(arg);

    if (!m)
        return TW_E_SOURCE;
    sched_open_module(&r, m);
    r.launch.step_limit = 2000;
    bind_product(&r);
    tw_status st = sched_run(&r, r.m, 1);
    bool told = st == TW_E_INTERNAL && strstr(r.fault.text, "was proved inside");
    return told ? TW_E_SOURCE : st; /* the damage made an inside bit wrong */
}

/* Whatever the schedule, the interpreter ends it or says what is wrong. */
START_TEST(damaged_schedules_are_answered)
{
    uint32_t state = 12345, ran = 0, refused = 0;
    char text[8192];

    for (int round = 0; round < 300; round++) {
        strcpy(text, round % 2 ? ring : roles);
        for (int k = round / 2 % 3; k >= 0; k--) {
            state = state * 1664525 + 1013904223;
            damage_line(text, state >> 8, state >> 20);
        }
        arena_mark mark = arena_save(&ir_arena);
        intern_init(&ir_names, &ir_arena);
        diag_init(&ir_diags, &ir_arena);
        tw_status st = guard_run(run_damaged, text);
        ck_assert_msg(st == TW_OK || st == TW_E_SOURCE || st == TW_E_LIMIT, "%s on\n%s",
                      tw_status_name(st), text);
        ran += st == TW_OK;
        refused += st == TW_E_SOURCE;
        arena_rewind(&ir_arena, mark);
    }
    ck_assert_uint_gt(ran, 10);
    ck_assert_uint_gt(refused, 50);
}
END_TEST

START_TEST(a_module_runs_without_memory_or_says_so)
{
    sched_rig r;
    tw_status st = TW_E_NOMEM;

    sched_open(&r, roles);
    bind_product(&r);
    interp_program *p = interp_prepare(&ir_arena, r.m);
    long live = mem_live();
    for (long n = 1; st == TW_E_NOMEM && n < 1000; n++) {
        mem_fail_after(n);
        st = interp_run(p, &r.launch, 0, INT64_MAX, &r.fault);
        mem_fail_after(0);
        ck_assert_msg(st == TW_E_NOMEM || st == TW_OK, "%s", r.fault.text);
        ck_assert_int_eq(mem_live(), live);
    }
    ck_assert_int_eq(st, TW_OK);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("interp_sched");
    TCase *tc = tcase_create("interp_sched");

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, ir_fixture_teardown);
    tcase_add_test(tc, a_ring_of_copies);
    tcase_add_test(tc, the_ring_waits_one_block_later);
    tcase_add_test(tc, roles_with_engines);
    tcase_add_test(tc, tiles_are_computed_in_parts);
    tcase_add_test(tc, tiles_of_indices_go_where_their_dimension_is);
    tcase_add_test(tc, factors_are_read_as_they_stand_and_turned);
    tcase_add_test(tc, f32_is_exact_by_dot_and_rounded_by_tf32);
    tcase_add_test(tc, votes_are_of_each_warp);
    tcase_add_test(tc, parts_of_a_sum_are_of_each_lane);
    tcase_add_test(tc, rows_of_a_factor_are_added_up);
    tcase_add_test(tc, what_is_printed_comes_from_all_warps_once);
    tcase_add_test(tc, damaged_schedules_are_answered);
    tcase_add_test(tc, a_module_runs_without_memory_or_says_so);
    suite_add_tcase(s, tc);
    return s;
}
