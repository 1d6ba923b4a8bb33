#ifndef TW_RUNTIME_SPEC_H
#define TW_RUNTIME_SPEC_H
/* The table that a warm launch looks into: from compile-time values, facts and size classes to an
 * executable. Rows are only ever added, and read without a lock; a row's executable may be replaced
 * by a better one, and the old one stays until the kernel or the device goes.
 *
 * A row lives through:  new -> probed (lowered with the default configuration: an empty grid can be
 * told from that alone) -> ready (has an executable). One thread builds a row, others that need it
 * wait for that one. */
#include "runtime/runtime.h"

#define SPEC_BUCKETS 64
#define SPEC_MAX_WORDS (RUNTIME_MAX_CONSTS + 4 + RUNTIME_MAX_SYMBOLS / 8 + 2)

typedef struct spec_key {
    uint64_t hash;
    uint32_t nwords;
    uint64_t word[SPEC_MAX_WORDS];
} spec_key;

typedef struct spec_row {
    struct spec_row *next; /* in its bucket; fixed once the row is in the table */
    spec_key key;
    char *pin;     /* pinned configuration, or NULL */
    bool building; /* under the kernel's lock */
    atomic_bool has_probe;
    arena a; /* owns probe */
    launch_plan probe;
    hash128 content;
    _Atomic(executable *) exe; /* borrowed from the use's list; NULL until ready */
    atomic_bool settled;       /* nothing is left to tune */
    tw_layer layer;            /* with seconds: written before exe, under the kernel's lock */
    double seconds;
} spec_row;

typedef struct exe_node {
    struct exe_node *next;
    executable *exe; /* holds a reference */
} exe_node;

struct kernel_use {
    struct kernel_use *next;
    atomic_uint_least64_t device_id; /* 0: of a device that was closed; may be taken again */
    _Atomic(spec_row *) bucket[SPEC_BUCKETS];
    exe_node *exes; /* under the kernel's lock */
};

/* The row of args on dev, made if it is not there. pin may be NULL. */
tw_status spec_find(tw_kernel *k, tw_device *dev, const launch_args *args, const char *pin,
                    spec_row **out);
enum spec_build_flags {
    SPEC_NEVER_TUNE = 1, /* a query */
    SPEC_ALWAYS = 2,     /* compile even for an empty grid */
    SPEC_CAPTURING = 4   /* neither tune nor compile: TW_E_UNSUPPORTED where no code is loaded */
};
/* Brings s to ready, or returns TW_OK with no executable when the grid of args is empty. */
tw_status spec_build(tw_kernel *k, tw_device *dev, spec_row *s, launch_args *args, unsigned flags);
/* Frees what k holds for a device, whose id is then 0; all of it when dev is NULL. */
void spec_drop(tw_kernel *k, const tw_device *dev);

#endif
