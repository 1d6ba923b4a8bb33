/* Kernel texts with what must come of them:
 *   tests/dsl/err/NAME.tw  `//! error: part of the message [id]` (or warning:) at the end of a line
 *                          that must be reported; nothing else may be. NAME.txt, where there is
 * one, is the whole rendered output. tests/dsl/ok/NAME.tw   no errors; the IR of its kernels is
 * NAME.tir. docs/LANGUAGE.md       ```tw blocks compile, ```tw-error ID blocks give that error. A
 * block without a kernel is the body of one.
 * What a text imports is in tests/dsl/lib.
 * `//! set D=64, T=f32` in a file gives compile-time values; others take their default, the first
 * of their set, f32, 64 or true. TW_BLESS=1 rewrites the expected files. */
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "compiler/ir/irtext.h"
#include "dsl/dsl.h"
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILES 400
#define MAX_BYTES (1 << 21)

static char *files[2][MAX_FILES];
static int nfiles[2];
static const char *const folder[2] = {"tests/dsl/err", "tests/dsl/ok"};

/* ---- files ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void list_files(int which)
{
    DIR *d = opendir(folder[which]);
    struct dirent *e;

    while (d && (e = readdir(d))) {
        size_t n = strlen(e->d_name);
        if (n > 3 && strcmp(e->d_name + n - 3, ".tw") == 0 && nfiles[which] < MAX_FILES)
            files[which][nfiles[which]++] = strdup(e->d_name);
    }
    if (d)
        closedir(d);
    qsort(files[which], (size_t)nfiles[which], sizeof(char *), by_name);
}

static char *read_whole(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;

    if (!f)
        return NULL;
    text = malloc(MAX_BYTES + 1);
    size_t n = fread(text, 1, MAX_BYTES, f);
    text[n] = '\0';
    fclose(f);
    return text;
}

/* expected and actual, or rewrites expected. */
static void compare(const char *path, const char *actual)
{
    if (getenv("TW_BLESS")) {
        FILE *f = fopen(path, "wb");
        ck_assert_ptr_nonnull(f);
        fputs(actual, f);
        fclose(f);
        return;
    }
    char *expected = read_whole(path);
    ck_assert_msg(expected != NULL, "%s is missing; TW_BLESS=1 writes it", path);
    ck_assert_msg(strcmp(expected, actual) == 0, "%s differs from:\n%s", path, actual);
    free(expected);
}

/* ---- one text ---- */

typedef struct run {
    const char *name, *text;
    arena a;
    diag_list diags;
    strbuf ir;
    dsl_unit *unit;
} run;

/* The value of `key` in a line `//! set A=1, B=f32`, or NULL. */
static const char *setting(const char *text, const char *key, char out[64])
{
    size_t n = strlen(key);

    for (const char *line = strstr(text, "//! set "); line; line = strstr(line + 1, "//! set ")) {
        const char *end = strchr(line, '\n');
        for (const char *at = line + 7; at && (!end || at < end); at = strpbrk(at + 1, ",\n")) {
            at += 1 + strspn(at + 1, " ");
            if (strncmp(at, key, n) != 0 || at[n] != '=')
                continue;
            size_t len = strcspn(at + n + 1, ", \n");
            snprintf(out, 64, "%.*s", (int)(len < 60 ? len : 60), at + n + 1);
            return out;
        }
    }
    return NULL;
}

static int64_t value_of(run *r, const kernel_source *s, uint32_t i, const char *text)
{
    const sig_const *c = &s->sig.cons[i];
    int64_t v = 0;

    switch (c->kind) {
    case BIND_DTYPE:
        return dtype_parse(text);
    case BIND_ENUM:
        while (v < c->nmembers && strcmp(c->member[v], text) != 0)
            v++;
        return v;
    case BIND_FN:
        (void)!s->fn_value(s, i, text, &r->diags, &v);
        return v;
    case BIND_BOOL:
    case BIND_INT:
        break;
    }
    return strcmp(text, "true") == 0 ? 1 : strtoll(text, NULL, 0);
}

