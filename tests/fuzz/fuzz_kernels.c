/* Eight bytes choose a random kernel: the CPU gives the interpreter's bits, on the code path that
 * the kernel's number chooses. */
#include "tests/fuzz/fuzz.h"
#include "tests/support/random_run.h"
#include <string.h>

enum { PATHS = 3 };

/* Compiled code stays with its context, so contexts are made anew now and then. */
enum { RUNS_A_CONTEXT = 64 };

static bool open_cpu(num_device *d, uint64_t which)
{
    static const char *const path[PATHS] = {NULL, "cpu-avx2", "cpu-generic"};

    return num_open(d, "cpu:1", path[which]) || num_open(d, "cpu:1", NULL);
}

/* Every other one is checked: the same asserts fail, and those that hold change nothing. */
static void run(num_device *oracle, num_device *cpu, uint64_t seed)
{
    bool ran;

    FUZZ_MUST(random_compare(oracle, cpu, seed, seed / PATHS % 2, &ran), "seed %llu\n",
              (unsigned long long)seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static num_device oracle, cpu[PATHS];
    static int runs;
    uint64_t seed = 0;

    memcpy(&seed, data, size < sizeof seed ? size : sizeof seed);
    if (runs++ % RUNS_A_CONTEXT == 0) {
        for (uint64_t i = 0; i < PATHS; i++) {
            if (runs > 1)
                num_close(&cpu[i]);
            FUZZ_MUST(open_cpu(&cpu[i], i), "no CPU\n");
        }
        if (runs > 1)
            num_close(&oracle);
        FUZZ_MUST(num_open(&oracle, "interp", NULL), "no interpreter\n");
    }
    run(&oracle, &cpu[seed % PATHS], seed);
    return 0;
}
