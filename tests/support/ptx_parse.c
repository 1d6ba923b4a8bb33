#include "tests/support/ptx_code.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct parser {
    ptx_program *p;
    const char *at;
    int line;
    char *why;
    size_t size;
    bool bad;
} parser;

bool ptx_has(const ptx_instr *i, const char *modifier)
{
    size_t n = strlen(modifier);

    for (const char *s = strstr(i->op, modifier); s; s = strstr(s + 1, modifier)) {
        if (s[n] == 0 || s[n] == '.' || s[n] == ':')
            return true;
    }
    return false;
}

static void fail(parser *r, const char *what, const char *text)
{
    if (!r->bad)
        snprintf(r->why, r->size, "line %d: %s: %.80s", r->line, what, text);
    r->bad = true;
}

static bool constant(const char *word, uint64_t *out)
{
    char *end;

    if (word[0] == '0' && (word[1] == 'f' || word[1] == 'd') && strlen(word) >= 10) {
        *out = strtoull(word + 2, &end, 16);
        return *end == 0;
    }
    if (!isdigit((unsigned char)word[0]) && word[0] != '-')
        return false;
    *out = word[0] == '-' ? (uint64_t)strtoll(word, &end, 0) : strtoull(word, &end, 0);
    return *end == 0 || strcmp(end, "U") == 0;
}

/* A constant in a vector is a register that begins with that value. */
static int register_named(parser *r, const char *name)
{
    ptx_program *p = r->p;

    for (int i = p->nnames - 1; i >= 0; i--) {
        if (strcmp(p->name[i], name) == 0)
            return i;
    }
    if (p->nnames == p->capnames) {
        p->capnames = 2 * p->capnames + 64;
        p->name = realloc(p->name, sizeof *p->name * (size_t)p->capnames);
        p->first = realloc(p->first, sizeof *p->first * (size_t)p->capnames);
    }
    if (!constant(name, &p->first[p->nnames])) {
        p->first[p->nnames] = 0;
        if (isdigit((unsigned char)name[0]))
            fail(r, "a constant that this machine cannot read", name);
    }
    snprintf(p->name[p->nnames], sizeof *p->name, "%s", name);
    return p->nnames++;
}

/* ---- operands -------------------------------------------------------------------------------- */

static void skip_space(const char **s)
{
    while (isspace((unsigned char)**s))
        ++*s;
}

static void take_word(const char **s, char *out, size_t size)
{
    size_t n = 0;

    skip_space(s);
    while ((isalnum((unsigned char)**s) || strchr("_$.%-!", **s)) && **s && n + 1 < size)
        out[n++] = *(*s)++;
    out[n] = 0;
}

static int find_symbol(const ptx_program *p, const char *name)
{
    for (int i = 0; i < p->nsymbols; i++) {
        if (strcmp(p->symbol[i].name, name) == 0)
            return i;
    }
    return -1;
}

static void plain_operand(parser *r, const char *word, ptx_operand *o)
{
    int symbol = find_symbol(r->p, word);

    o->kind = PO_VALUE;
    if (constant(word, &o->value))
        return;
    if (symbol >= 0) {
        o->value = r->p->symbol[symbol].address;
        return;
    }
    o->negated = word[0] == '!';
    o->kind = word[0] == '$' ? PO_LABEL : PO_REG;
    if (o->kind == PO_REG)
        o->reg = register_named(r, word + o->negated);
}

/* [base+offset]; a parameter's name ends with its number. */
static void address(parser *r, const char **s, ptx_operand *o)
{
    char word[64];
    const char *param;
    int symbol;

    o->kind = PO_ADDRESS;
    o->reg = -1;
    take_word(s, word, sizeof word);
    symbol = find_symbol(r->p, word);
    param = strstr(word, "_param_");
    if (param)
        o->value = 8 * strtoull(param + 7, NULL, 10);
    else if (symbol >= 0)
        o->value = r->p->symbol[symbol].address;
    else
        o->reg = register_named(r, word);
    skip_space(s);
    if (**s == '+') {
        char *end;
        o->value += (uint64_t)strtoll(*s + 1, &end, 0);
        *s = end;
    }
    skip_space(s);
    if (**s != ']')
        fail(r, "an address", *s);
    ++*s;
}

