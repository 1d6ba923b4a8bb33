#include "compiler/base/control.h"

static int within(unsigned char c, unsigned char lo, unsigned char hi)
{
    return lo <= c && c <= hi;
}

size_t control_at(const char *s, size_t n)
{
    const unsigned char *u = (const unsigned char *)s;

    if (n >= 1 && ((u[0] < ' ' && u[0] != '\t') || u[0] == 0x7f))
        return 1;
    if (n >= 2 && ((u[0] == 0xc2 && within(u[1], 0x80, 0x9f)) || (u[0] == 0xd8 && u[1] == 0x9c)))
        return 2; /* U+0080 to U+009F; U+061C */
    if (n < 3 || u[0] != 0xe2)
        return 0;
    if (u[1] == 0x80) /* U+200E, U+200F; U+202A to U+202E */
        return within(u[2], 0x8e, 0x8f) || within(u[2], 0xaa, 0xae) ? 3 : 0;
    return u[1] == 0x81 && within(u[2], 0xa6, 0xa9) ? 3 : 0; /* U+2066 to U+2069 */
}
