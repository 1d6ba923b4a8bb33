#ifndef TW_TESTS_FUZZ_H
#define TW_TESTS_FUZZ_H
/* A fuzz target is one function that libFuzzer, or main() in driver.c, calls with any bytes. It
 * returns 0, and ends the process when something is wrong; a sanitizer does so for memory. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_MUST(condition, ...)                                                                  \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            fprintf(stderr, __VA_ARGS__);                                                          \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
