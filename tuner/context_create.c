/* The public way to a context: the runtime's, which cannot see the tuner, with the tuner put in. */
#include "tuner/tuner.h"

tw_status tw_context_create(const tw_config *cfg, tw_context **out)
{
    return runtime_context_create(cfg, &tuner_table, out);
}
