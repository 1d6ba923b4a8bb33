/* explain: what a kernel became. The library's stage "explain" gives rows of fields
 * (compiler/target/explain.h and nvptx_explain.h say which); here they are put together. */
#include "cli/cli.h"
#include "cli/json.h"
#include "cli/open.h"
#include "cli/ptxas.h"
#include <stdlib.h>
#include <string.h>

enum { FIELDS = 64 };

typedef struct row {
    char *field[FIELDS];
    int n;
} row;

typedef struct explanation {
    const cli *c;
    const char *kernel;
    char *text; /* what fields point into */
    row *row;
    size_t count;
    ptxas_report code; /* of the whole; registers 0: not known */
} explanation;

/* ---- rows ------------------------------------------------------------------------------------ */

static void split(row *r, char *line)
{
    while (line && r->n < FIELDS) {
        char *tab = strchr(line, '\t');
        r->field[r->n++] = line;
        if (tab)
            *tab++ = 0;
        line = tab;
    }
}

static void read_rows(explanation *x)
{
    size_t lines = 1;

    for (const char *at = x->text; *at; at++)
        lines += *at == '\n';
    x->row = cli_alloc(lines, sizeof *x->row);
    for (char *line = x->text; *line;) {
        char *end = strchr(line, '\n');
        if (end)
            *end = 0;
        split(&x->row[x->count++], line);
        line = end ? end + 1 : line + strlen(line);
    }
}

/* The next row of this word after r, or the first; NULL: there is none. */
static const row *next_row(const explanation *x, const row *r, const char *word)
{
    for (r = r ? r + 1 : x->row; r < x->row + x->count; r++)
        if (strcmp(r->field[0], word) == 0)
            return r;
    return NULL;
}

static const char *field(const row *r, int i)
{
    return r && i < r->n ? r->field[i] : "";
}

static int number(const row *r, int i)
{
    return atoi(field(r, i));
}

static const row *code_of(const explanation *x, const char *place)
{
    const row *r = NULL;

    while ((r = next_row(x, r, "code")) && strcmp(field(r, 1), place) != 0)
        ;
    return r;
}

/* ---- occupancy ------------------------------------------------------------------------------- */

typedef struct occupancy {
    int blocks, registers;
    bool estimated;
    char limit[64]; /* what allows no more blocks */
} occupancy;

static void name_limit(occupancy *o, const char *name)
{
    size_t n = strlen(o->limit);

    snprintf(o->limit + n, sizeof o->limit - n, "%s%s", n ? " and " : "", name);
}

static int by_registers(const explanation *x, int registers)
{
    const row *r = NULL;
    int blocks = 0;

    while ((r = next_row(x, r, "room")))
        blocks = registers <= number(r, 2) ? number(r, 1) : blocks;
    return blocks;
}

