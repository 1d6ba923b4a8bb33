#ifndef TW_TESTS_SCHED_RIG_H
#define TW_TESTS_SCHED_RIG_H
/* Runs tile IR of level 2 in the interpreter, whole and with parts of its order taken away. */
#include "compiler/target/interp/interp.h"

#define SCHED_MAX_TENSORS 8

typedef struct sched_rig {
    ir_module *m; /* in ir_fixture's arena */
    interp_arg arg[32];
    interp_launch launch;
    interp_fault fault;
} sched_rig;

/* The text must parse. One program, until launch.grid says otherwise. */
void sched_open(sched_rig *r, const char *text);
void sched_open_module(sched_rig *r, ir_module *m);
/* Storage, without gaps, for parameter p, a tensor. */
void sched_bind(sched_rig *r, int p, void *base, const int64_t *extent);
tw_status sched_run(sched_rig *r, const ir_module *m, uint64_t seed);
/* Runs r->m with several seeds and asserts that each ends well. */
void sched_must_run(sched_rig *r);
/* Asserts that it fails as TW_E_SOURCE, with all of the texts (up to NULL) in the message. */
void sched_must_fail(sched_rig *r, const char *const *text);

/* A copy of m with less order: number n of the ways to take away one op that orders something
 * (waits, commits, barriers, arrivals, fences) or to let one wait for a group less. NULL: there are
 * no more. *what says which it is. */
ir_module *sched_weakened(const ir_module *m, int n, const char **what);
/* The op that this takes away or weakens fails in this copy as soon as it is reached. */
ir_module *sched_trapped(const ir_module *m, int n);
/* Every such module must fail. Returns how many were tried; those that still run are listed in
 * *missed, one a line ("" when there is none). */
int sched_mutate(sched_rig *r, const char **missed);

#endif
