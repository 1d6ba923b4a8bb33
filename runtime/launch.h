#ifndef TW_RUNTIME_LAUNCH_H
#define TW_RUNTIME_LAUNCH_H
/* Inside of a launch: what runtime.h does not need to say. */
#include "runtime/runtime.h"

/* Frees the block that launches on dev keep for their workspaces. */
void workspace_drop(tw_device *dev);
/* TW_E_LIMIT when the artifact's recipe asks for what the kernel or a launch does not have. */
tw_status recipe_check(const executable *exe);

/* Hands what programs print to the context's log. */
typedef struct launch_print {
    print_target target;
    tw_context *cx;
    const artifact *art;
} launch_print;
/* to_log false: nobody is told. */
launch_print launch_print_of(tw_context *cx, const artifact *art, bool to_log);

#endif
