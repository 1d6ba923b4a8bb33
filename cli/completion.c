/* Completion scripts. A shell completes verbs, options and their values, the fixed words of a verb,
 * files, and after a file of kernel text the names of its parameters, which
 * `tilewright help FILE.tw` lists. */
#include "cli/cli.h"
#include "cli/pages.h"
#include <ctype.h>
#include <string.h>

/* Values worth offering beyond those that an option is restricted to; FILES: paths. */
#define FILES "*"
static const struct {
    const char *option, *values;
} offered[] = {{"device", "auto|cpu|cuda|interp|null"},
               {"target",
                "cpu-amx|cpu-avx512-bf16|cpu-avx512|cpu-avx2|cpu-generic|sm_80|sm_86|sm_87|"
                "sm_89|sm_90|sm_100|sm_120"},
               {"budget", "1s|5s|10s|60s"},
               {"emit", "ast|tir|ll|asm|obj|sched|ptx|cubin"},
               {"profile", "a100|h100|h200|rtx3090|rtx4080|rtx4090|rtx5090"},
               {"store", FILES},
               {"output", FILES}};

static const char *values_of(const option_text *o)
{
    for (size_t i = 0; i < sizeof offered / sizeof *offered; i++)
        if (strcmp(offered[i].option, o->name) == 0)
            return offered[i].values;
    return o->choices;
}

static void put_values(FILE *out, const char *values)
{
    for (; *values; values++)
        fputc(*values == '|' ? ' ' : *values, out);
}

/* The words that a verb takes as they are: those of its description in lower case alone. */
static void put_fixed_words(FILE *out, const verb *v)
{
    for (const char *at = v->words; *at;) {
        size_t space = strspn(at, "[]| "), n = strcspn(at + space, "[]| ");
        const char *word = at + space;
        bool fixed = n > 0;
        for (size_t i = 0; i < n; i++)
            fixed = fixed && (islower((unsigned char)word[i]) || word[i] == '-');
        if (fixed)
            fprintf(out, "%.*s ", (int)n, word);
        at = word + n;
    }
}

static void put_verbs(FILE *out)
{
    for (const verb *v = verbs; v->name; v++)
        fprintf(out, "%s%s", v == verbs ? "" : " ", v->name);
}

/* Text inside single quotes, with what stands in escape behind a backslash and '' as the shell
 * wants it. */
static void put_quoted(FILE *out, const char *text, const char *escape, const char *quote)
{
    for (; *text; text++) {
        if (*text == '\'') {
            fputs(quote, out);
            continue;
        }
        if (strchr(escape, *text))
            fputc('\\', out);
        fputc(*text, out);
    }
}

/* Prints the parameters of $1 as NAME= in any shell. */
#define PARAMETERS                                                                                 \
    "tilewright help \"$1\" 2>/dev/null |\n"                                                       \
    "        sed -n '/^Arguments/,/^$/s/^    \\([A-Za-z_][A-Za-z0-9_]*\\) .*/\\1=/p'\n"

/* ---- bash ------------------------------------------------------------------------------------ */

static void bash_options(FILE *out, const verb *v)
{
    option_text o;

    fprintf(out, "        %s) echo '", v->name);
    for (size_t i = 0; option_describe(i, &o); i++)
        if (o.verbs & v->bit)
            fprintf(out, "%s--%s%s", i ? " " : "", o.name, o.value ? "=" : "");
    fputs("' ;;\n", out);
}

static void bash_values(FILE *out)
{
    option_text o;

    for (size_t i = 0; option_describe(i, &o); i++) {
        const char *values = values_of(&o);
        if (!values || strcmp(values, FILES) == 0)
            continue;
        fprintf(out, "        --%s) echo '", o.name);
        put_values(out, values);
        fputs("' ;;\n", out);
    }
}

/* bash splits words at = and :, so the line is split here, and what stands before the last such
 * character of the word is cut off the replies. */
