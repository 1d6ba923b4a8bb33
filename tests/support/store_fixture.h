#ifndef TW_TESTS_STORE_FIXTURE_H
#define TW_TESTS_STORE_FIXTURE_H
/* A directory of its own for each store test, a key to work with, and the warnings it gave. */
#include "store/store.h"
#include <stddef.h>

typedef struct store_warnings {
    int count;
    char last[2048];
} store_warnings;

extern char fixture_dir[128], fixture_path[160]; /* path: dir + "/store.db" */
extern store_warnings fixture_warnings;

void fixture_setup(void);    /* for tcase_add_checked_fixture */
void fixture_teardown(void); /* removes the directory */

store *fixture_open(const char *path); /* asserts TW_OK; warnings go to fixture_warnings */
/* Kernel "k", D = d, M = m (a bucket), target "cpu-avx2", device "box" with 2 threads. The key
 * lives in static memory until the next call. */
store_key *fixture_key(int64_t d, int64_t m);
/* Runs SQL on the file directly, as another program would. */
void fixture_sql(const char *path, const char *sql);
long long fixture_sql_int(const char *path, const char *sql);

#endif
