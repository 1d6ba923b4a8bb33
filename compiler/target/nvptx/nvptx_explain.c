#include "compiler/target/nvptx/nvptx_explain.h"
#include "compiler/ir/iredit.h"
#include "compiler/ir/irtext.h"
#include "compiler/ir/layout.h"
#include "compiler/target/nvptx/nvptx_emit.h"
#include "compiler/target/nvptx/nvptx_lines.h"
#include <string.h>

/* ---- what fits ------------------------------------------------------------------------------- */

static int registers_for(const gpu_limits *gpu, const target_needs *n, int blocks)
{
    int most = gpu->registers_per_thread;

    while (most > 0 && gpu_blocks_per_sm(gpu, n->threads, most, 0) < blocks)
        most--;
    return most;
}

static void put_room(strbuf *out, const gpu_limits *gpu, const target_needs *n)
{
    int most = gpu_blocks_per_sm(gpu, n->threads, 1, 0);

    sb_fmt(out, "block\t%d\t%d\t%d\n", n->threads / NV_WARP, (int)n->shared_bytes, n->registers);
    sb_fmt(out, "fits\t%d\t%d\t%d\n", (int)gpu->threads_per_sm / n->threads,
           (int)(gpu->shared_per_sm / (n->shared_bytes + gpu->shared_reserved)),
           (int)gpu->blocks_per_sm);
    sb_fmt(out, "sm\t%d\n", (int)gpu->threads_per_sm / NV_WARP);
    for (int blocks = 1; blocks <= most; blocks++)
        sb_fmt(out, "room\t%d\t%d\n", blocks, registers_for(gpu, n, blocks));
}

/* ---- shared memory and layouts --------------------------------------------------------------- */

typedef struct listing {
    strbuf *out;
    const ir_fn *fn;
} listing;

static void put_buffer(ir_op *op, void *arg)
{
    listing *l = arg;

    if (op->code != OP_ALLOC)
        return;
    ir_type t = ir_type_of(l->fn, op->res);
    sb_fmt(l->out, "buffer\t%lld\t%lld\t", (long long)op->attr[0].i,
           (long long)(t.shape[0] * layout_slot_bytes(l->fn, t)));
    type_print(l->out, t);
    sb_char(l->out, '\n');
}

/* "    %name = op ... : TYPE #layout" of a value that has a name in the source and is a tile. */
static void put_tile(strbuf *out, const char *line, size_t n)
{
    const char *name = line + strspn(line, " "), *end = line + n, *type = NULL;
    size_t length = name < end && *name == '%' ? strcspn(name, " ,") : 0;

    for (const char *at = end - 3; length && at > name && !type; at--)
        if (memcmp(at, " : ", 3) == 0)
            type = at + 3;
    bool named = length > 1 && (name[1] < '0' || name[1] > '9') && name[length] == ' ';
    if (named && type && end[-1] != '{' && memchr(type, '#', (size_t)(end - type)))
        sb_fmt(out, "tile\t%.*s\t%.*s\n", (int)length - 1, name + 1, (int)(end - type), type);
}

/* Layouts are told as the printed form names them. */
static void put_layouts(strbuf *out, const ir_module *m, arena *a)
{
    strbuf text;

    sb_init(&text, a);
    ir_print(&text, m, 0);
    for (const char *line = text.s; *line;) {
        size_t n = strcspn(line, "\n");
        if (*line == '#')
            sb_fmt(out, "layout\t%.*s\n", (int)n, line);
        else
            put_tile(out, line, n);
        line += n + (line[n] == '\n');
    }
}

void nv_explain_dims(strbuf *out, const schedule_result *res)
{
    for (uint32_t i = 0; i < res->npadded; i++) {
        const padded_dim *p = &res->padded[i];
        int line = p->where.src ? source_line(p->where.src, p->where.lo) : 0;
        sb_fmt(out, "dim\t%s\t%d\t%d\t%d\t%s\n", p->name ? p->name : "", (int)p->from,
               (int)p->to, line, p->why ? p->why : "");
    }
}

void nv_explain(strbuf *out, const ir_module *m, const gpu_limits *gpu, const target_needs *needs,
                const explain_map *map, const char *ptx)
{
    listing l = {out, m->kernel};

    put_room(out, gpu, needs);
    ir_walk(m->kernel->body, put_buffer, &l);
    put_layouts(out, m, map->a);
    explain_rows(map, out);
    nv_lines_count(ptx, map->place.n, map->a, out);
}
