#include "dsl/foreign.h"
#include <string.h>

static const struct {
    const char *word, *hint;
} foreign[] = {
#define FOREIGN(word, hint) {word, hint},
#include "dsl/foreign.def"
#undef FOREIGN
};

const char *foreign_hint(const char *word, size_t n)
{
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        if (strlen(foreign[i].word) == n && memcmp(foreign[i].word, word, n) == 0)
            return foreign[i].hint;
    }
    return NULL;
}
