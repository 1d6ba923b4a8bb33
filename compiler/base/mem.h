#ifndef TW_BASE_MEM_H
#define TW_BASE_MEM_H
/* The one door to the heap. Every allocation of the library passes here, so that a test can fail
 * the n-th one (mem_fail_after) and count what is still live (mem_live).
 * Threads: any. mem_fail_after is for tests: call it while no other thread allocates. */
#include <stddef.h>

/* Return NULL when there is no memory (or the fault hook says so); never for a size of 0,
 * which is taken as 1. Memory from mem_zalloc is zeroed. */
void *mem_alloc(size_t size);
void *mem_zalloc(size_t size);
/* Aligned to align (a power of two, at least sizeof(void *)); free with mem_free. */
void *mem_alloc_aligned(size_t align, size_t size);
void *mem_realloc(void *p, size_t size);
char *mem_strdup(const char *s);
void mem_free(void *p);

/* Fail the n-th allocation from now (1 = the next) and all after it; 0 switches this off. */
void mem_fail_after(long n);
/* Blocks allocated and not yet freed, in the whole process. */
long mem_live(void);

#endif
