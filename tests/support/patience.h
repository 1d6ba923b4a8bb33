/* How much longer than in a release build something may take: sanitizers slow code down by 2 to 10.
 * Tests scale budgets, limits of time and amounts of work by it. */
#ifndef TW_TESTS_PATIENCE_H
#define TW_TESTS_PATIENCE_H

#if defined(__SANITIZE_THREAD__)
#define PATIENCE 8
#define PATIENCE_TEXT "8"
#elif defined(__SANITIZE_ADDRESS__)
#define PATIENCE 4
#define PATIENCE_TEXT "4"
#else
#define PATIENCE 1
#define PATIENCE_TEXT "1"
#endif

/* Of a table of cases that are about generated code or schedules, every SPARSE-th: a sanitizer sees
 * the same of our code in the others. */
#define SPARSE (PATIENCE > 1 ? 3 : 1)

#endif
