#!/bin/bash
# Times of Hopper kernels, modelled on simt for an H100, against those that an H100 measured.
# usage: hopper_test.sh RUN PROGRAM COMPARE SET MEASURED CLOSE LEAST
set -u
run=$1 program=$2 compare=$3 set=$4 measured=$5 close=$6 least=$7
unset BUILD_WORKING_DIRECTORY LD_PRELOAD SIMT_THREADS SIMT_INSTRUCTION_LIMIT SIMT_REPORT
"$run" --gpu=h100 --check=bounds "$program" "$set" --once >"$TEST_TMPDIR/$set.jsonl" || exit 1
"$compare" "$measured" "$TEST_TMPDIR/$set.jsonl" --least="$least" --close="$close"
