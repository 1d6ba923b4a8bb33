#ifndef TW_TESTS_CHILD_H
#define TW_TESTS_CHILD_H
/* Processes that a test forks.
 *
 * Check writes what a test asserts to one file, and a forked child shares its offset: children that
 * assert at once, or are killed halfway, would leave messages that Check cannot read. A child from
 * here has let go of that file: an assertion that fails in it ends it with status 1. */
#include <sys/types.h>

/* Runs fn(arg) in a child, which leaves with _exit(fn(arg)). */
pid_t child_start(int (*fn)(void *arg), void *arg);
/* Waits for it: its exit status, or 128 + the signal that ended it. */
int child_end(pid_t pid);
/* Both. */
int child_run(int (*fn)(void *arg), void *arg);

#endif
