#ifndef TW_HOST_INFO_H
#define TW_HOST_INFO_H
/* What this machine's processor is. */
#include "tilewright.h"

/* Processors that this process may use: its affinity mask and its control group's quota, at
 * least 1. */
int host_processors(void);
/* "AMD EPYC 9354"; the architecture where the system does not say. */
void host_processor_name(char *out, size_t size);
/* Data cache of a level (1 or 2) of processor 0, per core; 0 when unknown. */
size_t host_cache_bytes(int level);
/* Asks the kernel for this process's permission to use tile registers (AMX), where there are any.
 * Without it the first tile instruction ends the process; who has it needs 8 KiB more for each
 * signal frame. A refusal is no error: cpu-amx is then not usable. */
void host_ask_for_tiles(void);
#endif
