#include "compiler/target/explain.h"
#include "compiler/ir/iredit.h"
#include <string.h>

struct explain_place {
    const source *src;
    int line;
    uint32_t loop;
    uint32_t count[OP_COUNT]; /* by operation */
};

static bool is_loop(const ir_op *op)
{
    return op->code == OP_FOR || op->code == OP_WHILE;
}

static bool counts(const ir_op *op)
{
    return op->code != OP_CONST_INT && op->code != OP_CONST_FLOAT && op->where.src &&
           !(op_info((enum ir_opcode)op->code)->traits & OPT_TERM);
}

static uint32_t loop_id(const explain_map *m, const ir_op *loop)
{
    for (uint32_t i = 0; i < m->loop.n; i++)
        if (m->loop.at[i] == loop)
            return i + 1;
    return 0;
}

/* ID of the innermost loop around an operation. */
static uint32_t loop_around(const explain_map *m, const ir_op *op)
{
    const ir_op *o = op->parent->owner;

    while (o && !is_loop(o))
        o = o->parent->owner;
    return o ? loop_id(m, o) : 0;
}

uint32_t explain_index(const explain_map *m, const ir_op *op)
{
    if (!op->where.src)
        return 0;
    int line = source_line(op->where.src, op->where.lo);
    uint32_t loop = loop_around(m, op);
    for (uint32_t i = 0; i < m->place.n; i++) {
        const explain_place *p = m->place.at[i];
        if (p->src == op->where.src && p->line == line && p->loop == loop)
            return i + 1;
    }
    return 0;
}

static void add_op(ir_op *op, void *arg)
{
    explain_map *m = arg;

    if (is_loop(op))
        vec_push(&m->loop, m->a, op);
    if (!counts(op))
        return;
    uint32_t at = explain_index(m, op);
    if (at == 0) {
        explain_place *p = ARENA_NEW(m->a, explain_place);
        p->src = op->where.src;
        p->line = source_line(p->src, op->where.lo);
        p->loop = loop_around(m, op);
        vec_push(&m->place, m->a, p);
        at = m->place.n;
    }
    m->place.at[at - 1]->count[op->code]++;
}

void explain_begin(explain_map *m, const ir_fn *fn, arena *a)
{
    *m = (explain_map){.a = a, .fn = fn};
    ir_walk(fn->body, add_op, m);
}

/* ---- rows ------------------------------------------------------------------------------------ */

typedef struct checking {
    const explain_map *m;
    const ir_op *loop;
    int accesses;
} checking;

static void check(ir_op *op, void *arg)
{
    checking *c = arg;
    bool access = op_is_access((enum ir_opcode)op->code) || op->code == OP_COPY_ASYNC;

    if (!access || loop_around(c->m, op) != loop_id(c->m, c->loop))
        return;
    int64_t all = ((int64_t)1 << ir_type_of(c->m->fn, op->args[0]).rank) - 1;
    c->accesses += (op->attr[1].i & all) != all;
}

static int checked_accesses(const explain_map *m, const ir_op *loop)
{
    checking c = {m, loop, 0};

    for (int i = 0; i < loop->nregions; i++)
        ir_walk(loop->regions[i], check, &c);
    return c.accesses;
}

static void put_ops(strbuf *out, const explain_place *p)
{
    const char *separator = "";

    for (int code = 0; code < OP_COUNT; code++) {
        if (!p->count[code])
            continue;
        sb_fmt(out, "%s%s", separator, op_info((enum ir_opcode)code)->name);
        if (p->count[code] > 1)
            sb_fmt(out, " %u", p->count[code]);
        separator = ", ";
    }
}

/* A line of the source without the blanks around it; tabs, which part fields, become blanks. */
static void put_text(strbuf *out, const explain_place *p)
{
    size_t n = 0;
    const char *text = source_line_text(p->src, p->line, &n);

    while (n > 0 && (*text == ' ' || *text == '\t'))
        text++, n--;
    while (n > 0 && (text[n - 1] == ' ' || text[n - 1] == '\t' || text[n - 1] == '\r'))
        n--;
    for (size_t i = 0; i < n; i++)
        sb_char(out, (unsigned char)text[i] < ' ' ? ' ' : text[i]);
}

void explain_rows(const explain_map *m, strbuf *out)
{
    for (uint32_t i = 0; i < m->loop.n; i++) {
        const ir_op *op = m->loop.at[i];
        int line = op->where.src ? source_line(op->where.src, op->where.lo) : 0;
        sb_fmt(out, "loop\t%u\t%d\t%u\t%d\n", i + 1, line, loop_around(m, op),
               checked_accesses(m, op));
    }
    for (uint32_t i = 0; i < m->place.n; i++) {
        const explain_place *p = m->place.at[i];
        sb_fmt(out, "place\t%u\t%u\t%s\t%d\t", i + 1, p->loop, p->src->name, p->line);
        put_ops(out, p);
        sb_char(out, '\t');
        put_text(out, p);
        sb_char(out, '\n');
    }
}