static void vector(parser *r, const char **s, ptx_operand *o)
{
    char word[64];

    o->kind = PO_VECTOR;
    do {
        ++*s;
        take_word(s, word, sizeof word);
        if (o->n == PTX_VECTOR)
            fail(r, "a vector", word);
        else
            o->part[o->n++] = strcmp(word, "_") == 0 ? -1 : register_named(r, word);
        skip_space(s);
    } while (**s == ',');
    if (**s != '}')
        fail(r, "a vector", *s);
    ++*s;
}

static void operand(parser *r, const char **s, ptx_operand *o, char *label, size_t size)
{
    char word[64];

    *o = (ptx_operand){.reg = -1};
    skip_space(s);
    if (**s == '[') {
        ++*s;
        address(r, s, o);
        return;
    }
    if (**s == '{') {
        vector(r, s, o);
        return;
    }
    take_word(s, word, sizeof word);
    plain_operand(r, word, o);
    if (o->kind == PO_LABEL)
        snprintf(label, size, "%s", word);
    skip_space(s);
    if (**s == '|') { /* the second result of a shuffle */
        ++*s;
        take_word(s, word, sizeof word);
    }
}

/* ---- statements ------------------------------------------------------------------------------ */

static void read_types(ptx_instr *i)
{
    static const struct {
        const char *name;
        ptx_ty type;
    } all[] = {{"pred", {PT_PRED, 1}}, {"b8", {PT_B, 8}},        {"b16", {PT_B, 16}},
               {"b32", {PT_B, 32}},    {"b64", {PT_B, 64}},      {"b128", {PT_B, 128}},
               {"u8", {PT_U, 8}},      {"u16", {PT_U, 16}},      {"u32", {PT_U, 32}},
               {"u64", {PT_U, 64}},    {"s8", {PT_S, 8}},        {"s16", {PT_S, 16}},
               {"s32", {PT_S, 32}},    {"s64", {PT_S, 64}},      {"f16", {PT_F, 16}},
               {"f32", {PT_F, 32}},    {"f64", {PT_F, 64}},      {"bf16", {PT_BF, 16}},
               {"f16x2", {PT_F2, 32}}, {"bf16x2", {PT_BF2, 32}}, {"tf32", {PT_TF32, 32}}};
    char copy[72];
    char *save = NULL;

    snprintf(copy, sizeof copy, "%s", i->op);
    for (char *w = strtok_r(copy, ".", &save); w; w = strtok_r(NULL, ".", &save)) {
        for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
            if (strcmp(w, all[k].name) == 0 && i->ntypes < PTX_TYPES)
                i->type[i->ntypes++] = all[k].type;
        }
    }
}

static bool is_together(const ptx_instr *i)
{
    static const char *const names[] = {"shfl", "vote", "ldmatrix", "mma", "bar", "barrier"};

    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        if (strcmp(i->base, names[k]) == 0)
            return true;
    }
    return false;
}

static ptx_instr *new_instr(ptx_program *p)
{
    if (p->n == p->cap) {
        p->cap = 2 * p->cap + 256;
        p->code = realloc(p->code, sizeof *p->code * (size_t)p->cap);
    }
    p->code[p->n] = (ptx_instr){.guard = -1};
    return &p->code[p->n++];
}

/* label of instruction k's target, kept until all are known */
typedef struct jump {
    int instr, arg;
    char label[64];
} jump;
static jump jumps[8192];
static int njumps;

static void instruction(parser *r, const char *s)
{
    ptx_instr *i = new_instr(r->p);
    char word[72], label[64] = "";

    i->line = r->line;
    if (*s == '@') {
        s++;
        take_word(&s, word, sizeof word);
        i->guard_not = word[0] == '!';
        i->guard = register_named(r, word + i->guard_not);
    }
    skip_space(&s);
    size_t n = strcspn(s, " \t");
    snprintf(i->op, sizeof i->op, "%.*s", (int)n, s);
    snprintf(i->base, sizeof i->base, "%.*s", (int)strcspn(i->op, "."), i->op);
    s += n;
    read_types(i);
    i->together = is_together(i);
    for (skip_space(&s); *s; skip_space(&s)) {
        if (i->nargs == PTX_ARGS) {
            fail(r, "too many operands", i->op);
            return;
        }
        operand(r, &s, &i->arg[i->nargs++], label, sizeof label);
        skip_space(&s);
        if (*s == ',')
            s++;
        else if (*s)
            fail(r, "an operand", s);
        if (r->bad)
            return;
    }
    if (label[0]) {
        jumps[njumps] = (jump){.instr = r->p->n - 1, .arg = i->nargs - 1};
        snprintf(jumps[njumps++].label, sizeof label, "%s", label);
    }
}