static const char bash_end[] =
    "_tilewright() {\n"
    "    local line=${COMP_LINE:0:COMP_POINT} current file='' word words replies cut\n"
    "    current=${line##*[[:space:]]}\n"
    "    read -ra words <<<\"$line\"\n"
    "    local verb=${words[1]-}\n"
    "    for word in \"${words[@]:2}\"; do\n"
    "        [[ $word == *.tw || $word == *.tw:* ]] && [[ $word != -* ]] && file=$word\n"
    "    done\n"
    "    [[ $file == \"$current\" ]] && file=''\n"
    "    if [[ $verb == '' || $verb == \"$current\" ]]; then\n"
    "        replies=$(_tilewright_verbs)\n"
    "    elif [[ $current == --*=* ]]; then\n"
    "        replies=$(_tilewright_values \"${current%%=*}\")\n"
    "        replies=$(printf -- \"${current%%=*}=%s \" $replies)\n"
    "        [[ $replies == *= || $replies == *'= ' ]] && replies=$(compgen -f -P "
    "\"${current%%=*}=\" -- \"${current#*=}\")\n"
    "    elif [[ $current == -* ]]; then\n"
    "        replies=$(_tilewright_options \"$verb\")\n"
    "    elif [[ $current == *=* ]]; then\n"
    "        replies=$(printf -- \"${current%%=*}=%s \" rand: zeros: full: true false)\n"
    "        replies+=\" $(compgen -f -P \"${current%%=*}=\" -- \"${current#*=}\")\"\n"
    "    elif [[ $file && $verb != cache ]]; then\n"
    "        replies=$(_tilewright_parameters \"$file\")\n"
    "    else\n"
    "        replies=$(_tilewright_words \"$verb\")\n"
    "        [[ $verb == cache && $line != *port\\ * ]] || replies+=\" $(compgen -f -- "
    "\"$current\")\"\n"
    "    fi\n"
    "    COMPREPLY=($(compgen -W \"$replies\" -- \"$current\"))\n"
    "    cut=${current%\"${current##*[=:]}\"}\n"
    "    [[ $COMP_WORDBREAKS == *=* && $cut ]] && COMPREPLY=(\"${COMPREPLY[@]#\"$cut\"}\")\n"
    "    [[ ${COMPREPLY[0]-} == *= || ${COMPREPLY[0]-} == *: || -d ${COMPREPLY[0]-} ]] &&\n"
    "        compopt -o nospace 2>/dev/null\n"
    "    return 0\n"
    "}\n"
    "complete -o filenames -F _tilewright tilewright\n";

void write_bash_completion(FILE *out)
{
    fputs("# Completion of tilewright for bash.\n_tilewright_verbs() {\n    echo '", out);
    put_verbs(out);
    fputs("'\n}\n_tilewright_options() {\n    case $1 in\n", out);
    for (const verb *v = verbs; v->name; v++)
        bash_options(out, v);
    fputs("    esac\n}\n_tilewright_values() {\n    case $1 in\n", out);
    bash_values(out);
    fputs("    esac\n}\n_tilewright_words() {\n    case $1 in\n", out);
    for (const verb *v = verbs; v->name; v++) {
        fprintf(out, "        %s) echo '", v->name);
        put_fixed_words(out, v);
        if (v->bit == VERB_HELP)
            put_verbs(out);
        fputs("' ;;\n", out);
    }
    fputs("    esac\n}\n_tilewright_parameters() {\n    " PARAMETERS "}\n", out);
    fputs(bash_end, out);
}

/* ---- zsh ------------------------------------------------------------------------------------- */

static void zsh_option(FILE *out, const option_text *o)
{
    const char *values = values_of(o);

    fprintf(out, "            '--%s%s[", o->name, o->value ? "=" : "");
    put_quoted(out, o->help, "[]:\\", "'\\''");
    fputc(']', out);
    if (o->value) {
        fputc(':', out);
        put_quoted(out, o->value, ":\\", "'\\''");
        fputc(':', out);
        if (values && strcmp(values, FILES) == 0) {
            fputs("_files", out);
        } else if (values) {
            fputc('(', out);
            put_values(out, values);
            fputc(')', out);
        }
    }
    fputs("'\n", out);
}

