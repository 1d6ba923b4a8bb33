#!/usr/bin/env bash
# The manual page and the completions: made from the tables, so every verb and option is in them,
# and each shell that is there reads its own.
source tests/support/cli_test.bash
PATH=$(dirname "$tw"):$PATH
for page in man bash zsh fish; do
    "$tw" help $page >"$work/$page" || complain "help $page"
done

verbs=$("$tw" --help | sed -n '/^Verbs/,/^$/s/^    \([a-z]*\) .*/\1/p')
[ "$(wc -w <<<"$verbs")" -ge 7 ] || complain "the verbs were not found"
for verb in $verbs; do
    for page in man bash zsh fish; do
        grep -qw -- "$verb" "$work/$page" || complain "$page lacks the verb $verb"
    done
    for option in $("$tw" help "$verb" | sed -n 's/^    \(-.,\)\? *--\([a-z0-9-]*\).*/\2/p'); do
        grep -qF -- "\\-\\-${option//-/\\-}" "$work/man" || complain "man lacks --$option"
        grep -q -- "--$option" "$work/bash" || complain "bash lacks --$option"
        grep -q -- "--$option" "$work/zsh" || complain "zsh lacks --$option"
        grep -q -- "-l $option " "$work/fish" || complain "fish lacks --$option"
    done
done
for word in TILEWRIGHT_STORE rand:DTYPE save=NAME 'visible=col' u16 E_STORE; do
    case $word in
        E_*) grep -q "$("$tw" help exit-codes | sed -n "s/.* $word  *//p")" "$work/man" ;;
        *) grep -q "$word" "$work/man" ;;
    esac || complain "man lacks $word"
done
if command -v man >/dev/null && man --version >/dev/null 2>&1; then
    MANROFFSEQ='' man --warnings -l "$work/man" >/dev/null 2>"$work/err"
    [ ! -s "$work/err" ] || complain "man warns about the page"
fi

# what bash offers for a line
offers() { # LINE WORDS...
    local line=$1 word
    shift
    bash -c 'source "$1"; COMP_LINE=$2; COMP_POINT=${#2}; _tilewright; printf "%s\n" "${COMPREPLY[@]}"' \
        _ "$work/bash" "$line" >"$work/out" 2>"$work/err"
    [ ! -s "$work/err" ] || complain "bash: '$line'"
    for word in "$@"; do
        grep -qx -- "$word" "$work/out" || complain "bash does not offer $word for '$line'"
    done
}
expect 0 "" bash -n "$work/bash"
offers "tilewright " $verbs
offers "tilewright co" compile
[ "$(wc -l <"$work/out")" -eq 1 ] || complain "bash offers verbs that do not fit"
offers "tilewright run --de" --device=
offers "tilewright run --device=" auto cpu cuda interp null
offers "tilewright compile --profile=" a100 h100 h200 rtx3090 rtx4080 rtx4090 rtx5090
offers "tilewright compile --emit=o" obj
offers "tilewright bench --tune=" never on-miss
offers "tilewright cache " list show clear
offers "tilewright help " values environment run
offers "tilewright run kernels/atten" kernels/attention_fwd.tw
offers "tilewright run kernels/attention_fwd.tw " q= k= v= scale= CAUSAL=
offers "tilewright tune kernels/softmax.tw x=" rand: zeros: full:
offers "tilewright run kernels/softmax.tw x=examples/da" examples/data

if command -v zsh >/dev/null; then
    cat >"$work/try.zsh" <<END
autoload -U compinit; compinit -D -u; source $work/zsh
[[ \$_comps[tilewright] == _tilewright ]] && _tilewright_parameters kernels/softmax.tw
END
    expect 0 "x=" zsh -f "$work/try.zsh"
    expect 0 "" zsh -n "$work/zsh"
fi
if command -v fish >/dev/null; then
    export HOME=$work
    expect 0 "on-miss" fish -c "source $work/fish; complete -C 'tilewright run --tune='"
    expect 0 "clear" fish -c "source $work/fish; complete -C 'tilewright cache '"
    expect 0 "y=" fish -c "source $work/fish; complete -C 'tilewright run kernels/softmax.tw '"
fi

# the parameters of a kernel
expect 0 "out f32[B, H, M]" "$tw" help kernels/attention_fwd.tw
expect 0 "= 1.0 / sqrt(D)" "$tw" help kernels/attention_fwd.tw
expect 0 "= everything" "$tw" help kernels/attention_fwd.tw
expect 0 "BLOCK_M  64, 32, 96, 128, 192" "$tw" help kernels/attention_fwd.tw
expect 0 "on cpu-amx: 128, 64, 256" "$tw" help kernels/attention_fwd.tw
expect 0 "BLOCK_N" "$tw" help kernels/attention_fwd.tw:attention_fwd
expect 7 "" "$tw" help kernels/nothing.tw
finish
