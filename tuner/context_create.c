/* The public way to a context: the runtime's, which cannot see the tuner, with the tuner put in. */
#include "runtime/runtime.h"

tw_status tw_context_create(const tw_config *cfg, tw_context **out)
{
    return runtime_context_create(cfg, NULL, out);
}
