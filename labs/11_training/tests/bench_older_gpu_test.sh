#!/bin/bash
# The bench on a GPU without bf16, which simt has: training steps in fp32 alone, and the reason.
# usage: bench_older_gpu_test.sh BENCH_TESTING_SH BENCH CHECK_RECORDS
set -u
# shellcheck source=common/bench/bench_testing.sh
. "$1"
enter "$2" "$3"

export SIMT_GPU=t4
accepts --quick --step last --max-length 8
grep -qF 'which needs code for compute capability 8.0: this GPU runs code for 7.5' out || fail "no reason: $(cat out)"
[ "$(step_rows)" -eq 1 ] || fail "not in fp32 alone: $(cat out)"
fails_in_one_line "bf16 on a GPU without it" --quick --dtype bf16 --step last --max-length 8
finish
