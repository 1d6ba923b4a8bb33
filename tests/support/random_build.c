#include "tests/support/random_build.h"
#include <string.h>

enum { POOL = 32 };

typedef struct feed {
    const uint8_t *at;
    size_t left;
    tw_ir *b;
    tw_ir_val pool[POOL];
    unsigned npool, calls;
} feed;

static unsigned next(feed *f)
{
    if (!f->left)
        return 0;
    f->left--;
    return *f->at++;
}

static void keep(feed *f, tw_ir_val v)
{
    if (v)
        f->pool[f->npool++ % POOL] = v;
}

static tw_ir_val pick(feed *f)
{
    unsigned x = next(f), n = f->npool < POOL ? f->npool : POOL;

    if (x >= 250)
        return x == 255 ? UINT32_MAX : x - 250;
    return n ? f->pool[(f->npool - 1 - x % n) % POOL] : 0;
}

static int64_t number(feed *f)
{
    static const int64_t odd[] = {-1, 0, 1, 2, 4, 8, 64, INT32_MAX, INT64_MIN, INT64_MAX, 1 << 20};
    unsigned x = next(f);

    return x % 16 < sizeof odd / sizeof *odd ? odd[x % 16] : (int64_t)(x % 7);
}

static const char *op_name(feed *f)
{
    static const char *const name[] = {
        "add",         "sub",     "mul",        "div",        "rem",        "and",      "or",
        "xor",         "shl",     "shr",        "maximum",    "minimum",    "eq",       "ne",
        "lt",          "le",      "neg",        "not",        "abs",        "exp2",     "log2",
        "sqrt",        "floor",   "reduce_max", "reduce_sum", "reduce_min", "scan_sum", "scan_prod",
        "running_max", "where",   "for",        "yield",      "return",     "load",     "store",
        "const.i",     "const.f", "dot",        "no_such",    "",           NULL};

    return name[next(f) % (sizeof name / sizeof *name)];
}

static void any_op(feed *f)
{
    tw_ir_val args[4] = {pick(f), pick(f), pick(f), pick(f)};
    const int64_t ints[] = {number(f), number(f)};
    const char *const names[] = {"axis", "value", "extent", "perm", "inside", "text", NULL};
    const tw_ir_attr attr = {names[next(f) % 7], number(f), 1.5, "text", ints, next(f) % 3};
    const tw_ir_type type = {(tw_ir_dtype)(next(f) % 15), (int)(next(f) % 6) - 1, {4, 4, 4, 4}};

    keep(f, tw_ir_op(f->b, op_name(f), args, next(f) % 5, &attr, next(f) % 2,
                     next(f) % 2 ? &type : NULL));
}

static void shape_op(feed *f)
{
    const int64_t shape[] = {number(f), number(f), number(f), number(f)};
    int rank = (int)(next(f) % 7) - 1;
    tw_ir_val x = pick(f);

    switch (next(f) % 8) {
    case 0:
        keep(f, tw_ir_splat(f->b, x, rank, shape));
        break;
    case 1:
        keep(f, tw_ir_broadcast(f->b, x, rank, shape));
        break;
    case 2:
        keep(f, tw_ir_reshape(f->b, x, rank, shape));
        break;
    case 3:
        keep(f, tw_ir_trans(f->b, x, rank, shape));
        break;
    case 4:
        keep(f, tw_ir_expand_dims(f->b, x, rank));
        break;
    case 5:
        keep(f, tw_ir_arange(f->b, number(f), number(f)));
        break;
    case 6:
        keep(f, tw_ir_splat(f->b, x, rank, NULL));
        break;
    default:
        keep(f, tw_ir_like(f->b, x, pick(f)));
    }
}

static void value_op(feed *f)
{
    tw_ir_dtype t = (tw_ir_dtype)(next(f) % 14);
    tw_ir_val x = pick(f), y = pick(f), z = pick(f);

    switch (next(f) % 10) {
    case 0:
        keep(f, tw_ir_const_int(f->b, t, number(f)));
        break;
    case 1:
        keep(f, tw_ir_const_float(f->b, t, (double)number(f)));
        break;
    case 2:
        keep(f, tw_ir_cast(f->b, x, t));
        break;
    case 3:
        keep(f, tw_ir_bitcast(f->b, x, t));
        break;
    case 4:
        keep(f, tw_ir_where(f->b, x, y, z));
        break;
    case 5:
        keep(f, tw_ir_fma(f->b, x, y, z));
        break;
    case 6:
        keep(f, tw_ir_dot(f->b, x, y, z));
        break;
    case 7:
        keep(f, tw_ir_program_id(f->b, (int)number(f)));
        break;
    case 8:
        keep(f, tw_ir_num_programs(f->b, (int)number(f)));
        break;
    default:
        keep(f, tw_ir_binary(f->b, op_name(f), x, y));
    }
}

static void memory_op(feed *f)
{
    static const char *const name[] = {"x", "y", "s", "none", NULL};
    tw_ir_val view = tw_ir_param_value(f->b, name[next(f) % 5]);
    const tw_ir_val index[] = {pick(f)};
    const int64_t extent[] = {number(f)};

    if (next(f) % 8 == 0)
        view = pick(f);
    if (next(f) % 2)
        keep(f, tw_ir_load(f->b, view, next(f) % 16 ? index : NULL, extent));
    else
        tw_ir_store(f->b, view, index, extent, pick(f));
    keep(f, view);
}