static void zsh_verb(FILE *out, const verb *v)
{
    option_text o;

    fprintf(out, "    %s)\n        flags=(\n", v->name);
    for (size_t i = 0; option_describe(i, &o); i++)
        if (o.verbs & v->bit)
            zsh_option(out, &o);
    fputs("        )\n        fixed=(", out);
    put_fixed_words(out, v);
    if (v->bit == VERB_HELP)
        put_verbs(out);
    fputs(")\n        ;;\n", out);
}

static const char zsh_end[] =
    "    esac\n"
    "    shift words\n"
    "    (( CURRENT-- ))\n"
    "    _arguments -S $flags '*:argument:_tilewright_argument'\n"
    "}\n"
    "_tilewright_argument() {\n"
    "    local file=${words[(r)*.tw(|:*)]}\n"
    "    if [[ $PREFIX == *=* ]]; then\n"
    "        compset -P '*='\n"
    "        compadd -S '' rand: zeros: full:\n"
    "        _files\n"
    "    elif [[ -n $file && $file != $PREFIX ]]; then\n"
    "        compadd -S '' $(_tilewright_parameters $file)\n"
    "    else\n"
    "        (( $#fixed )) && compadd -a fixed\n"
    "        _files\n"
    "    fi\n"
    "}\n"
    "if [[ ${funcstack[1]} == _tilewright ]]; then\n"
    "    _tilewright \"$@\"\n"
    "else\n"
    "    compdef _tilewright tilewright\n"
    "fi\n";

void write_zsh_completion(FILE *out)
{
    fputs("#compdef tilewright\n_tilewright_parameters() {\n    " PARAMETERS "}\n"
          "_tilewright() {\n"
          "    local -a verbs flags fixed\n"
          "    if (( CURRENT == 2 )); then\n        verbs=(\n",
          out);
    for (const verb *v = verbs; v->name; v++) {
        fprintf(out, "            '%s:", v->name);
        put_quoted(out, v->summary, ":\\", "'\\''");
        fputs("'\n", out);
    }
    fputs("        )\n        _describe verb verbs\n        return\n    fi\n"
          "    case ${words[2]} in\n",
          out);
    for (const verb *v = verbs; v->name; v++)
        zsh_verb(out, v);
    fputs(zsh_end, out);
}

/* ---- fish ------------------------------------------------------------------------------------ */

static void fish_option(FILE *out, const verb *v, const option_text *o)
{
    const char *values = values_of(o);

    fprintf(out, "complete -c tilewright -n '__fish_seen_subcommand_from %s' -l %s", v->name,
            o->name);
    if (o->letter)
        fprintf(out, " -s %c", o->letter);
    if (o->value)
        fputs(values && strcmp(values, FILES) == 0 ? " -r" : " -x", out);
    if (values && strcmp(values, FILES) != 0) {
        fputs(" -a '", out);
        put_values(out, values);
        fputc('\'', out);
    }
    fputs(" -d '", out);
    put_quoted(out, o->help, "\\", "\\'");
    fputs("'\n", out);
}

void write_fish_completion(FILE *out)
{
    option_text o;

    fputs("# Completion of tilewright for fish.\n"
          "function __tilewright_parameters\n"
          "    set -l file (string match -r -- '\\S+\\.tw(?::\\w+)?' (commandline -cp))[1]\n"
          "    test -n \"$file\"; and tilewright help $file 2>/dev/null |\n"
          "        sed -n '/^Arguments/,/^$/s/^    \\\\([A-Za-z_][A-Za-z0-9_]*\\\\) .*/\\\\1=/p'\n"
          "end\n",
          out);
    for (const verb *v = verbs; v->name; v++) {
        fprintf(out, "complete -c tilewright -n __fish_use_subcommand -f -a %s -d '", v->name);
        put_quoted(out, v->summary, "\\", "\\'");
        fprintf(out, "'\ncomplete -c tilewright -n '__fish_seen_subcommand_from %s' -a '", v->name);
        put_fixed_words(out, v);
        if (v->bit == VERB_HELP)
            put_verbs(out);
        fputs(" (__tilewright_parameters)'\n", out);
        for (size_t i = 0; option_describe(i, &o); i++)
            if (o.verbs & v->bit)
                fish_option(out, v, &o);
    }
}
