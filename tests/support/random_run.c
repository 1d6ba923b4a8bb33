#include "tests/support/random_run.h"
#include <string.h>

enum { ROWS = RANDOM_ROWS, COLUMNS = RANDOM_COLUMNS, CELLS = RANDOM_CELLS };

void random_prepare(random_tensors *t, uint64_t seed)
{
    num_random r = {seed ^ 0x5eed};

    for (int i = 0; i < ROWS * COLUMNS; i++) {
        t->x[i] = (float)(num_below(&r, 17) - 8);
        t->w[i] = (int32_t)(num_below(&r, 17) - 8);
    }
    memset(t->yf, 0xee, sizeof t->yf);
    memset(t->yi, 0xee, sizeof t->yi);
}

static DLTensor tensor_of(void *at, int rank, int64_t *shape, uint8_t code)
{
    return (DLTensor){at, {kDLCPU, 0}, rank, {code, 32, 1}, shape, NULL, 0};
}

tw_status random_run(num_device *d, const char *text, bool checked, random_tensors *t)
{
    int64_t in[2] = {ROWS, COLUMNS};
    int64_t out[3] = {RANDOM_PROGRAMS * RANDOM_PLANES, RANDOM_EXTENT, RANDOM_EXTENT};
    DLTensor x = tensor_of(t->x, 2, in, kDLFloat), w = tensor_of(t->w, 2, in, kDLInt);
    DLTensor yf = tensor_of(t->yf, 3, out, kDLFloat), yi = tensor_of(t->yi, 3, out, kDLInt);
    tw_arg args[] = {TW_TENSOR("x", &x), TW_TENSOR("w", &w), TW_TENSOR("yf", &yf),
                     TW_TENSOR("yi", &yi), TW_INT("n", 0)};
    tw_kernel *k = NULL;
    tw_status st = tw_kernel_load_text(d->cx, "random.tw", text, strlen(text), "random", &k);

    if (st == TW_OK && checked)
        st = tw_kernel_set_checked(k);
    if (st == TW_OK)
        st = tw_launch(k, d->dev, NULL, args, 5);
    if (st != TW_OK && st != TW_E_LIMIT && !(checked && st == TW_E_ASSERT)) {
        num_say("%s", text);
        num_must(st, d->label);
    }
    tw_kernel_destroy(k);
    return st;
}

bool random_compare(num_device *oracle, num_device *d, uint64_t seed, bool checked, bool *ran)
{
    static random_tensors want, got;
    static char text[RANDOM_TEXT];

    random_kernel(seed, text);
    random_prepare(&want, seed);
    random_prepare(&got, seed);
    tw_status a = random_run(oracle, text, checked, &want), b = random_run(d, text, checked, &got);
    *ran = a == TW_OK && b == TW_OK;
    if (checked && a != b && (a == TW_E_ASSERT || b == TW_E_ASSERT)) {
        num_say("%s\nseed %llu: %s on the interpreter, %s on %s\n", text, (unsigned long long)seed,
                tw_status_name(a), tw_status_name(b), d->label);
        return false;
    }
    if (*ran && !random_agree(&want, &got, d->label, seed, text))
        return false;
    if (!*ran || !checked)
        return true;
    random_prepare(&got, seed);
    return random_run(d, text, false, &got) != TW_OK ||
           random_agree(&want, &got, d->label, seed, text);
}

bool random_agree(const random_tensors *a, const random_tensors *b, const char *label,
                  uint64_t seed, const char *text)
{
    for (int i = 0; i < CELLS; i++) {
        bool same_float = a->yf[i] == b->yf[i] || !memcmp(&a->yf[i], &b->yf[i], sizeof(float));

        if (same_float && a->yi[i] == b->yi[i])
            continue;
        num_say("%s\nseed %llu, %s: cell %d of plane %d is %g, %d on the interpreter and %g, %d\n",
                text, (unsigned long long)seed, label, i % (RANDOM_EXTENT * RANDOM_EXTENT),
                i / (RANDOM_EXTENT * RANDOM_EXTENT), (double)a->yf[i], a->yi[i], (double)b->yf[i],
                b->yi[i]);
        return false;
    }
    return true;
}
