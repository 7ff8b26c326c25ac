#!/bin/bash
# The Llama2 that comes with the project: a known text, and how well it predicts another one.
# usage: shipped_test.sh PROGRAMS_SH GENERATE PERPLEXITY TEXT
set -u
# shellcheck source=common/testing/programs.sh
. "$1"
generate=$PWD/$2 perplexity=$PWD/$3 text=$PWD/$4
cd "$TEST_TMPDIR" || exit 1
unset BUILD_WORKING_DIRECTORY
: >in
greedy="This film is a great example of how to make a movie. It is a great movie. It is a great movie. It is a great movie. It is a great movie. It is a great movie. It is a great movie. It"

accepts "$perplexity" --stage 1 --file "$text" --json figures
nats=$(sed -n 's/^[[:space:]]*"nats_per_token":[[:space:]]*\([-0-9.e+]*\),*$/\1/p' figures)
awk -v got="$nats" 'BEGIN { d = got - 3.4374724; exit !(got != "" && d <= 1e-4 && -d <= 1e-4) }' ||
    fail "$nats nats a token, want 3.4374724"

accepts "$generate" --stage 1 --dtype fp32 -t 0 -n 50 -i "This film"
[ "$(cat out)" = "$greedy" ] || fail "other text on the CPU: $(cat out)"

# The last stage, perhaps on simt, where a token takes a while.
if "$generate" --stage none 2>&1 | grep -q 10_llama2_decoder; then
    accepts "$generate" --stage 1 --dtype fp32 -t 0 -n 12 -i "This film"
    mv out want
    accepts "$generate" --stage 10 --dtype fp32 -t 0 -n 12 -i "This film"
    cmp -s out want || fail "stage 10 writes '$(cat out)', stage 1 '$(cat want)'"
    says "stage 10_llama2_decoder on " err
fi
finish
