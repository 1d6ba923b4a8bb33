#include "kernels/kernel_refs.h"
#include <math.h>

/* ---- which columns a row sees ---- */

static bool in_window(const attention_variant *v, int64_t b, int64_t i, int64_t j)
{
    int64_t back = i + v->offset - j;

    (void)b;
    return back < v->window && (v->causal || back > -v->window);
}

static bool in_prefix(const attention_variant *v, int64_t b, int64_t i, int64_t j)
{
    return j < v->member[b] || j <= i + v->offset;
}

/* A row that is no token of the sequence has document 0: it is what a load outside gives. */
static bool in_document(const attention_variant *v, int64_t b, int64_t i, int64_t j)
{
    int64_t at = i + v->offset;
    int32_t own = at >= 0 && at < v->columns ? v->token[b * v->columns + at] : 0;

    return v->token[b * v->columns + j] == own;
}

static bool in_length(const attention_variant *v, int64_t b, int64_t i, int64_t j)
{
    (void)i;
    return j < v->member[b];
}

static bool in_cache(const attention_variant *v, int64_t b, int64_t i, int64_t j)
{
    return j < v->member[b] && (!v->causal || j <= i + v->member[b] - v->rows);
}

static bool is_near(int64_t r, int64_t c, int64_t n, int64_t window)
{
    int64_t first = r - window / 2;

    first = first < 0 ? 0 : first > n - window ? n - window : first;
    return c >= first && c < first + window;
}

static bool in_neighborhood(const attention_variant *v, int64_t b, int64_t i, int64_t j)
{
    int64_t w = v->width;

    (void)b;
    return is_near(i / w, j / w, v->columns / w, v->window) && is_near(i % w, j % w, w, v->window);
}

/* ---- scores ---- */

static double alibi(const attention_variant *v, double s, int64_t b, int64_t h, int64_t i,
                    int64_t j)
{
    (void)b;
    return s - (double)v->head[h] * fabs((double)(i + v->offset - j));
}

static double soft_cap(const attention_variant *v, double s, int64_t b, int64_t h, int64_t i,
                       int64_t j)
{
    (void)b, (void)h, (void)i, (void)j;
    return v->cap * tanh(s / v->cap);
}

static double biased(const attention_variant *v, double s, int64_t b, int64_t h, int64_t i,
                     int64_t j)
{
    const ref_tensor *t = &v->bias;

    b = t->extent[0] == 1 ? 0 : b;
    h = t->extent[1] == 1 ? 0 : h;
    return s +
           (double)t->at[b * t->stride[0] + h * t->stride[1] + i * t->stride[2] + j * t->stride[3]];
}

static double relative(const attention_variant *v, double s, int64_t b, int64_t h, int64_t i,
                       int64_t j)
{
    int64_t reach = v->bias.extent[1] / 2, d = j - i - v->offset;

    (void)b;
    d = d < -reach ? -reach : d > reach ? reach : d;
    return s + (double)v->bias.at[h * v->bias.stride[0] + (reach + d) * v->bias.stride[1]];
}

static double sink_of_head(const attention_variant *v, int64_t h)
{
    return v->head[h];
}

const attention_variant attention_window_ref = {.visible = in_window};
const attention_variant attention_alibi_ref = {.score = alibi};
const attention_variant attention_soft_cap_ref = {.score = soft_cap};
const attention_variant attention_prefix_ref = {.visible = in_prefix};
const attention_variant attention_document_ref = {.visible = in_document};
const attention_variant attention_padded_ref = {.visible = in_length};
const attention_variant attention_sink_ref = {.sink = sink_of_head};
const attention_variant attention_bias_ref = {.score = biased};
const attention_variant attention_rounded_ref = {.cap = 0.0};
const attention_variant attention_quantized_ref = {.cap = 0.0};
const attention_variant attention_relative_ref = {.score = relative};
const attention_variant attention_neighborhood_ref = {.visible = in_neighborhood};
const attention_variant attention_paged_ref = {.visible = in_cache};
