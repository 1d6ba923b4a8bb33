#ifndef TW_OPEN_H
#define TW_OPEN_H
/* Opening what a verb works on, as the options say. Each returns an exit code. */
#include "cli/cli.h"

/* With the store that --store, else the environment names; level: what the log shows. What the
 * environment says of tuning is in c->opt afterwards, where options say nothing of it. */
int open_context(cli *c, tw_log_level level, tw_context **out);
int open_device(cli *c, tw_context *cx, tw_device **out);
/* what: FILE or FILE:KERNEL. Its warnings are shown. */
int open_kernel(cli *c, tw_context *cx, const char *what, tw_kernel **out);

#endif
