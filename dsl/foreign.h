#ifndef TW_DSL_FOREIGN_H
#define TW_DSL_FOREIGN_H
/* What an unknown word means to those who come from another language. */
#include <stddef.h>

/* How the first n bytes of word are said here; NULL for any other word. */
const char *foreign_hint(const char *word, size_t n);

#endif
