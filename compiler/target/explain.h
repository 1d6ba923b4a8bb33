#ifndef TW_TARGET_EXPLAIN_H
#define TW_TARGET_EXPLAIN_H
/* What a kernel became, line by line: the stage "explain", which every target has. Rows of text, a
 * word and then fields, with a tab before each:
 *
 *   for    TARGET GPU CONFIG             what it was compiled for; GPU: of a profile, or empty
 *   loop   ID LINE OUTER CHECKED         a loop, the one around it (0: none), and how many accesses
 *                                        in it, not in loops inside, are compared with a tensor's
 *                                        bounds; 0: they were proven inside
 *   place  INDEX LOOP FILE LINE OPS TEXT a line within a loop (0: outside of all), and its
 *                                        operations of IR: "load 2, dot"
 *   code   INDEX NAME COUNT ...          instructions made for a place; INDEX 0: for no line
 *
 * A target adds rows of its own: nvptx_explain.c. */
#include "compiler/base/strbuf.h"
#include "compiler/base/vec.h"
#include "compiler/ir/ir.h"

typedef struct explain_place explain_place;
typedef struct explain_map {
    arena *a;
    const ir_fn *fn;
    VEC(explain_place *) place; /* of index i + 1 */
    VEC(const ir_op *) loop;    /* of ID i + 1 */
} explain_map;

/* Every operation of fn but constants and terminators. */
void explain_begin(explain_map *m, const ir_fn *fn, arena *a);
/* The index of an operation's place; 0: it comes from no line. */
uint32_t explain_index(const explain_map *m, const ir_op *op);
/* Rows loop and place. */
void explain_rows(const explain_map *m, strbuf *out);

#endif
