#ifndef TW_RUNCHECK_H
#define TW_RUNCHECK_H
/* run --check: the outputs of a launch beside those of the interpreter in double precision, element
 * by element. When all programs would take the interpreter too long, it runs a sample of them, and
 * what they wrote is compared. */
#include "cli/problem.h"

typedef struct verdict {
    bool compared; /* of an output; false for inputs */
    bool pass;
    size_t elements, wrong; /* compared; outside the tolerance */
    double worst;           /* largest error, absolute; inf where only one is finite */
    double worst_relative;  /* the same in units of the tolerance's scale */
    double tolerance;
    size_t at; /* element with the largest error */
    double got, expected;
} verdict;

typedef struct check {
    tensor *reference; /* per parameter, outputs only: what the interpreter writes to */
    void **before;     /* per parameter, outputs only: what reference held before */
    verdict *verdict;  /* per parameter */
    int64_t programs, interpreted;
    bool pass;
} check;

/* Before the launch, which changes inout tensors. */
int check_begin(cli *c, const problem *p, check *k);
/* config: that of the launch, as tw_answer has it; the interpreter takes its tune parameters. */
int check_compare(cli *c, const problem *p, const char *config, check *k);
void check_free(const problem *p, check *k);

#endif