/* .shared .align 4 .b8 name[BYTES]; or .extern ... name[]; dynamic memory comes first. */
static void symbol(parser *r, const char *s)
{
    ptx_program *p = r->p;
    const char *open = strchr(s, '[');
    const char *name = open;

    if (!open || !strstr(s, ".shared") || p->nsymbols == 16)
        return;
    while (name > s && !isspace((unsigned char)name[-1]))
        name--;
    snprintf(p->symbol[p->nsymbols].name, sizeof p->symbol->name, "%.*s", (int)(open - name), name);
    uint64_t bytes = strtoull(open + 1, NULL, 10);
    p->symbol[p->nsymbols++].address =
        bytes ? PTX_SHARED_BASE + (256 << 10) + p->static_bytes : PTX_SHARED_BASE;
    p->static_bytes += (bytes + 15) / 16 * 16;
}

static void statement(parser *r, char *s)
{
    while (isspace((unsigned char)*s) || *s == '{' || *s == '}' || *s == ')')
        s++;
    char *colon = strchr(s, ':');
    if (*s == '$' && colon) {
        snprintf(r->p->label[r->p->nlabels].name, sizeof r->p->label->name, "%.*s",
                 (int)(colon - s), s);
        r->p->label[r->p->nlabels++].at = r->p->n;
        statement(r, colon + 1);
        return;
    }
    if (*s == '.')
        symbol(r, s);
    else if (*s)
        instruction(r, s);
}

/* The directives that no semicolon ends, and the comments. */
static void blank_directives(char *text)
{
    for (char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        char *s = line, *end = line + strcspn(line, "\n"), *note = strstr(line, "//");
        if (note && note < end)
            memset(note, ' ', (size_t)(end - note));
        while (*s == ' ' || *s == '\t')
            s++;
        if (strncmp(s, ".version", 8) == 0 || strncmp(s, ".target", 7) == 0 ||
            strncmp(s, ".address_size", 13) == 0 || strncmp(s, ".max", 4) == 0 ||
            strncmp(s, ".min", 4) == 0 || strncmp(s, ".param", 6) == 0 ||
            strncmp(s, ".visible .entry", 15) == 0 || strncmp(s, ".pragma", 7) == 0)
            memset(s, ' ', (size_t)(end - s));
        line = end;
    }
}

static void resolve(parser *r)
{
    for (int k = 0; k < njumps; k++) {
        int at = -1;
        for (int i = 0; i < r->p->nlabels; i++) {
            if (strcmp(r->p->label[i].name, jumps[k].label) == 0)
                at = r->p->label[i].at;
        }
        if (at < 0)
            fail(r, "no such label", jumps[k].label);
        r->p->code[jumps[k].instr].arg[jumps[k].arg].value = (uint64_t)at;
    }
}

ptx_program *ptx_parse(const char *text, char *why, size_t size)
{
    parser r = {.p = calloc(1, sizeof *r.p), .line = 1, .why = why, .size = size};
    char *copy = strdup(text), *s = copy;

    njumps = 0;
    register_named(&r, "%tid.x");
    register_named(&r, "%ctaid.x");
    blank_directives(copy);
    while (s && !r.bad) {
        char *end = strchr(s, ';');
        if (end)
            *end = 0;
        else if (strspn(s, " \t\n{}()") == strlen(s))
            break;
        char *first = s + strspn(s, " \t\n");
        for (char *c = s; c < first; c++)
            r.line += *c == '\n';
        statement(&r, first);
        for (char *c = first; *c; c++)
            r.line += *c == '\n';
        s = end ? end + 1 : NULL;
    }
    resolve(&r);
    free(copy);
    if (!r.bad)
        return r.p;
    ptx_free(r.p);
    return NULL;
}

void ptx_free(ptx_program *p)
{
    free(p->code);
    free(p->name);
    free(p->first);
    free(p);
}
