/* Each fault that the race detector knows, in a schedule by hand, and its right twin. */
#include "compiler/ir/element.h"
#include "tests/support/ir_fixture.h"
#include "tests/support/sched_rig.h"
#include <check.h>
#include <string.h>

#define SIDE 64

static uint16_t x16[SIDE * SIDE];
static float y[SIDE * SIDE];
static int32_t counter[4];

static float small(int i)
{
    return (float)(i * 29 % 13 - 6) / 2;
}

static void setup(void)
{
    ir_fixture_setup();
    for (int i = 0; i < SIDE * SIDE; i++) {
        element_write(DT_BF16, &x16[i], (ir_scalar){.f = small(i)});
        y[i] = small(i + 3);
    }
    memset(counter, 0, sizeof counter);
}

/* A kernel of 4 warps around statements. */
static void open_with(sched_rig *r, const char *statements)
{
    sched_open(
        r, arena_printf(
               &ir_arena,
               "level 2 warps=4\n#acc = mma(warps=[4, 1])\n#rows = slice(#acc, dim=1)\n"
               "#wide = blocked(regs=[1, 2], lanes=[1, 32], warps=[4, 1], order=[1, 0])\n"
               "#tall = blocked(regs=[2, 1], lanes=[32, 1], warps=[1, 4], order=[0, 1])\n"
               "#band = blocked(regs=[1, 16], lanes=[8, 4], warps=[4, 1], order=[1, 0])\n"
               "#sw = shared(row=128)\n#swT = trans(#sw, perm=[1, 0])\n#raw = shared(row=0)\n"
               "kernel @k<D>(in %%x : view<bf16, 2>[D, D] unit align=16,\n"
               "    inout %%y : view<f32, 2>[D, D] unit align=16, inout %%n : view<i32, 1>[D],\n"
               "    dim %%d : i32 = D) {\n"
               "%%i0 = const.i 0 : i32\n%%i1 = const.i 1 : i32\n%%i2 = const.i 2 : i32\n"
               "%%f0 = const.f 0.0 : f32\n%%none = splat %%f0 : f32[64, 64] #acc\n"
               "%%buf = alloc offset=0 : buf<bf16, [2, 64, 64]> #sw\n"
               "%%s = buffer.slot %%buf, %%i0 : buf<bf16, [1, 64, 64]> #sw\n"
               "%%fb = alloc offset=16384 : buf<f32, [1, 64, 64]> #raw\n"
               "%%fs = buffer.slot %%fb, %%i0 : buf<f32, [1, 64, 64]> #raw\n"
               "%s\nreturn }\n",
               statements));
    sched_bind(r, 0, x16, (int64_t[]){SIDE, SIDE});
    sched_bind(r, 1, y, (int64_t[]){SIDE, SIDE});
    sched_bind(r, 2, counter, (int64_t[]){4});
}

static void right(const char *statements)
{
    sched_rig r;

    open_with(&r, statements);
    sched_must_run(&r);
}

#define WRONG(statements, ...)                                                                     \
    do {                                                                                           \
        sched_rig rig_;                                                                            \
        open_with(&rig_, statements);                                                              \
        sched_must_fail(&rig_, (const char *[]){__VA_ARGS__, NULL});                               \
    } while (0)

#define COPY "copy.async %x, %i0, %i0, %s extent=[64, 64] inside=0 bytes=16\ncopy.commit\n"
#define WAIT "copy.wait pending=0\n"
#define BARRIER "barrier id=0 warps=0\n"
#define USE "%p = mma %s, %s, %none tf32=0 : f32[64, 64] #acc\n"
#define TILE(layout) "%t = load %y, %i0, %i0 extent=[64, 64] inside=0 : f32[64, 64] #" layout "\n"

START_TEST(copies_land)
{
    right(COPY WAIT BARRIER USE);
    WRONG(COPY BARRIER USE, "'mma' (line", "'copy.async' (line", "has not landed");
    WRONG(COPY WAIT USE, "'mma'", "'copy.async'", "a wait or a barrier is missing");
    WRONG(COPY BARRIER WAIT USE, "'mma'", "'copy.async'", "has not landed");
    WRONG(COPY WAIT "barrier.warp\n" USE, "'mma'", "'copy.async'", "has not landed");
    WRONG(COPY "copy.wait pending=1\n" BARRIER USE, "'mma'", "has not landed");
    WRONG("copy.async %x, %i0, %i0, %s extent=[64, 64] inside=0 bytes=16\n" WAIT BARRIER USE,
          "has not landed"); /* not committed */
    WRONG(USE, "'mma'", "which nothing had written");
}
END_TEST

START_TEST(what_is_read_is_not_overwritten)
{
    right(COPY WAIT BARRIER USE BARRIER COPY WAIT);
    WRONG(COPY WAIT BARRIER USE COPY WAIT, "'copy.async'", "was read by 'mma'");
    WRONG(COPY COPY WAIT, "'copy.async'", "was written by 'copy.async'", "has not landed");
}
END_TEST

