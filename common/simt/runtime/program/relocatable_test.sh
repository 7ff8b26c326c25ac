#!/bin/bash
# Programs that nvcc -rdc=true made of several files, and ones with NVIDIA's host libraries.
# usage: relocatable_test.sh RUN LINKED LAUNCHER INCOMPLETE CASE FAKE_LIBRARY
set -u
run=$PWD/$1
linked=$PWD/$2
launcher=$PWD/$3
incomplete=$PWD/$4
program=$PWD/$5
library=$PWD/$6
unset SIMT_CHECK SIMT_THREADS SIMT_REPORT SIMT_XRAY SIMT_GPU LD_PRELOAD
cd "$TEST_TMPDIR" || exit 1
failures=0

fail() {
    echo "FAILED: $*"
    sed 's/^/  out: /' out
    sed 's/^/  err: /' err
    failures=$((failures + 1))
}

says() {
    grep -qF -- "$1" err || fail "stderr does not say: $1"
}

for threads in 1 2 4; do
    "$run" --threads=$threads "$linked" >out 2>err
    # twice(t) + 5 + weights[t] + twice(10) or mine(10), the other file's + 103 + 1000
    [ "$(cat out)" = "main 11
1129 1152 1135 1158
maker 11
1240 1239 1238 1237
cudaSuccess" ] || fail "results of two files, with $threads threads"
done

"$run" "$linked" beyond >out 2>err
says "out of bounds: thread (0,0,0) of block (0,0,0) writes 4 bytes"
line=$(grep -n "// FAULT" "$TEST_SRCDIR/$TEST_WORKSPACE/common/simt/runtime/program/testdata/linked_maker.cu" | cut -d: -f1)
says "linked_maker.cu:$line"
grep -q cudaErrorIllegalAddress out || fail "no error is returned"

"$run" "$launcher" >out 2>err
says "simt: parent(int*) starts a kernel from a kernel at "
says "launcher.cu:9 (dynamic parallelism), which simt does not do: start it from the host"
[ "$(wc -l <err)" -eq 1 ] || fail "stderr is not one line"
grep -q cudaErrorNotSupported out || fail "no error is returned"

"$run" "$incomplete" >out 2>err
says "simt: missing(int): used in incomplete.cu, defined in no file"
[ "$(wc -l <err)" -eq 1 ] || fail "stderr is not one line"
grep -q cudaErrorInvalidPtx out || fail "no error is returned"

LD_PRELOAD=$library "$run" "$program" nothing >out 2>err
says "simt: the program was linked with cuRAND: NVIDIA's host libraries hold machine code and need the driver of a real GPU"
[ "$(wc -l <err)" -eq 1 ] || fail "stderr is not one line"

exit $((failures > 0))
