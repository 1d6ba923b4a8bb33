#ifndef TW_TUNER_H
#define TW_TUNER_H
/* The tuner as the runtime sees it. */
#include "runtime/runtime.h"

extern const tuner_ops tuner_table;

#endif