static uint32_t bindings(run *r, const kernel_source *s, ir_binding *b)
{
    const kernel_sig *sig = &s->sig;
    uint32_t n = 0;
    char text[64];

    for (uint32_t i = 0; i < sig->nconsts; i++, n++) {
        const sig_const *c = &sig->cons[i];
        b[n] = (ir_binding){c->name, c->kind, c->kind == BIND_INT ? 64 : 1};
        if (c->kind == BIND_DTYPE)
            b[n].value = DT_F32;
        if (c->has_default)
            b[n].value = c->default_value;
        if (setting(r->text, c->name, text))
            b[n].value = value_of(r, s, i, text);
        n -= strcmp(text, "missing") == 0;
        text[0] = '\0';
    }
    for (uint32_t i = 0; i < sig->ntunes; i++, n++) {
        b[n] = (ir_binding){sig->tune[i].name, BIND_INT, sig->tune[i].set[0].value[0]};
        if (setting(r->text, sig->tune[i].name, text))
            b[n].value = strtoll(text, NULL, 0);
    }
    return n;
}

static void lower_one(run *r, const kernel_source *s)
{
    ir_binding b[64];
    uint32_t before = r->diags.errors, n = bindings(r, s, b);
    ir_module *m = NULL;
    intern names;
    diag_list broken;

    intern_init(&names, &r->a);
    tw_status st = s->lower(s, &r->a, &names, b, n, "cpu-generic", &r->diags, &m);
    ck_assert_int_eq(st == TW_OK, r->diags.errors == before);
    if (st != TW_OK)
        return;
    diag_init(&broken, &r->a);
    ck_assert_msg(ir_verify(m, &broken), "%s: %s", r->name,
                  broken.all.n ? broken.all.at[0]->text : "");
    if (r->ir.n)
        sb_char(&r->ir, '\n');
    ir_print(&r->ir, m, 0);
}

/* What a text imports is in tests/dsl/lib. */
static tw_status read_import(void *user, const char *path, char **text, size_t *len,
                             const char **why)
{
    char name[256];

    (void)user;
    snprintf(name, sizeof name, "tests/dsl/lib/%s", path);
    char *read = read_whole(name);
    *why = "there is no such file";
    if (!read)
        return TW_E_IO;
    *text = mem_strdup(read);
    *len = strlen(read);
    free(read);
    return *text ? TW_OK : TW_E_NOMEM;
}

static tw_status run_body(void *arg)
{
    static const dsl_reader reader = {read_import, NULL};
    run *r = arg;

    diag_init(&r->diags, &r->a);
    sb_init(&r->ir, &r->a);
    tw_status st =
        dsl_load_from(&reader, r->name, r->text, strlen(r->text), &r->diags, &r->unit);
    ck_assert_int_eq(st == TW_OK, r->diags.errors == 0);
    for (size_t i = 0; st == TW_OK && i < dsl_kernel_count(r->unit); i++) {
        arena a;
        arena_init(&a);
        ck_assert_ptr_nonnull(dsl_kernel(r->unit, i)->print_ast(dsl_kernel(r->unit, i), &a));
        arena_release(&a);
        lower_one(r, dsl_kernel(r->unit, i));
    }
    return TW_OK;
}

static void run_text(run *r, const char *name, const char *text)
{
    *r = (run){.name = name, .text = text};
    arena_init(&r->a);
    ck_assert_int_eq(guard_run(run_body, r), TW_OK);
}

static void run_end(run *r)
{
    dsl_unit_destroy(r->unit);
    arena_release(&r->a);
    ck_assert_int_eq(mem_live(), 0);
}

static tw_status render_body(void *arg)
{
    run *r = arg;
    strbuf out;

    sb_init(&out, &r->a);
    diag_render(&r->diags, &out, 0);
    r->ir = out;
    return TW_OK;
}

static const char *rendered(run *r)
{
    ck_assert_int_eq(guard_run(render_body, r), TW_OK);
    return r->ir.s;
}

/* ---- markers ---- */

