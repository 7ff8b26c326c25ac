#!/bin/bash
# Each kernel of the table (mistakes.c): a wrong one is told, with its kernel, its line and, where
# there is one, the line of the other side; of a right one nothing is said, and its results are right.
# usage: mistakes_test.sh RUN MISTAKES
set -u
run=$1 mistakes=$2
unset BUILD_WORKING_DIRECTORY LD_PRELOAD SIMT_CHECK SIMT_THREADS SIMT_INSTRUCTION_LIMIT SIMT_REPORT
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# expect_right NAME STATUS OUTPUT
expect_right() {
    { [ "$2" -eq 0 ] && [ "$3" = right ]; } || fail "$1 is right, but: status $2, $3"
}

# expect_wrong NAME STATUS OUTPUT SIDES WORDS
expect_wrong() {
    local first
    first=$(head -n 1 <<<"$3")
    [ "$2" -eq 3 ] || fail "$1: status $2, not 3"
    grep -qF -- "$5" <<<"$3" || fail "$1: not told '$5', but: $3"
    grep -q '^  in kernel .*mistakes\.cu:[1-9]' <<<"$3" || fail "$1: no line in: $3"
    [ "$4" -lt 2 ] || grep -q 'mistakes\.cu:[1-9]' <<<"$first" || fail "$1: one side alone: $first"
}

declare -A wrong right
wrong_all=0 right_all=0
while IFS=$'\t' read -r item name sides words; do
    out=$("$run" --gpu=h100 "$mistakes" "$name" 2>&1)
    status=$?
    if [ "$sides" -eq 0 ]; then
        right[$item]=$((${right[$item]:-0} + 1)) right_all=$((right_all + 1))
        expect_right "$name" $status "$out"
    else
        wrong[$item]=$((${wrong[$item]:-0} + 1)) wrong_all=$((wrong_all + 1))
        expect_wrong "$name" $status "$out" "$sides" "$words"
    fi
done < <("$mistakes" list)

for item in sums rewritten proxy phase bytes slot exit cluster registers descriptor box dependent; do
    echo "$item: ${wrong[$item]:-0} wrong, ${right[$item]:-0} right"
    [ "${wrong[$item]:-0}" -ge 3 ] || fail "$item has too few wrong kernels"
    [ "${right[$item]:-0}" -ge 3 ] || fail "$item has too few right kernels"
done
echo "$wrong_all wrong, $right_all right"
{ [ $wrong_all -ge 40 ] && [ $right_all -ge 40 ]; } || fail "fewer than 40"
[ -z "$("$mistakes" list | cut -f2 | sort | uniq -d)" ] || fail "two rows have one name"
[ $failures -eq 0 ]
