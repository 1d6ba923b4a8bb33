#ifndef TW_RUNTIME_CLOCK_H
#define TW_RUNTIME_CLOCK_H
/* Seconds of a clock that only goes forward. */
double clock_seconds(void);
#endif
