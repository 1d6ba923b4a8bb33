#ifndef TW_TEST_PTX_CODE_H
#define TW_TEST_PTX_CODE_H
/* What ptx_parse.c makes and ptx_machine.c and ptx_alu.c run. */
#include "tests/support/ptx_machine.h"

enum ptx_type { PT_NONE, PT_PRED, PT_B, PT_U, PT_S, PT_F, PT_BF, PT_F2, PT_BF2, PT_TF32 };
typedef struct ptx_ty {
    uint8_t kind, bits; /* enum ptx_type; of F2 and BF2: 32 */
} ptx_ty;

enum ptx_operand_kind { PO_REG, PO_VALUE, PO_VECTOR, PO_ADDRESS, PO_LABEL };
enum { PTX_VECTOR = 8, PTX_ARGS = 8, PTX_TYPES = 4, PTX_WARP = 32 };
typedef struct ptx_operand {
    uint8_t kind, n;
    bool negated;
    int32_t reg;              /* of an address: its base, or -1 */
    uint64_t value;           /* a constant; of an address: the offset; of a label: the target */
    int32_t part[PTX_VECTOR]; /* registers of a vector; -1: a sink */
} ptx_operand;

typedef struct ptx_instr {
    char op[72];   /* "ld.global.nc.v4.b32" */
    char base[16]; /* "ld" */
    ptx_ty type[PTX_TYPES];
    int ntypes;
    int guard; /* register, or -1 */
    bool guard_not;
    bool together; /* the warp does it as one */
    int nargs;
    ptx_operand arg[PTX_ARGS];
    int line;
} ptx_instr;

struct ptx_program {
    ptx_instr *code;
    int n, cap;
    char (*name)[48]; /* of registers */
    uint64_t *first;  /* what they begin with */
    int nnames, capnames;
    struct {
        char name[48];
        int at;
    } label[4096];
    int nlabels;
    struct {
        char name[48];
        uint64_t address;
    } symbol[16];
    int nsymbols;
    uint64_t static_bytes; /* of shared memory */
};

enum { PTX_SHARED_BASE = 1024, PTX_SPECIALS = 2 }; /* registers 0, 1: %tid.x, %ctaid.x */

bool ptx_has(const ptx_instr *i, const char *modifier); /* ".lo" */

/* A value of an instruction that computes from values alone; false: not one of those. */
bool ptx_compute(const ptx_instr *i, const uint64_t *x, uint64_t *out);
uint64_t ptx_atomic(const ptx_instr *i, uint64_t old, uint64_t a, uint64_t b);
float ptx_half_to_float(uint16_t h);
/* D = A B + C of one warp; words as PTX has them: a[lane][i]. */
void ptx_mma(const ptx_instr *i, uint64_t (*a)[4], uint64_t (*b)[2], uint64_t (*c)[4],
             uint64_t (*d)[4]);

#endif
