#!/bin/bash
# Random products with a sparse A, and which elements each nibble of metadata moves, on simt: equal to
# what an H100 printed.
# usage: sparse_test.sh RUN SPARSE RECORDED
set -u
run=$1 sparse=$2 recorded=$3
unset BUILD_WORKING_DIRECTORY LD_PRELOAD SIMT_THREADS SIMT_INSTRUCTION_LIMIT SIMT_REPORT
{
    "$run" --gpu=h100 --check=full "$sparse" random
    "$run" --gpu=h100 --check=bounds "$sparse" layout s8_k32_1 | cksum
    "$run" --gpu=h100 --check=bounds "$sparse" layout wgmma_f16_1 | cksum
} >"$TEST_TMPDIR/printed" || exit 1
diff "$recorded" "$TEST_TMPDIR/printed" || {
    echo "FAILED: lines that begin with < are an H100's"
    exit 1
}
