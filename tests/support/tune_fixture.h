#ifndef TW_TESTS_TUNE_FIXTURE_H
#define TW_TESTS_TUNE_FIXTURE_H
/* A device whose results are real and whose clock is made up: it computes as the interpreter does
 * and says that a launch took what `cost` says of the number of programs. With a kernel whose grid
 * is cdiv(N, BLOCK), that is a function of BLOCK. */
#include "tests/support/runtime_fixture.h"

typedef struct fake_device {
    double (*cost)(int64_t programs); /* seconds */
    int64_t wrong_at;                 /* this many programs: the results are spoilt; 0: never */
    int64_t fails_at;                 /* this many programs: a launch fails                   */
    int64_t breaks_at;                /* this many programs: and every launch after it        */
    bool broken;                      /* that happened                                        */
    const char *spills;               /* what is in the launch function of code that spills   */
    int spilled;                      /* so many bytes                                        */
    int pause_us;                     /* what a launch takes in truth, besides                */
    tw_status (*compiles)(const artifact *art); /* in the thread that compiles it; NULL: fine */
    atomic_int compiled, compiling; /* how many were, and are, in there                     */
    atomic_int disturbed;           /* launches meanwhile                                   */
    atomic_long launches;
    int64_t last; /* programs of the last launch                          */
    double now;   /* seconds of launches so far                           */
} fake_device;
extern fake_device fake;

/* Over rt_cx; every field of fake is cleared but cost. */
tw_device *fake_open(double (*cost)(int64_t programs));
/* The same as a processor is: it has no events, so its times are real ones. */
tw_device *fake_open_processor(void);

/* The interpreter's target, but of code it knows beforehand when it is the same. */
extern target fake_knowing_target;
/* The same with a parameter, threads, that does not shape code. */
extern target fake_dynamic_target;

/* y = x + 1 over N elements, tune BLOCK in {64, 16, 32, 128, 256, 512}, M: a second one without
 * effect in {1, 2, 4}. */
tw_kernel *fake_kernel(void);
/* The same, updating y in place: y += 1. */
tw_kernel *fake_inout_kernel(void);
/* y = x + 1, tune BLOCK in {64, 4194304, 128}: the second is too large a tile, and programs from
 * the 16th on store nothing with BLOCK = 128. */
tw_kernel *fake_odd_kernel(void);
/* y = x + 1 in programs of 64; the last adds up `rounds` numbers first. */
tw_kernel *fake_long_kernel(int rounds);
#define FAKE_N 4096

#endif
