/* What code paths of x86-64 may use, against made-up processors: each lacks one thing, and then no
 * path that uses it may be chosen. The bits stand here once more, as the manuals of Intel and AMD
 * give them. */
#include "compiler/target/cpu/cpu_features.h"
#include "compiler/target/cpu/cpu_isa.h"
#include "compiler/target/llvm/llvm_session.h"
#include "compiler/target/target.h"
#include <check.h>
#include <llvm-c/TargetMachine.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { V2 = CPU_SET_V2, V3 = CPU_SET_V3, V4 = CPU_SET_V4, BF16 = CPU_SET_BF16 };
enum { TILES = CPU_SET_TILES, ALL = V2 | V3 | V4 | BF16 | TILES };
enum { EAX, EBX, ECX, EDX };

/* ---- a made-up processor --------------------------------------------------------------------- */

static struct processor {
    uint32_t last, last_extended; /* leaves; 0: has none of the range */
    uint32_t last_of_7;
    uint64_t xcr0;
    struct lack {
        uint32_t leaf, subleaf;
        int reg, bit;
    } lacks;
} made_up;

static const struct processor everything = {0x20, 0x80000008, 2, 0x602e7, {1, 0, EAX, 0}};

/* Ones everywhere but for what is counted. Beyond its last leaf it answers with ones as well: a
 * reader that asks there believes in all features. */
static void made_up_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t reg[4])
{
    const struct lack *l = &made_up.lacks;

    memset(reg, 0xff, 4 * sizeof *reg);
    if (leaf == 0) {
        static const char vendor[] = "AuthenticAMD";
        static const int order[] = {EBX, EDX, ECX};
        reg[EAX] = made_up.last;
        for (int i = 0; i < 3; i++)
            memcpy(&reg[order[i]], vendor + 4 * i, 4);
    } else if (leaf == 0x80000000) {
        reg[EAX] = made_up.last_extended ? made_up.last_extended : 0x7fffffff;
    } else if (leaf == 7 && subleaf == 0) {
        reg[EAX] = made_up.last_of_7;
    }
    if (leaf == l->leaf && subleaf == l->subleaf)
        reg[l->reg] &= ~((uint32_t)1 << l->bit);
}

static int asked_for_xcr0;

static uint64_t made_up_xgetbv(void)
{
    asked_for_xcr0++;
    return made_up.xcr0;
}

/* The sets that it has. */
static unsigned sets_of(const struct processor *p)
{
    cpu_answers c;
    unsigned sets = 0;

    made_up = *p;
    asked_for_xcr0 = 0;
    cpu_answers_read(&c, made_up_cpuid, made_up_xgetbv);
    for (unsigned set = 1; set < ALL; set *= 2)
        sets |= cpu_answers_have(&c, set) ? set : 0;
    return sets;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    struct lack lack;
    unsigned without; /* the sets that are then gone */
} features[] = {
    {"SSE3", {1, 0, ECX, 0}, V2},
    {"SSSE3", {1, 0, ECX, 9}, V2},
    {"CMPXCHG16B", {1, 0, ECX, 13}, V2},
    {"SSE4.1", {1, 0, ECX, 19}, V2},
    {"SSE4.2", {1, 0, ECX, 20}, V2},
    {"POPCNT", {1, 0, ECX, 23}, V2},
    {"LAHF", {0x80000001, 0, ECX, 0}, V2},
    {"FMA", {1, 0, ECX, 12}, V3},
    {"MOVBE", {1, 0, ECX, 22}, V3},
    {"XSAVE", {1, 0, ECX, 26}, V3},
    {"AVX", {1, 0, ECX, 28}, V3},
    {"F16C", {1, 0, ECX, 29}, V3},
    {"BMI1", {7, 0, EBX, 3}, V3},
    {"AVX2", {7, 0, EBX, 5}, V3},
    {"BMI2", {7, 0, EBX, 8}, V3},
    {"LZCNT", {0x80000001, 0, ECX, 5}, V3},
    {"AVX512F", {7, 0, EBX, 16}, V4},
    {"AVX512DQ", {7, 0, EBX, 17}, V4},
    {"AVX512CD", {7, 0, EBX, 28}, V4},
    {"AVX512BW", {7, 0, EBX, 30}, V4},
    {"AVX512VL", {7, 0, EBX, 31}, V4},
    {"AVX512_BF16", {7, 1, EAX, 5}, BF16},
    {"AMX-BF16", {7, 0, EDX, 22}, TILES},
    {"AMX-TILE", {7, 0, EDX, 24}, TILES},
    {"OSXSAVE", {1, 0, ECX, 27}, V3 | V4 | BF16 | TILES},
    {"RDSEED, which no path uses", {7, 0, EBX, 18}, 0},
};

