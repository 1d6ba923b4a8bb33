/* Any bytes as a stored artifact: refused, or read into an artifact whose written form reads back
 * as the same bytes. */
#include "compiler/base/mem.h"
#include "compiler/target/artifact.h"
#include "tests/fuzz/fuzz.h"
#include <string.h>

static void round_trip(arena *a, const artifact *art)
{
    const uint8_t *once, *twice;
    size_t n, m;
    artifact *again = NULL;

    artifact_write(art, a, &once, &n);
    FUZZ_MUST(artifact_read(a, once, n, &again) == TW_OK, "%zu bytes\n", n);
    artifact_write(again, a, &twice, &m);
    FUZZ_MUST(n == m && !memcmp(once, twice, n), "%zu and %zu bytes\n", n, m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    long before = mem_live();
    artifact *art = NULL;
    arena a;

    arena_init(&a);
    tw_status st = artifact_read(&a, data, size, &art);
    FUZZ_MUST(st == TW_OK || st == TW_E_STORE, "%s\n", tw_status_name(st));
    if (st == TW_OK)
        round_trip(&a, art);
    arena_release(&a);
    FUZZ_MUST(mem_live() == before, "%ld blocks are lost\n", mem_live() - before);
    return 0;
}
