#include "compiler/base/check.h"
#include "compiler/base/guard.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char last[256];

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

void icheck_failed(const char *fact, const char *file, int line)
{
    snprintf(last, sizeof last, "%s (%s:%d)", fact, base_name(file), line);
#ifndef NDEBUG
    fprintf(stderr, "internal check failed: %s\n", last);
    abort();
#endif
    guard_throw(TW_E_INTERNAL);
}

const char *icheck_last(void)
{
    return last[0] ? last : NULL;
}
