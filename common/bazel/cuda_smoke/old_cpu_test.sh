#!/bin/bash
# On a CPU of 2008 a program linked with simt reports what the CPU lacks; on one of 2013 it runs.
# usage: old_cpu_test.sh PROGRAM
set -u
program=$1
wanted="simt: the CUDA emulator needs a CPU with AVX2, FMA and BMI2"

if ! command -v qemu-x86_64 >/dev/null; then
    echo "skipped: there is no qemu-x86_64 to emulate an old CPU (Debian: qemu-user)"
    exit 0
fi
# Captures both streams: nothing but the one line may be printed.
said=$(qemu-x86_64 -cpu Nehalem "$program" 2>&1)
code=$?
echo "$said"
if [ "$code" -ne 1 ] || [ "$(wc -l <<<"$said")" -ne 1 ] || [[ $said != "$wanted"* ]]; then
    echo "an old CPU: status $code, wanted 1 and one line: $wanted"
    exit 1
fi
if ! qemu-x86_64 -cpu Haswell "$program"; then
    echo "a CPU with x86-64-v3 is refused"
    exit 1
fi
