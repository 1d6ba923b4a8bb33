/* A libcuda.so.1 with two GPUs in software: the fake driver, whose launches run their PTX on the
 * machine of tests/support. Whatever opens "cuda" takes it, by LD_LIBRARY_PATH, for a GPU: programs
 * for machines with one are tried here that way. Code that the machine does not understand, or that
 * goes wrong, ends the process with a line. */
#include "tests/gpu/fake_core.h"
#include "tests/support/ptx_machine.h"
#include <stdio.h>
#include <stdlib.h>

static void run_ptx(const fake_launch *l)
{
    char why[600] = "too many parameters";
    ptx_program *p = l->slots <= FAKE_SLOTS ? ptx_parse(l->text, why, sizeof why) : NULL;
    bool ok = p != NULL;

    for (unsigned b = 0; ok && b < l->blocks; b++)
        ok = ptx_run(p, b, (int)l->threads, l->shared_bytes, l->slot, why, sizeof why);
    if (!ok) {
        fprintf(stderr, "the GPU in software, kernel '%s': %s\n", l->kernel, why);
        abort();
    }
    ptx_free(p);
}

/* After the fake driver's own. */
__attribute__((constructor)) static void start(void)
{
    control.kernel = run_ptx;
    control.memory_left = (size_t)1 << 34;
}
