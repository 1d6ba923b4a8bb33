#ifndef TW_PAGES_H
#define TW_PAGES_H
/* What is written about the command for other programs: the manual page and shell completions, made
 * from the tables of verbs and options, so that none is forgotten. */
#include <stdio.h>

typedef struct help_row {
    const char *name, *text;
} help_row;
/* A NULL name ends each. */
extern const help_row help_tensors[], help_outputs[], help_others[], help_environment[];

void write_man_page(FILE *out);
void write_bash_completion(FILE *out);
void write_zsh_completion(FILE *out);
void write_fish_completion(FILE *out);

#endif
