/* elab_fold: arithmetic. Constants fold here, by the same definition that the interpreter and the
 * launch function use; everything else becomes an op. */
#include "compiler/base/check.h"
#include "dsl/elaborate.h"

static enum dtype fold_dtype(const value *v)
{
    static const enum dtype widest[] = {DT_I64, DT_F64, DT_I1};

    return v->dtype != DT_NONE ? v->dtype : widest[v->cls];
}

static bool gives_bool(enum ir_opcode code)
{
    return code == OP_CMP_EQ || code == OP_CMP_NE || code == OP_CMP_LT || code == OP_CMP_LE;
}

/* Constants of one dtype and class. */
static value fold(enum ir_opcode code, const value *v, int n)
{
    ir_scalar in[3];
    const value *like = &v[n - 1]; /* of where, the condition comes first */
    enum dtype t = fold_dtype(like);

    ICHECK(n <= 3, "elementwise ops have at most three operands");
    for (int i = 0; i < n; i++)
        in[i] = v[i].as.num;
    if (gives_bool(code))
        return val_bool(eval_op(code, t, DT_I1, in, false).i != 0);
    value res = *like;
    res.as.num = eval_op(code, t, t, in, false);
    return res;
}

value elab_apply(elab *cx, enum ir_opcode code, value *v, int n, const char *user, span where)
{
    ir_val arg[3];
    bool known = true;

    ICHECK(n <= 3, "elementwise ops have at most three operands");
    for (int i = 0; i < n; i++)
        known = known && v[i].kind == VAL_CONST;
    if (known)
        return fold(code, v, n);
    for (int i = 0; i < n; i++) {
        arg[i] = val_to_run(cx, &v[i], DT_NONE, where);
        if (!arg[i])
            return val_bad();
    }
    if (!elab_join(cx, arg, n, user, where))
        return val_bad();
    return val_run(ir_build(&cx->b, code, arg, n, NULL, (ir_type){0})->res);
}
