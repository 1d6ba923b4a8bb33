#include "compiler/base/mem.h"
#include "runtime/profile.h"
#include "tests/support/runtime_fixture.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static tw_status parse(const char *text, gpu_profile *p)
{
    return profile_parse("x.profile", text, strlen(text), p);
}

#define HEAD "name = A GPU\ncapability = 89\nmultiprocessors = 76\n"

START_TEST(what_is_left_out_is_the_capabilitys)
{
    gpu_profile p;
    const gpu_limits ada = gpu_limits_of(89);

    RT_OK(parse(HEAD "# comment\n\n  l2_bytes=67108864   # source\nclock_mhz = 2505", &p));
    ck_assert_str_eq(p.name, "A GPU");
    ck_assert_int_eq(p.limits.multiprocessors, 76);
    ck_assert_int_eq(p.limits.shared_per_block, ada.shared_per_block);
    ck_assert_int_eq(p.limits.registers_per_thread, 255);
    ck_assert(p.limits.l2_bytes == 67108864 && p.clock_mhz == 2505 && p.memory_bytes == 0);
}
END_TEST

#define BAD(text, said) RT_FAILS(parse(text, &p), TW_E_IO, said)
START_TEST(bad_texts)
{
    gpu_profile p = {.name = "untouched"};
    char longer[700];

    BAD("", "name, capability and multiprocessors are needed");
    BAD("name = x\ncapability = 90\n", "are needed");
    BAD(HEAD "l2_bytes 5\n", "x.profile:4: 'l2_bytes 5' has no '='");
    BAD(HEAD "l2_byte = 5\n", "x.profile:4: unknown key 'l2_byte'");
    ck_assert_ptr_nonnull(strstr(tw_last_error()->text, "did you mean 'l2_bytes'?"));
    BAD(HEAD "l2_bytes = 48K\n", "x.profile:4: 'l2_bytes' is '48K', not a whole number");
    BAD(HEAD "l2_bytes =\n", "not a whole number");
    BAD(HEAD "l2_bytes = -1\n", "'l2_bytes' is -1, not from 0 to");
    BAD(HEAD "l2_bytes = 99999999999999999999\n", "not a whole number");
    BAD(HEAD "capability = 90\n", "x.profile:4: 'capability' is given twice");
    BAD("capability = 75\n", "x.profile:1: 'capability' is 75, not from 80 to");
    BAD("name = x\ncapability = 8.9\n", "write 89 for compute capability 8.9");
    BAD("name =\n", "a name has 1 to");
    BAD("name = \033[31mx\n", "a control character in the name");
    BAD("name = \u202ex\n", "a control character in the name");
    BAD(HEAD "shared_per_block = 200000\n", "is above shared_per_multiprocessor");
    BAD(HEAD "shared_reserved = 1025\n", "are together above shared_per_multiprocessor");
    BAD(HEAD "threads_per_block = 2048\n", "is above threads_per_multiprocessor");
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = 0;
    BAD(longer, "a line is longer than");
    RT_FAILS(profile_parse("x.profile", "name = a\0b\n", 11, &p), TW_E_IO, "a NUL byte");
    ck_assert_str_eq(p.name, "untouched");
}
END_TEST

/* Every number of those that are built in: within what its capability has, and a product's. */
START_TEST(those_built_in)
{
    size_t n = 0;

    for (; profile_at(n); n++) {
        gpu_profile p;
        RT_OK(profile_find(profile_at(n)->name, &p));
        const gpu_limits known = gpu_limits_of(p.limits.capability);
        ck_assert_int_eq(p.limits.capability, known.capability);
        ck_assert_int_eq(p.limits.shared_per_block, known.shared_per_block);
        ck_assert_int_eq(p.limits.shared_per_sm, known.shared_per_sm);
        ck_assert_int_eq(p.limits.threads_per_sm, known.threads_per_sm);
        ck_assert_int_eq(p.limits.blocks_per_sm, known.blocks_per_sm);
        ck_assert(p.limits.l2_bytes > 0 && p.memory_bytes > 0 && p.memory_bandwidth > 0 &&
                  p.clock_mhz > 0 && p.limits.multiprocessors > 0);
        ck_assert(strncmp(p.name, "NVIDIA ", 7) == 0);
    }
    ck_assert_uint_eq(n, 7);
}
END_TEST

START_TEST(files)
{
    char path[] = "/tmp/profileXXXXXX";
    gpu_profile p;
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    const char *marked = "\xef\xbb\xbf" HEAD; /* by an editor: a byte order mark */
    ck_assert_int_eq((int)write(fd, marked, strlen(marked)), (int)strlen(marked));
    close(fd);
    RT_OK(profile_find(path, &p));
    ck_assert_int_eq(p.limits.multiprocessors, 76);
    unlink(path);
    RT_FAILS(profile_find("rtx9090", &p), TW_E_IO, "profile 'rtx9090' cannot be read");
    ck_assert_ptr_nonnull(strstr(tw_last_error()->text, "a100, h100, h200, rtx3090"));
    RT_FAILS(profile_find("/tmp", &p), TW_E_IO, "cannot be read");
    RT_FAILS(profile_find("/dev/zero", &p), TW_E_IO, "not a regular file");
    mem_fail_after(1);
    RT_FAILS(profile_find("README.md", &p), TW_E_NOMEM, "no memory to read it");
    mem_fail_after(0);
    RT_FAILS(profile_find("README.md", &p), TW_E_IO, "README.md:");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("profile");
    TCase *t = tcase_create("profile");

    tcase_add_checked_fixture(t, rt_setup, rt_teardown);
    tcase_add_test(t, what_is_left_out_is_the_capabilitys);
    tcase_add_test(t, bad_texts);
    tcase_add_test(t, those_built_in);
    tcase_add_test(t, files);
    suite_add_tcase(s, t);
    return s;
}