/* The n-th `//! error: ...` or `//! warning: ...` of a line (from 1), or NULL. */
static const char *marker(const char *text, int line, int n, char out[200])
{
    for (int i = 1; i < line && text; i++)
        text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL;
    size_t len = text ? strcspn(text, "\n") : 0;
    for (size_t i = 0; i + 4 < len; i++) {
        bool here =
            strncmp(text + i, "//! error:", 10) == 0 || strncmp(text + i, "//! warning:", 12) == 0;
        if (!here || n-- > 0)
            continue;
        size_t end = i + 4;
        while (end < len && strncmp(text + end, " //! ", 5) != 0)
            end++;
        snprintf(out, 200, "%.*s", (int)(end - i - 4), text + i + 4);
        return out;
    }
    return NULL;
}

static bool provoked[DIAG_COUNT];

/* want: "error: part of the text" or "error: part of the text [id]" or "error: [id]" */
static bool describes(char *want, const diag *d)
{
    const char *severity = d->severity == DIAG_ERROR ? "error:" : "warning:";
    size_t n = strlen(severity), end = strlen(want);
    char id[80];

    if (strncmp(want, severity, n) != 0)
        return false;
    while (end > 0 && want[end - 1] == ' ')
        want[--end] = '\0';
    snprintf(id, sizeof id, "[%s]", diag_name(d->id));
    if (end && want[end - 1] == ']' && strrchr(want, '[') && strcmp(strrchr(want, '['), id) == 0)
        *strrchr(want, '[') = '\0';
    for (end = strlen(want); end > n && want[end - 1] == ' ';)
        want[--end] = '\0';
    return strstr(d->text, want + n + strspn(want + n, " ")) != NULL;
}

/* Is d announced on its line? Marks the marker as used. */
static bool announced(const run *r, const diag *d, unsigned char *used)
{
    int line = d->where.src ? source_line(d->where.src, d->where.lo) : 0;
    char want[200];

    for (int n = 0; line && n < 8 && marker(r->text, line, n, want); n++) {
        if (used[line] & 1 << n || !describes(want, d))
            continue;
        used[line] |= (unsigned char)(1 << n);
        provoked[d->id] = true;
        return true;
    }
    return false;
}

static void check_markers(run *r)
{
    static unsigned char used[200000];
    char want[200];
    int lines = 1;

    memset(used, 0, sizeof used);
    for (const char *c = r->text; *c; c++)
        lines += *c == '\n';
    for (uint32_t i = 0; i < r->diags.all.n; i++) {
        const diag *d = r->diags.all.at[i];
        int line = d->where.src ? source_line(d->where.src, d->where.lo) : 0;
        ck_assert_msg(announced(r, d, used), "%s:%d: not announced: %s [%s]", r->name, line,
                      d->text, diag_name(d->id));
    }
    for (int line = 1; line <= lines; line++) {
        for (int n = 0; marker(r->text, line, n, want); n++)
            ck_assert_msg(used[line] & 1 << n, "%s:%d: not reported: %s", r->name, line, want);
    }
}

static char *path_of(int which, int i, const char *ending)
{
    static char path[400];
    const char *name = files[which][i];

    snprintf(path, sizeof path, "%s/%.*s%s", folder[which], (int)(strlen(name) - 3), name, ending);
    return path;
}

static void check_case(int which, int i)
{
    char *text = read_whole(path_of(which, i, ".tw"));
    run r;

    ck_assert_ptr_nonnull(text);
    run_text(&r, files[which][i], text);
    check_markers(&r);
    if (which == 1) {
        ck_assert_msg(r.diags.errors == 0, "%s", rendered(&r));
        compare(path_of(which, i, ".tir"), r.ir.s);
    } else {
        ck_assert_msg(r.diags.errors + r.diags.warnings > 0, "%s: nothing reported", r.name);
        char *whole = read_whole(path_of(which, i, ".txt"));
        if (whole)
            compare(path_of(which, i, ".txt"), rendered(&r));
        free(whole);
    }
    run_end(&r);
    free(text);
}

START_TEST(rejected_texts)
{
    check_case(0, _i);
}
END_TEST

START_TEST(accepted_texts)
{
    check_case(1, _i);
}
END_TEST