START_TEST(each_missing_feature)
{
    struct processor p = everything;

    ck_assert_uint_eq(sets_of(&p), ALL);
    p.lacks = features[_i].lack;
    ck_assert_msg(sets_of(&p) == (ALL & ~features[_i].without), "without %s: %#x",
                  features[_i].name, sets_of(&p));
    ck_assert_int_eq(asked_for_xcr0, strcmp(features[_i].name, "OSXSAVE") != 0);
}
END_TEST

static const struct {
    const char *what;
    struct processor p;
    unsigned has;
} others[] = {
    {"a system that keeps SSE only", {0x20, 0x80000008, 2, 0x3, {1, 0, EAX, 0}}, V2},
    {"AVX's halves without SSE", {0x20, 0x80000008, 2, 0x5, {1, 0, EAX, 0}}, V2},
    {"a system that keeps AVX", {0x20, 0x80000008, 2, 0x7, {1, 0, EAX, 0}}, V2 | V3},
    {"no upper 16 vectors", {0x20, 0x80000008, 2, 0x67, {1, 0, EAX, 0}}, V2 | V3},
    {"a system that keeps AVX-512", {0x20, 0x80000008, 2, 0xe7, {1, 0, EAX, 0}}, ALL & ~TILES},
    {"no data of tiles", {0x20, 0x80000008, 2, 0x202e7, {1, 0, EAX, 0}}, ALL & ~TILES},
    {"leaf 7 without subleaf 1", {0x20, 0x80000008, 0, 0x602e7, {1, 0, EAX, 0}}, ALL & ~BF16},
    {"no leaf 7", {6, 0x80000008, 2, 0x602e7, {1, 0, EAX, 0}}, V2},
    {"no leaf 80000001", {0x20, 0x80000000, 2, 0x602e7, {1, 0, EAX, 0}}, V4 | BF16 | TILES},
    {"no extended leaf", {0x20, 0, 2, 0x602e7, {1, 0, EAX, 0}}, V4 | BF16 | TILES},
};

START_TEST(leaves_and_what_the_system_keeps)
{
    ck_assert_msg(sets_of(&others[_i].p) == others[_i].has, "%s: %#x", others[_i].what,
                  sets_of(&others[_i].p));
}
END_TEST

START_TEST(vendor_and_palette)
{
    cpu_answers c = {0};

    made_up = everything;
    cpu_answers_read(&c, made_up_cpuid, made_up_xgetbv);
    ck_assert(!cpu_answers_from_intel(&c));
    memcpy(&c.reg[LEAF_VENDOR][EBX], "Genu", 4);
    memcpy(&c.reg[LEAF_VENDOR][EDX], "ineI", 4);
    memcpy(&c.reg[LEAF_VENDOR][ECX], "ntel", 4);
    ck_assert(cpu_answers_from_intel(&c));

    static const struct {
        uint32_t eax, ebx, ecx;
        bool fits;
    } palette[] = {{0x04002000, 0x00080040, 0x10, true},  {0x02002000, 0x00080040, 0x10, false},
                   {0x04002000, 0x00070040, 0x10, false}, {0x04002000, 0x00080020, 0x10, false},
                   {0x04002000, 0x00080040, 0x08, false}, {0, 0, 0, false}};
    for (size_t i = 0; i < sizeof palette / sizeof *palette; i++) {
        uint32_t *reg = c.reg[LEAF_PALETTE];
        reg[EAX] = palette[i].eax;
        reg[EBX] = palette[i].ebx;
        reg[ECX] = palette[i].ecx;
        ck_assert_int_eq(cpu_answers_have_palette(&c), palette[i].fits);
    }
    made_up.last = 0x1c; /* no leaf of palettes */
    cpu_answers_read(&c, made_up_cpuid, made_up_xgetbv);
    ck_assert(!cpu_answers_have_palette(&c));
}
END_TEST

