#ifndef TW_RUNTIME_LAUNCH_H
#define TW_RUNTIME_LAUNCH_H
/* Inside of a launch: what runtime.h does not need to say. */
#include "runtime/runtime.h"

/* Frees the block that launches on dev keep for their workspaces. */
void workspace_drop(tw_device *dev);
/* TW_E_LIMIT when the artifact's recipe asks for what the kernel or a launch does not have. */
tw_status recipe_check(const executable *exe);

#endif
