#ifndef TW_IR_TYPE_H
#define TW_IR_TYPE_H
/* Types of IR values. A type is a small value: copy it, compare it with type_equal.
 *
 *   kind      written                       what
 *   SCALAR    f32                           one element
 *   TILE      f32[64, 128]                  rank 1 to 4, every extent a positive constant;
 *             f32[64, 128] #mma             level 2: with a layout (an id of the function's table)
 *   VIEW      view<f32, 4>                  a strided tensor in device memory, rank 1 to 8
 *   BUFFER    buf<f32, [2, 64, 64]> #sw     level 2: shared memory, outermost extent = stages
 *   MBAR      mbar                          level 2: an mbarrier
 */
#include "compiler/base/strbuf.h"
#include <stdbool.h>
#include <stdint.h>

enum dtype {
#define DTYPE(id, name, bits, kind, dlcode, dlbits) DT_##id,
#include "compiler/ir/dtype.def"
#undef DTYPE
    DT_COUNT,
    DT_NONE = DT_COUNT
};
enum dtype_kind { DTK_BOOL, DTK_SINT, DTK_UINT, DTK_FLOAT };

const char *dtype_name(enum dtype t);
enum dtype dtype_parse(const char *name); /* DT_NONE when unknown */
int dtype_bits(enum dtype t);
int dtype_bytes(enum dtype t); /* in memory; i1 takes 1 */
enum dtype_kind dtype_kind(enum dtype t);
static inline bool dtype_is_float(enum dtype t) { return dtype_kind(t) == DTK_FLOAT; }
static inline bool dtype_is_int(enum dtype t)
{
    return dtype_kind(t) == DTK_SINT || dtype_kind(t) == DTK_UINT;
}
/* What dot accumulates in: f32 for f16, bf16, f32; f64 for f64; i32 for integers. */
enum dtype dtype_accumulator(enum dtype t);
/* What a sum of t gives: i1 and integers narrower than 32 bits widen to i32 or u32. */
enum dtype dtype_sum(enum dtype t);

enum type_kind { TYPE_NONE, TYPE_SCALAR, TYPE_TILE, TYPE_VIEW, TYPE_BUFFER, TYPE_MBAR };

#define TILE_MAX_RANK 4
#define VIEW_MAX_RANK 8
#define TILE_MAX_ELEMENTS (1 << 20)

typedef struct ir_type {
    uint8_t kind;   /* enum type_kind */
    uint8_t dtype;  /* enum dtype */
    uint8_t rank;   /* tiles, views, buffers */
    uint16_t layout; /* level 2: index in the function's layout table; 0 = none */
    int32_t shape[TILE_MAX_RANK + 1]; /* tiles; buffers (stages first) */
} ir_type;

ir_type type_scalar(enum dtype t);
ir_type type_tile(enum dtype t, int rank, const int32_t *shape);
ir_type type_view(enum dtype t, int rank);
bool type_equal(ir_type a, ir_type b);      /* with layout */
bool type_same_shape(ir_type a, ir_type b); /* kind, rank, extents; not dtype, not layout */
ir_type type_with_dtype(ir_type t, enum dtype d);
int64_t type_elements(ir_type t); /* 1 for a scalar */
void type_print(strbuf *b, ir_type t); /* without the layout's name */
const char *type_text(arena *a, ir_type t);

#endif
