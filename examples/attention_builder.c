/* FlashAttention-2 forward, built from C: the kernel of kernels/attention_fwd.tw by the calls of
 * tilewright_ir.h. Both are launched with one configuration, and give the same bits; then the built
 * one is tuned like any other. Run where kernels/ is. */
#include "tilewright_ir.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG2E 1.4426950408889634
#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ---- what a caller sees ---- */

static const tw_ir_const consts[] = {{"T", "float", NULL, NULL},
                                     {"D", "int", NULL, NULL},
                                     {"DV", "int", NULL, NULL},
                                     {"CAUSAL", "bool", "false", NULL}};
static const tw_ir_param params[] = {
    {"q", TW_PARAM_TENSOR, TW_IN, "T", {"B", "H", "M", "D"}, false},
    {"k", TW_PARAM_TENSOR, TW_IN, "T", {"B", "HK", "N", "D"}, false},
    {"v", TW_PARAM_TENSOR, TW_IN, "T", {"B", "HK", "N", "DV"}, false},
    {"o", TW_PARAM_TENSOR, TW_OUT, "T", {"B", "H", "M", "DV"}, false},
    {"lse", TW_PARAM_TENSOR, TW_OUT, "f32", {"B", "H", "M"}, false},
    {"scale", TW_PARAM_SCALAR, TW_IN, "f32", {NULL}, true},
    {"offset", TW_PARAM_SCALAR, TW_IN, "i32", {NULL}, true}};
static const int64_t rows[] = {64, 32, 96, 128, 192}, columns[] = {64, 32, 128};
static const tw_ir_tune tunes[] = {{"BLOCK_M", NULL, rows, COUNT(rows)},
                                   {"BLOCK_N", NULL, columns, COUNT(columns)}};

/* ---- small words ---- */

static tw_ir_val i32(tw_ir *b, int64_t v)
{
    return tw_ir_const_int(b, TW_IR_I32, v);
}

static tw_ir_val f32(tw_ir *b, double v)
{
    return tw_ir_const_float(b, TW_IR_F32, v);
}

/* y in the shape of x */
static tw_ir_val op(tw_ir *b, const char *name, tw_ir_val x, tw_ir_val y)
{
    return tw_ir_binary(b, name, x, tw_ir_like(b, y, x));
}

static tw_ir_val clamp(tw_ir *b, tw_ir_val x, tw_ir_val low, tw_ir_val high)
{
    return op(b, "minimum", op(b, "maximum", x, low), high);
}

/* ---- the launch function ---- */

static void build_launch(void *user, tw_ir *b)
{
    tw_ir_val m = tw_ir_dim(b, "M"), h = tw_ir_dim(b, "H"), block = i32(b, tw_ir_int(b, "BLOCK_M"));
    tw_ir_val scale = tw_ir_default(b, "scale", f32(b, 1.0 / sqrt((double)tw_ir_int(b, "D"))));
    tw_ir_val offset = tw_ir_default(b, "offset", op(b, "sub", tw_ir_dim(b, "N"), m));
    tw_ir_val rest = op(b, "rem", h, tw_ir_dim(b, "HK"));

    (void)user;
    tw_ir_assert(b, op(b, "eq", rest, i32(b, 0)), "H % HK == 0");
    tw_ir_assert(b, op(b, "lt", f32(b, 0.0), scale), "scale > 0.0");
    tw_ir_assert(b, op(b, "le", tw_ir_unary(b, "abs", offset), i32(b, 1 << 30)),
                 "abs(offset) <= 1 << 30");
    tw_ir_val blocks = op(b, "div", m, block), used = op(b, "mul", blocks, block);
    tw_ir_val more = tw_ir_cast(b, op(b, "lt", used, m), TW_IR_I32);
    tw_ir_grid(b, op(b, "add", blocks, more), h, tw_ir_dim(b, "B"));
}

/* ---- the body ---- */

typedef struct state { /* of one program, while it is built */
    tw_ir *b;
    int64_t block_m, block_n, d, dv;
    tw_ir_dtype t;
    bool causal;
    tw_ir_val at[4]; /* batch, head, first row, 0 */
    tw_ir_val kv_head, row, offset, qk_scale, q;
} state;

/* rows n0 .. n0 + block_n of k or v */
static tw_ir_val load_block(const state *s, const char *name, tw_ir_val n0, int64_t width)
{
    const tw_ir_val at[] = {s->at[0], s->kv_head, n0, s->at[3]};
    const int64_t extent[] = {0, 0, s->block_n, width};

    return tw_ir_load(s->b, tw_ir_param_value(s->b, name), at, extent);
}

