/* Any bytes as a file to import: the import ends in a status, all of it is taken over or nothing,
 * what was known before is still known, and what the store has then can be exported and is all
 * known when it comes back. */
#include "compiler/base/error.h"
#include "compiler/base/mem.h"
#include "store/store.h"
#include "tests/fuzz/fuzz.h"
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/tilewright_import_XXXXXX", own[64], given[64], out[64];
static store *st;

static void clear_folder(void)
{
    static const char *const sides[] = {"", "-wal", "-shm", "-journal"};
    const char *const files[] = {own, given, out};
    char name[96];

    store_close(st);
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "%s%s", files[i / 4], sides[i % 4]);
        unlink(name);
    }
    rmdir(folder);
}

static const store_key *the_key(void)
{
    static const store_coord problem[] = {{"D", COORD_VALUE, NULL, 64}};
    static const store_coord device[] = {{"name", COORD_LABEL, "box", 0}};
    static const store_key key = {.kernel = "mine",
                                  .content = {1, 2},
                                  .problem = problem,
                                  .nproblem = 1,
                                  .target = "cpu-avx2",
                                  .device = device,
                                  .ndevice = 1,
                                  .driver = "llvm-22/1"};
    return &key;
}

static void open_all(void)
{
    FUZZ_MUST(mkdtemp(folder), "%s\n", folder);
    snprintf(own, sizeof own, "%s/store.db", folder);
    snprintf(given, sizeof given, "%s/given.db", folder);
    snprintf(out, sizeof out, "%s/out.db", folder);
    atexit(clear_folder);
    FUZZ_MUST(store_open(own, NULL, NULL, &st) == TW_OK, "no store\n");
}

static void write_file(const uint8_t *data, size_t size)
{
    int fd = open(given, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    FUZZ_MUST(fd >= 0 && write(fd, data, size) == (ssize_t)size && close(fd) == 0, "%s\n", given);
}

static bool on_row(void *user, const tw_store_row *row)
{
    int64_t *n = user;

    FUZZ_MUST(row->kernel[0] && row->config[0] && isfinite(row->seconds) && row->seconds > 0,
              "%s: %s: %g s\n", row->kernel, row->config, row->seconds);
    ++*n;
    return true;
}

static int64_t rows(void)
{
    int64_t n = 0;

    FUZZ_MUST(store_list(st, on_row, &n) == TW_OK, "%s\n", tw_last_error()->text);
    return n;
}

/* What the store has now goes out, and is known when it comes back. */
static void round_trip(int64_t have)
{
    tw_store_counts n = TW_STORE_COUNTS_INIT;

    unlink(out);
    FUZZ_MUST(store_export(st, out, true, &n) == TW_OK, "%s\n", tw_last_error()->text);
    FUZZ_MUST(n.configs == have, "%lld of %lld\n", (long long)n.configs, (long long)have);
    n = (tw_store_counts)TW_STORE_COUNTS_INIT;
    FUZZ_MUST(store_import(st, out, true, &n) == TW_OK, "%s\n", tw_last_error()->text);
    FUZZ_MUST(n.configs == 0 && n.artifacts == 0 && n.refused == 0, "%lld new, %lld refused\n",
              (long long)(n.configs + n.artifacts), (long long)n.refused);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tw_store_counts n = TW_STORE_COUNTS_INIT;
    store_answer a;

    if (!st)
        open_all();
    write_file(data, size);
    FUZZ_MUST(store_clear(st, NULL, NULL) == TW_OK, "%s\n", tw_last_error()->text);
    FUZZ_MUST(store_put_best(st, the_key(), "B=3", 1.0, 0.0) == TW_OK, "put\n");
    error_clear();
    long before = mem_live();
    tw_status got = store_import(st, given, true, &n);
    FUZZ_MUST(got == TW_OK || got == TW_E_IO || got == TW_E_STORE, "%s: %s\n", tw_status_name(got),
              tw_last_error()->text);
    error_clear();
    FUZZ_MUST(mem_live() <= before, "%ld blocks are lost\n", mem_live() - before);
    int64_t have = rows();
    FUZZ_MUST(got == TW_OK ? have <= 1 + n.configs : have == 1, "%lld rows\n", (long long)have);
    store_best(st, the_key(), NULL, NULL, &a);
    FUZZ_MUST(a.layer == TW_LAYER_EXACT && a.seconds > 0 && a.seconds <= 1.0, "%s, %g s\n",
              a.config, a.seconds);
    if (n.configs + n.trials + n.artifacts > 0)
        round_trip(have);
    error_clear();
    return 0;
}
