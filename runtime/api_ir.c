/* The door of tilewright_ir.h into the runtime. */
#include "compiler/base/check.h"
#include "compiler/ir/csource.h"
#include "runtime/runtime.h"

tw_status tw_ir_kernel_create(tw_context *cx, const tw_ir_kernel *def, tw_kernel **out)
{
    kernel_source *src;

    error_clear();
    if (!cx || !def || !out)
        return error_set(TW_E_ARG, "tw_ir_kernel_create: cx, def or out is NULL");
    TRY(csource_new(def, &src));
    TRY(runtime_kernel_of(cx, src, out));
    csource_owns_user(src);
    return TW_OK;
}
