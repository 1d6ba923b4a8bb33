/* Any bytes as calls that build a kernel from C: each build ends in a status, with a text where it
 * is no success, and loses nothing. */
#include "compiler/base/error.h"
#include "compiler/base/mem.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/random_build.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static tw_context *cx;

    if (!cx)
        FUZZ_MUST(tw_context_create(NULL, &cx) == TW_OK, "no context\n");
    error_clear();
    long before = mem_live();
    tw_status st = random_build(cx, data, size, NULL);
    FUZZ_MUST(st == TW_OK || st == TW_E_SOURCE || st == TW_E_ARG || st == TW_E_LIMIT, "%s: %s\n",
              tw_status_name(st), tw_last_error()->text);
    FUZZ_MUST(st == TW_OK || tw_last_error()->text[0], "no text\n");
    error_clear();
    FUZZ_MUST(mem_live() <= before, "%ld blocks are lost\n", mem_live() - before);
    return 0;
}
