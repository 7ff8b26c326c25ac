#!/bin/bash
# Runs the calibration kernels on simt as an H200: what it counts against what the GPU counted,
# and modelled against measured times.
# usage: calibration_test.sh RUN COUNTED_PROGRAM COUNTED COMPARE TIMES MORE_TIMES
set -u
run=$1
program=$2
compare=$4
export COUNTED=$3 MODELLED=$TEST_TMPDIR
unset BUILD_WORKING_DIRECTORY LD_PRELOAD SIMT_THREADS SIMT_INSTRUCTION_LIMIT SIMT_REPORT
failures=0

# judge SET TIMES: at least 9 in 10 pairs must be ordered as on the GPU.
judge() {
    echo "$1, modelled on simt for h200 against measured:"
    "$compare" "$2" "$MODELLED/$1.jsonl" --least=0.9 || failures=$((failures + 1))
    echo
}

"$run" --gpu=h200 --check=bounds "$program" || failures=$((failures + 1))
judge fit "$5"
judge more "$6"
[ "$failures" -eq 0 ]
