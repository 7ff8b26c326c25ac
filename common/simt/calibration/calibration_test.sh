#!/bin/bash
# Runs the calibration kernels on simt as an H200 and compares modelled with measured times.
# usage: calibration_test.sh RUN CALIBRATE COMPARE TIMES MORE_TIMES
set -u
run=$1
calibrate=$2
compare=$3
unset BUILD_WORKING_DIRECTORY LD_PRELOAD SIMT_THREADS SIMT_INSTRUCTION_LIMIT SIMT_REPORT
failures=0

# judge SET TIMES HOW: at least 9 in 10 pairs must be ordered as on the GPU.
judge() {
    local modelled=$TEST_TMPDIR/$1.jsonl
    echo "$1, modelled on simt for h200 against measured:"
    "$run" --gpu=h200 --check=bounds "$calibrate" "$1" "$3" >"$modelled" || exit 1
    "$compare" "$2" "$modelled" --least=0.9 || failures=$((failures + 1))
    echo
}

judge fit "$4" --once
judge more "$5" --twice
[ "$failures" -eq 0 ]
