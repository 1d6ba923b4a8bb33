#ifndef TW_TESTS_STORE_FAULTS_H
#define TW_TESTS_STORE_FAULTS_H
/* The n-th call of some kind fails, for n = 1, 2, ... until one is not reached. The test file does
 * the failing; here is what a process then does with its store, and what must be true. */
#include <stdbool.h>

enum faults_of { FAULT_ONCE, FAULT_FROM_THEN_ON };

typedef struct faults {
    void (*arm)(long n, enum faults_of how);
    bool (*disarm)(void); /* has the n-th call been made? */
} faults;

/* Fails the n-th call while a store that holds something is opened, read, added to and closed: the
 * answers are right each time, there is one warning at most, and later the file holds what it held
 * and what was said to be written. fixture_setup has run. Returns how many calls there are. */
long store_faults(const faults *f, enum faults_of how);
/* The same while a kernel is tuned, its store new, and launched: the result is right. Every
 * step-th call, and the first ten. */
long tune_faults(const faults *f, enum faults_of how, long step);

#endif