static void control_op(feed *f)
{
    tw_ir_val v[3] = {pick(f), pick(f), pick(f)}, out[3] = {0};
    size_t n = next(f) % 4;
    tw_ir_val cond = pick(f);

    switch (next(f) % 12) {
    case 10:
        tw_ir_fold_begin(f->b, next(f) % 2 ? "reduce" : "scan", cond, (int)number(f), out);
        n = 2;
        break;
    case 11:
        keep(f, tw_ir_fold_end(f->b, cond));
        break;
    case 0:
    case 1:
        keep(f, tw_ir_for_begin(f->b, v[0], v[1], v[2], v, n, out));
        break;
    case 2:
        tw_ir_for_end(f->b, v, n, out);
        break;
    case 3:
        tw_ir_while_begin(f->b, v, n, out);
        break;
    case 4:
        tw_ir_while_do(f->b, cond, v, n, out);
        break;
    case 5:
        tw_ir_while_end(f->b, v, n, out);
        break;
    case 6:
        tw_ir_if_begin(f->b, cond);
        break;
    case 7:
        tw_ir_else(f->b, v, n);
        break;
    case 8:
        tw_ir_if_end(f->b, v, n, next(f) % 16 ? out : NULL);
        break;
    default:
        tw_ir_while_begin(f->b, NULL, 3000, NULL);
    }
    for (size_t i = 0; i < n && i < 3; i++)
        keep(f, out[i]);
}

static void other_op(feed *f)
{
    switch (next(f) % 8) {
    case 0:
        tw_ir_assert(f->b, pick(f), next(f) % 4 ? "holds" : NULL);
        break;
    case 1:
        tw_ir_grid(f->b, pick(f), pick(f), 0);
        break;
    case 2:
        keep(f, tw_ir_default(f->b, "s", pick(f)));
        break;
    case 3:
        tw_ir_name(f->b, pick(f), next(f) % 2 ? "name" : "not a name");
        break;
    case 4:
        TW_IR_AT(f->b);
        break;
    case 5:
        (void)tw_ir_type_of(f->b, pick(f));
        break;
    case 6:
        if (next(f) % 16 == 0)
            tw_ir_fail(f->b, "no more");
        break;
    default:
        keep(f, tw_ir_dim(f->b, next(f) % 2 ? "N" : "BLOCK"));
    }
}

/* Enough that further calls are mostly right. */
static void begin(feed *f)
{
    const int64_t n = 4;

    f->npool = 0;
    keep(f, tw_ir_const_float(f->b, TW_IR_F32, 1.5));
    keep(f, tw_ir_const_int(f->b, TW_IR_I32, 3));
    keep(f, tw_ir_param_value(f->b, "s"));
    keep(f, tw_ir_dim(f->b, "N"));
    keep(f, tw_ir_const_int(f->b, TW_IR_I1, 1));
    if (next(f) % 4)
        keep(f, tw_ir_arange(f->b, 0, n));
}

static void build_any(feed *f, tw_ir *b)
{
    static void (*const some[])(feed *) = {any_op,    shape_op,   value_op, value_op,
                                           memory_op, control_op, other_op, value_op};

    f->b = b;
    begin(f);
    while (f->left && tw_ir_status(b) == TW_OK) {
        some[next(f) % 8](f);
        f->calls++;
    }
    for (unsigned i = next(f); f->left && i > 240; i--) /* after a wrong call nothing happens */
        some[next(f) % 8](f);
}

static void build_launch(void *user, tw_ir *b)
{
    feed *f = user;

    if (next(f) % 8 == 0) {
        build_any(f, b);
        return;
    }
    tw_ir_default(b, "s", tw_ir_const_float(b, TW_IR_F32, 2.0));
    tw_ir_grid(b, tw_ir_dim(b, "N"), 0, 0);
}

static void build_body(void *user, tw_ir *b)
{
    build_any(user, b);
}

tw_status random_build(tw_context *cx, const uint8_t *bytes, size_t size, unsigned *calls)
{
    static const int64_t blocks[] = {4, 8};
    static const tw_ir_tune tunes[] = {{"BLOCK", NULL, blocks, 2}};
    static const tw_ir_param params[] = {{"x", TW_PARAM_TENSOR, TW_IN, "f32", {"N"}, false},
                                         {"y", TW_PARAM_TENSOR, TW_INOUT, "f32", {"N"}, false},
                                         {"s", TW_PARAM_SCALAR, TW_IN, "f32", {NULL}, true}};
    feed f = {.at = bytes, .left = size};
    tw_ir_kernel def = TW_IR_KERNEL_INIT;
    tw_compile_options options = TW_COMPILE_OPTIONS_INIT;
    tw_kernel *k;
    char *text = NULL;
    size_t n;

    def.name = "any";
    def.params = params;
    def.param_count = 3;
    def.tunes = tunes;
    def.tune_count = 1;
    def.user = &f;
    def.launch = build_launch;
    def.body = build_body;
    options.target = "interp";
    options.emit = "tir";
    tw_status st = tw_ir_kernel_create(cx, &def, &k);
    if (st != TW_OK)
        return st;
    st = tw_kernel_compile(k, &options, &text, &n);
    tw_free(text);
    tw_kernel_destroy(k);
    if (calls)
        *calls = f.calls;
    return st;
}
