#include "cli/cli.h"
#include "cli/open.h"
#include "cli/ptxas.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_error(cli *c, const char *path)
{
    return cli_fail(c, TW_E_IO, "%s cannot be written: %s", path, strerror(errno));
}

/* A file that could not be written whole is removed, unless it was something else than a file. */
static int write_file(cli *c, const char *path, const char *data, size_t size)
{
    FILE *out = fopen(path, "wb");
    struct stat info;

    if (!out)
        return write_error(c, path);
    bool regular = fstat(fileno(out), &info) == 0 && S_ISREG(info.st_mode);
    bool ok = fwrite(data, 1, size, out) == size && fflush(out) == 0;
    int code = ok ? CLI_OK : write_error(c, path);
    if (fclose(out) != 0 && ok)
        code = write_error(c, path);
    if (code && regular)
        unlink(path);
    return code;
}

static int write_result(cli *c, const char *emit, const char *data, size_t size)
{
    const char *path = c->opt.output;

    if (path && strcmp(path, "-") != 0)
        return write_file(c, path, data, size);
    if ((strcmp(emit, "obj") == 0 || strcmp(emit, "cubin") == 0) && isatty(STDOUT_FILENO))
        return cli_usage(c, "an object file is not for a terminal: -o FILE");
    fwrite(data, 1, size, stdout); /* main finds out whether it went well */
    return CLI_OK;
}

static int write_cubin(cli *c, const char *ptx, size_t size)
{
    char *cubin;
    size_t cubin_size;
    int code = ptxas_assemble(c, ptx, size, &cubin, &cubin_size);

    if (!code)
        code = write_result(c, "cubin", cubin, cubin_size);
    free(cubin);
    return code;
}

static int compile_opened(cli *c, tw_kernel *kernel)
{
    tw_compile_options opt = TW_COMPILE_OPTIONS_INIT;
    bool cubin = c->opt.emit && strcmp(c->opt.emit, "cubin") == 0;
    size_t size;
    char *data;

    opt.target = c->opt.target;
    opt.set = c->opt.set;
    opt.profile = c->opt.profile;
    opt.dump = c->opt.dump;
    opt.time = c->opt.time;
    if (c->opt.emit)
        opt.emit = cubin ? "ptx" : c->opt.emit;
    if (tw_kernel_compile(kernel, &opt, &data, &size))
        return cli_fail_last(c);
    int code = cubin ? write_cubin(c, data, size) : write_result(c, opt.emit, data, size);
    tw_free(data);
    return code;
}

int cmd_compile(cli *c)
{
    const options *opt = &c->opt;
    tw_log_level level = opt->dump ? TW_LOG_DEBUG : opt->time ? TW_LOG_INFO : TW_LOG_WARNING;
    tw_context *cx;
    tw_kernel *kernel;

    if (opt->word_count == 0)
        return cli_usage(c, "a kernel is missing: FILE.tw, FILE.tw:KERNEL, FILE.tir or FILE.sched");
    if (opt->word_count > 1)
        return cli_usage(c, "'%s': there are no tensors here; values go into --set", opt->word[1]);
    c->opt.store = "none";
    CLI_TRY(open_context(c, level, &cx));
    int code = open_kernel(c, cx, opt->word[0], &kernel);
    if (!code) {
        code = compile_opened(c, kernel);
        tw_kernel_destroy(kernel);
    }
    tw_context_destroy(cx);
    return code;
}
