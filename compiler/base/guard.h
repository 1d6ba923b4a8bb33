#ifndef TW_BASE_GUARD_H
#define TW_BASE_GUARD_H
/* A protected call, as in Lua: code deep inside a compile that runs out of memory, or an LLVM fatal
 * error, jumps back to the nearest guard_run of its thread, which returns a status.
 *
 * The rule that makes this safe: between guard_run and the jump, own nothing but arenas that the
 * caller of guard_run releases (and, inside target/, LLVM objects, which are then abandoned: a
 * documented leak). No locks, no files, no mem_alloc'ed blocks held in locals. */
#include "tilewright.h"

typedef tw_status (*guard_fn)(void *arg);

/* Calls fn(arg) and returns its status, or the status that was thrown. Nests. */
tw_status guard_run(guard_fn fn, void *arg);

/* Jumps to this thread's innermost guard_run; st must not be TW_OK. Outside any guard_run it is a
 * bug of ours: aborts in debug builds, else returns to the caller (so callers must still cope). */
void guard_throw(tw_status st);

/* True when this thread is inside a guard_run. */
int guard_active(void);

#endif
