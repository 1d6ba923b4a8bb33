/* new NAME: a kernel that runs as it is, and a test of it that needs nothing but this command. */
#include "cli/cli.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* '@' stands for the name. */
static const char kernel_text[] =
    "// y = x * scale, row by row. Replace this line by what the kernel computes.\n"
    "\n"
    "kernel @[T: float](x: T[M, N], out y: T[M, N], scale: f32 = 1.0)\n"
    "require scale == scale                      // a launch that breaks it is refused\n"
    "tune BLOCK_M in {16, 8, 32}, BLOCK_N in {64, 128}   // the first values are the default\n"
    "grid (cdiv(M, BLOCK_M))                     // one program for each block of rows\n"
    "{\n"
    "    let m0 = program_id(0) * BLOCK_M;\n"
    "\n"
    "    for n0 in range(0, N, BLOCK_N) {        // outside of x a load gives 0, a store nothing\n"
    "        let t = cast(load(x[m0 :+ BLOCK_M, n0 :+ BLOCK_N]), f32);\n"
    "        store(y[m0 :+ BLOCK_M, n0 :+ BLOCK_N], cast(t * scale, T));\n"
    "    }\n"
    "}\n";

static const char test_text[] =
    "#!/bin/sh\n"
    "# Compares @.tw with the interpreter in double precision, over shapes that are not multiples of\n"
    "# anything and for the configurations that differ most. Needs the tilewright command alone:\n"
    "# TILEWRIGHT=/path/to/tilewright sh @_test.sh\n"
    "tilewright=${TILEWRIGHT-tilewright}\n"
    "command -v \"$tilewright\" >/dev/null ||\n"
    "    { echo \"no command '$tilewright' here; TILEWRIGHT=/path/to/tilewright sh $0\"; exit 2; }\n"
    "folder=$(dirname \"$0\")\n"
    "failed=0\n"
    "for shape in 1,1 7,3 16,64 33,129 100,1000; do\n"
    "    for config in BLOCK_M=16,BLOCK_N=64 BLOCK_M=8,BLOCK_N=128; do\n"
    "        \"$tilewright\" run \"$folder/@.tw\" \"x=rand:f32[$shape]\" scale=0.5 \\\n"
    "            --config=\"$config\" --tune=never --store=none --check ||\n"
    "            { failed=1; echo \"FAILED: $shape with $config\"; }\n"
    "    done\n"
    "done\n"
    "[ $failed = 0 ] && echo \"all passed\"\n"
    "exit $failed\n";

static bool is_name(const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)name[i]) && name[i] != '_')
            return false;
    return n > 0 && n <= 64 && !isdigit((unsigned char)name[0]);
}

/* Does the language take it as a kernel's name? It refuses reserved and built-in ones. */
static int check_name(cli *c, const char *name)
{
    char *text = cli_format("kernel %s(x: f32[N]) grid (N) { }\n", name);
    tw_context *cx = NULL;
    tw_kernel *k = NULL;
    int code = CLI_OK;

    if (tw_context_create(NULL, &cx))
        code = cli_fail_last(c);
    else if (tw_kernel_load_text(cx, name, text, strlen(text), NULL, &k))
        code = cli_usage(c, "'%s' belongs to the language; choose another name", name);
    tw_kernel_destroy(k);
    tw_context_destroy(cx);
    free(text);
    return code;
}

static int write_file(cli *c, const char *path, const char *text, const char *name)
{
    FILE *f = fopen(path, "wx");

    if (!f)
        return cli_fail(c, TW_E_IO, "%s: %s", path,
                        errno == EEXIST ? "it exists and is left as it is" : strerror(errno));
    for (; *text; text++)
        if (*text == '@')
            fputs(name, f);
        else
            fputc(*text, f);
    bool failed = ferror(f) != 0;
    if (fclose(f) != 0 || failed)
        return cli_fail(c, TW_E_IO, "%s: %s", path, strerror(errno));
    return CLI_OK;
}

int cmd_new(cli *c)
{
    const char *name = c->opt.word_count ? c->opt.word[0] : "";

    if (c->opt.word_count > 1)
        return cli_usage(c, "'%s' is one word too many", c->opt.word[1]);
    if (!is_name(name))
        return cli_usage(c,
                         "a name of letters, digits and _ is needed, for the kernel and its file");
    CLI_TRY(check_name(c, name));
    char *kernel = cli_format("%s.tw", name), *test = cli_format("%s_test.sh", name);
    int code = write_file(c, kernel, kernel_text, name);
    if (!code && (code = write_file(c, test, test_text, name)) != CLI_OK)
        remove(kernel);
    if (!code)
        printf("%s is a kernel to start from; sh %s tests it\n", kernel, test);
    free(kernel);
    free(test);
    return code;
}
