#ifndef TW_IR_SOURCE_H
#define TW_IR_SOURCE_H
/* A kernel's source: a function (compile-time values, configuration) -> tile IR, with the space it
 * may be tuned over. Text (dsl/) is one implementation, a parsed .tir file another (tirsource.h), C
 * code that calls the builder a third (csource.h); runtime, store and tuner know only this.
 *
 * A source is immutable and may be used from several threads at once. */
#include "compiler/ir/ir.h"
#include "tilewright.h"

enum binding_kind { BIND_DTYPE, BIND_INT, BIND_BOOL, BIND_ENUM, BIND_FN };

/* A compile-time value by name: of a bracket parameter, a tune or a schedule parameter. */
typedef struct ir_binding {
    const char *name;
    enum binding_kind kind;
    int64_t value; /* enum dtype for BIND_DTYPE; BIND_ENUM: which member; BIND_FN: see fn_value */
} ir_binding;

enum sig_dim_kind { SIG_DIM_SYMBOL, SIG_DIM_CONST, SIG_DIM_LITERAL };
typedef struct sig_dim {
    enum sig_dim_kind kind;
    int32_t index;    /* SYMBOL: into symbols; CONST: into consts (a compile-time int) */
    int64_t literal;
} sig_dim;

typedef struct sig_param { /* a tensor or a run-time scalar, in the order written */
    const char *name;
    bool is_tensor;
    enum ir_direction direction;
    enum dtype dtype;       /* DT_NONE: see dtype_const */
    int32_t dtype_const;    /* index into consts when the dtype is a parameter, else -1 */
    int32_t rank;
    sig_dim dim[VIEW_MAX_RANK];
    bool has_default;
    const char *default_text;   /* as written; NULL: none, or the source is no text */
} sig_param;

typedef struct sig_const { /* a bracket parameter */
    const char *name;
    enum binding_kind kind;
    uint32_t dtypes;        /* BIND_DTYPE: bit per dtype allowed ("float" = f16, bf16, f32) */
    bool has_default;
    int64_t default_value;
    const char *type;          /* BIND_ENUM: the enumeration; BIND_FN: "fn(b, h, row, col)" */
    uint32_t nmembers;         /* BIND_ENUM */
    const char *const *member;
} sig_const;

typedef struct sig_tune { /* a tune parameter; candidate sets by target prefix, "" = any other */
    const char *name;
    uint32_t nsets;
    struct sig_set { const char *target; uint32_t n; const int64_t *value; } *set;
} sig_tune;

typedef struct kernel_sig {
    const char *name;
    uint32_t nparams, nsymbols, nconsts, ntunes;
    const sig_param *param;
    const char *const *symbol; /* names of run-time dimensions: "B", "M" */
    const sig_const *cons;
    const sig_tune *tune;
    int text_lines;            /* of the kernel, for statistics */
} kernel_sig;

typedef struct kernel_source kernel_source;
struct kernel_source {
    kernel_sig sig;
    /* Lowers to level 1, into arena a. binding holds a value for every bracket and tune parameter.
     * target: the code path ("cpu-avx512"), for what the text may ask about it.
     * TW_E_SOURCE with diagnostics; TW_E_LIMIT; TW_E_NOMEM. Runs under guard_run. */
    tw_status (*lower)(const kernel_source *src, arena *a, intern *names, const ir_binding *binding,
                       uint32_t nbinding, const char *target, diag_list *diags, ir_module **out);
    /* Do these values meet the tune constraints? *why: the constraint's text when they do not. */
    bool (*valid)(const kernel_source *src, const ir_binding *binding, uint32_t nbinding,
                  const char *target, const char **why);
    /* The printed syntax tree, or NULL when the source has none. */
    const char *(*print_ast)(const kernel_source *src, arena *a);
    void (*destroy)(kernel_source *src);
    /* The function that text names or is, for compile-time parameter i, a BIND_FN: as a value that
     * stays good as long as the source, the same each time. Finding what was found before takes no
     * lock and allocates nothing. TW_E_SOURCE, TW_E_ARG or TW_E_LIMIT with diagnostics; TW_E_NOMEM.
     * Both may be NULL when no parameter is a function. */
    tw_status (*fn_value)(const kernel_source *src, uint32_t i, const char *text, diag_list *diags,
                          int64_t *out);
    /* Its name or text. */
    const char *(*fn_text)(const kernel_source *src, int64_t value);
};

/* The candidate values of tune parameter i on a target: those of the longest matching prefix. */
const struct sig_set *sig_tune_set(const kernel_sig *sig, uint32_t i, const char *target);
const ir_binding *binding_find(const ir_binding *b, uint32_t n, const char *name);

#endif
