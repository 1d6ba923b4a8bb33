#include "compiler/base/error.h"
#include "compiler/base/mem.h"
#include "tilewright.h"

#define TEXT(x) #x
#define VERSION_TEXT(major, minor, patch) TEXT(major) "." TEXT(minor) "." TEXT(patch)

typedef struct status_row {
    const char *name, *meaning;
    int exit_code;
} status_row;

static const status_row status_rows[] = {
#define STATUS_ROW(name, code, text) [TW_##name] = {#name, text, code},
    TW_STATUS_MAP(STATUS_ROW)
#undef STATUS_ROW
};

static const char *const layer_texts[] = {
#define LAYER_ROW(name, text) [TW_LAYER_##name] = text,
    TW_LAYER_MAP(LAYER_ROW)
#undef LAYER_ROW
};

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

/* A status of a later version, or a number that is none, reads as a bug of ours. */
static const status_row *row_of(tw_status st)
{
    size_t i = (size_t)st;

    return &status_rows[i < COUNT(status_rows) ? i : TW_E_INTERNAL];
}

const char *tw_version(void)
{
    return VERSION_TEXT(TW_VERSION_MAJOR, TW_VERSION_MINOR, TW_VERSION_PATCH);
}

const char *tw_status_name(tw_status st)
{
    return row_of(st)->name;
}

const char *tw_status_meaning(tw_status st)
{
    return row_of(st)->meaning;
}

int tw_status_exit_code(tw_status st)
{
    return row_of(st)->exit_code;
}

const char *tw_layer_text(tw_layer layer)
{
    size_t i = (size_t)layer;

    return i < COUNT(layer_texts) ? layer_texts[i] : "unknown";
}

const tw_error *tw_last_error(void)
{
    return error_get();
}

void tw_free(void *data)
{
    mem_free(data);
}
