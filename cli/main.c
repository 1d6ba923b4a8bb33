/* tilewright: compiles, tunes and runs tile kernels. */
#include "cli/cli.h"
#include <errno.h>
#include <signal.h>
#include <string.h>

const verb verbs[] = {
    {"run", VERB_RUN, "FILE.tw[:KERNEL] NAME=VALUE...", "run a kernel on arrays",
     "Runs a kernel once. An input is a .npy file or a specification (help values); an output "
     "that\n"
     "names a .npy file is written to it, one that is not named is dropped. A number or a\n"
     "compile-time value is written as it is: scale=0.125 CAUSAL=true.\n"
     "\n"
     "A problem that the store does not know is tuned first, for 10 seconds (--budget, --tune).",
     "tilewright run kernels/attention_fwd.tw q=q.npy k=k.npy v=v.npy o=o.npy CAUSAL=true\n"
     "tilewright run kernels/vector_add.tw a=rand:f32[1000] b=full:1:f32[1000] --check\n"
     "tilewright run kernels/matmul.tw a=a.npy b=b.npy c=c.npy --device=interp --programs=0:1",
     cmd_run},
    {"tune", VERB_TUNE, "FILE.tw[:KERNEL] NAME=VALUE...", "find the fastest configuration",
     "Searches the kernel's tune parameters and the target's schedule parameters for these\n"
     "arguments, checks the results, and stores every trial. Ctrl-C stops; what is faster than "
     "the\ndefault so far is kept.",
     "tilewright tune kernels/attention_fwd.tw q=rand:f32[1,4,1024,128] k=rand:f32[1,4,1024,128] "
     "\\\n"
     "    v=rand:f32[1,4,1024,128] CAUSAL=false --budget=30s --flops='4*B*H*M*N*D'",
     cmd_tune},
    {"bench", VERB_BENCH, "FILE.tw[:KERNEL] NAME=VALUE...", "time a kernel",
     "Launches a kernel for about a second and prints the median, the spread (median absolute\n"
     "deviation) and the least time. With --flops it prints the speed too.",
     "tilewright bench kernels/matmul.tw a=rand:f32[512,512] b=rand:f32[512,512] \\\n"
     "    --flops='2*M*N*K'",
     cmd_bench},
    {"compile", VERB_COMPILE, "FILE.tw[:KERNEL] | FILE.tir", "print what a stage makes of a kernel",
     "Compiles without arrays, for unknown sizes: innermost stride 1, bases and other strides\n"
     "multiples of 16 bytes; --set=generic=true assumes nothing. The values in a kernel's "
     "brackets\n"
     "come from --set.",
     "tilewright compile kernels/attention_fwd.tw --set=T=f32,D=64,DV=64,CAUSAL=true --emit=tir\n"
     "tilewright compile kernels/attention_fwd.tw --set=T=f32,D=128,DV=128,BLOCK_M=128 \\\n"
     "    --target=cpu --emit=ll -o out.ll",
     cmd_compile},
    {"explain", VERB_EXPLAIN, "FILE.tw[:KERNEL] | FILE.tir", "show what a kernel became, and why",
     "For each line of text and each loop: operations of IR and, for GPUs, instructions; whether the\n"
     "accesses of a loop were proven inside of their tensors. For GPUs also shared memory, layouts,\n"
     "registers and spills (by NVIDIA's ptxas where there is one), how many blocks a multiprocessor\n"
     "holds, and what allows no more. The GPU need not be there. Values as for compile.",
     "tilewright explain kernels/attention_fwd.tw --target=sm_89 --profile=rtx4090 \\\n"
     "    --set=T=bf16,D=128,DV=128,CAUSAL=true,BLOCK_M=128,BLOCK_N=64\n"
     "tilewright explain kernels/matmul.tw --set=T=f32 --json",
     cmd_explain},
    {"new", VERB_NEW, "NAME", "write a kernel to start from, and its test",
     "Writes NAME.tw, a kernel that runs as it is, and NAME_test.sh, which compares it with the\n"
     "interpreter over awkward shapes. Neither may exist.",
     "tilewright new my_kernel && sh my_kernel_test.sh",
     cmd_new},
    {"cache", VERB_CACHE,
     "[list | show ID | clear [KERNEL] | export FILE | import FILE | prune]",
     "look into the store, empty it, carry it to another machine",
     "list shows every best known configuration, show every trial behind one of them, clear "
     "forgets\n"
     "what is stored of one kernel, or everything.\n"
     "\n"
     "export writes what is known to a new file. import takes from such a file what this store\n"
     "does not know, or knows only to be slower; every value is checked. With --artifacts both\n"
     "take compiled code along.\n"
     "\n"
     "prune forgets the code that other versions of Tilewright or LLVM made; with --older also\n"
     "what is old, with --max-size what is too much.",
     "tilewright cache list\n"
     "tilewright cache show 3\n"
     "tilewright cache clear attention_fwd --store=/tmp/store.db\n"
     "tilewright cache export tuned.db\n"
     "tilewright cache import tuned.db --json\n"
     "tilewright cache prune --older=90d --max-size=200M",
     cmd_cache},
    {"device", VERB_DEVICE, "[NAME...]", "show the devices there are", "",
     "tilewright device\n"
     "tilewright device cpu:2 --json",
     cmd_device},
    {"doctor", VERB_DOCTOR, "", "check that everything works here",
     "Looks at library, processor, threads, load and store, compiles and runs a small kernel, and\n"
     "compares it with the interpreter. Says what is wrong and what to do; the exit code is 0, or\n"
     "that of the first thing that is wrong.",
     "tilewright doctor\n"
     "tilewright doctor --store=/var/cache/tuned.db --json",
     cmd_doctor},
    {"help", VERB_HELP,
     "[VERB | FILE.tw[:KERNEL] | values | environment | exit-codes | man | bash | zsh | fish]",
     "explain a verb, a kernel's parameters or a topic",
     "man prints the manual page; bash, zsh and fish print that shell's completion.",
     "tilewright help run\n"
     "tilewright help kernels/attention_fwd.tw\n"
     "source <(tilewright help bash)",
     cmd_help},
    {0},
};

