#ifndef TW_CLI_PTXAS_H
#define TW_CLI_PTXAS_H
#include "cli/cli.h"

/* The caller frees *cubin. Returns an exit code; on a failure it has been told. */
int ptxas_assemble(cli *c, const char *ptx, size_t size, char **cubin, size_t *cubin_size);

typedef struct ptxas_report {
    int registers, spill_bytes; /* of a thread */
} ptxas_report;
/* What ptxas says of a kernel; all 0 where it is not found. Returns an exit code, as above. */
int ptxas_count(cli *c, const char *ptx, size_t size, ptxas_report *out);

#endif
