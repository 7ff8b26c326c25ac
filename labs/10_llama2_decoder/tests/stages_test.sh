#!/bin/bash
# generate and perplexity on every stage: the same text, and the same figures.
# usage: stages_test.sh PROGRAMS_SH GENERATE PERPLEXITY MAKE_TEST_CHECKPOINT all|ends TOKENS
# ends: the first and the last stage alone; TOKENS of the real checkpoint's text
set -u
# shellcheck source=common/testing/programs.sh
. "$1"
generate=$PWD/$2 perplexity=$PWD/$3 which=$5 tokens=$6
"$PWD/$4" "$TEST_TMPDIR" || exit 1
cd "$TEST_TMPDIR" || exit 1
unset BUILD_WORKING_DIRECTORY
: >in
printf 'the quick brown fox jumps over the lazy dog' >text

# The stages that there are, as a wrong name lists them.
refuses "--stage 'none': unknown stage; choose one of 01_cpu_matmul" "$generate" tiny.bin -z tiny_tokenizer.bin --stage none
IFS=', ' read -ra stages <<<"$(sed -n "s/.*choose one of //p" err | tr '\n' ' ')"
case "${#stages[@]}:${stages[-1]}" in
9:10_llama2_decoder | 1:01_cpu_matmul) ;;
*) fail "stages are: ${stages[*]}" ;;
esac
every=("${stages[@]}")
ends=("${stages[0]}" "${stages[-1]}")
[ "$which" = ends ] && every=("${ends[@]}")

# nats FILE: a token's, of figures in JSON.
nats() {
    sed -n 's/^[[:space:]]*"nats_per_token":[[:space:]]*\([-0-9.e+]*\),*$/\1/p' "$1"
}

# same_text ARGS: of `stages`, each writes the first one's text.
same_text() {
    local stage
    for stage in "${stages[@]}"; do
        accepts "$generate" "$@" --stage "$stage"
        says "stage $stage" err
        [ "$stage" = "${stages[0]}" ] && cp out first
        cmp -s out first || fail "stage $stage: $* writes '$(cat out)', the first stage '$(cat first)'"
    done
    [ -s first ] || fail "there is no text: $*"
}

# same_figures ARGS: a perplexity is the first stage's to 1e-4 of it, which is what nats differ by.
same_figures() {
    local stage
    for stage in "${stages[@]}"; do
        accepts "$perplexity" "$@" --stage "$stage" --json "$stage.json"
        awk -v want="$(nats "${stages[0]}.json")" -v got="$(nats "$stage.json")" \
            'BEGIN { d = want - got; exit !(got > 0 && d <= 1e-4 && -d <= 1e-4) }' ||
            fail "stage $stage: $* gives $(nats "$stage.json") nats a token, the first stage $(nats "${stages[0]}.json")"
    done
}

# Every stage's matrices, norms and attention.
stages=("${every[@]}")
tiny=(tiny.bin -z tiny_tokenizer.bin)
same_text "${tiny[@]}" -t 0 -i abc -n 20
same_figures "${tiny[@]}" -f text -c 10 -n 14

# What the last stage does itself: it draws, ends within a prompt, and goes on beyond the context.
stages=("${ends[@]}")
same_text gpt_neox -t 0 -i "a  b" -n 12
same_figures gpt_neox -f text -c 10 -n 8
same_text "${tiny[@]}" -t 0.9 -p 0.9 -s 7 -n 12
same_text "${tiny[@]}" -t 1.2 -p 0 -k 5 -s 3 -n 12
same_text "${tiny[@]}" -t 0 -i abcdef -n 3
same_text "${tiny[@]}" -t 0 -i abc -n 70 --roll
says "; rolls: 1; " err
accepts "$generate" "${tiny[@]}" -n 3 --profile --stage "${stages[-1]}"
grep -Eq 'matmul|decoder' err || fail "--profile prints no operator"
printf '\nhello\nagain\n' >in
same_text "${tiny[@]}" -m chat -s 3
says "Assistant: " out
: >in

data=${WARPBOOK_DATA:-}
if [ -r "$data/stories260K.bin" ] && [ -r "$data/tok512.bin" ]; then
    stories=("$data/stories260K.bin" -z "$data/tok512.bin")
    same_text "${stories[@]}" -t 0 -n "$tokens"
    stages=("${every[@]}")
    same_figures "${stories[@]}" -f text -n 12
else
    echo "skipped: the real checkpoint; set WARPBOOK_DATA to a folder with stories260K.bin and tok512.bin"
fi
finish
