#ifndef TW_CLI_PTXAS_H
#define TW_CLI_PTXAS_H
#include "cli/cli.h"

/* The caller frees *cubin. Returns an exit code; on a failure it has been told. */
int ptxas_assemble(cli *c, const char *ptx, size_t size, char **cubin, size_t *cubin_size);

#endif
