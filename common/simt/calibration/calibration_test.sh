#!/bin/bash
# Runs the calibration kernels on simt as an H200: what it counts against what the GPU counted,
# and modelled against measured times; the kernels with uneven blocks also as an H100.
# usage: calibration_test.sh RUN COUNTED_PROGRAM COUNTED COMPARE TIMES MORE_TIMES CALIBRATE UNEVEN_H100 \
#            UNEVEN_H200 PRICED_H200
set -u
run=$1
program=$2
compare=$4
export COUNTED=$3 MODELLED=$TEST_TMPDIR
unset BUILD_WORKING_DIRECTORY LD_PRELOAD SIMT_THREADS SIMT_INSTRUCTION_LIMIT SIMT_REPORT
failures=0

# judge SET GPU TIMES LEAST CLOSE: at least this share of pairs must be ordered as on the GPU, and CLOSE
# kernels be within 1.5 times.
judge() {
    echo "$1, modelled on simt for $2 against measured:"
    "$compare" "$3" "$MODELLED/$1.jsonl" --least="$4" --close="$5" || failures=$((failures + 1))
    echo
}

"$run" --gpu=h200 --check=bounds "$program" || failures=$((failures + 1))
for gpu in h100 h200; do
    "$run" --gpu=$gpu --check=bounds "$7" uneven --twice >"$MODELLED/uneven_$gpu.jsonl" ||
        failures=$((failures + 1))
done
"$run" --gpu=h200 --check=bounds "$7" priced --twice >"$MODELLED/priced.jsonl" ||
    failures=$((failures + 1))
judge fit h200 "$5" 0.9 18
judge more h200 "$6" 0.9 21
judge uneven_h100 h100 "$8" 1 11
judge uneven_h200 h200 "$9" 1 11
judge priced h200 "${10}" 0.9 11
[ "$failures" -eq 0 ]
