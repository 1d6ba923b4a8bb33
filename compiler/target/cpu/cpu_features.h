#ifndef TW_TARGET_CPU_FEATURES_H
#define TW_TARGET_CPU_FEATURES_H
/* Which instructions a code path of x86-64 may use. One table, cpu_features.def, gives both LLVM's
 * list of features and the check that this processor and its operating system have them, so no path
 * is chosen where one of its instructions is an illegal one. Compiles on every architecture; only
 * cpu_answers_here asks a processor.
 *
 * Threads: any. */
#include "compiler/base/arena.h"
#include <stdbool.h>
#include <stdint.h>

enum cpuid_leaf {
#define CPU_LEAF(id, leaf, subleaf) LEAF_##id,
#include "compiler/target/cpu/cpu_features.def"
    LEAVES
};

/* Sets of features: what a path is made of. */
enum cpu_set {
    CPU_SET_V2 = 1,
    CPU_SET_V3 = 2,
    CPU_SET_V4 = 4,
    CPU_SET_BF16 = 8,
    CPU_SET_TILES = 16,
};

/* All that a processor says, asked once. */
typedef struct cpu_answers {
    uint32_t reg[LEAVES][4]; /* eax, ebx, ecx, edx; 0 for a leaf that it does not have */
    uint64_t xcr0;           /* which registers the operating system keeps */
} cpu_answers;

typedef void cpuid_fn(uint32_t leaf, uint32_t subleaf, uint32_t reg[4]);
typedef uint64_t xgetbv_fn(void);

/* xgetbv is called only where the processor has it. */
void cpu_answers_read(cpu_answers *out, cpuid_fn *cpuid, xgetbv_fn *xgetbv);
bool cpu_answers_have(const cpu_answers *c, unsigned sets);
bool cpu_answers_from_intel(const cpu_answers *c);
/* What AMX's first palette is everywhere so far: 8 tiles of 16 rows of 64 bytes. */
bool cpu_answers_have_palette(const cpu_answers *c);

/* "+sse3,+ssse3,...": all that LLVM may use in code for a plain x86-64 with these sets. */
const char *cpu_features_text(arena *a, unsigned sets);

#if defined(__x86_64__)
const cpu_answers *cpu_answers_here(void);
#endif

#endif
