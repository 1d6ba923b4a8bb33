#include "dsl/diag_source.h"
#include <stdbool.h>

static bool speaks_of(const diag_list *diags, const source *old)
{
    for (uint32_t i = 0; i < diags->all.n; i++) {
        const diag *d = diags->all.at[i];
        if (d->where.src == old)
            return true;
        for (uint32_t k = 0; k < d->notes.n; k++) {
            if (d->notes.at[k].where.src == old)
                return true;
        }
    }
    return false;
}

void diags_keep_source(diag_list *diags, const source *old)
{
    if (!speaks_of(diags, old))
        return;
    const source *copy = source_new(diags->a, old->name, old->text, old->len);
    for (uint32_t i = 0; i < diags->all.n; i++) {
        diag *d = diags->all.at[i];
        if (d->where.src == old)
            d->where.src = copy;
        for (uint32_t k = 0; k < d->notes.n; k++) {
            if (d->notes.at[k].where.src == old)
                d->notes.at[k].where.src = copy;
        }
    }
}
