#!/bin/bash
# Random Hopper programs on simt are equal to an H100's: those of the record, with full checks and no
# word of them, and without checks.
# usage: hopper_random_test.sh RUN PROGRAM RECORD
set -u
run=$1 program=$2 record=$3
unset BUILD_WORKING_DIRECTORY LD_PRELOAD SIMT_CHECK SIMT_THREADS SIMT_INSTRUCTION_LIMIT SIMT_REPORT
failures=0
for check in full off; do
    "$run" --gpu=h100 --check=$check "$program" --expected "$record" 2>"$TEST_TMPDIR/err" ||
        failures=$((failures + 1))
    cat "$TEST_TMPDIR/err"
    [ ! -s "$TEST_TMPDIR/err" ] || failures=$((failures + 1))
done
[ "$(grep -c '"family": 99' "$record")" -ge 300 ] || failures=$((failures + 1))
[ "$failures" -eq 0 ]