const verb *verb_find(const char *name)
{
    for (const verb *v = verbs; v->name; v++)
        if (strcmp(v->name, name) == 0)
            return v;
    return NULL;
}

static int unknown_verb(cli *c, const char *name)
{
    const char *list[16], *near;
    size_t n = 0;

    for (const verb *v = verbs; v->name; v++)
        list[n++] = v->name;
    near = nearest_word(name, list, n);
    return near ? cli_usage(c, "'%s' is not a verb; did you mean '%s'?", name, near)
                : cli_usage(c, "'%s' is not a verb", name);
}

static int run_verb(cli *c)
{
    CLI_TRY(options_parse(c));
    if (!c->opt.help)
        return c->verb->run(c);
    help_verb(c, c->verb);
    return CLI_OK;
}

static bool is_one_of(const char *word, const char *a, const char *b)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

static int run(cli *c, int argc, char **argv)
{
    if (argc < 2) {
        help_overview(c, stderr);
        return CLI_USAGE;
    }
    if (is_one_of(argv[1], "--help", "-h")) {
        help_overview(c, stdout);
        return CLI_OK;
    }
    if (is_one_of(argv[1], "--version", "version")) {
        printf("tilewright %s\n", tw_version());
        return CLI_OK;
    }
    c->verb = verb_find(argv[1]);
    if (!c->verb)
        return unknown_verb(c, argv[1]);
    c->argc = argc - 2;
    c->argv = argv + 2;
    int code = run_verb(c);
    options_free(&c->opt);
    return code;
}

/* A reader that went away (tilewright ... | head) is no failure of ours; a full disk is. */
static int close_output(int code)
{
    errno = 0;
    bool failed = fflush(stdout) != 0 || ferror(stdout);

    if (!failed || errno == EPIPE || code != CLI_OK)
        return code;
    fprintf(stderr, "tilewright: error: standard output cannot be written: %s\n", strerror(errno));
    return tw_status_exit_code(TW_E_IO);
}

int main(int argc, char **argv)
{
    cli c = {0};

    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a limit on the size of files: the write says so */
    term_open(&c.term);
    return close_output(run(&c, argc, argv));
}
