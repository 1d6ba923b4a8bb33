#ifndef TW_KERNEL_TABLES_H
#define TW_KERNEL_TABLES_H
/* Tables of cases of the kernels that are not attention. A slow device runs every thin-th case. */
#include "tests/support/numeric_kernels.h"

void matmul_table(num_subject *s, int thin);
void softmax_table(num_subject *s, int thin);
void vector_add_table(num_subject *s, int thin);

#endif
