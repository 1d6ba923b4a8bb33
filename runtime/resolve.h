#ifndef TW_RUNTIME_RESOLVE_H
#define TW_RUNTIME_RESOLVE_H
/* Configurations: their text, their defaults, and which one a launch gets.
 *
 * Order of answers: pinned by the caller; what store_best finds (exact, other driver, seed, nearest
 * problem, nearest device); the kernel's default. A stored configuration that does not meet the
 * kernel's constraints or the target's limits is skipped; one that cannot be compiled is replaced
 * by the default. */
#include "runtime/runtime.h"

/* The first valid combination in the order written (last set fastest); schedule parameters from the
 * target's table, dynamic ones from the device (dev NULL: 1). TW_E_ARG when no combination is
 * valid, TW_E_LIMIT when there are so many that not all were looked at. */
tw_status config_default(const tw_kernel *k, const target *t, const tw_device *dev,
                         const problem *p, config *out);
/* The next valid configuration in the order of the kernel's sets, after one of config_default or
 * config_pin (fixed: what that pinned); false when none is found. For a device whose limits the one
 * before does not meet. */
bool config_next(const tw_kernel *k, const target *t, const problem *p, uint64_t fixed,
                 config *cfg);
/* Is it worth to try another, after so many that did not meet the limits since started (of
 * clock_seconds)? What the first ones do not meet, as a kernel of too many operations, others will
 * hardly; only what costs next to nothing is looked at to the end. */
bool config_worth_another(int tried, double started);
/* Pins what text names ("BLOCK_M=64,threads=2") in *cfg, which holds the defaults. *pinned: bit i
 * set when value[i] was named (may be NULL). With pins, the unpinned tune parameters move to the
 * first combination that is valid together with them; pinned values need not be in their sets.
 * TW_E_ARG: an unknown name (the error lists those there are), a value out of range, a constraint
 * that fails. */
tw_status config_pin(const tw_kernel *k, const target *t, const tw_device *dev, const problem *p,
                     const char *text, config *cfg, uint64_t *pinned);
/* Of which a kernel's content is taken: the default, or where no combination is valid what pin
 * (NULL: nothing) makes of it. */
tw_status config_of_content(const tw_kernel *k, const tw_device *dev, const problem *p,
                            const char *pin, config *out);
/* Do the values meet the kernel's constraints and the target's limits? *why (may be NULL) else. */
bool config_valid(const tw_kernel *k, const target *t, const problem *p, const config *cfg,
                  const char **why);
/* "BLOCK_M=64,BLOCK_N=64,threads=2"; TW_E_LIMIT when it does not fit. */
tw_status config_text(const config *cfg, char out[RUNTIME_CONFIG_TEXT]);
/* The reverse, for text from the store: every parameter must be named and valid; false otherwise.
 */
bool config_parse(const tw_kernel *k, const target *t, const tw_device *dev, const problem *p,
                  const char *text, config *out);
bool config_equal(const config *a, const config *b);
/* Number of candidates of parameter i of a configuration; for dynamic ones those of the device.
 * out has room for 64. */
uint32_t config_candidates(const tw_kernel *k, const target *t, const tw_device *dev, uint32_t i,
                           int64_t out[64]);

/* One NAME=VALUE of a list; what is longer than its field is cut, and then matches nothing. */
typedef struct text_pair {
    char name[64], value[1024];
    bool has_value;
} text_pair;
/* The next pair at *at, which moves on; false at the end. Spaces and empty pairs are skipped; a
 * comma inside of brackets belongs to its value. */
bool pair_next(const char **at, text_pair *out);
/* Sets what pair names in *cfg and its bit in *pinned. TW_E_ARG as config_pin. */
tw_status config_set(const tw_kernel *k, const target *t, const text_pair *pair, config *cfg,
                     uint64_t *pinned);

typedef struct config_answer {
    config cfg;
    tw_layer layer;
    double seconds; /* 0: never measured */
} config_answer;
/* Never tunes. pin may be NULL; without one, p->content must be known. */
tw_status config_resolve(const tw_kernel *k, const tw_device *dev, const problem *p,
                         const char *pin, config_answer *out);

/* The key under which the store keeps configurations and trials: bracket values, size class of each
 * dimension, facts of each tensor; device name, features, threads, cache sizes. p->content must be
 * known. In arena a; under guard_run. */
void config_store_key(const tw_kernel *k, const tw_device *dev, const problem *p, arena *a,
                      store_key *out);

#endif
