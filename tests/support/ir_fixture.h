#ifndef TW_TESTS_IR_FIXTURE_H
#define TW_TESTS_IR_FIXTURE_H
/* An arena, interned names and a diagnostic list for each test of tile IR. */
#include "compiler/ir/irbuild.h"
#include "compiler/ir/iredit.h"
#include "compiler/ir/irtext.h"

extern arena ir_arena;
extern intern ir_names;
extern diag_list ir_diags;

void ir_fixture_setup(void);    /* for tcase_add_checked_fixture */
void ir_fixture_teardown(void); /* asserts that nothing is left */

ir_module *ir_try(const char *text);  /* NULL and diagnostics when it is wrong */
ir_module *ir_must(const char *text); /* asserts that it parses */
/* A kernel "f" around statements; %x is in f32[N], %y is out f32[N], %s is f32, %n is N. */
const char *ir_wrap(const char *statements);
const char *ir_show(const ir_module *m, unsigned flags);
/* The rendered diagnostics; the list is empty afterwards. */
const char *ir_messages(void);
ir_op *ir_first_of(const ir_module *m, enum ir_opcode code); /* of the kernel; asserts it exists */
/* Asserts that the verifier refuses m, first with this id. */
void ir_refused(const ir_module *m, enum diag_id id);

#endif
