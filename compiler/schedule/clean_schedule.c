/* clean_schedule: pass_cse and pass_dce at level 2: what is computed twice only once, and nothing
 * that nobody uses. pass_pipeline_loops computes the place of each copy from scratch. */
#include "compiler/base/check.h"
#include "compiler/passes/dce.h"
#include "compiler/schedule/schedule_pass.h"

tw_status pass_cse(pass_cx *cx, ir_module *m);

tw_status pass_clean_schedule(pass_cx *cx, ir_module *m)
{
    TRY(pass_cse(cx, m));
    cx->changes += dce_fn(m->kernel, cx->scratch);
    return TW_OK;
}
