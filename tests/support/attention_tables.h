#ifndef TW_ATTENTION_TABLES_H
#define TW_ATTENTION_TABLES_H
/* Tables of attention cases, for any device. A slow one runs every thin-th case of each table. */
#include "tests/support/numeric_kernels.h"

void attention_shapes(num_subject *s, int thin);      /* odd M and N, head dims up to 96         */
void attention_wide_heads(num_subject *s, int thin);  /* head dims above 96, DV != D             */
void attention_odd_heads(num_subject *s, int thin);   /* head dims that are no multiples of 16   */
void attention_offsets(num_subject *s, int thin);     /* causal: negative, large, M <> N         */
void attention_groups(num_subject *s, int thin);      /* grouped heads, batches                  */
void attention_layouts(num_subject *s, int thin);     /* strides and alignments                  */
void attention_blocks(num_subject *s, int thin);      /* BLOCK_M and BLOCK_N by hand             */
void attention_schedules(num_subject *s, int thin);   /* schedule parameters of the CPU          */
void attention_empty(num_subject *s, int thin);       /* a dimension of 0                        */
void attention_magnitudes(num_subject *s, int thin);  /* large and tiny logits                   */

#endif
