#!/bin/bash
# A program linked with NVIDIA's runtime must fail with one clear line if the machine has no driver.
# If there is a driver, it must print the GPU's name, or say why the GPU cannot be used.
# usage: no_driver_test.sh PROGRAM
set -u
out=$("$1" 2>err)
code=$?
if [ "$code" -eq 0 ]; then
    echo "a GPU is here: $out"
    [ -n "$out" ] && [ ! -s err ]
    exit
fi
cat err
[ "$code" -eq 1 ] || { echo "FAILED: exit status $code, want 1"; exit 1; }
[ -z "$out" ] || { echo "FAILED: printed '$out'"; exit 1; }
[ "$(wc -l <err)" -eq 1 ] || { echo "FAILED: not one line"; exit 1; }
if ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'; then
    echo "skipped: there is a driver, so the message about a missing driver cannot appear"
    exit 0
fi
grep -q '^gpu_info: no NVIDIA driver here (libcuda.so.1 was not found); install the driver, or build with --config=simt to run without a GPU$' err ||
    { echo "FAILED: the line is not the one about a missing driver"; exit 1; }
