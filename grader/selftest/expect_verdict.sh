#!/bin/bash
# Runs a graded test and compares its verdict with the one that must come.
# usage: expect_verdict.sh pass|fail TEXT TEST [NAME=VALUE ...]; TEXT (a regular expression) must
# stand in what it prints; the variables are set for the test
set -u
# Whether a mistake is found is no matter of luck: the same inputs in each run.
export WARPBOOK_SEED=${WARPBOOK_SEED:-1}
want=$1 text=$2 test=$3
# Up to the first failure; all of it where what must be printed comes later.
output=$(env GTEST_FAIL_FAST=1 "${@:4}" "$PWD/$test" 2>&1)
code=$?
if [ "$code" -ne 0 ] && [ "$want" = fail ] && ! grep -qE -- "$text" <<<"$output"; then
    output=$(env "${@:4}" "$PWD/$test" 2>&1)
    code=$?
fi
got=$([ "$code" -eq 0 ] && echo pass || echo fail)
if [ "$got" != "$want" ]; then
    echo "the verdict is '$got', must be '$want':"
    echo "$output"
    exit 1
fi
if ! grep -qE -- "$text" <<<"$output"; then
    echo "the verdict is right, but nothing matches '$text':"
    echo "$output"
    exit 1
fi
echo "verdict '$got', and: $(grep -E -m1 -- "$text" <<<"$output")"
