#!/bin/bash
# Sums of tensor cores on simt: equal to those of an H100, bit for bit, but for mma of 8-bit floats, whose
# order on Hopper is not known, and for one product of subnormal numbers.
# usage: sums_test.sh RUN SUMS RECORDED
set -u
run=$1 sums=$2 recorded=$3
unset BUILD_WORKING_DIRECTORY LD_PRELOAD SIMT_THREADS SIMT_INSTRUCTION_LIMIT SIMT_REPORT
"$run" --gpu=h100 --check=full "$sums" >"$TEST_TMPDIR/printed" || exit 1
known='^(mma_e[45]m[23]_k32 |wgmma_tf32 subnormal )'
[ "$(cut -d' ' -f1-3 "$TEST_TMPDIR/printed")" = "$(cut -d' ' -f1-3 "$recorded")" ] || {
    echo "FAILED: not the products that an H100 computed"
    exit 1
}
grep -vxFf "$recorded" "$TEST_TMPDIR/printed" | grep -vE "$known" && {
    echo "FAILED: these differ from an H100's"
    exit 1
}
equal=$(grep -cxFf "$recorded" "$TEST_TMPDIR/printed")
echo "$equal of $(wc -l <"$recorded") equal to an H100's"
[ "$equal" -ge 298 ]
