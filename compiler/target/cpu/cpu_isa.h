#ifndef TW_TARGET_CPU_ISA_H
#define TW_TARGET_CPU_ISA_H
/* What the code generator knows about an instruction set: the family's own part of a target. */
#include <stdbool.h>

typedef struct cpu_isa {
    const char *name;     /* what code is compiled for, as part of keys */
    const char *cpu;      /* LLVM's name of the least processor that can run the code */
    const char *features; /* beyond that name's own */
    int lanes;            /* of every vector, whatever its dtype: those of f32 in a register */
    int mr, nr;           /* register block of a dot: rows x vectors; mr * nr + nr + 1 registers */
    bool avx512;
    bool fma;        /* a fused multiply-add in one instruction */
    bool f16c;       /* between f16 and f32 in one instruction */
    bool bf16_pairs; /* adds the products of two pairs of bf16 to f32 in one instruction */
} cpu_isa;

#endif
