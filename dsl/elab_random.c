/* elab_random: philox and uniform, spelled out in integer operations.
 *
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3; SC 2011):
 * ten rounds over four words of 32 bits, the counter, under a key of two, the seed. */
#include "compiler/base/check.h"
#include "dsl/elaborate.h"

enum { ROUNDS = 10, WORDS = 4 };

/* Multipliers of words 0 and 2, and what the key grows by each round. */
static const uint32_t multiplier[2] = {0xD2511F53, 0xCD9E8D57};
static const uint32_t key_step[2] = {0x9E3779B9, 0xBB67AE85};

static ir_type type_of(elab *cx, ir_val v)
{
    return ir_type_of(cx->b.fn, v);
}

/* The scalar, in the shape of t. */
static ir_val widened(elab *cx, ir_val scalar, ir_type t)
{
    return t.kind == TYPE_TILE ? ir_splat(&cx->b, scalar, t) : scalar;
}

static ir_val number(elab *cx, enum dtype d, uint64_t n, ir_type shape)
{
    return widened(cx, ir_const_int(&cx->b, d, (int64_t)n), shape);
}

/* Halves of v modulo 2^64; of a narrower integer the upper half is its sign. */
static void halves(elab *cx, ir_val v, ir_val half[2])
{
    ir_type t = type_of(cx, v);
    enum dtype d = (enum dtype)t.dtype;
    bool is_signed = dtype_kind(d) == DTK_SINT;

    if (dtype_bits(d) == 64) {
        ir_val count = number(cx, d, 32, t);
        half[1] = ir_cast(&cx->b, ir_binary(&cx->b, OP_SHR, v, count), DT_U32);
    } else if (is_signed) {
        ir_val wide = d == DT_I32 ? v : ir_cast(&cx->b, v, DT_I32);
        ir_val sign = ir_binary(&cx->b, OP_SHR, wide, number(cx, DT_I32, 31, t));
        half[1] = ir_cast(&cx->b, sign, DT_U32);
    } else {
        half[1] = number(cx, DT_U32, 0, t);
    }
    half[0] = d == DT_U32 ? v : ir_cast(&cx->b, v, DT_U32);
}

/* An integer, constant or not, as two words. */
static bool words_of(elab *cx, const value *v, const expr *e, const char *user, ir_val word[2])
{
    if (v->kind == VAL_CONST && v->cls == CLASS_INT) {
        word[0] = ir_const_int(&cx->b, DT_U32, v->as.num.i);
        word[1] = ir_const_int(&cx->b, DT_U32, (int64_t)((uint64_t)v->as.num.i >> 32));
        return true;
    }
    if (v->kind == VAL_CONST || !dtype_is_int(val_dtype_of(cx, v))) {
        elab_error(cx, DIAG_BAD_OPERAND, e->where, "%s takes integers, not %s", user,
                   val_text(cx, v));
        return false;
    }
    halves(cx, v->as.run, word);
    return true;
}

/* The upper and the lower half of x times the multiplier. */
static void products(elab *cx, ir_val x, uint32_t by, ir_val *high, ir_val *low)
{
    ir_type t = type_of(cx, x);
    ir_val wide = ir_cast(&cx->b, x, DT_U64);
    ir_val product = ir_binary(&cx->b, OP_MUL, wide, number(cx, DT_U64, by, t));
    ir_val up = ir_binary(&cx->b, OP_SHR, product, number(cx, DT_U64, 32, t));

    *high = ir_cast(&cx->b, up, DT_U32);
    *low = ir_cast(&cx->b, product, DT_U32);
}

static ir_val mix(elab *cx, ir_val product, ir_val word, ir_val key)
{
    ir_val both = ir_binary(&cx->b, OP_XOR, product, word);

    return ir_binary(&cx->b, OP_XOR, both, widened(cx, key, type_of(cx, word)));
}

static void one_round(elab *cx, ir_val word[WORDS], const ir_val key[2])
{
    ir_val high[2], low[2];

    for (int i = 0; i < 2; i++)
        products(cx, word[2 * i], multiplier[i], &high[i], &low[i]);
    word[0] = mix(cx, high[1], word[1], key[0]);
    word[2] = mix(cx, high[0], word[3], key[1]);
    word[1] = low[1];
    word[3] = low[0];
}

static void ten_rounds(elab *cx, ir_val word[WORDS], ir_val key[2])
{
    for (int r = 0; r < ROUNDS; r++) {
        for (int i = 0; r > 0 && i < 2; i++) {
            ir_val step = ir_const_int(&cx->b, DT_U32, key_step[i]);
            key[i] = ir_binary(&cx->b, OP_ADD, key[i], step);
        }
        one_round(cx, word, key);
    }
}

/* The upper 24 bits of u over 2^24: all of them are floats. */
static ir_val to_unit(elab *cx, ir_val u)
{
    ir_type t = type_of(cx, u);
    ir_val bits = ir_binary(&cx->b, OP_SHR, u, number(cx, DT_U32, 8, t));
    ir_val whole = ir_cast(&cx->b, ir_cast(&cx->b, bits, DT_I32), DT_F32);
    ir_val scale = widened(cx, ir_const_float(&cx->b, DT_F32, 0x1p-24), t);

    return ir_binary(&cx->b, OP_MUL, whole, scale);
}

value elab_random(elab *cx, const expr *e, value *v)
{
    const char *user = arena_printf(cx->a, "'%s'", e->a->lit.name);
    const char *which = arena_printf(cx->a, "the word of %s", user);
    ir_val key[2], word[WORDS];
    int64_t pick = 0;

    if (!elab_need_number(cx, &v[0], e->list.at[0], user) ||
        !elab_need_number(cx, &v[1], e->list.at[1], user) ||
        (e->list.n == 3 && !elab_need_int(cx, &v[2], e->list.at[2], which, 0, 3, &pick)) ||
        !elab_need_program(cx, e->where, user))
        return val_bad();
    if (v[0].kind == VAL_RUN && val_run_type(cx, &v[0]).kind == TYPE_TILE) {
        elab_error(cx, DIAG_BAD_OPERAND, e->list.at[0]->where, "the seed of %s is a scalar, not %s",
                   user, val_text(cx, &v[0]));
        return val_bad();
    }
    if (!words_of(cx, &v[0], e->list.at[0], user, key) ||
        !words_of(cx, &v[1], e->list.at[1], user, word))
        return val_bad();
    word[2] = word[3] = number(cx, DT_U32, 0, type_of(cx, word[0]));
    ten_rounds(cx, word, key);
    ir_val got = word[pick];
    return val_run(e->a->decl->id == BUILTIN_PHILOX ? got : to_unit(cx, got));
}
