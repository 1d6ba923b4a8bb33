/* Opens the library, launches, and closes it again, as a plugin does, 30 times: nothing of it
 * stays, but for BYTES a round. usage: reload LIBRARY KERNEL BYTES */
#include "tilewright.h"
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *library;

static void *function(const char *name)
{
    return dlsym(library, name);
}
#define CALL(name) (*(__typeof__(&name))function(#name)) /* a name of the library as it is now */

static int use(const char *kernel_file)
{
    static float a[50], b[50], c[50];
    int64_t shape[] = {50};
    DLTensor ta = {a, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, NULL, 0}, tb = ta, tc = ta;
    tw_context *cx;
    tw_device *device;
    tw_kernel *kernel;

    tb.data = b, tc.data = c;
    a[49] = 1.0f, b[49] = 2.0f, c[49] = 0.0f;
    const tw_arg args[] = {TW_TENSOR("a", &ta), TW_TENSOR("b", &tb), TW_TENSOR("c", &tc)};
    if (CALL(tw_context_create)(NULL, &cx) || CALL(tw_device_open)(cx, "cpu:2", &device) ||
        CALL(tw_kernel_load)(cx, kernel_file, NULL, &kernel) ||
        CALL(tw_launch)(kernel, device, NULL, args, 3))
        return fprintf(stderr, "%s\n", CALL(tw_last_error)()->text), 1;
    CALL(tw_kernel_destroy)(kernel);
    CALL(tw_device_close)(device);
    CALL(tw_context_destroy)(cx);
    return c[49] == 3.0f ? 0 : 1;
}

static int mapped(void)
{
    char line[4096];
    int found = 0;
    FILE *f = fopen("/proc/self/maps", "r");

    while (f && fgets(line, sizeof line, f))
        found += strstr(line, "libtilewright") != NULL;
    if (f)
        fclose(f);
    return found;
}

int main(int argc, char **argv)
{
    size_t before = 0, after = 0;

    for (int i = 0; argc == 4 && i < 30; i++) {
        library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!library || use(argv[2]) || dlclose(library) || mapped())
            return fprintf(stderr, "round %d\n", i), 1;
        after = mallinfo2().uordblks;
        before = i == 9 ? after : before;
    }
    printf("%zu bytes after 10 rounds, %zu after 30\n", before, after);
    return argc != 4 || after > before + 20 * strtoul(argv[3], NULL, 10);
}
