#include "compiler/ir/irsource.h"
#include <string.h>

const struct sig_set *sig_tune_set(const kernel_sig *sig, uint32_t i, const char *target)
{
    const struct sig_set *best = NULL;
    size_t best_len = 0;

    for (uint32_t k = 0; i < sig->ntunes && k < sig->tune[i].nsets; k++) {
        const struct sig_set *set = &sig->tune[i].set[k];
        size_t len = strlen(set->target);
        if (strncmp(set->target, target, len) == 0 && (!best || len > best_len)) {
            best = set;
            best_len = len;
        }
    }
    return best;
}

const ir_binding *binding_find(const ir_binding *b, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(b[i].name, name) == 0)
            return &b[i];
    }
    return NULL;
}
