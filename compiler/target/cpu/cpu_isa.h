#ifndef TW_TARGET_CPU_ISA_H
#define TW_TARGET_CPU_ISA_H
/* What the code generator knows about an instruction set: the family's own part of a target. */
#include <stdbool.h>

/* Registers of 16 rows of 64 bytes, and the instruction that multiplies them: see cpu_tiles.c. */
enum cpu_tiles {
    CPU_TILES_NONE,
    CPU_TILES_AMX,
    CPU_TILES_EMULATED /* the same code around loops in memory: for tests, on any machine */
};

typedef struct cpu_isa {
    const char *name;   /* what code is compiled for, as part of keys */
    const char *triple; /* LLVM's name of the kind of machine; NULL: this one's */
    const char *cpu;    /* LLVM's name of a processor that has no more than all of its kind have */
    unsigned sets;      /* of enum cpu_set: what the code may use beyond that */
    const char *tune;   /* LLVM's name of the processors whose costs count; NULL: cpu's */
    int lanes;          /* of every vector, whatever its dtype: those of f32 in a register */
    int mr, nr;         /* register block of a dot: rows x vectors; mr * nr + nr + 1 registers */
    bool avx512;
    bool fma;        /* a fused multiply-add in one instruction */
    bool f16c;       /* between f16 and f32 in one instruction */
    bool bf16_pairs; /* adds the products of two pairs of bf16 to f32 in one instruction, fast */
    bool bf16_round; /* rounds two vectors of f32 to one of bf16 in one instruction */
    enum cpu_tiles tiles;
} cpu_isa;

/* AArch64 with NEON, from any machine: for tests of what other machines get, in no list of targets.
 * Who uses it has made LLVM's AArch64 target known. */
extern const struct target cpu_neon;

#if defined(__x86_64__)
/* cpu-amx with emulated tiles, around AVX-512 and around AVX2: for tests, in no list of targets. */
extern const struct target *const cpu_amx_emulated[];
#endif

#endif
