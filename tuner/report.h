#ifndef TW_TUNER_REPORT_H
#define TW_TUNER_REPORT_H
/* What tw_tune hands back: every trial, who won, what the default was. */
#include "tuner/session.h"

struct tw_tune_report {
    tw_trial *trial;
    size_t n, cap;
    size_t winner, start, compiled;
    tw_layer layer;
};

/* Trials in the order tried, then those skipped. */
tw_status report_of_session(const session *s, tw_tune_report **out);
/* The stored trials of rq's key, the newest of each configuration; start and winner are there even
 * when the store has no trial of them. */
tw_status report_of_store(const tune_request *rq, const config *winner, double seconds,
                          tw_layer layer, tw_tune_report **out);

#endif
