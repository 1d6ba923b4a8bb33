#ifndef TW_TUNING_H
#define TW_TUNING_H
/* Tuning as the verbs start it: with a bar on a terminal, and stopped by ctrl-C. */
#include "cli/json.h"
#include "cli/problem.h"

/* tw_tune with the options of the command line. *report is NULL when there is none; it is there
 * after a ctrl-C too, when the exit code is that of TW_E_CANCELLED and not yet reported. */
int tuning_start(cli *c, problem *p, double budget_s, tw_tune_report **report);

/* What a stopped tuning leaves behind, in words. report may be NULL. */
const char *tuning_kept(const tw_tune_report *report);

/* The configuration that a launch will use, by the rule of run and bench: what --config pins, else
 * what the store knows of this very problem, else tuned now unless --tune=never. */
int tuning_settle(cli *c, problem *p, tw_answer *answer);
/* tw_launch_options as the command line has them. */
tw_launch_options launch_options(const cli *c);

/* "attention_fwd on cpu (cpu-avx512, 2 threads)" */
void print_subject(const cli *c, const problem *p);
/* The same, and an answer, as members of an object. */
void json_subject(json *j, const problem *p);
void json_answer(json *j, const tw_answer *a);

const char *trial_word(tw_trial_state state); /* "ok": for machines */
void json_trial(json *j, const char *name, const tw_trial *t);

#endif
