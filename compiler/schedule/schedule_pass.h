#ifndef TW_SCHEDULE_PASS_H
#define TW_SCHEDULE_PASS_H
/* What the passes of a schedule share. */
#include "compiler/passes/facts.h"
#include "compiler/schedule/schedule.h"

typedef struct schedule {
    const gpu_limits *gpu;
    schedule_params params;
    facts *facts; /* about the values of level 1; from assign_layouts on */
    schedule_result result;
} schedule;

static inline schedule *schedule_of(const pass_cx *cx) { return cx->shared; }

#endif
