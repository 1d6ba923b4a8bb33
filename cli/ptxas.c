/* --emit=cubin: PTX through NVIDIA's assembler, a program of its own, where there is one. */
#include "cli/ptxas.h"
#include "cli/cli.h"
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

typedef struct scratch {
    char ptx[256], cubin[256], log[256];
} scratch;

static int name_files(cli *c, scratch *s)
{
    const char *dir = getenv("TMPDIR");

    snprintf(s->ptx, sizeof s->ptx, "%s/tilewright-XXXXXX", dir && *dir ? dir : "/tmp");
    int fd = mkstemp(s->ptx), why = errno;
    snprintf(s->cubin, sizeof s->cubin, "%.240s.cubin", s->ptx);
    snprintf(s->log, sizeof s->log, "%.240s.log", s->ptx);
    if (fd < 0)
        return cli_fail(c, TW_E_IO, "%s cannot be made: %s", s->ptx, strerror(why));
    close(fd);
    return CLI_OK;
}

/* ".target sm_89" */
static void architecture(const char *ptx, char *out, size_t size)
{
    const char *at = strstr(ptx, ".target ");
    size_t n = at ? strcspn(at + 8, ", \n") : 0;

    snprintf(out, size, "-arch=%.*s", (int)n, at ? at + 8 : "");
}

static int write_ptx(cli *c, const scratch *s, const char *data, size_t size)
{
    FILE *f = fopen(s->ptx, "wb");
    bool ok = f && fwrite(data, 1, size, f) == size;

    ok = f && fclose(f) == 0 && ok;
    return ok ? CLI_OK : cli_fail(c, TW_E_IO, "%s cannot be written: %s", s->ptx, strerror(errno));
}

/* Files for this PTX, which is in the first, and what it is for. remove_files follows in any
 * case. */
static int prepare(cli *c, scratch *s, const char *ptx, size_t size, char *arch, size_t arch_size)
{
    int code = name_files(c, s);

    architecture(ptx, arch, arch_size);
    return code ? code : write_ptx(c, s, ptx, size);
}

static void remove_files(const scratch *s)
{
    unlink(s->ptx);
    unlink(s->cubin);
    unlink(s->log);
}

/* The exit code of ptxas, or -1: there is none. What it says goes into the log if that is asked
 * for: then the code is relocatable, as the driver's linker makes it, whose registers differ. */
static int run_ptxas(const scratch *s, const char *arch, bool log)
{
    static const char *const where[] = {"ptxas", "/usr/local/cuda/bin/ptxas"};
    char *argv[] = {(char *)"ptxas",
                    (char *)arch,
                    (char *)s->ptx,
                    (char *)"-o",
                    (char *)s->cubin,
                    (char *)(log ? "-v" : NULL),
                    (char *)(log ? "-c" : NULL),
                    NULL};
    posix_spawn_file_actions_t files;
    int status, failed = ENOENT;
    pid_t child;

    posix_spawn_file_actions_init(&files);
    if (log) {
        posix_spawn_file_actions_addopen(&files, 1, s->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        posix_spawn_file_actions_adddup2(&files, 1, 2);
    }
    for (size_t i = 0; i < sizeof where / sizeof *where && failed; i++)
        failed = posix_spawnp(&child, where[i], &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    if (failed)
        return -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int made(cli *c, const char *arch, int exit_code)
{
    if (exit_code < 0)
        return cli_fail(c, TW_E_UNSUPPORTED,
                        "a cubin needs NVIDIA's ptxas, which is neither in PATH nor in "
                        "/usr/local/cuda/bin; --emit=ptx needs nothing");
    return exit_code == 0 ? CLI_OK : cli_fail(c, TW_E_INTERNAL, "ptxas %s refused the PTX", arch);
}

static int read_cubin(cli *c, const scratch *s, char **data, size_t *size)
{
    FILE *f = fopen(s->cubin, "rb");
    long n = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;

    *data = n > 0 ? malloc((size_t)n) : NULL;
    bool ok = *data && fseek(f, 0, SEEK_SET) == 0 && fread(*data, 1, (size_t)n, f) == (size_t)n;
    *size = ok ? (size_t)n : 0;
    if (f)
        fclose(f);
    return ok ? CLI_OK : cli_fail(c, TW_E_IO, "%s cannot be read", s->cubin);
}

int ptxas_assemble(cli *c, const char *ptx, size_t size, char **cubin, size_t *cubin_size)
{
    scratch s;
    char arch[32];
    int code = prepare(c, &s, ptx, size, arch, sizeof arch);

    *cubin = NULL;
    if (!code)
        code = made(c, arch, run_ptxas(&s, arch, false));
    if (!code)
        code = read_cubin(c, &s, cubin, cubin_size);
    remove_files(&s);
    return code;
}

/* ---- what it says of the code ---------------------------------------------------------------- */

/* The number before a text: "Used 40 registers". */
static int number_before(const char *line, const char *text)
{
    const char *at = strstr(line, text), *digit = at;

    while (digit && digit > line && digit[-1] >= '0' && digit[-1] <= '9')
        digit--;
    return digit && digit < at ? atoi(digit) : 0;
}

static void read_log(const scratch *s, ptxas_report *out)
{
    FILE *f = fopen(s->log, "r");
    char line[512];

    while (f && fgets(line, sizeof line, f)) {
        int registers = number_before(line, " registers");
        int spilled = number_before(line, " bytes spill stores");
        out->registers = registers > out->registers ? registers : out->registers;
        out->spill_bytes = spilled > out->spill_bytes ? spilled : out->spill_bytes;
    }
    if (f)
        fclose(f);
}

int ptxas_count(cli *c, const char *ptx, size_t size, ptxas_report *out)
{
    scratch s;
    char arch[32];
    int code = prepare(c, &s, ptx, size, arch, sizeof arch);

    *out = (ptxas_report){0};
    int exit_code = code ? -1 : run_ptxas(&s, arch, true);
    if (exit_code > 0)
        code = made(c, arch, exit_code);
    if (exit_code == 0)
        read_log(&s, out);
    remove_files(&s);
    return code;
}
