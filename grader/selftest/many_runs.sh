#!/bin/bash
# Runs all graded tests of the solutions again and again, each run with seeds of its own, and says
# which were refused: none of them ever may be. By hand; see README.md.
# usage: many_runs.sh RUNS FOLDER [JOBS [SECONDS]]
#
# FOLDER is bazel-bin/grader of a build with --config=solutions of //grader:graders. JOBS tests run at
# a time (default 1). Tests of measured time (lab 01's speedup) come afterwards, one by one, with
# nothing beside them. What has not begun after SECONDS is left out, and said. Each refusal is shown
# with its seed's line; a line a test says how often it passed.
set -u
if [ $# -lt 2 ] || [ $# -gt 4 ] || [ ! -d "$2" ]; then
    echo "usage: $0 RUNS FOLDER [JOBS [SECONDS]] (FOLDER: bazel-bin/grader, of //grader:graders built" \
        "with --config=solutions)" >&2
    exit 2
fi
runs=$1 jobs=${3:-1} limit=${4:-86400}
folder=$(realpath "$2")
output=$(mktemp -d)
trap 'rm -rf "$output"' EXIT
shopt -s nullglob
modelled=() measured=()
for test in "$folder"/[01][0-9]_*_parity "$folder"/[01][0-9]_*_speedup; do
    if [[ $test == */01_*_speedup ]]; then
        measured+=("$test")
    elif [ -x "$test" ]; then
        modelled+=("$test")
    fi
done
if [ ${#modelled[@]} -eq 0 ]; then
    echo "$0: $folder has no graded tests: build //grader:graders with --config=solutions" >&2
    exit 2
fi

# one RUN TEST: a line "TEST RUN passed|refused|left-out"; what a refused one said is kept.
one() {
    local log verdict=passed
    log=$output/$1.$(basename "$2")
    if [ "$(date +%s)" -ge "$deadline" ]; then
        verdict=left-out
    elif ! env -u WARPBOOK_SEED -u WARPBOOK_GRADES "$2" >"$log" 2>&1; then
        verdict=refused
    fi
    [ "$verdict" = refused ] || rm -f "$log"
    echo "$(basename "$2") $1 $verdict"
}
export -f one
export output deadline=$(($(date +%s) + limit))

# several JOBS TEST...: each test RUNS times, JOBS at a time.
several() {
    local at_a_time=$1 run test
    shift
    for run in $(seq "$runs"); do
        for test in "$@"; do
            printf '%s\0%s\0' "$run" "$test"
        done
    done | xargs -0 -r -n 2 -P "$at_a_time" bash -c 'one "$@"' one
}

{
    several "$jobs" "${modelled[@]}"
    several 1 "${measured[@]}"
} >"$output/verdicts"
for log in "$output"/*.*_*; do
    name=$(basename "$log")
    echo "run ${name%%.*}: ${name#*.} was refused:"
    grep -E 'seed|FAILED|error|Failure|: ' "$log" | head -n 40 | sed 's/^/  | /'
done
awk '{ count[$1]++; said[$1, $3]++; all[$3]++ }
     END {
         for (test in count) {
             printf "%-32s %d of %d passed\n", test, said[test, "passed"], count[test] | "sort"
         }
         close("sort")
         printf "%d passed, %d refused, %d left out of %d\n", all["passed"], all["refused"], all["left-out"], NR
         exit all["refused"] > 0 || all["left-out"] > 0
     }' "$output/verdicts"
