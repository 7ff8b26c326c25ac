#!/bin/bash
# Random Hopper programs on simt with full checks: those of the record are equal to an H100's, and
# 100 of all kinds run without a word, with the same results without checks.
# usage: hopper_random_test.sh RUN PROGRAM RECORD
set -u
run=$1 program=$2 record=$3
unset BUILD_WORKING_DIRECTORY LD_PRELOAD SIMT_CHECK SIMT_THREADS SIMT_INSTRUCTION_LIMIT SIMT_REPORT
failures=0
"$run" --gpu=h100 "$program" --expected "$record" || failures=$((failures + 1))
for check in full off; do
    "$run" --gpu=h100 --check=$check "$program" --count 100 >"$TEST_TMPDIR/$check" 2>"$TEST_TMPDIR/err" ||
        failures=$((failures + 1))
    cat "$TEST_TMPDIR/err"
    [ ! -s "$TEST_TMPDIR/err" ] || failures=$((failures + 1))
done
cmp "$TEST_TMPDIR/full" "$TEST_TMPDIR/off" || failures=$((failures + 1))
[ "$(wc -l <"$TEST_TMPDIR/full")" -eq 100 ] || failures=$((failures + 1))
[ "$failures" -eq 0 ]
