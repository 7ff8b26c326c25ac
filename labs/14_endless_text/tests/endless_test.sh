#!/bin/bash
# generate and perplexity without end: every stage writes the same text far beyond the model's
# context, and bad flags get one clear line.
# usage: endless_test.sh PROGRAMS_SH GENERATE PERPLEXITY MAKE_TEST_CHECKPOINT REVIEW_TEXT
set -u
# shellcheck source=common/testing/programs.sh
. "$1"
generate=$PWD/$2 perplexity=$PWD/$3 review=$PWD/$5 neox=$PWD/datasets/tiny_neox
"$PWD/$4" "$TEST_TMPDIR" || exit 1
cd "$TEST_TMPDIR" || exit 1
unset BUILD_WORKING_DIRECTORY
: >in
printf 'the quick brown fox jumps over the lazy dog' >text
tiny=(tiny.bin -z tiny_tokenizer.bin)

refuses "--stage 'none': unknown stage; choose one of 01_cpu_matmul" "$generate" "${tiny[@]}" --stage none
IFS=', ' read -ra stages <<<"$(sed -n "s/.*choose one of //p" err | tr '\n' ' ')"

# nats FILE: a token's, of figures in JSON.
nats() {
    sed -n 's/^[[:space:]]*"nats_per_token":[[:space:]]*\([-0-9.e+]*\),*$/\1/p' "$1"
}

# close WHAT A B: figures of two JSON files, to 1e-4.
close() {
    awk -v a="$(nats "$2")" -v b="$(nats "$3")" 'BEGIN { d = a - b; exit !(a > 0 && d <= 1e-4 && -d <= 1e-4) }' ||
        fail "$1: $(nats "$2") and $(nats "$3") nats a token"
}

# same CACHE MODEL: every stage writes the first one's text, and gives its figures.
same() {
    local stage
    for stage in "${stages[@]}"; do
        # shellcheck disable=SC2086 # several flags
        accepts "$generate" "${@:2}" -t 0 -n 72 -i abc $1 --stage "$stage"
        says "stage $stage" err
        [ "$stage" = "${stages[0]}" ] && cp out first
        cmp -s out first || fail "stage $stage, $*: writes '$(cat out)', the first stage '$(cat first)'"
        # shellcheck disable=SC2086
        accepts "$perplexity" "${@:2}" -f text $1 --stage "$stage" --json "$stage.json"
        close "stage $stage, $*" "${stages[0]}.json" "$stage.json"
    done
    [ "$(wc -c <first)" -gt 40 ] || fail "there is hardly a text: $*"
}

same "--sinks 2 --window 7" "${tiny[@]}"
same "--window 5" "${tiny[@]}"
same "--sinks 3 --window 6" gpt_neox --dtype fp32

# A window that holds the whole text is the model without one; a window of one token sees it alone.
accepts "$perplexity" "${tiny[@]}" -f text -n 12 -c 14 --stage 1 --json dense.json
accepts "$perplexity" "${tiny[@]}" -f text -n 12 --sinks 3 --window 20 --stage 1 --json window.json
close "a window as long as the text" dense.json window.json
accepts "$perplexity" "${tiny[@]}" -f text -n 12 --window 14 --recompute --stage 1 --json anew.json
close "the window computed anew" dense.json anew.json
accepts "$perplexity" "${tiny[@]}" -f text --window 1 --stage 1 --json one.json
accepts "$perplexity" "${tiny[@]}" -f text --window 1 --recompute --stage 1 --json anew.json
close "a window of one token" one.json anew.json

# The GPT-NeoX that comes with the project: its card's figure, and its most likely text.
accepts "$perplexity" "$neox" --file "$review" --stage 1 --dtype fp32 --json neox.json
printf '"nats_per_token": 3.4247868\n' >card.json
close "tiny_neox and its card" neox.json card.json
accepts "$generate" "$neox" --stage 1 --dtype fp32 -t 0 -n 24 -i "This film"
[ "$(cat out)" = "This film is a great example of how a movie can be made. The acting is great, the story is very good" ] ||
    fail "tiny_neox writes '$(cat out)'"

refuses "--sinks 4 without a window: give --window N, the last tokens that are kept beside them" \
    "$generate" "${tiny[@]}" --sinks 4
refuses "--sinks -1, --window 4: must be from 0 to 1048576" "$generate" "${tiny[@]}" --sinks -1 --window 4
refuses "--sinks 0, --window 1048577: must be from 0 to 1048576" "$perplexity" "${tiny[@]}" -f text --window 1048577
refuses "--roll and --window are two ways to go on without end: choose one" \
    "$generate" "${tiny[@]}" --roll --window 4
refuses "--context is of windows that do not know of each other, --window of one that moves through the text: choose one" \
    "$perplexity" "${tiny[@]}" -f text -c 4 --window 4
refuses "--recompute wants --window, and no --sinks: it computes the window anew for each token" \
    "$perplexity" "${tiny[@]}" -f text --recompute
refuses "--window 100: the model has 64 positions" "$perplexity" "${tiny[@]}" -f text --window 100 --recompute
finish