START_TEST(stores_are_seen_behind_a_barrier)
{
    right(TILE("wide") "buffer.store %fs, %t\n" BARRIER
                       "%u = buffer.load %fs : f32[64, 64] #tall\n");
    right(TILE("wide") "buffer.store %fs, %t\n%u = buffer.load %fs : f32[64, 64] #wide\n");
    WRONG(TILE("wide") "buffer.store %fs, %t\n%u = buffer.load %fs : f32[64, 64] #tall\n",
          "'buffer.load'", "'buffer.store'", "missing");
    WRONG(TILE("wide") "buffer.store %fs, %t\nbarrier.warp\n"
                       "%u = buffer.load %fs : f32[64, 64] #tall\n",
          "'buffer.load'", "'buffer.store'", "a barrier is missing");
}
END_TEST

START_TEST(threads_of_a_warp_are_ordered_by_barrier_warp)
{
    const char *missed;
    sched_rig r;

    sched_open(&r,
               "level 2 warps=1\n#a = blocked(regs=[1], lanes=[32], warps=[1], order=[0])\n"
               "#b = blocked(regs=[2], lanes=[32], warps=[1], order=[0])\n#raw = shared(row=0)\n"
               "kernel @k(%f : f32) {\n%i0 = const.i 0 : i32\n"
               "%buf = alloc offset=0 : buf<f32, [1, 64]> #raw\n"
               "%s = buffer.slot %buf, %i0 : buf<f32, [1, 64]> #raw\n"
               "%t = splat %f : f32[64] #a\nbuffer.store %s, %t\nbarrier.warp\n"
               "%u = buffer.load %s : f32[64] #b\nbarrier.warp\nbuffer.store %s, %t\nreturn }\n");
    sched_must_run(&r);
    ck_assert_int_eq(sched_mutate(&r, &missed), 2);
    ck_assert_str_eq(missed, "");
    ir_unlink(ir_first_of(r.m, OP_BARRIER_WARP));
    sched_must_fail(&r, (const char *[]){"'buffer.load'", "'buffer.store'",
                                         "another thread of the warp: a barrier.warp is missing",
                                         NULL});
}
END_TEST

START_TEST(buffers_that_share_bytes_are_one_memory)
{
#define OVER                                                                                       \
    "%ob = alloc offset=16384 : buf<f32, [1, 64, 64]> #raw\n"                                      \
    "%os = buffer.slot %ob, %i0 : buf<f32, [1, 64, 64]> #raw\n"
#define FIRST                                                                                      \
    TILE("wide")                                                                                   \
    OVER "buffer.store %fs, %t\n" BARRIER "%u = buffer.load %fs : f32[64, 64] "                    \
         "#tall\n"
    right(FIRST BARRIER "buffer.store %os, %t\n");
    WRONG(FIRST "buffer.store %os, %t\n", "'buffer.store'", "was read by 'buffer.load'");
}
END_TEST

START_TEST(tensors_that_are_written_are_ordered_too)
{
    right(TILE("wide") "store %y, %i0, %i0, %t extent=[64, 64] inside=0\n" BARRIER
                       "%u = load %y, %i0, %i0 extent=[64, 64] inside=0 : f32[64, 64] #tall\n");
    WRONG(TILE("wide") "store %y, %i0, %i0, %t extent=[64, 64] inside=0\n"
                       "%u = load %y, %i0, %i0 extent=[64, 64] inside=0 : f32[64, 64] #tall\n",
          "'load'", "a tensor was written by 'store'");
    WRONG(TILE("tall") "%u = splat %f0 : f32[64, 64] #wide\n"
                       "store %y, %i0, %i0, %u extent=[64, 64] inside=0\n",
          "'store'", "a tensor was read by 'load'");
}
END_TEST

/* ---- engines ---- */

#define MBAR "%bar = mbar.alloc offset=32768 count=2 arrivals=1 : mbar\n" BARRIER
#define BULK "copy.bulk %x, %i0, %i0, %s, %bar, %i0 extent=[64, 64] inside=0\n"
#define ONE(first, body) "role first=" first " warps=1 registers=0 {\n" body "yield }\n"
#define EXPECT "mbar.expect %bar, %i0 bytes=8192\n"
#define AWAIT "mbar.wait %bar, %i0, %i0\n"

START_TEST(bulk_copies_land_at_their_mbarrier)
{
    right(MBAR ONE("0", EXPECT BULK) AWAIT USE);
    WRONG(MBAR ONE("0", EXPECT BULK) USE, "'mma'", "'copy.bulk'", "is missing");
    WRONG("%bar = mbar.alloc offset=32768 count=2 arrivals=1 : mbar\n" ONE("0", EXPECT BULK)
              AWAIT USE,
          "is not initialised", "'mbar.alloc'");
    WRONG(MBAR ONE("0", BULK) AWAIT USE, "deadlock", "'mbar.wait'");
    WRONG(MBAR ONE("0", "mbar.expect %bar, %i0 bytes=8208\n" BULK) AWAIT USE, "deadlock");
    WRONG(MBAR ONE("0", EXPECT EXPECT BULK) AWAIT USE, "one arrival more");
    WRONG(MBAR ONE("0", EXPECT BULK) "mbar.wait %bar, %i2, %i0\n", "mbarrier 2 of 2");
}
END_TEST

