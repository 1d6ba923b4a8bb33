#include "compiler/target/target.h"
#include "llvm-c/Core.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Raise it when the code that targets generate changes: artifacts of before are not used again. */
enum { CODEGEN_REVISION = 2 };

static size_t count(const target *const *list)
{
    size_t n = 0;

    while (list[n])
        n++;
    return n;
}

size_t target_count(void)
{
    return count(cpu_targets) + count(nvptx_targets) + 1;
}

const target *target_at(size_t i)
{
    size_t ncpu = count(cpu_targets), ngpu = count(nvptx_targets);

    if (i < ncpu)
        return cpu_targets[i];
    return i - ncpu < ngpu ? nvptx_targets[i - ncpu] : &interp_target;
}

const target *target_find(const char *name)
{
    for (size_t i = 0; i < target_count(); i++) {
        if (!strcmp(target_at(i)->name, name))
            return target_at(i);
    }
    for (size_t i = 0; i < target_count(); i++) {
        const target *t = target_at(i);

        if (!strcmp(t->family, name) && t->usable(t))
            return t;
    }
    return NULL;
}

const sched_param *target_sched(const target *t, const char *name)
{
    for (uint32_t i = 0; i < t->nsched; i++) {
        if (!strcmp(t->sched[i].name, name))
            return &t->sched[i];
    }
    return NULL;
}

static char codegen_version[48];

static void name_codegen(void)
{
    unsigned major, minor, patch;

    LLVMGetVersion(&major, &minor, &patch);
    snprintf(codegen_version, sizeof codegen_version, "llvm-%u.%u.%u/%d", major, minor, patch,
             CODEGEN_REVISION);
}

const char *target_codegen_version(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, name_codegen);
    return codegen_version;
}
