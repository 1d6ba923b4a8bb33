#ifndef TW_RUNTIME_LAUNCH_H
#define TW_RUNTIME_LAUNCH_H
/* Inside of a launch: what runtime.h does not need to say. */
#include "runtime/runtime.h"

/* Frees the block that launches on dev keep for their workspaces. */
void workspace_drop(tw_device *dev);
/* TW_E_LIMIT when the artifact's recipe asks for what the kernel or a launch does not have. */
tw_status recipe_check(const executable *exe);

/* What programs say while they run: prints go to the context's log, of the asserts that fail with
 * values the first is kept. */
typedef struct launch_calls {
    program_calls calls;
    tw_context *cx;
    const artifact *art;
    atomic_flag is_kept;
    int32_t failed; /* 1 + its index, 0: none */
    int32_t program[3], value[ASSERT_MAX_VALUES];
} launch_calls;
/* prints false: what is printed is lost. */
void launch_calls_begin(launch_calls *c, tw_context *cx, const artifact *art, bool prints);
/* The text of an assert that a program returned, with its values when they are known. */
const char *launch_assert_text(const launch_calls *c, int32_t failed, char *text, size_t room);

#endif
