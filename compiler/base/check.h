#ifndef TW_BASE_CHECK_H
#define TW_BASE_CHECK_H
/* TRY forwards a failing status; ICHECK states a fact that only a bug of ours can break. */
#include "tilewright.h"

#define TRY(e)                      \
    do {                            \
        tw_status try_status_ = (e); \
        if (try_status_ != TW_OK)   \
            return try_status_;     \
    } while (0)

/* Aborts in debug builds. In release it records fact, file and line (icheck_last) and throws
 * TW_E_INTERNAL through guard.h; use it only in code that runs under guard_run. */
#define ICHECK(cond, fact) ((cond) ? (void)0 : icheck_failed(fact, __FILE__, __LINE__))
void icheck_failed(const char *fact, const char *file, int line);
/* The last failed fact of this thread, or NULL: "fact (file:line)". */
const char *icheck_last(void);

#endif