#if defined(__x86_64__)
/* What LLVM writes about a list of features: nothing if it knows all of them. */
static long complaint(const char *text)
{
    FILE *file = tmpfile();
    int out = dup(STDERR_FILENO);
    LLVMTargetRef t;
    char *why = NULL;

    ck_assert(file && out >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    ck_assert(!LLVMGetTargetFromTriple("x86_64-unknown-linux-gnu", &t, &why));
    LLVMDisposeTargetMachine(LLVMCreateTargetMachine(t, "x86_64-unknown-linux-gnu", "x86-64", text,
                                                     LLVMCodeGenLevelDefault, LLVMRelocPIC,
                                                     LLVMCodeModelDefault));
    ck_assert(dup2(out, STDERR_FILENO) >= 0);
    close(out);
    fseek(file, 0, SEEK_END);
    long n = ftell(file);
    fclose(file);
    return n;
}

START_TEST(llvm_knows_each_feature)
{
    arena a;

    arena_init(&a);
    llvm_initialize();
    ck_assert_str_eq(cpu_features_text(&a, 0), "");
    ck_assert_str_eq(cpu_features_text(&a, BF16), "+avx512bf16");
    ck_assert_str_eq(cpu_features_text(&a, TILES), "+amx-bf16,+amx-tile");
    ck_assert_int_eq(complaint(cpu_features_text(&a, ALL)), 0);
    ck_assert_int_gt(complaint("+avx512bf17"), 0);
    arena_release(&a);
}
END_TEST

/* A path is used only where all that LLVM was told is there, and a path with more has all that
 * those with less have. */
START_TEST(paths_and_this_processor)
{
    unsigned more = ALL;

    for (size_t i = 0; cpu_targets[i]; i++) {
        const target *t = cpu_targets[i];
        const cpu_isa *isa = t->data;
        ck_assert_uint_ne(isa->sets & V2, 0);
        ck_assert_uint_eq(isa->sets & ~more, 0);
        ck_assert(!t->usable(t) || cpu_answers_have(cpu_answers_here(), isa->sets));
        more = isa->sets;
    }
    ck_assert_uint_eq(more, V2);
#if !defined(__clang__) /* whose builtin knows these names only from version 18 on */
    const cpu_answers *here = cpu_answers_here();
    ck_assert_int_eq(cpu_answers_have(here, V2), !!__builtin_cpu_supports("x86-64-v2"));
    ck_assert_int_eq(cpu_answers_have(here, V2 | V3), !!__builtin_cpu_supports("x86-64-v3"));
    ck_assert_int_eq(cpu_answers_have(here, V2 | V3 | V4), !!__builtin_cpu_supports("x86-64-v4"));
    ck_assert_int_eq(cpu_answers_have(here, BF16), !!__builtin_cpu_supports("avx512bf16"));
#endif
}
END_TEST
#endif

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("cpu_features");
    TCase *t = tcase_create("cpu_features");

    tcase_add_loop_test(t, each_missing_feature, 0, sizeof features / sizeof *features);
    tcase_add_loop_test(t, leaves_and_what_the_system_keeps, 0, sizeof others / sizeof *others);
    tcase_add_test(t, vendor_and_palette);
#if defined(__x86_64__)
    tcase_add_test(t, llvm_knows_each_feature);
    tcase_add_test(t, paths_and_this_processor);
#endif
    suite_add_tcase(s, t);
    return s;
}
