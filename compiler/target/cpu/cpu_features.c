#include "compiler/target/cpu/cpu_features.h"
#include "compiler/base/strbuf.h"
#include <pthread.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { EAX, EBX, ECX, EDX };

/* Bits of XCR0: SSE and AVX; also mask registers and the halves of 32 vectors of 512 bits; the
 * configuration and the data of tiles. */
enum { STATE_NONE = 0, STATE_VECTORS = 0x6, STATE_WIDE = 0xe6, STATE_TILES = 0x60000 };

static const struct leaf {
    uint32_t leaf, subleaf;
} leaves[LEAVES] = {
#define CPU_LEAF(id, number, sub) [LEAF_##id] = {number, sub},
#include "compiler/target/cpu/cpu_features.def"
};

static const struct feature {
    unsigned set;
    const char *llvm;
    enum cpuid_leaf leaf;
    int reg, bit;
    uint64_t state;
} features[] = {
#define CPU_FEATURE(set, llvm, leaf, reg, bit, state)                                              \
    {CPU_SET_##set, llvm, LEAF_##leaf, reg, bit, STATE_##state},
#include "compiler/target/cpu/cpu_features.def"
};
enum { FEATURES = sizeof features / sizeof *features };

/* Beyond its last leaf a processor may answer with that one's bits; each range has its own last,
 * and leaf 7 has a last subleaf. */
static bool leaf_exists(cpuid_fn *cpuid, const struct leaf *l)
{
    uint32_t reg[4];

    cpuid(l->leaf & 0x80000000, 0, reg);
    if (reg[EAX] < l->leaf || (reg[EAX] ^ l->leaf) >> 31)
        return false;
    if (l->subleaf == 0)
        return true;
    cpuid(l->leaf, 0, reg);
    return reg[EAX] >= l->subleaf;
}

void cpu_answers_read(cpu_answers *out, cpuid_fn *cpuid, xgetbv_fn *xgetbv)
{
    enum { OSXSAVE = 27 };

    *out = (cpu_answers){0};
    for (int i = 0; i < LEAVES; i++) {
        if (leaf_exists(cpuid, &leaves[i]))
            cpuid(leaves[i].leaf, leaves[i].subleaf, out->reg[i]);
    }
    if (out->reg[LEAF_BASIC][ECX] >> OSXSAVE & 1)
        out->xcr0 = xgetbv();
}

bool cpu_answers_have(const cpu_answers *c, unsigned sets)
{
    for (int i = 0; i < FEATURES; i++) {
        const struct feature *f = &features[i];

        if ((f->set & sets) &&
            (!(c->reg[f->leaf][f->reg] >> f->bit & 1) || (c->xcr0 & f->state) != f->state))
            return false;
    }
    return true;
}

bool cpu_answers_from_intel(const cpu_answers *c)
{
    const uint32_t *reg = c->reg[LEAF_VENDOR];
    uint32_t name[] = {reg[EBX], reg[EDX], reg[ECX]};

    return memcmp(name, "GenuineIntel", sizeof name) == 0;
}

bool cpu_answers_have_palette(const cpu_answers *c)
{
    const uint32_t *reg = c->reg[LEAF_PALETTE];

    return reg[EAX] >> 16 >= 1024 && reg[EBX] >> 16 >= 8 && (reg[EBX] & 0xffff) >= 64 &&
           (reg[ECX] & 0xffff) >= 16;
}

const char *cpu_features_text(arena *a, unsigned sets)
{
    strbuf text;

    sb_init(&text, a);
    for (int i = 0; i < FEATURES; i++) {
        if (features[i].set & sets)
            sb_fmt(&text, "%s+%s", text.n ? "," : "", features[i].llvm);
    }
    return text.s;
}

#if defined(__x86_64__)
static cpu_answers here;

static void ask(uint32_t leaf, uint32_t subleaf, uint32_t reg[4])
{
    __cpuid_count(leaf, subleaf, reg[EAX], reg[EBX], reg[ECX], reg[EDX]);
}

static uint64_t ask_xcr0(void)
{
    uint32_t low, high;

    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static void ask_here(void)
{
    cpu_answers_read(&here, ask, ask_xcr0);
}

const cpu_answers *cpu_answers_here(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, ask_here);
    return &here;
}
#endif