START_TEST(engines_see_stores_behind_a_fence)
{
#define HALF TILE("acc") "%h = cast %t : bf16[64, 64] #acc\nbuffer.store %s, %h\n"
#define PRODUCT "%w = wgmma %s, %s, %none tf32=0 : f32[64, 64] #acc\nwgmma.commit\n"
#define DONE "%v = wgmma.wait %w pending=0 : f32[64, 64] #acc\n"
    right(HALF "fence.async\n" BARRIER PRODUCT DONE);
    WRONG(HALF BARRIER PRODUCT DONE, "'wgmma'", "'buffer.store'", "a fence.async is missing");
    WRONG(HALF BARRIER "fence.async\n" PRODUCT DONE, "'wgmma'", "a fence.async is missing");
    WRONG("fence.async\n" HALF BARRIER PRODUCT DONE, "'wgmma'", "a fence.async is missing");
    right(COPY WAIT "fence.async\n" BARRIER PRODUCT DONE);
    WRONG(COPY WAIT BARRIER PRODUCT DONE, "'wgmma'", "'copy.async'", "a fence.async is missing");
    WRONG(MBAR HALF BARRIER ONE("0", EXPECT BULK), "'copy.bulk'", "a fence.async is missing");
    right(MBAR HALF "fence.async\n" BARRIER ONE("0", EXPECT BULK));
}
END_TEST

START_TEST(products_end_before_what_they_touch)
{
#define READY COPY WAIT "fence.async\n" BARRIER PRODUCT
    WRONG(READY "%z = add %w, %w : f32[64, 64] #acc\n", "'add'", "a wgmma.wait is missing");
    WRONG(READY
          "%v = wgmma.wait %w pending=1 : f32[64, 64] #acc\n%z = add %v, %v : f32[64, 64] #acc\n",
          "'add'", "a wgmma.wait is missing");
    right(READY DONE "%z = add %v, %v : f32[64, 64] #acc\n");
    right(READY "%w2 = wgmma %s, %s, %w tf32=0 : f32[64, 64] #acc\nwgmma.commit\n"
                "%v = wgmma.wait %w2 pending=0 : f32[64, 64] #acc\n");
    right(READY DONE BARRIER COPY WAIT);
    WRONG(READY BARRIER COPY WAIT DONE, "'copy.async'", "was read by 'wgmma'", "may still read");
}
END_TEST

/* ---- who does not come ---- */

START_TEST(deadlocks_name_both_sides)
{
    right("barrier id=1 warps=4\n");
    WRONG(ONE("0", "barrier id=1 warps=2\n"), "deadlock", "warp 0 waits at 'barrier'", "has ended");
    WRONG(ONE("0", "barrier id=1 warps=2\n") ONE("1", "barrier id=2 warps=2\n"), "deadlock",
          "warp 0 waits at 'barrier'", "warp 1 at 'barrier'");
    right(ONE("0", "barrier id=1 warps=2\n") ONE("1", "barrier id=1 warps=2\n"));
    WRONG(ONE("0", "barrier id=1 warps=2\n") ONE("1", "barrier id=1 warps=3\n"), "are to meet at");
    WRONG(MBAR "mbar.wait %bar, %i1, %i0\n", "deadlock", "'mbar.wait'", "what never comes");
    WRONG("%z = buffer.slot %buf, %i2 : buf<bf16, [1, 64, 64]> #sw\n", "slot 2 of 2");
}
END_TEST

START_TEST(pieces_are_aligned)
{
    WRONG("copy.async %x, %i0, %i2, %s extent=[64, 64] inside=0 bytes=16\n",
          "element 2 of a row is not at a multiple of 16 bytes");
    right("copy.async %x, %i0, %i2, %s extent=[64, 64] inside=0 bytes=4\n");
}
END_TEST

START_TEST(a_warp_has_only_what_it_holds)
{
    WRONG(TILE("wide") "%u = convert %t : f32[64, 64] #tall\n", "'convert'", "is in another warp");
    right(TILE("band") "%u = convert %t : f32[64, 64] #band\n");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("schedule_faults");
    TCase *tc = tcase_create("schedule_faults");

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, ir_fixture_teardown);
    tcase_add_test(tc, copies_land);
    tcase_add_test(tc, what_is_read_is_not_overwritten);
    tcase_add_test(tc, stores_are_seen_behind_a_barrier);
    tcase_add_test(tc, threads_of_a_warp_are_ordered_by_barrier_warp);
    tcase_add_test(tc, buffers_that_share_bytes_are_one_memory);
    tcase_add_test(tc, tensors_that_are_written_are_ordered_too);
    tcase_add_test(tc, bulk_copies_land_at_their_mbarrier);
    tcase_add_test(tc, engines_see_stores_behind_a_fence);
    tcase_add_test(tc, products_end_before_what_they_touch);
    tcase_add_test(tc, deadlocks_name_both_sides);
    tcase_add_test(tc, a_warp_has_only_what_it_holds);
    tcase_add_test(tc, pieces_are_aligned);
    suite_add_tcase(s, tc);
    return s;
}
