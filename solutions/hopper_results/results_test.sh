#!/bin/bash
# Results of the 16-bit kernels on simt, under full checks, against those that an H100 recorded.
# usage: results_test.sh RUN RESULTS RECORDED
set -u
run=$1 results=$2 recorded=$3
unset BUILD_WORKING_DIRECTORY LD_PRELOAD SIMT_THREADS SIMT_INSTRUCTION_LIMIT SIMT_REPORT
"$run" --gpu=h100 --check=full --error-exitcode=99 "$results" --compare "$recorded" >"$TEST_TMPDIR/printed"
status=$?
cat "$TEST_TMPDIR/printed"
[ $status -eq 0 ] || exit 1
equal=$(tail -n 1 "$TEST_TMPDIR/printed" | cut -d' ' -f1)
[ "$equal" -ge 101 ] || {
    echo "FAILED: 101 results were equal bit for bit"
    exit 1
}