static occupancy find_occupancy(const explanation *x)
{
    const row *block = next_row(x, NULL, "block"), *fits = next_row(x, NULL, "fits");
    occupancy o = {.registers = x->code.registers};

    o.estimated = o.registers == 0;
    if (o.estimated) /* what is above the limit is spilled */
        o.registers = number(block, 3) < 255 ? number(block, 3) : 255;
    int others = number(fits, 1);
    for (int i = 2; i <= 3; i++)
        others = number(fits, i) < others ? number(fits, i) : others;
    int fit = by_registers(x, o.registers);
    o.blocks = fit < others ? fit : others;
    if (fit == o.blocks)
        name_limit(&o, "registers");
    static const char *const name[] = {"threads", "shared memory", "the number of blocks"};
    for (int i = 0; i < 3; i++)
        if (number(fits, i + 1) <= o.blocks)
            name_limit(&o, name[i]);
    return o;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void heading(const explanation *x, const char *text)
{
    printf("\n%s%s%s\n", term_on(&x->c->term, stdout, STYLE_BOLD), text,
           term_off(&x->c->term, stdout));
}

static void put_block(const explanation *x, table *t)
{
    const row *block = next_row(x, NULL, "block");
    occupancy o = find_occupancy(x);
    int warps = number(block, 1), room = number(next_row(x, NULL, "sm"), 1);

    table_cell(t, STYLE_DIM, "block");
    table_cell(t, STYLE_PLAIN, "%d threads, %d warps; %s bytes of shared memory", warps * 32,
               warps, field(block, 2));
    table_cell(t, STYLE_DIM, "registers");
    if (o.estimated)
        table_cell(t, STYLE_PLAIN, "about %s a thread (an estimate: ptxas was not found)",
                   field(block, 3));
    else
        table_cell(t, STYLE_PLAIN, "%d a thread, %d bytes spilled (estimated before code: %s)",
                   x->code.registers, x->code.spill_bytes, field(block, 3));
    table_cell(t, STYLE_DIM, "occupancy");
    table_cell(t, STYLE_PLAIN, "%d %s a multiprocessor, %d of %d warps; limited by %s", o.blocks,
               o.blocks == 1 ? "block" : "blocks", o.blocks * warps, room, o.limit);
}

static void print_head(const explanation *x)
{
    const row *what = next_row(x, NULL, "for");
    const char *gpu = field(what, 2);
    table t;

    printf("%s%s%s for %s%s%s\n", term_on(&x->c->term, stdout, STYLE_BOLD), x->kernel,
           term_off(&x->c->term, stdout), field(what, 1), *gpu ? ", " : "", gpu);
    table_begin(&t, "ll");
    table_cell(&t, STYLE_DIM, "configuration");
    table_cell(&t, STYLE_PLAIN, "%s", *field(what, 3) ? field(what, 3) : "none");
    if (next_row(x, NULL, "block"))
        put_block(x, &t);
    table_print(&t, &x->c->term, stdout, 2);
}

/* All rows of a word, a cell a field. */
static void print_rows(const explanation *x, const char *word, const char *title, const char *align)
{
    const row *r = next_row(x, NULL, word);
    table t;

    if (!r)
        return;
    heading(x, title);
    table_begin(&t, align);
    for (; r; r = next_row(x, r, word))
        for (size_t i = 1; i <= strlen(align); i++)
            table_cell(&t, STYLE_PLAIN, "%s", field(r, (int)i));
    table_print(&t, &x->c->term, stdout, 2);
}

static void print_code(table *t, const row *code)
{
    char text[512] = "";
    size_t n = 0;

    for (int i = 2; i + 1 < (code ? code->n : 0) && n < sizeof text; i += 2) {
        int m = snprintf(text + n, sizeof text - n, "%s%s %s", n ? ", " : "", field(code, i),
                         field(code, i + 1));
        n += m > 0 ? (size_t)m : 0;
    }
    table_cell(t, STYLE_PLAIN, "%s%s", text, n < sizeof text ? "" : "...");
}

static void print_places(const explanation *x, const char *loop)
{
    bool code = next_row(x, NULL, "code") != NULL;
    const row *r = NULL;
    table t;

    table_begin(&t, code ? "rlll" : "rll");
    while ((r = next_row(x, r, "place"))) {
        if (strcmp(field(r, 2), loop) != 0)
            continue;
        table_cell(&t, STYLE_DIM, "%s", field(r, 4));
        table_cell(&t, STYLE_PLAIN, "%.48s", field(r, 6));
        table_cell(&t, STYLE_PLAIN, "%s", field(r, 5));
        if (code)
            print_code(&t, code_of(x, field(r, 1)));
    }
    table_print(&t, &x->c->term, stdout, 2);
}

static void print_loops(const explanation *x)
{
    const row *r = NULL;

    heading(x, "outside of loops");
    print_places(x, "0");
    while ((r = next_row(x, r, "loop"))) {
        char text[160];
        size_t n =
            (size_t)snprintf(text, sizeof text, "loop %s, line %s", field(r, 1), field(r, 2));
        if (number(r, 3))
            n += (size_t)snprintf(text + n, sizeof text - n, ", in loop %s", field(r, 3));
        if (number(r, 4))
            snprintf(text + n, sizeof text - n, ": %s accesses are checked", field(r, 4));
        else
            snprintf(text + n, sizeof text - n, ": all accesses proven inside");
        heading(x, text);
        print_places(x, field(r, 1));
    }
}

/* Dimensions of dots that the matrix unit does not take as they are. */
static void print_dims(const explanation *x)
{
    const row *r = next_row(x, NULL, "dim");
    table t;

    if (!r)
        return;
    heading(x, "dimensions of dots, padded for the matrix unit");
    table_begin(&t, "lrl");
    for (; r; r = next_row(x, r, "dim")) {
        table_cell(&t, STYLE_PLAIN, "%s", *field(r, 1) ? field(r, 1) : "-");
        table_cell(&t, STYLE_PLAIN, "%s", field(r, 2));
        if (!*field(r, 5))
            table_cell(&t, STYLE_PLAIN, "padded to %s", field(r, 3));
        else if (number(r, 4))
            table_cell(&t, STYLE_PLAIN, "not padded: %s (line %s)", field(r, 5), field(r, 4));
        else
            table_cell(&t, STYLE_PLAIN, "not padded: %s", field(r, 5));
    }
    table_print(&t, &x->c->term, stdout, 2);
}

static void print_text(const explanation *x)
{
    print_head(x);
    print_dims(x);
    print_rows(x, "buffer", "shared memory: offset, bytes, type", "rrl");
    print_rows(x, "layout", "layouts", "l");
    print_rows(x, "tile", "tiles that have a name", "ll");
    print_loops(x);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_block(json *j, const explanation *x)
{
    const row *block = next_row(x, NULL, "block");
    occupancy o = find_occupancy(x);

    json_int(j, "threads", number(block, 1) * 32);
    json_int(j, "shared_bytes", number(block, 2));
    json_int(j, "estimated_registers", number(block, 3));
    if (!o.estimated) {
        json_int(j, "registers", x->code.registers);
        json_int(j, "spill_bytes", x->code.spill_bytes);
    }
    json_int(j, "blocks_per_multiprocessor", o.blocks);
    json_text(j, "limit", o.limit);
}

/* An array of objects, whose members are the fields: numbers where the name's first letter is '#'.
 */
static void json_rows(json *j, const explanation *x, const char *word, const char *title,
                      const char *const *names)
{
    json_array(j, title);
    for (const row *r = next_row(x, NULL, word); r; r = next_row(x, r, word)) {
        json_object(j, NULL);
        for (int i = 0; names[i]; i++) {
            if (names[i][0] == '#')
                json_int(j, names[i] + 1, strtoll(field(r, i + 1), NULL, 10));
            else
                json_text(j, names[i], field(r, i + 1));
        }
        const row *code = strcmp(word, "place") == 0 ? code_of(x, field(r, 1)) : NULL;
        if (code)
            json_object(j, "instructions");
        for (int i = 2; code && i + 1 < code->n; i += 2)
            json_int(j, field(code, i), number(code, i + 1));
        if (code)
            json_end_object(j);
        json_end_object(j);
    }
    json_end_array(j);
}

static void print_json(const explanation *x)
{
    static const char *const dim[] = {"name", "#from", "#to", "#line", "why", NULL};
    static const char *const buffer[] = {"#offset", "#bytes", "type", NULL};
    static const char *const tile[] = {"name", "type", NULL}, *const layout[] = {"layout", NULL};
    static const char *const loop[] = {"#id", "#line", "#outer", "#checked_accesses", NULL};
    static const char *const place[] = {"#index", "#loop", "file", "#line", "ops", "text", NULL};
    const row *what = next_row(x, NULL, "for");
    json j = {.out = stdout};

    json_object(&j, NULL);
    json_text(&j, "kernel", x->kernel);
    json_text(&j, "target", field(what, 1));
    json_text(&j, "gpu", field(what, 2));
    json_text(&j, "configuration", field(what, 3));
    if (next_row(x, NULL, "block"))
        json_block(&j, x);
    json_rows(&j, x, "dim", "dims", dim);
    json_rows(&j, x, "buffer", "buffers", buffer);
    json_rows(&j, x, "layout", "layouts", layout);
    json_rows(&j, x, "tile", "tiles", tile);
    json_rows(&j, x, "loop", "loops", loop);
    json_rows(&j, x, "place", "lines", place);
    json_end_object(&j);
}

/* ---- the verb -------------------------------------------------------------------------------- */

static tw_compile_options options_of(const cli *c, const char *emit)
{
    tw_compile_options opt = TW_COMPILE_OPTIONS_INIT;

    opt.target = c->opt.target;
    opt.set = c->opt.set;
    opt.profile = c->opt.profile;
    opt.emit = emit;
    return opt;
}

/* Registers as NVIDIA's assembler gives them, of the code as it is made without lines. */
static int count_registers(cli *c, tw_kernel *kernel, explanation *x)
{
    tw_compile_options opt = options_of(c, "ptx");
    size_t size;
    char *ptx;

    if (tw_kernel_compile(kernel, &opt, &ptx, &size))
        return cli_fail_last(c);
    int code = ptxas_count(c, ptx, size, &x->code);
    tw_free(ptx);
    return code;
}

static int explain_opened(cli *c, tw_kernel *kernel)
{
    tw_compile_options opt = options_of(c, "explain");
    explanation x = {.c = c, .kernel = tw_kernel_name(kernel)};
    size_t size;
    int code = CLI_OK;

    if (tw_kernel_compile(kernel, &opt, &x.text, &size))
        return cli_fail_last(c);
    read_rows(&x);
    if (next_row(&x, NULL, "block"))
        code = count_registers(c, kernel, &x);
    if (!code)
        (c->opt.json ? print_json : print_text)(&x);
    free(x.row);
    tw_free(x.text);
    return code;
}

int cmd_explain(cli *c)
{
    const options *opt = &c->opt;
    tw_context *cx;
    tw_kernel *kernel;

    if (opt->word_count != 1)
        return cli_usage(c, "give one kernel: FILE.tw, FILE.tw:KERNEL, FILE.tir or FILE.sched");
    c->opt.store = "none";
    CLI_TRY(open_context(c, TW_LOG_WARNING, &cx));
    int code = open_kernel(c, cx, opt->word[0], &kernel);
    if (!code) {
        code = explain_opened(c, kernel);
        tw_kernel_destroy(kernel);
    }
    tw_context_destroy(cx);
    return code;
}
