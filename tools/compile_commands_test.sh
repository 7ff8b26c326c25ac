#!/bin/bash
# compile_commands.json is JSON and names the files that learners edit and read; clangd finds nothing
# wrong in two of them.
# usage: compile_commands_test.sh PROGRAM TEMPLATE LAB...
set -u
program=$1 template=$2
shift 2
root=$(dirname "$(dirname "$(readlink -f "$program")")")
file=$TEST_TMPDIR/compile_commands.json
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

run() {
    BUILD_WORKSPACE_DIRECTORY=$root "$program" "$template" "$@"
}

run --output "$file" || fail "it does not run"
run --nonsense 2>"$TEST_TMPDIR/said" && fail "an unknown flag is no error"
grep -q "unknown argument '--nonsense'" "$TEST_TMPDIR/said" || fail "it does not name the unknown flag"
grep -q '@[A-Z_]*@' "$file" && fail "a place is not filled in"
for lab in "$@"; do
    for source in "$root/labs/$lab"/*.{c,cu,h}; do
        [ ! -e "$source" ] || grep -q "\"file\":\"$source\"" "$file" || fail "$source is not in it"
    done
done
if command -v jq >/dev/null; then
    jq -e 'length > 100 and all(.arguments | length > 3)' "$file" >/dev/null || fail "no list of commands"
fi
if ! command -v clangd >/dev/null; then
    echo "skipped: clangd is not installed (./setup.sh --dev)"
    [ "$failures" -eq 0 ]
    exit
fi
for source in labs/04_sgemm/sgemm.cu labs/01_cpu_matmul/matmul.c; do
    clangd --compile-commands-dir="$TEST_TMPDIR" --check="$root/$source" >"$TEST_TMPDIR/check" 2>&1 || {
        grep -E '^E' "$TEST_TMPDIR/check" | head -n 10
        fail "clangd reports errors in $source"
    }
done
[ "$failures" -eq 0 ]