/* Every id of the language's sections of diag.def is provoked by a case. */
START_TEST(every_diagnostic_has_a_case)
{
    char *rows = read_whole("compiler/base/diag.def"),
         *end = strstr(rows, "/* ---- text of tile IR");

    ck_assert_ptr_nonnull(end);
    *end = '\0';
    for (int i = 0; i < nfiles[0]; i++)
        check_case(0, i);
    for (int i = 0; i < nfiles[1]; i++)
        check_case(1, i);
    for (int id = 0; id < DIAG_COUNT; id++) {
        char quoted[80];
        snprintf(quoted, sizeof quoted, "\"%s\"", diag_name((enum diag_id)id));
        ck_assert_msg(!strstr(rows, quoted) || provoked[id], "no case provokes %s", quoted);
    }
    free(rows);
}
END_TEST

/* ---- the manual ---- */

static const char head[] =
    "kernel example(x: f32[M, N], y: f32[N], out z: f32[M, N], n: i32, s: f32)"
    " grid (1) {\n";

static void check_block(const char *block, const char *error, int line)
{
    size_t room = strlen(block) + sizeof head + 10;
    char *text = malloc(room), name[60];
    run r;

    if (strncmp(block, "kernel ", 7) == 0 || strstr(block, "\nkernel "))
        snprintf(text, room, "%s", block);
    else
        snprintf(text, room, "%s%s\n}\n", head, block);
    snprintf(name, sizeof name, "LANGUAGE.md:%d", line);
    run_text(&r, name, text);
    if (!*error) {
        ck_assert_msg(r.diags.errors + r.diags.warnings == 0, "%s", rendered(&r));
    } else {
        ck_assert_msg(r.diags.all.n == 1, "%s gives %u diagnostics:\n%s", name, r.diags.all.n,
                      rendered(&r));
        ck_assert_msg(strcmp(diag_name(r.diags.all.at[0]->id), error) == 0, "%s", rendered(&r));
    }
    run_end(&r);
    free(text);
}

START_TEST(examples_of_the_manual)
{
    char *text = read_whole("docs/LANGUAGE.md");
    int line = 1, blocks = 0;

    ck_assert_ptr_nonnull(text);
    for (char *at = text, *next; at; at = next, line++) {
        char error[60] = "";
        next = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL;
        bool plain = strncmp(at, "```tw\n", 6) == 0;
        if (!next || (!plain && sscanf(at, "```tw-error %50[a-z0-9-]\n", error) != 1))
            continue;
        char *end = strstr(next, "\n```");
        ck_assert_ptr_nonnull(end);
        *end = '\0';
        check_block(next, error, line);
        *end = '\n';
        blocks++;
        for (; next <= end; line++)
            next = strchr(next, '\n') + 1;
    }
    ck_assert_int_ge(blocks, 20);
    free(text);
}
END_TEST

static const char *const meaning[DIAG_COUNT] = {
#define DIAG(id, name, severity, what) what,
#include "compiler/base/diag.def"
};

/* The list of ids in the manual is the one of diag.def. */
START_TEST(manual_lists_every_diagnostic)
{
    char *rows = read_whole("compiler/base/diag.def"), *manual = read_whole("docs/LANGUAGE.md");

    ck_assert_ptr_nonnull(manual);
    *strstr(rows, "/* ---- text of tile IR") = '\0';
    for (int id = 0; id < DIAG_COUNT; id++) {
        char quoted[80], row[300];
        snprintf(quoted, sizeof quoted, "\"%s\"", diag_name((enum diag_id)id));
        snprintf(row, sizeof row, "| `%s` | %s |", diag_name((enum diag_id)id), meaning[id]);
        ck_assert_msg(!strstr(rows, quoted) || strstr(manual, row), "the manual lacks: %s", row);
    }
    free(rows);
    free(manual);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("dsl cases");
    TCase *c = tcase_create("cases");

    list_files(0);
    list_files(1);
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, rejected_texts, 0, nfiles[0]);
    tcase_add_loop_test(c, accepted_texts, 0, nfiles[1]);
    tcase_add_test(c, every_diagnostic_has_a_case);
    tcase_add_test(c, examples_of_the_manual);
    tcase_add_test(c, manual_lists_every_diagnostic);
    suite_add_tcase(s, c);
    return s;
}
