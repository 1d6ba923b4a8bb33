#include "store/storesignal.h"
#include <errno.h>
#include <pthread.h>
#include <time.h>

static bool is_pending(void)
{
    sigset_t set;

    return sigpending(&set) == 0 && sigismember(&set, SIGXFSZ) == 1;
}

void size_signal_hold(size_signal *s)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    s->pending = is_pending();
    pthread_sigmask(SIG_BLOCK, &set, &s->mask);
}

void size_signal_release(const size_signal *s)
{
    const struct timespec now = {0, 0};
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    if (!s->pending && is_pending())
        while (sigtimedwait(&set, NULL, &now) < 0 && errno == EINTR)
            continue;
    pthread_sigmask(SIG_SETMASK, &s->mask, NULL);
}
