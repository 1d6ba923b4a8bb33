/* main() of a fuzz target where libFuzzer is missing. Options are libFuzzer's; others are ignored:
 *   -runs=N              stop after N inputs; 0: the corpus alone
 *   -max_total_time=S    stop after S seconds
 *   -seed=N -timeout=S (of one input) -artifact_prefix=PREFIX
 *   FILE or FOLDER...    the corpus: each is run once, then changed at random and run
 * The input that runs lies in a file, PREFIXcurrent-PID, which stays when the process dies. */
#include "tests/fuzz/fuzz.h"
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MAX_INPUTS = 4096, MAX_BYTES = 1 << 18 };

static struct input {
    uint8_t *at;
    size_t n;
} corpus[MAX_INPUTS];
static int ninputs;
static uint64_t state = 1;
static long runs = -1, max_seconds = -1, ran;
static unsigned timeout_seconds = 60;
static const char *prefix = "";
static char current_path[512];
static uint8_t *current; /* shared with the file */
static int current_fd = -1;

static size_t pick(size_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return n ? (size_t)(state >> 33) % n : 0;
}

static void must(bool ok, const char *what)
{
    if (!ok) {
        perror(what);
        exit(2);
    }
}

static void open_current(void)
{
    snprintf(current_path, sizeof current_path, "%scurrent-%d", prefix, (int)getpid());
    current_fd = open(current_path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    must(current_fd >= 0 && ftruncate(current_fd, MAX_BYTES) == 0, current_path);
    current = mmap(NULL, MAX_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, current_fd, 0);
    must(current != MAP_FAILED, current_path);
}

/* On a block of exactly n bytes, so that a sanitizer sees what is read past them. */
static void run_one(const uint8_t *bytes, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);

    must(copy && ftruncate(current_fd, MAX_BYTES) == 0, current_path);
    memcpy(current, bytes, n);
    must(ftruncate(current_fd, (off_t)n) == 0, current_path);
    memcpy(copy, bytes, n);
    alarm(timeout_seconds);
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
    ran++;
}

/* ---- the corpus ---- */

static void add_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct input *in = &corpus[ninputs];

    must(f && ninputs < MAX_INPUTS, path);
    in->at = malloc(MAX_BYTES);
    must(in->at != NULL, path);
    in->n = fread(in->at, 1, MAX_BYTES, f);
    fclose(f);
    ninputs++;
}

static int is_visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static void add_path(const char *path)
{
    struct dirent **list;
    int n = scandir(path, &list, is_visible, alphasort);

    if (n < 0) {
        add_file(path);
        return;
    }
    for (int i = 0; i < n; i++) {
        char name[1024];
        snprintf(name, sizeof name, "%s/%s", path, list[i]->d_name);
        add_file(name);
        free(list[i]);
    }
    free(list);
}

/* ---- changes ---- */

typedef struct buffer {
    uint8_t at[MAX_BYTES];
    size_t n;
} buffer;

/* Replaces `old` bytes at `from` by n others. */
static void put_in(buffer *b, size_t from, size_t old, const uint8_t *with, size_t n)
{
    if (b->n - old + n > MAX_BYTES)
        return;
    memmove(b->at + from + n, b->at + from + old, b->n - from - old);
    if (n) /* with may be NULL then */
        memcpy(b->at + from, with, n);
    b->n += n - old;
}

static bool is_word(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The word around a place, or one byte. */
static size_t token(const uint8_t *text, size_t n, size_t at, size_t *first)
{
    size_t end = at + 1;

    while (is_word(text[at]) && at > 0 && is_word(text[at - 1]))
        at--;
    while (is_word(text[at]) && end < n && is_word(text[end]))
        end++;
    *first = at;
    return end - at;
}

static void replace_token(buffer *b, const struct input *from, bool insert)
{
    size_t at, first, old = token(b->at, b->n, pick(b->n), &at);
    size_t n = token(from->at, from->n, pick(from->n), &first);

    put_in(b, at, insert ? 0 : old, from->at + first, n);
}

static void change_number(buffer *b)
{
    static const int64_t number[] = {0,         1,         -1,        127,      128,
                                     255,       256,       32767,     65535,    1 << 20,
                                     INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
    size_t bytes = (size_t)1 << pick(4), at = pick(b->n);
    int64_t v = number[pick(sizeof number / sizeof *number)];

    if (pick(2))
        v = (int64_t)__builtin_bswap64((uint64_t)v) >> 8 * (8 - bytes);
    if (at + bytes <= b->n)
        memcpy(b->at + at, &v, bytes);
}

static void change(buffer *b)
{
    const struct input *from = &corpus[pick((size_t)ninputs)];
    size_t at = pick(b->n), n = pick(pick(8) ? 32 : 1024);

    if (!b->n || !from->n) {
        put_in(b, 0, 0, from->at, from->n);
        return;
    }
    n = n < b->n - at ? n : b->n - at;
    switch (pick(8)) {
    case 0:
        b->at[at] ^= (uint8_t)(1u << pick(8));
        break;
    case 1:
        b->at[at] = (uint8_t)pick(256);
        break;
    case 2:
        put_in(b, at, n, NULL, 0);
        break;
    case 3:
        change_number(b);
        break;
    case 4: {
        size_t start = pick(from->n), count = pick(64);
        count = count < from->n - start ? count : from->n - start;
        put_in(b, at, pick(2) ? 0 : n, from->at + start, count);
        break;
    }
    case 5:
        if (pick(8) == 0)
            b->n = at;
        break;
    default:
        replace_token(b, from, pick(3) == 0);
    }
}

static void fuzz(time_t end)
{
    static buffer b;

    while (ninputs && (runs < 0 || ran < runs) && (max_seconds < 0 || time(NULL) < end)) {
        const struct input *in = &corpus[pick((size_t)ninputs)];
        memcpy(b.at, in->at, in->n);
        b.n = in->n;
        for (size_t i = pick(4) + 1; i > 0; i--)
            change(&b);
        run_one(b.at, b.n);
    }
}

static void option(const char *text)
{
    const char *value = strchr(text, '=');

    if (!value)
        return;
    value++;
    if (!strncmp(text, "-runs=", 6))
        runs = strtol(value, NULL, 10);
    else if (!strncmp(text, "-max_total_time=", 16))
        max_seconds = strtol(value, NULL, 10);
    else if (!strncmp(text, "-seed=", 6))
        state = strtoull(value, NULL, 10);
    else if (!strncmp(text, "-timeout=", 9))
        timeout_seconds = (unsigned)strtoul(value, NULL, 10);
    else if (!strncmp(text, "-artifact_prefix=", 17))
        prefix = value;
}

int main(int argc, char **argv)
{
    time_t start = time(NULL);

    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-')
            option(argv[i]);
        else
            add_path(argv[i]);
    }
    open_current();
    for (int i = 0; i < ninputs; i++)
        run_one(corpus[i].at, corpus[i].n);
    fuzz(start + max_seconds);
    unlink(current_path);
    fprintf(stderr, "Done %ld runs in %ld second(s)\n", ran, (long)(time(NULL) - start));
    return 0;
}
