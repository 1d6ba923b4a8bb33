/* What programs print, as text for the log, and the asserts that fail. Of a print: a line for a
 * scalar, rows for a tile, of which the middle is left out along extents above 8. */
#include "compiler/base/check.h"
#include "compiler/base/mem.h"
#include "compiler/ir/element.h"
#include "runtime/launch.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    SHOWN = 8, /* entries of an extent, of a longer one the first and the last EDGE */
    EDGE = 3,
    CELL = 24,      /* characters of a number, at most */
    ROOM = 64 << 10 /* 6^4 numbers of 26 characters, and what is between them */
};

typedef struct writer {
    const artifact_print *p;
    const char *elements;
    char *text;
    size_t n;
    int width; /* of a number */
} writer;

static void put(writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(writer *w, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(w->text + w->n, ROOM - w->n, fmt, ap);
    va_end(ap);
    w->n += (size_t)n;
    if (w->n >= ROOM)
        w->n = ROOM - 1;
}

static int number(const writer *w, int64_t offset, char *out)
{
    enum dtype t = (enum dtype)w->p->dtype, held = (enum dtype)w->p->held;
    ir_scalar v = element_read(held, w->elements + offset * dtype_bytes(held));

    if (dtype_is_float(t))
        return snprintf(out, CELL, "%.*g", t == DT_F64 ? 10 : 6, v.f);
    return snprintf(out, CELL, t == DT_U64 ? "%" PRIu64 : "%" PRId64, v.i);
}

static bool is_left_out(const writer *w, int d, int32_t i)
{
    int32_t n = w->p->shape[d];

    return n > SHOWN && i >= EDGE && i < n - EDGE;
}

static void measure(writer *w, int d, int64_t offset)
{
    char cell[CELL];

    if (d == w->p->rank) {
        int n = number(w, offset, cell);
        w->width = n > w->width ? n : w->width;
        return;
    }
    for (int32_t i = 0; i < w->p->shape[d]; i++)
        if (!is_left_out(w, d, i))
            measure(w, d + 1, offset + i * w->p->stride[d]);
}

/* Numbers of a row in a line; deeper brackets stand below each other. */
static void write_level(writer *w, int d, int64_t offset)
{
    bool inner = d == w->p->rank - 1;
    char cell[CELL];

    put(w, "[");
    for (int32_t i = 0; i < w->p->shape[d]; i++) {
        bool gap = is_left_out(w, d, i);
        if (i && inner)
            put(w, "  ");
        else if (i)
            put(w, "\n%*s", d + 1, "");
        if (gap) {
            put(w, "...");
            i = w->p->shape[d] - EDGE - 1;
        } else if (inner) {
            number(w, offset + i * w->p->stride[d], cell);
            put(w, "%*s", w->width, cell);
        } else {
            write_level(w, d + 1, offset + i * w->p->stride[d]);
        }
    }
    put(w, "]");
}

static void write_head(writer *w, const int32_t *program)
{
    const artifact_print *p = w->p;

    put(w, "%s, program %d, %d, %d: %s", p->text, (int)program[0], (int)program[1], (int)program[2],
        dtype_name((enum dtype)p->dtype));
    for (int d = 0; d < p->rank; d++)
        put(w, "%s%d%s", d ? ", " : "[", (int)p->shape[d], d == p->rank - 1 ? "]" : "");
}

static void print_to_log(const program_calls *self, int32_t index, int32_t x, int32_t y, int32_t z,
                         const void *elements)
{
    const launch_calls *to = (const launch_calls *)self; /* calls is its first member */
    writer w = {.elements = elements};
    char cell[CELL];

    if (index < 0 || (uint32_t)index >= to->art->nprints || !to->cx->cfg.log ||
        !(w.text = mem_alloc(ROOM)))
        return;
    w.p = &to->art->print[index];
    write_head(&w, (int32_t[]){x, y, z});
    if (w.p->rank == 0) {
        number(&w, 0, cell);
        put(&w, " %s", cell);
    } else {
        put(&w, "\n");
        measure(&w, 0, 0);
        write_level(&w, 0, 0);
    }
    runtime_log_text(to->cx, TW_LOG_PRINT, w.text);
    mem_free(w.text);
}

static void print_nowhere(const program_calls *self, int32_t index, int32_t x, int32_t y, int32_t z,
                          const void *elements)
{
    (void)self, (void)index, (void)x, (void)y, (void)z, (void)elements;
}

/* ---- asserts --------------------------------------------------------------------------------- */

static void keep_failure(const program_calls *self, int32_t index, int32_t x, int32_t y, int32_t z,
                         const int32_t *values)
{
    launch_calls *c = (launch_calls *)(uintptr_t)self; /* calls is its first member */

    if (atomic_flag_test_and_set(&c->is_kept))
        return;
    c->failed = 1 + index;
    memcpy(c->program, (int32_t[]){x, y, z}, sizeof c->program);
    memcpy(c->value, values, sizeof c->value);
}

void launch_calls_begin(launch_calls *c, tw_context *cx, const artifact *art, bool prints)
{
    c->calls = (program_calls){prints ? print_to_log : print_nowhere, keep_failure};
    c->cx = cx;
    c->art = art;
    c->failed = 0;
    atomic_flag_clear(&c->is_kept);
}

/* {0}, {1}, ... in the text become values. */
static void fill_in(const launch_calls *c, const char *from, char *text, size_t room)
{
    size_t n = 0;

    while (*from && n + 1 < room) {
        int i = from[0] == '{' && from[1] && from[2] == '}' ? from[1] - '0' : -1;
        if (i >= 0 && i < ASSERT_MAX_VALUES) {
            int wrote = snprintf(text + n, room - n, "%d", (int)c->value[i]);
            n += wrote > 0 ? (size_t)wrote : 0;
            from += 3;
        } else {
            text[n++] = *from++;
        }
    }
    text[n < room ? n : room - 1] = 0;
    if (n < room)
        snprintf(text + n, room - n, ", in program %d, %d, %d", (int)c->program[0],
                 (int)c->program[1], (int)c->program[2]);
}

/* Several programs may have failed: the one whose values are kept is as good as any. */
const char *launch_assert_text(const launch_calls *c, int32_t failed, char *text, size_t room)
{
    int32_t index = (c->failed ? c->failed : failed) - 1;

    if (index < 0 || (uint32_t)index >= c->art->nasserts)
        return "(unknown)";
    if (!c->failed)
        return c->art->assert_text[index];
    fill_in(c, c->art->assert_text[index], text, room);
    return text;
}
