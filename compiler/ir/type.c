#include "compiler/ir/type.h"
#include "compiler/base/check.h"
#include <string.h>

typedef struct dtype_row {
    const char *name;
    int bits;
    enum dtype_kind kind;
} dtype_row;

static const dtype_row dtype_rows[DT_COUNT] = {
#define DTYPE(id, name, bits, kind, dlcode, dlbits) {name, bits, DTK_##kind},
#include "compiler/ir/dtype.def"
#undef DTYPE
};

static const dtype_row *row_of(enum dtype t)
{
    ICHECK((unsigned)t < DT_COUNT, "a dtype is one of dtype.def");
    return &dtype_rows[t];
}

const char *dtype_name(enum dtype t)
{
    return row_of(t)->name;
}

enum dtype dtype_parse(const char *name)
{
    for (int t = 0; t < DT_COUNT; t++) {
        if (strcmp(dtype_rows[t].name, name) == 0)
            return (enum dtype)t;
    }
    return DT_NONE;
}

int dtype_bits(enum dtype t)
{
    return row_of(t)->bits;
}

int dtype_bytes(enum dtype t)
{
    return (row_of(t)->bits + 7) / 8;
}

enum dtype_kind dtype_kind(enum dtype t)
{
    return row_of(t)->kind;
}

enum dtype dtype_accumulator(enum dtype t)
{
    if (t == DT_F64)
        return DT_F64;
    return dtype_is_float(t) ? DT_F32 : DT_I32;
}

enum dtype dtype_sum(enum dtype t)
{
    const dtype_row *row = row_of(t);

    if (row->kind == DTK_FLOAT || row->bits >= 32)
        return t;
    return row->kind == DTK_UINT ? DT_U32 : DT_I32;
}

ir_type type_scalar(enum dtype t)
{
    return (ir_type){.kind = TYPE_SCALAR, .dtype = (uint8_t)t};
}

ir_type type_tile(enum dtype t, int rank, const int32_t *shape)
{
    ICHECK(rank >= 1 && rank <= TILE_MAX_RANK, "a tile has rank 1 to 4");
    ir_type ty = {.kind = TYPE_TILE, .dtype = (uint8_t)t, .rank = (uint8_t)rank};
    for (int i = 0; i < rank; i++)
        ty.shape[i] = shape[i];
    return ty;
}

ir_type type_view(enum dtype t, int rank)
{
    ICHECK(rank >= 1 && rank <= VIEW_MAX_RANK, "a view has rank 1 to 8");
    return (ir_type){.kind = TYPE_VIEW, .dtype = (uint8_t)t, .rank = (uint8_t)rank};
}

static bool has_extents(ir_type t)
{
    return t.kind == TYPE_TILE || t.kind == TYPE_BUFFER;
}

bool type_same_shape(ir_type a, ir_type b)
{
    if (a.kind != b.kind || a.rank != b.rank)
        return false;
    for (int i = 0; has_extents(a) && i < a.rank; i++) {
        if (a.shape[i] != b.shape[i])
            return false;
    }
    return true;
}

bool type_equal(ir_type a, ir_type b)
{
    return a.dtype == b.dtype && a.layout == b.layout && type_same_shape(a, b);
}

ir_type type_with_dtype(ir_type t, enum dtype d)
{
    t.dtype = (uint8_t)d;
    return t;
}

int64_t type_elements(ir_type t)
{
    int64_t n = 1;

    for (int i = 0; has_extents(t) && i < t.rank; i++)
        n *= t.shape[i];
    return n;
}

static void print_extents(strbuf *b, ir_type t)
{
    sb_char(b, '[');
    for (int i = 0; i < t.rank; i++)
        sb_fmt(b, "%s%d", i ? ", " : "", t.shape[i]);
    sb_char(b, ']');
}

void type_print(strbuf *b, ir_type t)
{
    switch ((enum type_kind)t.kind) {
    case TYPE_NONE:
        sb_str(b, "none");
        break;
    case TYPE_SCALAR:
        sb_str(b, dtype_name(t.dtype));
        break;
    case TYPE_TILE:
        sb_str(b, dtype_name(t.dtype));
        print_extents(b, t);
        break;
    case TYPE_VIEW:
        sb_fmt(b, "view<%s, %d>", dtype_name(t.dtype), t.rank);
        break;
    case TYPE_BUFFER:
        sb_fmt(b, "buf<%s, ", dtype_name(t.dtype));
        print_extents(b, t);
        sb_char(b, '>');
        break;
    case TYPE_MBAR:
        sb_str(b, "mbar");
        break;
    }
}

const char *type_text(arena *a, ir_type t)
{
    strbuf b;

    sb_init(&b, a);
    type_print(&b, t);
    return b.s;
}
