#!/bin/bash
# Runs all graded tests of the solutions again and again, each run with seeds of its own, and says
# which were refused: none of them ever may be. By hand; see README.md.
# usage: many_runs.sh RUNS FOLDER
#
# FOLDER is bazel-bin/grader of a build with --config=solutions of //grader:graders. Each refusal is
# shown with its seed's line; a line a run says how many of how many tests passed. Tests of measured
# time (lab 01's speedup) are left out: a busy machine decides them.
set -u
if [ $# -ne 2 ] || [ ! -d "$2" ]; then
    echo "usage: $0 RUNS FOLDER (bazel-bin/grader, of //grader:graders built with --config=solutions)" >&2
    exit 2
fi
runs=$1
folder=$(realpath "$2")
output=$(mktemp)
trap 'rm -f "$output"' EXIT
shopt -s nullglob
tests=()
for test in "$folder"/[01][0-9]_*_parity "$folder"/[01][0-9]_*_speedup; do
    [[ -x $test && $test != */01_*_speedup ]] && tests+=("$test")
done
if [ ${#tests[@]} -eq 0 ]; then
    echo "$0: $folder has no graded tests: build //grader:graders with --config=solutions" >&2
    exit 2
fi
refused=0
for run in $(seq "$runs"); do
    passed=0
    for test in "${tests[@]}"; do
        if env -u WARPBOOK_SEED -u WARPBOOK_GRADES "$test" >"$output" 2>&1; then
            passed=$((passed + 1))
        else
            refused=$((refused + 1))
            echo "run $run: $(basename "$test") was refused:"
            grep -E 'seed|FAILED|error|Failure|: ' "$output" | head -n 40 | sed 's/^/  | /'
        fi
    done
    echo "run $run: $passed of ${#tests[@]} passed, $(date -u +%H:%M:%S)"
done
echo "$refused refused in $runs runs of ${#tests[@]} tests"
[ "$refused" -eq 0 ]
