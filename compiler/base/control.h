#ifndef TW_BASE_CONTROL_H
#define TW_BASE_CONTROL_H
/* Characters that steer a terminal instead of being shown by it. Text of others, a kernel's or a
 * profile's, reaches people through messages; these do not go along. */
#include <stddef.h>

/* The bytes of the character at s (n of them are there, in UTF-8 or whatever) if it is a control
 * character but for a tab, or turns the direction of writing round (Unicode's Bidi_Control);
 * else 0. */
size_t control_at(const char *s, size_t n);

#endif
