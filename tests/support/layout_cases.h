#ifndef TW_TESTS_LAYOUT_CASES_H
#define TW_TESTS_LAYOUT_CASES_H
/* Layouts of every kind with tiles that they fit, and what their maps say, by brute force. */
#include "compiler/ir/layout.h"

typedef struct layout_case {
    ir_type tile; /* with its layout */
    int warps;
} layout_case;

#define LAYOUT_CASES 700
/* Fills cases with layouts of fn; how many there are. */
int layout_cases(ir_fn *fn, layout_case *cases);
layout_map layout_must(const ir_fn *fn, ir_type tile, int warps);
/* The row-major number of the element that a thread holds in a register. */
int64_t layout_number(const layout_map *map, int reg, int lane, int warp);

#endif
