#!/bin/bash
# A program built only for newer GPUs than this machine's must fail with one clear line that names
# the GPU and its compute capability; on a GPU that is new enough it runs.
# usage: old_gpu_test.sh PROGRAM
set -u
program=$1
cd "$(dirname "$program")" || exit 1
program=./$(basename "$program")

fail() {
    echo "FAILED: $*"
    exit 1
}

out=$(SIMT_GPU=h200 "$program" 2>"$TEST_TMPDIR/err") || fail "on the H200: $(cat "$TEST_TMPDIR/err")"
grep -q 'compute capability 9.0' <<<"$out" || fail "on the H200: $out"
out=$(SIMT_GPU=t4 "$program" 2>"$TEST_TMPDIR/err")
code=$?
cat "$TEST_TMPDIR/err"
[ "$code" -eq 1 ] || fail "exit status $code, want 1"
[ -z "$out" ] || fail "printed '$out'"
# The emulator prints another line, which says why it finds no code.
[ "$(grep -vc '^simt: ' "$TEST_TMPDIR/err")" -eq 1 ] || fail "not one line"
grep -q 'this build has no code for Tesla T4, compute capability 7.5 .*--config=gpu' "$TEST_TMPDIR/err" ||
    fail "the line is not the one about missing code"
