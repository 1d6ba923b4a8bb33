#ifndef TW_RUNTIME_TEXT_FILE_H
#define TW_RUNTIME_TEXT_FILE_H
/* Files of text that users name: kernels, profiles of GPUs, seeds. Only regular files are read,
 * whole, up to a limit: a device such as /dev/zero never ends, and a FIFO waits for whoever writes
 * it. A byte order mark at the beginning is left out. */
#include "tilewright.h"

/* *text has a NUL after its *length bytes, for mem_free. Otherwise *why says why not: TW_E_IO,
 * TW_E_LIMIT (longer than limit), TW_E_NOMEM. Sets no error. */
tw_status text_file_read(const char *path, size_t limit, char **text, size_t *length,
                         const char **why);

#endif
