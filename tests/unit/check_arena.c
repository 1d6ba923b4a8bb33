#include "compiler/base/arena.h"
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include <check.h>
#include <stdint.h>
#include <string.h>

static arena a;

static void setup(void)
{
    arena_init(&a);
}

static void teardown(void)
{
    mem_fail_after(0);
    arena_release(&a);
    ck_assert_int_eq(mem_live(), 0);
}

START_TEST(init_allocates_nothing)
{
    ck_assert_int_eq(mem_live(), 0);
    arena_release(&a);
}
END_TEST

START_TEST(memory_is_aligned_zeroed_and_apart)
{
    static const char zeros[3000];
    char *old = NULL;

    for (size_t size = 0; size < sizeof zeros; size += 7) {
        char *p = arena_alloc(&a, size);
        ck_assert_uint_eq((uintptr_t)p % 16, 0);
        ck_assert_mem_eq(p, zeros, size);
        memset(p, 0xA5, size);
        ck_assert(!old || p != old || size <= 7);
        old = p;
    }
    ck_assert_uint_ge(a.used, 3000 / 7 * 1500);
}
END_TEST

START_TEST(rewind_gives_back_and_zeroes_again)
{
    char *kept = arena_strdup(&a, "kept");
    arena_mark m = arena_save(&a);
    long chunks = mem_live();
    char *first = arena_alloc(&a, 32);

    memset(first, 0xA5, 32);
    for (int i = 0; i < 100; i++)
        arena_alloc(&a, 1000);
    ck_assert_int_gt(mem_live(), chunks);
    arena_rewind(&a, m);
    ck_assert_int_eq(mem_live(), chunks);
    char *again = arena_alloc(&a, 32);
    ck_assert_ptr_eq(again, first);
    ck_assert_int_eq(again[0] | again[31], 0);
    ck_assert_str_eq(kept, "kept");
}
END_TEST

START_TEST(rewind_to_empty)
{
    arena_mark m = arena_save(&a);

    arena_alloc(&a, 10);
    arena_rewind(&a, m);
    ck_assert_int_eq(mem_live(), 0);
    ck_assert_str_eq(arena_strdup(&a, "again"), "again");
}
END_TEST

START_TEST(text_is_copied)
{
    ck_assert_str_eq(arena_strndup(&a, "abcdef", 3), "abc");
    ck_assert_str_eq(arena_strndup(&a, NULL, 0), "");
    ck_assert_mem_eq(arena_dup(&a, "a\0b", 3), "a\0b", 3);
    ck_assert_str_eq(arena_printf(&a, "%s-%d", "x", 7), "x-7");
    char *lengthy = arena_printf(&a, "%*d", 10000, 1);
    ck_assert_uint_eq(strlen(lengthy), 10000);
}
END_TEST

static tw_status too_large_array(void *arg)
{
    arena_array(arg, 16, SIZE_MAX / 8);
    return TW_OK;
}

static tw_status too_large_block(void *arg)
{
    arena_alloc(arg, SIZE_MAX - 4);
    return TW_OK;
}

static tw_status many_blocks(void *arg)
{
    for (int i = 0; i < 1000; i++)
        arena_alloc(arg, 1000);
    return TW_OK;
}

START_TEST(overflow_is_out_of_memory)
{
    ck_assert_int_eq(guard_run(too_large_array, &a), TW_E_NOMEM);
    ck_assert_int_eq(guard_run(too_large_block, &a), TW_E_NOMEM);
}
END_TEST

START_TEST(every_failing_chunk_throws)
{
    tw_status st = TW_E_NOMEM;
    long n = 1;

    for (; st == TW_E_NOMEM && n < 100; n++) {
        mem_fail_after(n);
        st = guard_run(many_blocks, &a);
        mem_fail_after(0);
        arena_release(&a);
        ck_assert_int_eq(mem_live(), 0);
    }
    ck_assert_int_eq(st, TW_OK);
    ck_assert_int_gt(n, 5);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("arena");
    TCase *t = tcase_create("arena");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, init_allocates_nothing);
    tcase_add_test(t, memory_is_aligned_zeroed_and_apart);
    tcase_add_test(t, rewind_gives_back_and_zeroes_again);
    tcase_add_test(t, rewind_to_empty);
    tcase_add_test(t, text_is_copied);
    tcase_add_test(t, overflow_is_out_of_memory);
    tcase_add_test(t, every_failing_chunk_throws);
    suite_add_tcase(s, t);
    return s;
}
