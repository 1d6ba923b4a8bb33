#ifndef TW_OPTIONS_H
#define TW_OPTIONS_H
/* The options of all verbs: one table (options.c) that parses them, checks to which verb they
 * belong and prints their help. Written --name=VALUE or --name VALUE; -- ends them. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    VERB_RUN = 1,
    VERB_TUNE = 2,
    VERB_BENCH = 4,
    VERB_COMPILE = 8,
    VERB_CACHE = 16,
    VERB_DEVICE = 32,
    VERB_HELP = 64,
    VERB_DOCTOR = 128,
    VERB_NEW = 256,
    VERB_EXPLAIN = 512
};

typedef struct options {
    const char *device, *target, *store, *config, *tune, *set, *emit, *output, *dump, *flops,
        *profile;
    const char **save; /* every --save, in order */
    size_t save_count;
    double budget, tolerance, older; /* below 0: not given */
    int64_t seed, threads, repeat, program_first, program_count, max_size;
    bool json, check, checked, again, time, f64, help, artifacts;
    const char **word; /* what is no option, in order */
    size_t word_count;
} options;

struct cli;
/* Parses c->argv into c->opt. Returns an exit code. */
int options_parse(struct cli *c);
void options_free(options *opt);
/* The help of the options that the verbs in mask take. */
void options_print(const struct cli *c, unsigned mask, FILE *out);

/* The i-th option, for what is written about them; false past the last. */
typedef struct option_text {
    const char *name;
    char letter;         /* or 0 */
    const char *value;   /* what its value is called; NULL: it takes none */
    const char *choices; /* "a|b": the values there are, or NULL */
    const char *help;
    unsigned verbs; /* those that take it */
} option_text;
bool option_describe(size_t i, option_text *out);

/* The word of the list nearest to name, if near enough to be meant by it; NULL if none is. */
const char *nearest_word(const char *name, const char *const *list, size_t count);

#endif
