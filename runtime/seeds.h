#ifndef TW_RUNTIME_SEEDS_H
#define TW_RUNTIME_SEEDS_H
/* Seeds: configurations for machines on which nothing was tuned yet, as text: kernels/seeds.txt
 * says how. Those shipped are part of the library; a file may take their place. */
#include "runtime/runtime.h"

typedef struct seed_list seed_list;

/* path NULL: those shipped; "": none. What is wrong with a file costs one warning, and the rows
 * that are wrong. TW_E_NOMEM. cx->store gets the list, which must outlive it. */
tw_status seeds_open(tw_context *cx, const char *path, seed_list **out);
void seeds_close(seed_list *l);

#endif
