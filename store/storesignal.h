#ifndef TW_STORE_STORESIGNAL_H
#define TW_STORE_STORESIGNAL_H
/* A write beyond RLIMIT_FSIZE sends SIGXFSZ, which ends a process that does not expect it; the
 * write fails too (EFBIG), and that is all the store needs to know. Between hold and release this
 * thread gets none: what a write of ours raised is gone afterwards, the application's own comes
 * then. */
#include <signal.h>
#include <stdbool.h>

typedef struct size_signal {
    sigset_t mask; /* before */
    bool pending;
} size_signal;

void size_signal_hold(size_signal *s);
void size_signal_release(const size_signal *s);

#endif
