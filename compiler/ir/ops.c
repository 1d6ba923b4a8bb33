/* The op table: ops.def as data. */
#include "compiler/base/check.h"
#include "compiler/ir/ir.h"
#include <string.h>

#define PURE OPT_PURE
#define EWISE OPT_EWISE
#define COMM OPT_COMM
#define EFFECT OPT_EFFECT
#define TERM OPT_TERM
#define HOST OPT_HOST
#define READ OPT_READ
#define WRITE OPT_WRITE
#define SCHED OPT_SCHED
#define A0 {{NULL, ATTR_NONE}}
#define A1(name1, kind1) {{name1, ATTR_##kind1}}
#define A2(name1, kind1, name2, kind2) {{name1, ATTR_##kind1}, {name2, ATTR_##kind2}}
#define A3(name1, kind1, name2, kind2, name3, kind3) \
    {{name1, ATTR_##kind1}, {name2, ATTR_##kind2}, {name3, ATTR_##kind3}}

static const ir_op_info op_rows[OP_COUNT] = {
#define OP(code, name, min, max, nres, nreg, traits, attrs) \
    [OP_##code] = {name, min, max, nres, nreg, traits, attrs},
#include "compiler/ir/ops.def"
#undef OP
};

const ir_op_info *op_info(enum ir_opcode code)
{
    ICHECK((unsigned)code < OP_COUNT, "an opcode is one of ops.def");
    return &op_rows[code];
}

int op_parse(const char *name)
{
    for (int i = 0; i < OP_COUNT; i++) {
        if (strcmp(op_rows[i].name, name) == 0)
            return i;
    }
    return -1;
}
