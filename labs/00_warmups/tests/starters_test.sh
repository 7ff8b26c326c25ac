#!/bin/bash
# No starter is done, and its verdict says what is wrong; nor is what does without an exercise's
# idea; check's flags.
# usage: starters_test.sh HELPERS CHECK CHECK_WITHOUT_IDEA VERDICTS
set -u
# shellcheck source=common/testing/programs.sh
. "$1"
check=$PWD/$2
without=$PWD/$3
verdicts=$PWD/$4
cd "$TEST_TMPDIR" && : >in || exit 1

# verdict_of NAME: the lines of one exercise in `all`.
verdict_of() {
    awk -v name="$1" '/^[wf][0-9][0-9]_/ { mine = $1 == name } mine' all
}

run "$check" --all
[ "$code" -eq 1 ] || fail "exit status $code, want 1"
cp out all
says "0 of 36 done" all
exercises=0
while IFS='|' read -r name text; do
    exercises=$((exercises + 1))
    verdict_of "$name" >one
    says "not yet" one
    says "$text" one
    says "look at: " one
done <"$verdicts"
[ "$exercises" -eq 36 ] || fail "$exercises verdicts, want 36"
grep -q "crashed\|did not end" all && fail "a starter crashes or hangs: $(cat all)"

run "$without" 19 22
says "5000 steps: you say 0.0" out
says "you say 90 also when cudaFuncGetAttributes() tells a ptxVersion of 91" out

run "$check"
[ "$code" -eq 1 ] || fail "exit status $code, want 1"
says "w01_map" out
says "edit labs/00_warmups/w01_map.cu; for a hint: bazel run //grader:hint -- 00 --number 1" out
grep -q w02 out && fail "does not stop at the first: $(cat out)"
run "$check" f3 7 w12_block_reduction
[ "$(grep -c '^[wf][0-9][0-9]_' out)" -eq 3 ] || fail "not the three asked for: $(cat out)"
says "f03_rounds" out
says "w07_shared_tile" out
accepts "$check" --count
says "0 of 36" out
accepts "$check" --list
[ "$(wc -l <out)" -eq 36 ] || fail "not 36 lines: $(cat out)"
accepts "$check" --help
says "--all" out
refuses "no exercise '33'" "$check" 33
refuses "no exercise 'f9'" "$check" 1 f9
refuses "do not go with" "$check" --all 3
[ "$failures" -eq 0 ]
