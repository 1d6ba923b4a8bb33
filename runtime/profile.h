#ifndef TW_RUNTIME_PROFILE_H
#define TW_RUNTIME_PROFILE_H
/* What a GPU has: read from the GPU itself when it is opened, or from a profile, a small text file
 * with which code is made and configurations are ruled out for a GPU that is not there.
 * docs/RUNTIME.md has the form. The profiles of devices/ are built into the library. */
#include "compiler/schedule/gpu.h"
#include "tilewright.h"

typedef struct gpu_profile {
    char name[96];
    char driver[48]; /* of a GPU that is there: "13.0 (580.95.05)" */
    gpu_limits limits;
    int32_t clock_mhz;                      /* 0: not known, as for those that follow */
    int64_t memory_bytes, memory_bandwidth; /* bytes, bytes a second */
} gpu_profile;

/* file is for messages. TW_E_IO with the line that is wrong. */
tw_status profile_parse(const char *file, const char *text, size_t size, gpu_profile *out);
/* A profile that is built in, by name, or else a file. TW_E_IO. */
tw_status profile_find(const char *name, gpu_profile *out);

/* The i-th that is built in; NULL past the last. */
typedef struct profile_text {
    const char *name, *text;
} profile_text;
const profile_text *profile_at(size_t i);

#endif