static tw_ir_val hide(const state *s, tw_ir_val scores, tw_ir_val n0)
{
    tw_ir *b = s->b;
    const int64_t shape[] = {s->block_m, s->block_n};
    tw_ir_val col = op(b, "add", tw_ir_arange(b, 0, s->block_n), n0);
    tw_ir_val inside = op(b, "lt", col, tw_ir_dim(b, "N"));
    tw_ir_val keep = tw_ir_broadcast(b, tw_ir_expand_dims(b, inside, 0), 2, shape);

    if (s->causal) {
        tw_ir_val last = op(b, "add", s->row, s->offset);
        tw_ir_val seen =
            tw_ir_binary(b, "le", tw_ir_broadcast(b, tw_ir_expand_dims(b, col, 0), 2, shape),
                         tw_ir_broadcast(b, tw_ir_expand_dims(b, last, 1), 2, shape));
        keep = op(b, "and", keep, seen);
    }
    return tw_ir_where(b, keep, scores, tw_ir_like(b, f32(b, -INFINITY), scores));
}

/* One block of keys: v = {m, l, acc} becomes what it is after it. */
static void step(const state *s, tw_ir_val n0, bool edge, tw_ir_val v[3])
{
    static const int64_t turn[] = {1, 0};
    tw_ir *b = s->b;
    const int64_t shape[] = {s->block_m, s->block_n};
    tw_ir_val k = tw_ir_trans(b, load_block(s, "k", n0, s->d), 2, turn);
    tw_ir_val scores = tw_ir_dot(b, s->q, k, tw_ir_splat(b, f32(b, 0.0), 2, shape));

    if (edge)
        scores = hide(s, scores, n0);
    tw_ir_val best = op(b, "mul", tw_ir_reduce(b, "reduce_max", scores, 1), s->qk_scale);
    tw_ir_val m = tw_ir_binary(b, "running_max", v[0], best), base = m;
    if (edge)
        base = tw_ir_where(b, op(b, "eq", m, f32(b, -INFINITY)), tw_ir_like(b, f32(b, 0.0), m), m);
    tw_ir_val p = tw_ir_unary(
        b, "exp2", op(b, "sub", op(b, "mul", scores, s->qk_scale), tw_ir_expand_dims(b, base, 1)));
    tw_ir_val alpha = tw_ir_unary(b, "exp2", op(b, "sub", v[0], base));
    v[1] = op(b, "add", op(b, "mul", v[1], alpha), tw_ir_reduce(b, "reduce_sum", p, 1));
    v[2] = tw_ir_dot(b, tw_ir_cast(b, p, s->t), load_block(s, "v", n0, s->dv),
                     op(b, "mul", v[2], tw_ir_expand_dims(b, alpha, 1)));
    v[0] = m;
}

static void loop(const state *s, tw_ir_val from, tw_ir_val to, bool edge, tw_ir_val v[3])
{
    tw_ir_val inner[3];
    tw_ir_val n0 = tw_ir_for_begin(s->b, from, to, i32(s->b, s->block_n), v, 3, inner);

    step(s, n0, edge, inner);
    tw_ir_for_end(s->b, inner, 3, v);
}

static void find_place(state *s)
{
    tw_ir *b = s->b;
    const int64_t extent[] = {0, 0, s->block_m, s->d};

    s->at[2] = op(b, "mul", tw_ir_program_id(b, 0), i32(b, s->block_m));
    s->at[1] = tw_ir_program_id(b, 1);
    s->at[0] = tw_ir_program_id(b, 2);
    s->at[3] = i32(b, 0);
    s->kv_head = op(b, "div", s->at[1], op(b, "div", tw_ir_dim(b, "H"), tw_ir_dim(b, "HK")));
    s->row = op(b, "add", tw_ir_arange(b, 0, s->block_m), s->at[2]);
    s->offset = tw_ir_param_value(b, "offset");
    s->qk_scale = op(b, "mul", tw_ir_param_value(b, "scale"), f32(b, LOG2E));
    s->q = tw_ir_load(b, tw_ir_param_value(b, "q"), s->at, extent);
}

static void store_rows(const state *s, const tw_ir_val v[3])
{
    tw_ir *b = s->b;
    const int64_t extent[] = {0, 0, s->block_m, s->dv};
    tw_ir_val zero = tw_ir_like(b, f32(b, 0.0), v[1]), one = tw_ir_like(b, f32(b, 1.0), v[1]);
    tw_ir_val part =
        tw_ir_where(b, tw_ir_binary(b, "eq", v[1], zero), zero, tw_ir_binary(b, "div", one, v[1]));
    tw_ir_val o = op(b, "mul", v[2], tw_ir_expand_dims(b, part, 1));
    tw_ir_val lse = op(b, "div", op(b, "add", v[0], tw_ir_unary(b, "log2", v[1])), f32(b, LOG2E));

    tw_ir_store(b, tw_ir_param_value(b, "o"), s->at, extent, tw_ir_cast(b, o, s->t));
    tw_ir_store(b, tw_ir_param_value(b, "lse"), s->at, extent, lse);
}

