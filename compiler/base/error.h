#ifndef TW_BASE_ERROR_H
#define TW_BASE_ERROR_H
/* The last failure of each thread, behind tw_last_error. A message that fits a fixed buffer, which
 * most do, allocates nothing; a longer one that finds no memory is cut.
 * Setters return their status:  return error_set(TW_E_IO, "%s: %s", path, reason);
 * Not under guard_run, or with the guard's rule in mind: they throw nothing. */
#include "compiler/base/diag.h"
#include "tilewright.h"

tw_status error_set(tw_status st, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* One diagnostic without a position, rendered "error: text [id]" and the hint (NULL: none). */
tw_status error_diag(tw_status st, enum diag_id id, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The same at a place in the text, which is quoted; where.src may be NULL. */
tw_status error_diag_at(tw_status st, enum diag_id id, span where, const char *hint,
                        const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Copies and renders all of l, sorted; l may go afterwards. */
tw_status error_set_diags(tw_status st, diag_list *l);
/* For a status that guard_run returned: when it was thrown, nobody has set a text yet. Keeps an
 * error of the same status, else explains TW_E_NOMEM and TW_E_INTERNAL (icheck_last). */
tw_status error_thrown(tw_status st);
/* Forgets this thread's error and frees what it holds. */
void error_clear(void);
const tw_error *error_get(void); /* never NULL */

#endif
