#include "compiler/base/guard.h"
#include <setjmp.h>
#include <stdlib.h>

typedef struct guard_frame {
    jmp_buf at;
    volatile tw_status thrown; /* written after setjmp, so it must not live in a register */
    struct guard_frame *outer;
} guard_frame;

static _Thread_local guard_frame *innermost;

tw_status guard_run(guard_fn fn, void *arg)
{
    guard_frame frame;
    tw_status st;

    frame.thrown = TW_OK;
    frame.outer = innermost;
    innermost = &frame;
    if (setjmp(frame.at) == 0)
        st = fn(arg);
    else
        st = frame.thrown;
    innermost = frame.outer;
    return st;
}

void guard_throw(tw_status st)
{
    if (!innermost) {
#ifndef NDEBUG
        abort();
#endif
        return;
    }
    innermost->thrown = st == TW_OK ? TW_E_INTERNAL : st;
    longjmp(innermost->at, 1);
}

int guard_active(void)
{
    return innermost != NULL;
}