static void build_body(void *user, tw_ir *b)
{
    state s = {.b = b,
               .block_m = tw_ir_int(b, "BLOCK_M"),
               .block_n = tw_ir_int(b, "BLOCK_N"),
               .d = tw_ir_int(b, "D"),
               .dv = tw_ir_int(b, "DV"),
               .t = tw_ir_dtype_of(b, "T"),
               .causal = tw_ir_bool(b, "CAUSAL")};
    const int64_t tile[] = {s.block_m, s.dv};
    tw_ir_val n = tw_ir_dim(b, "N"), zero = i32(b, 0), seen = n, whole = n;
    tw_ir_val v[] = {tw_ir_splat(b, f32(b, -INFINITY), 1, tile),
                     tw_ir_splat(b, f32(b, 1.0), 1, tile), tw_ir_splat(b, f32(b, 0.0), 2, tile)};

    (void)user;
    find_place(&s);
    if (s.causal) {
        tw_ir_val edge = op(b, "add", op(b, "add", s.at[2], i32(b, s.block_m)), s.offset);
        tw_ir_val safe = op(b, "add", op(b, "add", s.at[2], i32(b, 1)), s.offset);
        seen = clamp(b, edge, zero, n);
        whole = clamp(b, safe, zero, n);
    }
    tw_ir_val block = i32(b, s.block_n);
    whole = op(b, "mul", op(b, "div", whole, block), block);
    loop(&s, whole, seen, true, v);
    loop(&s, zero, whole, false, v);
    store_rows(&s, v);
}

/* ---- a program that uses it ---- */

enum { HEADS = 4, KEYS = 300, WIDTH = 64, FLOATS = HEADS * KEYS * WIDTH };
static float q[FLOATS], k[FLOATS], v[FLOATS], o[2][FLOATS], lse[2][HEADS * KEYS];

static int complain(void)
{
    fprintf(stderr, "%s\n", tw_last_error()->text);
    return 1;
}

static tw_status launch(tw_kernel *kernel, tw_device *device, int which, const char *config)
{
    static int64_t shape[] = {1, HEADS, KEYS, WIDTH};
    float *data[] = {q, k, v, o[which], lse[which]};
    DLTensor t[5];
    tw_arg args[6];
    tw_launch_options options = TW_LAUNCH_OPTIONS_INIT;

    for (int i = 0; i < 5; i++) {
        t[i] = (DLTensor){data[i], {kDLCPU, 0}, i < 4 ? 4 : 3, {kDLFloat, 32, 1}, shape, NULL, 0};
        args[i] = TW_TENSOR(params[i].name, &t[i]);
    }
    args[5] = TW_BOOL("CAUSAL", true);
    options.config = config;
    if (config)
        return tw_launch_with(kernel, device, NULL, args, 6, &options);
    tw_tune_options tune = TW_TUNE_OPTIONS_INIT;
    tw_answer answer = TW_ANSWER_INIT;
    tune.budget_s = 0.5;
    tw_status st = tw_tune(kernel, device, args, 6, &tune, NULL);
    if (st == TW_OK)
        st = tw_query(kernel, device, args, 6, NULL, &answer);
    if (st == TW_OK)
        printf("tuned: %s (%s)\n", answer.config, tw_layer_text(answer.layer));
    return st;
}

static int compare(tw_context *cx, tw_device *device)
{
    const char *config = "BLOCK_M=32,BLOCK_N=64";
    tw_ir_kernel def = TW_IR_KERNEL_INIT;
    tw_kernel *built, *text;

    def.name = "attention_fwd";
    def.params = params;
    def.param_count = COUNT(params);
    def.consts = consts;
    def.const_count = COUNT(consts);
    def.tunes = tunes;
    def.tune_count = COUNT(tunes);
    def.launch = build_launch;
    def.body = build_body;
    if (tw_ir_kernel_create(cx, &def, &built) ||
        tw_kernel_load(cx, "kernels/attention_fwd.tw", NULL, &text) ||
        launch(built, device, 0, config) || launch(text, device, 1, config) ||
        launch(built, device, 0, NULL))
        return complain();
    int same = !memcmp(o[0], o[1], sizeof o[0]) && !memcmp(lse[0], lse[1], sizeof lse[0]);
    printf("built from C and from text: %s\n", same ? "the same bits" : "different");
    tw_kernel_destroy(built);
    tw_kernel_destroy(text);
    return same ? 0 : 1;
}

int main(void)
{
    tw_context *cx;
    tw_device *device;

    for (int i = 0; i < FLOATS; i++) {
        q[i] = (float)rand() / (float)RAND_MAX - 0.5f;
        k[i] = (float)rand() / (float)RAND_MAX - 0.5f;
        v[i] = (float)rand() / (float)RAND_MAX - 0.5f;
    }
    if (tw_context_create(NULL, &cx) || tw_device_open(cx, "auto", &device))
        return complain();
    int bad = compare(cx, device);
    tw_device_close(device);
    tw_context_destroy(cx);
    return bad;
}
