#include "runtime/host/host_info.h"
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

static bool read_line(const char *dir, const char *file, char *out, int size)
{
    char path[160];

    snprintf(path, sizeof path, "%s/%s", dir, file);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool ok = fgets(out, size, f) != NULL;
    fclose(f);
    if (ok)
        out[strcspn(out, "\n")] = 0;
    return ok;
}

/* Processors that the control group's quota is worth (version 2, then 1); 0: no quota. Threads
 * beyond it would be stopped for most of each period, with the others waiting for them. */
static int quota_processors(void)
{
    long quota = 0, period = 0;
    char text[64];

    if (read_line("/sys/fs/cgroup", "cpu.max", text, sizeof text)) {
        if (sscanf(text, "%ld %ld", &quota, &period) != 2)
            return 0; /* "max 100000" */
    } else if (!read_line("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", text, sizeof text) ||
               sscanf(text, "%ld", &quota) != 1 ||
               !read_line("/sys/fs/cgroup/cpu", "cpu.cfs_period_us", text, sizeof text) ||
               sscanf(text, "%ld", &period) != 1) {
        return 0;
    }
    return quota > 0 && period > 0 ? (int)((quota + period - 1) / period) : 0;
}

static int affine_processors(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN); /* more processors than a cpu_set_t has */
    return n > 0 ? (int)n : 1;
}

int host_processors(void)
{
    int n = affine_processors(), quota = quota_processors();

    return quota > 0 && quota < n ? quota : n;
}

/* The value of "key : value" in line, without the newline, or NULL. */
static char *value_of(char *line, const char *key)
{
    if (strncmp(line, key, strlen(key)) != 0)
        return NULL;
    char *value = strchr(line, ':');
    if (!value)
        return NULL;
    value += 1 + strspn(value + 1, " \t");
    value[strcspn(value, "\n")] = 0;
    return value;
}

void host_processor_name(char *out, size_t size)
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char line[512];
    struct utsname u;

    snprintf(out, size, "%s", uname(&u) == 0 ? u.machine : "processor");
    while (f && fgets(line, sizeof line, f)) {
        const char *name = value_of(line, "model name");
        if (name && *name) {
            snprintf(out, size, "%s", name);
            break;
        }
    }
    if (f)
        fclose(f);
}

/* sysfs, because sysconf gives 0 for caches on several machines. */
size_t host_cache_bytes(int level)
{
    char dir[100], text[32];

    for (int i = 0; i < 8; i++) {
        int found = 0;
        unsigned long size = 0;
        char unit = 0;
        snprintf(dir, sizeof dir, "/sys/devices/system/cpu/cpu0/cache/index%d", i);
        if (!read_line(dir, "level", text, sizeof text))
            break;
        if (sscanf(text, "%d", &found) != 1 || found != level)
            continue;
        if (!read_line(dir, "type", text, sizeof text) || strcmp(text, "Instruction") == 0)
            continue;
        if (read_line(dir, "size", text, sizeof text) && sscanf(text, "%lu%c", &size, &unit) >= 1)
            return size * (unit == 'K' ? 1024 : unit == 'M' ? 1024 * 1024 : 1);
    }
    long n = sysconf(level == 1 ? _SC_LEVEL1_DCACHE_SIZE : _SC_LEVEL2_CACHE_SIZE);
    return n > 0 ? (size_t)n : 0;
}

void host_ask_for_tiles(void)
{
#if defined(__x86_64__)
    enum { ASK_PERMISSION = 0x1023, TILE_DATA = 18 };

    syscall(SYS_arch_prctl, ASK_PERMISSION, TILE_DATA);
#endif
}
