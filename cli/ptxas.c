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
    char ptx[256], cubin[256];
} scratch;

static int name_files(cli *c, scratch *s)
{
    const char *dir = getenv("TMPDIR");

    snprintf(s->ptx, sizeof s->ptx, "%s/tilewright-XXXXXX", dir && *dir ? dir : "/tmp");
    int fd = mkstemp(s->ptx);
    if (fd < 0)
        return cli_fail(c, TW_E_IO, "%s cannot be made: %s", s->ptx, strerror(errno));
    close(fd);
    snprintf(s->cubin, sizeof s->cubin, "%.240s.cubin", s->ptx);
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

static int run_ptxas(cli *c, const scratch *s, const char *arch)
{
    static const char *const where[] = {"ptxas", "/usr/local/cuda/bin/ptxas"};
    char *argv[] = {(char *)"ptxas", (char *)arch,     (char *)s->ptx,
                    (char *)"-o",    (char *)s->cubin, NULL};
    pid_t child;
    int status, failed = ENOENT;

    for (size_t i = 0; i < sizeof where / sizeof *where && failed; i++)
        failed = posix_spawnp(&child, where[i], NULL, NULL, argv, environ);
    if (failed)
        return cli_fail(c, TW_E_UNSUPPORTED,
                        "a cubin needs NVIDIA's ptxas, which is neither in PATH nor in "
                        "/usr/local/cuda/bin; --emit=ptx needs nothing");
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return CLI_OK;
    return cli_fail(c, TW_E_INTERNAL, "ptxas %s refused the PTX (see above)", arch);
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
    int code = name_files(c, &s);

    *cubin = NULL;
    if (code)
        return code;
    architecture(ptx, arch, sizeof arch);
    code = write_ptx(c, &s, ptx, size);
    if (!code)
        code = run_ptxas(c, &s, arch);
    if (!code)
        code = read_cubin(c, &s, cubin, cubin_size);
    unlink(s.ptx);
    unlink(s.cubin);
    return code;
}
