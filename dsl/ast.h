#ifndef TW_DSL_AST_H
#define TW_DSL_AST_H
/* The syntax tree. Built by parse, completed by resolve (the fields marked so), never changed
 * after; everything lives in the arena of its unit. Names are interned. */
#include "compiler/ir/irsource.h"
#include "dsl/lex.h"

typedef struct expr expr;
typedef struct stmt stmt;
typedef struct decl decl;
typedef VEC(expr *) expr_list;
typedef VEC(stmt *) stmt_list;
typedef VEC(decl *) decl_list;

enum expr_kind {
    EXPR_BAD, /* reported already */
    EXPR_INT,
    EXPR_FLOAT,
    EXPR_BOOL,
    EXPR_TEXT,
    EXPR_NONE,  /* None, in an index */
    EXPR_ALL,   /* :, in an index */
    EXPR_SPAN,  /* a :+ b, in an index */
    EXPR_RANGE, /* range(list), in a tune set */
    EXPR_NAME,
    EXPR_UNARY,  /* op a */
    EXPR_BINARY, /* a op b */
    EXPR_COND,   /* a ? b : c */
    EXPR_CALL,   /* a(list) */
    EXPR_INDEX   /* a[list] */
};

struct expr {
    enum expr_kind kind;
    enum token_kind op;
    uint16_t depth; /* of the tree below; bounded, so that walks may recurse */
    bool in_parens;
    span where; /* all of it */
    span at;    /* the operator, or the name */
    union {
        int64_t i; /* INT, BOOL */
        double f;
        const char *name; /* NAME, TEXT */
    } lit;
    expr *a, *b, *c;
    expr_list list;
    decl *decl;         /* resolve: what a NAME means; NULL after an error */
    decl_list assigned; /* resolve: COND, && and ||: outer vars that b or c assign through calls */
};

enum stmt_kind {
    STMT_EMPTY,
    STMT_BLOCK,
    STMT_DECL, /* let, var, const: decls */
    STMT_FN,   /* decls[0] */
    STMT_ASSIGN,
    STMT_EXPR,
    STMT_IF,
    STMT_FOR,    /* decls[0] in range(list) */
    STMT_MASKED, /* decls[0], decls[1] in masked_range(list) */
    STMT_WHILE,
    STMT_RETURN,
    STMT_JUMP /* break, continue: reported already */
};

struct stmt {
    enum stmt_kind kind;
    enum token_kind op; /* ASSIGN: '=', '+=' ... */
    span where;
    expr *cond;         /* IF, WHILE; the value of RETURN (may be NULL) and EXPR */
    stmt *then, *other; /* IF; then: body of FOR, MASKED, WHILE */
    stmt_list body;     /* BLOCK */
    decl_list decls;
    expr_list targets, list; /* ASSIGN: targets = list; FOR, MASKED: list = the arguments */
    decl_list assigned;      /* resolve: IF, loops: outer vars assigned inside, in order of
                                declaration */
};

enum decl_kind {
    DECL_BUILTIN, /* id: builtin's row */
    DECL_DTYPE,   /* id: enum dtype */
    DECL_NUMBER,  /* inf, nan: number */
    DECL_KIND,    /* int, bool, float, dtype: id is enum kind_word */
    DECL_KERNEL,
    DECL_FN,
    DECL_ENUM,   /* members */
    DECL_MEMBER, /* of `of`, number id */
    DECL_CONST,
    DECL_LET,
    DECL_VAR,
    DECL_LOOP,   /* what a for declares */
    DECL_ARG,    /* a parameter of a function */
    DECL_TENSOR, /* the parameters of a kernel: id counts both kinds */
    DECL_SCALAR,
    DECL_BRACKET, /* id: index in sig.cons */
    DECL_DIM,     /* id: index in sig.symbol */
    DECL_TUNE     /* id: index in sig.tune */
};
enum kind_word { KIND_INT, KIND_BOOL, KIND_FLOAT, KIND_DTYPE };

typedef struct fn_body { /* of DECL_FN */
    decl_list args;
    stmt *body;         /* NULL: the type of a parameter that is a function */
    decl_list assigned; /* resolve: outer vars it assigns, also through calls */
} fn_body;

struct decl {
    enum decl_kind kind;
    const char *name;
    span where;     /* of the name */
    uint32_t slot;  /* resolve: dense in a unit; indexes the environment of an elaboration */
    uint32_t depth; /* resolve: regions (loops, branches, functions) around it */
    uint32_t scope; /* resolve: 0 built in, 1 of the file, more: local */
    int id;
    bool is_const;               /* ARG: must be a compile-time value */
    bool is_open;                /* resolve: its own body is being walked */
    bool is_done;                /* resolve: no cycle goes through it */
    enum ir_direction direction; /* TENSOR */
    double number;
    expr *type, *init; /* either may be NULL */
    fn_body *fn;       /* FN; BRACKET and ARG when they are functions */
    decl_list members;
    decl *of;
    struct kernel_ast *kernel;
    decl *hidden;   /* resolve: what the name meant outside */
    decl_list uses; /* resolve: functions and constants of the file that one of the file names */
    const decl *used_by; /* resolve: who noted it in its uses last */
};

typedef struct tune_set {
    decl *param; /* resolve */
    const char *name;
    span where;
    expr_list values;
} tune_set;

typedef struct tune_clause {
    const char *target; /* prefix; "" = any */
    span where;
    VEC(tune_set) sets;
    expr_list constraints;
} tune_clause;

typedef struct kernel_ast {
    decl *self;
    span where; /* from `kernel` to the closing brace */
    const char *base; /* the kernel that it extends, or NULL */
    span base_at;
    decl_list brackets, params;
    expr_list require, grid;
    span grid_at;
    bool has_grid;
    bool is_broken; /* an error in the head: its names are not to be trusted */
    VEC(tune_clause) tunes;
    stmt *body;
    decl_list dims;  /* resolve: run-time dimensions in order of appearance */
    decl_list knobs; /* resolve: tune parameters in order of appearance */
} kernel_ast;

typedef struct import_ast {
    const char *path; /* as written */
    span where;
} import_ast;

typedef struct unit_ast {
    const source *src;
    VEC(import_ast) imports;
    decl_list top; /* consts, enumerations and their members, functions, kernels, as written */
    VEC(const char *) doubtful;   /* names in statements that could not be read */
    _Atomic uint32_t slots;       /* resolve; functions given as text add theirs later */
    const struct fn_texts *texts; /* fn_text.h; NULL while the file is loaded */
} unit_ast;

/* What a call of d can give a body to: a function, or a parameter that is one. */
static inline bool decl_is_fn(const decl *d)
{
    return d->fn != NULL;
}

const char *ast_print_kernel(const kernel_ast *k, const unit_ast *u, arena *a);
/* "fn(b, h, row, col)" */
const char *ast_fn_type(const fn_body *fn, arena *a);
/* As written, spaces included, at most max bytes: for messages and texts of assert. */
const char *ast_source_text(const expr *e, arena *a, size_t max);

#endif
