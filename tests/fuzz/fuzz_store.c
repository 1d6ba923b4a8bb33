/* Any bytes as the file of the store: opening and every use end in a status, and what the process
 * itself puts in is there until it closes the store, in the file or in memory. */
#include "compiler/base/error.h"
#include "compiler/base/mem.h"
#include "store/store.h"
#include "tests/fuzz/fuzz.h"
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/tilewright_fuzz_XXXXXX", path[64];
static int warnings;

static void clear_files(void)
{
    static const char *const sides[] = {"", "-wal", "-shm", "-journal"};
    char name[96];

    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "%s%s", path, sides[i]);
        unlink(name);
    }
}

static void clear_folder(void)
{
    clear_files();
    rmdir(folder);
}

static void write_file(const uint8_t *data, size_t size)
{
    if (!path[0]) {
        FUZZ_MUST(mkdtemp(folder), "%s\n", folder);
        snprintf(path, sizeof path, "%s/store.db", folder);
        atexit(clear_folder);
    }
    clear_files();
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    FUZZ_MUST(fd >= 0 && write(fd, data, size) == (ssize_t)size && close(fd) == 0, "%s\n", path);
}

static void on_log(void *user, tw_log_level level, const char *text)
{
    (void)user;
    FUZZ_MUST(level == TW_LOG_WARNING && text[0], "a message\n");
    warnings++;
}

static bool accept(void *user, const char *config)
{
    (void)user;
    return strlen(config) < 256;
}

static bool on_row(void *user, const tw_store_row *row)
{
    size_t *total = user;

    *total += strlen(row->kernel) + strlen(row->problem) + strlen(row->config);
    return true;
}

static bool on_trial(void *user, const tw_trial *t)
{
    size_t *total = user;

    *total += strlen(t->config);
    return true;
}

static const store_key *the_key(void)
{
    static const store_coord problem[] = {
        {"T", COORD_EXACT, "f32", 0},
        {"D", COORD_VALUE, NULL, 64},
        {"CAUSAL", COORD_LABEL, "true", 0},
        {"M", COORD_BUCKET, NULL, 1},
    };
    static const store_coord device[] = {{"name", COORD_LABEL, "box", 0}};
    static const store_key key = {.kernel = "k",
                                  .content = {64, 7},
                                  .problem = problem,
                                  .nproblem = 4,
                                  .target = "cpu-avx2",
                                  .device = device,
                                  .ndevice = 1,
                                  .driver = "llvm-22/1"};
    return &key;
}

static void must_answer(tw_status st)
{
    FUZZ_MUST(st == TW_OK || st == TW_E_STORE, "%s: %s\n", tw_status_name(st),
              tw_last_error()->text);
}

static void read_all(store *st)
{
    size_t total = 0, size = 0;
    void *bytes = NULL;
    store_answer a;

    store_best(st, the_key(), accept, NULL, &a);
    FUZZ_MUST(memchr(a.config, '\0', sizeof a.config), "a configuration without an end\n");
    FUZZ_MUST(a.seconds >= 0 && isfinite(a.seconds), "%g s\n", a.seconds);
    must_answer(store_list(st, on_row, &total));
    for (int64_t id = 0; id < 4; id++)
        must_answer(store_trials(st, id, on_trial, &total));
    must_answer(store_key_trials(st, the_key(), on_trial, &total));
    if (store_artifact_get(st, (hash128){1, 2}, &bytes, &size))
        FUZZ_MUST(size == 4 && !memcmp(bytes, "code", 4), "%zu bytes that nobody put\n", size);
    mem_free(bytes);
}

static void put_all(store *st)
{
    static const double sample[] = {1.0, 2.0};
    const store_trial trial = {
        .state = TW_TRIAL_OK, .config = "B=3", .median_s = 1.5, .sample = sample, .nsamples = 2};
    store_lease lease;
    store_answer a;

    if (store_lease_try(st, the_key(), &lease, NULL) == LEASE_TAKEN)
        store_lease_release(st, &lease);
    must_answer(store_put_trial(st, the_key(), &trial));
    must_answer(store_put_best(st, the_key(), "B=3", 1e-9, 0.0));
    store_best(st, the_key(), NULL, NULL, &a);
    FUZZ_MUST(!strcmp(a.config, "B=3"), "%s after B=3 was put\n", a.config);
    must_answer(store_artifact_put(st, (hash128){3, 4}, the_key(), "more", 4));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    store *st = NULL;

    write_file(data, size);
    warnings = 0;
    error_clear();
    long before = mem_live();
    FUZZ_MUST(store_open(path, on_log, NULL, &st) == TW_OK, "no store\n");
    read_all(st);
    put_all(st);
    read_all(st);
    must_answer(store_clear(st, "k", NULL));
    store_close(st);
    error_clear();
    FUZZ_MUST(mem_live() <= before, "%ld blocks are lost\n", mem_live() - before);
    FUZZ_MUST(warnings <= 4, "%d warnings\n", warnings);
    return 0;
}
