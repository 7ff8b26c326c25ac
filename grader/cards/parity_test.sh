#!/bin/bash
# A submission that asks for the GPU's architecture has other paths on other GPUs: its parity test
# must pass on the one that $SIMT_GPU names, too. usage: parity_test.sh PARITY SOURCE...
set -u
readonly parity=$1
shift

if ! grep -nE '__CUDA_ARCH__|ptxVersion|(\.|->)(major|code)\b' "$@" /dev/null; then
    echo "no path of this submission depends on the architecture"
    exit 0
fi
echo "these paths depend on the architecture; on $SIMT_GPU:"
unset XML_OUTPUT_FILE # the program's own report is no test of Bazel's
WARPBOOK_GRADES=$TEST_TMPDIR/grade.jsonl "$parity"
