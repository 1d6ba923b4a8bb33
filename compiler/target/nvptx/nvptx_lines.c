/* Which instructions of PTX come from which place: the places of explain.h as lines of debug
 * information, which LLVM prints as .loc, read back from the text. */
#include "compiler/target/nvptx/nvptx_lines.h"
#include <llvm-c/DebugInfo.h>
#include <stdlib.h>
#include <string.h>

/* ---- into LLVM ------------------------------------------------------------------------------- */

static LLVMMetadataRef make_unit(LLVMDIBuilderRef b)
{
    LLVMMetadataRef file = LLVMDIBuilderCreateFile(b, "kernel", 6, "", 0);

    LLVMDIBuilderCreateCompileUnit(b, LLVMDWARFSourceLanguageC, file, "", 0, 1, "", 0, 0, "", 0,
                                   LLVMDWARFEmissionLineTablesOnly, 0, 0, 0, "", 0, "", 0);
    return file;
}

LLVMMetadataRef nv_lines_begin(const ll_cx *cx, const char *name)
{
    LLVMDIBuilderRef b = LLVMCreateDIBuilder(cx->module);
    LLVMMetadataRef file = make_unit(b);
    LLVMMetadataRef type = LLVMDIBuilderCreateSubroutineType(b, file, NULL, 0, LLVMDIFlagZero);
    LLVMMetadataRef scope = LLVMDIBuilderCreateFunction(
        b, file, name, strlen(name), name, strlen(name), file, 0, type, 0, 1, 0, LLVMDIFlagZero, 1);
    LLVMMetadataRef version =
        LLVMValueAsMetadata(LLVMConstInt(cx->i32, LLVMDebugMetadataVersion(), 0));

    LLVMSetSubprogram(cx->fn, scope);
    LLVMAddModuleFlag(cx->module, LLVMModuleFlagBehaviorWarning, "Debug Info Version", 18, version);
    LLVMDIBuilderFinalize(b);
    LLVMDisposeDIBuilder(b);
    return scope;
}

void nv_lines_at(const ll_cx *cx, LLVMMetadataRef scope, uint32_t place)
{
    LLVMSetCurrentDebugLocation2(
        cx->b, LLVMDIBuilderCreateDebugLocation(cx->context, place, 0, scope, NULL));
}

/* ---- out of PTX ------------------------------------------------------------------------------ */

/* Prefixes of what is counted by itself, in the order of the rows; the first that fits. */
static const struct kind {
    const char *prefix, *name;
} kinds[] = {
    {"mma.", "mma"},
    {"ldmatrix.", "ldmatrix"},
    {"cp.async.commit", "commit"},
    {"cp.async.wait", "wait"},
    {"cp.async.", "cp.async"},
    {"ld.global", "ld.global"},
    {"ld.shared", "ld.shared"},
    {"ld.param", "ld.param"},
    {"st.global", "st.global"},
    {"st.shared", "st.shared"},
    {"atom.", "atom"},
    {"red.", "atom"},
    {"ex2.", "ex2"},
    {"shfl.", "shfl"},
    {"vote.", "vote"},
    {"bar.warp", "bar.warp"},
    {"bar.", "bar"},
    {"barrier.", "bar"},
    {"fma.", "fma"},
    {"setp.", "setp"},
    {"selp.", "selp"},
    {"cvt.", "cvt"},
    {"mov.", "mov"},
    {"bra", "bra"},
    {"", "other"},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static int kind_of(const char *code)
{
    int i = 0;

    while (strncmp(code, kinds[i].prefix, strlen(kinds[i].prefix)) != 0)
        i++;
    return i;
}

/* An instruction without blanks and its guard (@%p1); NULL: a label, directive, comment or brace.
 */
static const char *instruction(const char *line)
{
    if (*line != '\t' && *line != ' ')
        return NULL;
    line += strspn(line, "\t {");
    if (*line == '@')
        line += strcspn(line, " \t"), line += strspn(line, " \t");
    return *line >= 'a' && *line <= 'z' ? line : NULL;
}

static void put_counts(strbuf *out, uint32_t place, const uint32_t *count)
{
    bool any = false;

    for (int k = 0; k < KINDS; k++) {
        if (count[k] && !any)
            sb_fmt(out, "code\t%u", place);
        any = any || count[k];
        if (count[k])
            sb_fmt(out, "\t%s\t%u", kinds[k].name, count[k]);
    }
    if (any)
        sb_char(out, '\n');
}

void nv_lines_count(const char *ptx, uint32_t places, arena *a, strbuf *out)
{
    uint32_t(*count)[KINDS] = arena_array(a, sizeof *count, places + 1);
    uint32_t place = 0;

    for (const char *at = ptx; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        const char *code = instruction(at);
        if (code)
            count[place][kind_of(code)]++;
        const char *text = at + strspn(at, "\t ");
        if (strncmp(text, ".loc", 4) == 0) {
            char *end;
            strtoul(text + 4, &end, 10); /* the file */
            place = (uint32_t)strtoul(end, NULL, 10);
            place = place <= places ? place : 0;
        }
    }
    for (uint32_t i = 0; i <= places; i++)
        put_counts(out, i, count[i]);
}
