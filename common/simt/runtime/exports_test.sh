#!/bin/bash
# The emulator's library exports what NVIDIA's does, the same names, the same version; and
# the functions of common/simt/simt.h and control.h.
# usage: exports_test.sh OURS THEIRS
set -u
names() {
    nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }' | sort
}
names "$1" >"$TEST_TMPDIR/ours"
{
    names "$2"
    for name in exchange join split status submit; do
        echo simt_collective_$name@@libcudart.so.13
    done
    echo simt_control_attach@@libcudart.so.13
    echo simt_control_forget@@libcudart.so.13
    echo simt_control_library@@libcudart.so.13
    echo simt_control_program_calls@@libcudart.so.13
    echo simt_control_read_state@@libcudart.so.13
    echo simt_flush@@libcudart.so.13
    echo simt_gpu_key@@libcudart.so.13
    echo simt_name@@libcudart.so.13
    echo simt_read_limits@@libcudart.so.13
    echo simt_read_totals@@libcudart.so.13
    echo simt_take_longest@@libcudart.so.13
} | sort >"$TEST_TMPDIR/theirs"
[ "$(wc -l <"$TEST_TMPDIR/theirs")" -gt 300 ] || {
    echo "FAILED: $2 does not look like the CUDA runtime"
    exit 1
}
if ! diff "$TEST_TMPDIR/theirs" "$TEST_TMPDIR/ours"; then
    echo "FAILED: < is missing, > is too much"
    exit 1
fi
objdump -p "$1" | grep -q 'SONAME *libcudart.so.13$' || {
    echo "FAILED: wrong SONAME"
    exit 1
}
unwanted=$(objdump -p "$1" | awk '/NEEDED/ && $2 !~ /^(libc|libm|libpthread|ld-linux-x86-64)\.so/ { print $2 }')
[ -z "$unwanted" ] || {
    echo "FAILED: depends on $unwanted"
    exit 1
}
