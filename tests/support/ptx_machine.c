#include "tests/support/ptx_machine.h"
#include "tests/support/ptx_code.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_STEPS = 50000000, SHARED_ROOM = 512 << 10 };

typedef struct copy { /* of cp.async, not landed */
    uint64_t to;
    const void *from;
    int bytes, filled;
    int group;
} copy;
typedef struct thread {
    uint64_t *reg;
    int pc;
    bool done, waiting; /* at a barrier of the block */
    copy *copies;
    int ncopies, capcopies, group; /* group: how many were committed */
} thread;
typedef struct machine {
    const ptx_program *p;
    thread *t;
    int nthreads;
    uint8_t *shared; /* from PTX_SHARED_BASE on */
    size_t dynamic;
    const uint64_t *param;
    char *why;
    size_t size;
    bool bad;
    long steps;
} machine;

static void fail(machine *m, const ptx_instr *i, const char *what)
{
    if (!m->bad)
        snprintf(m->why, m->size, "line %d: %s: %s", i->line, i->op, what);
    m->bad = true;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static bool in_shared(const machine *m, uint64_t at, int bytes)
{
    uint64_t dynamic = PTX_SHARED_BASE + m->dynamic, fixed = PTX_SHARED_BASE + (256 << 10);

    return (at >= PTX_SHARED_BASE && at + (uint64_t)bytes <= dynamic) ||
           (at >= fixed && at + (uint64_t)bytes <= fixed + m->p->static_bytes);
}

static void *memory(machine *m, const ptx_instr *i, const ptx_operand *o, const thread *t,
                    int bytes, bool is_shared)
{
    static uint64_t nothing[2];
    uint64_t at = (o->reg >= 0 ? t->reg[o->reg] : 0) + o->value;

    if (at % (uint64_t)bytes)
        fail(m, i, "an address that is not aligned");
    if (!is_shared)
        return (void *)(uintptr_t)at;
    at &= 0xffffffff;
    if (!in_shared(m, at, bytes)) {
        fail(m, i, "an address outside of shared memory");
        return nothing;
    }
    return m->shared + (at - PTX_SHARED_BASE);
}

static void load_store(machine *m, const ptx_instr *i, thread *t)
{
    bool load = i->base[0] == 'l';
    const ptx_operand *place = &i->arg[load], *value = &i->arg[!load];
    int bytes = i->type[0].bits / 8, n = value->kind == PO_VECTOR ? value->n : 1;

    if (load && ptx_has(i, ".param")) {
        uint64_t v = m->param[place->value / 8] >> 8 * (place->value % 8);
        t->reg[value->reg] = bytes == 8 ? v : v & (((uint64_t)1 << 8 * bytes) - 1);
        return;
    }
    uint8_t *p = memory(m, i, place, t, bytes * n, ptx_has(i, ".shared"));
    if (m->bad)
        return;
    for (int k = 0; k < n; k++, p += bytes) {
        int reg = value->kind == PO_VECTOR ? value->part[k] : value->reg;
        uint64_t v = value->kind == PO_VALUE ? value->value : reg >= 0 ? t->reg[reg] : 0;
        if (!load) {
            memcpy(p, &v, (size_t)bytes);
            continue;
        }
        v = 0;
        memcpy(&v, p, (size_t)bytes);
        if (i->type[0].kind == PT_S && bytes < 8)
            v = (uint64_t)((int64_t)(v << (64 - 8 * bytes)) >> (64 - 8 * bytes));
        if (reg >= 0)
            t->reg[reg] = i->type[0].kind == PT_S && bytes < 4 ? v & 0xffffffff : v;
    }
}

static uint64_t value_of(const thread *t, const ptx_operand *o)
{
    uint64_t v = o->kind == PO_REG ? t->reg[o->reg] : o->value;

    return o->negated ? !v : v;
}

static void atomic(machine *m, const ptx_instr *i, thread *t)
{
    int red = i->base[0] == 'r', bytes = i->type[0].bits / 8; /* red has no result */
    const ptx_operand *place = &i->arg[!red];
    uint8_t *p = memory(m, i, place, t, bytes, ptx_has(i, ".shared"));
    uint64_t old = 0, a = value_of(t, &i->arg[2 - red]);
    uint64_t b = i->nargs > 3 - red ? value_of(t, &i->arg[3 - red]) : 0;

    if (m->bad)
        return;
    memcpy(&old, p, (size_t)bytes);
    uint64_t v = ptx_atomic(i, old, a, b);
    memcpy(p, &v, (size_t)bytes);
    if (!red)
        t->reg[i->arg[0].reg] = old;
}

/* ---- cp.async -------------------------------------------------------------------------------- */

static void land(machine *m, thread *t, int upto)
{
    int n = 0;

    for (int k = 0; k < t->ncopies; k++) {
        copy c = t->copies[k];
        if (c.group >= upto) {
            t->copies[n++] = c;
            continue;
        }
        uint8_t *to = m->shared + (c.to - PTX_SHARED_BASE);
        memset(to, 0, (size_t)c.bytes);
        memcpy(to, c.from, (size_t)c.filled);
    }
    t->ncopies = n;
}

static void async(machine *m, const ptx_instr *i, thread *t)
{
    if (ptx_has(i, ".commit_group")) {
        t->group++;
        return;
    }
    if (ptx_has(i, ".wait_group") || ptx_has(i, ".wait_all")) {
        int pending = i->nargs ? (int)value_of(t, &i->arg[0]) : 0;
        land(m, t, t->group - pending);
        return;
    }
    copy c = {.bytes = (int)i->arg[2].value, .group = t->group};
    c.filled = i->nargs > 3 ? (int)value_of(t, &i->arg[3]) : c.bytes;
    (void)memory(m, i, &i->arg[0], t, c.bytes, true);
    c.from = memory(m, i, &i->arg[1], t, c.bytes, false);
    c.to = (t->reg[i->arg[0].reg] + i->arg[0].value) & 0xffffffff;
    if (t->ncopies == t->capcopies) {
        t->capcopies = 2 * t->capcopies + 64;
        t->copies = realloc(t->copies, sizeof *t->copies * (size_t)t->capcopies);
    }
    t->copies[t->ncopies++] = c;
}

/* ---- one thread ------------------------------------------------------------------------------ */

/* mov between a register and the parts of a vector. */
static bool move_parts(const ptx_instr *i, thread *t)
{
    const ptx_operand *to = &i->arg[0], *from = &i->arg[1];

    if (strcmp(i->base, "mov") != 0 || (to->kind != PO_VECTOR && from->kind != PO_VECTOR))
        return false;
    const ptx_operand *parts = to->kind == PO_VECTOR ? to : from;
    int bits = i->type[0].bits / parts->n;
    uint64_t mask = ((uint64_t)1 << bits) - 1, v = 0;
    if (to->kind == PO_VECTOR) {
        v = value_of(t, from);
        for (int k = 0; k < parts->n; k++) {
            if (parts->part[k] >= 0)
                t->reg[parts->part[k]] = v >> bits * k & mask;
        }
        return true;
    }
    for (int k = 0; k < parts->n; k++)
        v |= (t->reg[parts->part[k]] & mask) << bits * k;
    t->reg[to->reg] = v;
    return true;
}

static void compute(machine *m, const ptx_instr *i, thread *t)
{
    uint64_t x[PTX_ARGS] = {0}, v;

    if (move_parts(i, t))
        return;
    for (int k = 1; k < i->nargs; k++)
        x[k - 1] = value_of(t, &i->arg[k]);
    if (i->nargs < 1 || i->arg[0].kind != PO_REG || !ptx_compute(i, x, &v))
        fail(m, i, "an instruction that is not known");
    else
        t->reg[i->arg[0].reg] = v;
}

static void step(machine *m, const ptx_instr *i, thread *t)
{
    t->pc++;
    if (!strcmp(i->base, "bra"))
        t->pc = (int)i->arg[0].value;
    else if (!strcmp(i->base, "ret"))
        t->done = true;
    else if (!strcmp(i->base, "ld") || !strcmp(i->base, "st"))
        load_store(m, i, t);
    else if (!strcmp(i->base, "atom") || !strcmp(i->base, "red"))
        atomic(m, i, t);
    else if (!strcmp(i->base, "cp"))
        async(m, i, t);
    else if (strcmp(i->base, "fence") != 0) /* what threads did lies in memory */
        compute(m, i, t);
}

static bool skips(const ptx_instr *i, const thread *t)
{
    return i->guard >= 0 && (t->reg[i->guard] != 0) == i->guard_not;
}

/* Up to where the warp acts together, or the end. */
static void run_alone(machine *m, thread *t)
{
    while (!t->done && !m->bad) {
        if (t->pc >= m->p->n) {
            t->done = true;
            return;
        }
        const ptx_instr *i = &m->p->code[t->pc];
        if (++m->steps > MAX_STEPS)
            fail(m, i, "this does not end");
        if (skips(i, t))
            t->pc++;
        else if (i->together)
            return;
        else
            step(m, i, t);
    }
}

/* ---- a warp ---------------------------------------------------------------------------------- */

static void shuffle(machine *m, const ptx_instr *i, thread *w)
{
    uint64_t v[PTX_WARP], got[PTX_WARP];

    for (int l = 0; l < PTX_WARP; l++)
        v[l] = value_of(&w[l], &i->arg[1]);
    for (int l = 0; l < PTX_WARP; l++) {
        int by = (int)(value_of(&w[l], &i->arg[2]) & 31);
        got[l] = v[ptx_has(i, ".bfly") ? l ^ by : by];
    }
    for (int l = 0; l < PTX_WARP; l++)
        w[l].reg[i->arg[0].reg] = got[l];
    if (!ptx_has(i, ".bfly") && !ptx_has(i, ".idx"))
        fail(m, i, "a shuffle that is not known");
}

static void vote(machine *m, const ptx_instr *i, thread *w)
{
    bool any = false;

    for (int l = 0; l < PTX_WARP; l++)
        any = any || value_of(&w[l], &i->arg[1]);
    for (int l = 0; l < PTX_WARP; l++)
        w[l].reg[i->arg[0].reg] = any;
    if (!ptx_has(i, ".any"))
        fail(m, i, "a vote that is not known");
}

static void load_matrices(machine *m, const ptx_instr *i, thread *w)
{
    int n = ptx_has(i, ".x4") ? 4 : ptx_has(i, ".x2") ? 2 : 1;
    bool turned = ptx_has(i, ".trans");

    for (int k = 0; k < n && !m->bad; k++) {
        uint16_t at[8][8];
        for (int row = 0; row < 8; row++)
            memcpy(at[row], memory(m, i, &i->arg[1], &w[8 * k + row], 16, true), sizeof at[row]);
        const ptx_operand *to = &i->arg[0];
        int reg = to->kind == PO_VECTOR ? to->part[k] : to->reg;
        for (int l = 0; l < PTX_WARP; l++) {
            int row = l / 4, column = l % 4 * 2;
            uint32_t lo = turned ? at[column][row] : at[row][column];
            uint32_t hi = turned ? at[column + 1][row] : at[row][column + 1];
            w[l].reg[reg] = hi << 16 | lo;
        }
    }
}

static void multiply(const ptx_instr *i, thread *w)
{
    uint64_t x[3][PTX_WARP][4] = {0}, b[PTX_WARP][2] = {0}, d[PTX_WARP][4];

    for (int l = 0; l < PTX_WARP; l++) {
        for (int k = 1; k < 4; k++) {
            const ptx_operand *o = &i->arg[k];
            int n = o->kind == PO_VECTOR ? o->n : 1;
            for (int r = 0; r < n && r < 4; r++)
                x[k - 1][l][r] = w[l].reg[o->kind == PO_VECTOR ? o->part[r] : o->reg];
        }
        b[l][0] = x[1][l][0];
        b[l][1] = x[1][l][1];
    }
    ptx_mma(i, x[0], b, x[2], d);
    for (int l = 0; l < PTX_WARP; l++) {
        for (int r = 0; r < 4; r++) {
            if (i->arg[0].part[r] >= 0)
                w[l].reg[i->arg[0].part[r]] = d[l][r];
        }
    }
}

static void act(machine *m, const ptx_instr *i, thread *w)
{
    if (!strcmp(i->base, "shfl"))
        shuffle(m, i, w);
    else if (!strcmp(i->base, "vote"))
        vote(m, i, w);
    else if (!strcmp(i->base, "ldmatrix"))
        load_matrices(m, i, w);
    else if (!strcmp(i->base, "mma"))
        multiply(i, w);
    for (int l = 0; l < PTX_WARP; l++)
        w[l].pc++;
}

static bool is_block_barrier(const ptx_instr *i)
{
    return (!strcmp(i->base, "bar") && ptx_has(i, ".sync") && !ptx_has(i, ".warp")) ||
           !strcmp(i->base, "barrier");
}

/* Until its threads wait at a barrier of the block or have ended. */
static void run_warp(machine *m, thread *w)
{
    for (;;) {
        for (int l = 0; l < PTX_WARP && !m->bad; l++)
            run_alone(m, &w[l]);
        if (m->bad || w[0].done)
            return;
        const ptx_instr *i = &m->p->code[w[0].pc];
        for (int l = 1; l < PTX_WARP; l++) {
            if (w[l].done || w[l].pc != w[0].pc)
                fail(m, i, "not all threads of the warp are here");
        }
        if (m->bad)
            return;
        if (is_block_barrier(i)) {
            for (int l = 0; l < PTX_WARP; l++)
                w[l].waiting = true;
            return;
        }
        act(m, i, w);
    }
}

/* ---- a block --------------------------------------------------------------------------------- */

static bool all_ended(const machine *m)
{
    for (int k = 0; k < m->nthreads; k++) {
        if (!m->t[k].done)
            return false;
    }
    return true;
}

static void pass_barrier(machine *m)
{
    for (int k = 0; k < m->nthreads; k++) {
        thread *t = &m->t[k];
        if (!t->done && t->pc != m->t[0].pc)
            fail(m, &m->p->code[t->pc], "warps wait at different barriers");
    }
    for (int k = 0; k < m->nthreads; k++) {
        m->t[k].waiting = false;
        m->t[k].pc++;
    }
}

static void run_block(machine *m)
{
    while (!m->bad && !all_ended(m)) {
        for (int w = 0; w < m->nthreads && !m->bad; w += PTX_WARP)
            run_warp(m, &m->t[w]);
        if (!m->bad && !all_ended(m))
            pass_barrier(m);
    }
}

bool ptx_run(const ptx_program *p, uint32_t block, int threads, size_t shared,
             const uint64_t *param, char *why, size_t size)
{
    machine m = {.p = p,
                 .nthreads = threads,
                 .dynamic = shared,
                 .param = param,
                 .why = why,
                 .size = size,
                 .t = calloc((size_t)threads, sizeof *m.t)};

    m.shared = aligned_alloc(1024, SHARED_ROOM);
    memset(m.shared, 0xa5, SHARED_ROOM); /* what nobody wrote is large and odd */
    for (int k = 0; k < threads; k++) {
        m.t[k].reg = malloc((size_t)p->nnames * sizeof *m.t[k].reg);
        memcpy(m.t[k].reg, p->first, (size_t)p->nnames * sizeof *m.t[k].reg);
        m.t[k].reg[0] = (uint64_t)k;
        m.t[k].reg[1] = block;
    }
    run_block(&m);
    for (int k = 0; k < threads; k++) {
        free(m.t[k].reg);
        free(m.t[k].copies);
    }
    free(m.t);
    free(m.shared);
    return !m.bad;
}
