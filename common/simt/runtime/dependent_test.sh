#!/bin/bash
# Programmatic dependent launches: what touches a primary's memory before it has waited is told, with
# both kernels and lines; what has waited, or need not, is not.
# usage: dependent_test.sh RUN PROGRAM
set -u
run=$PWD/$1
program=$PWD/$2
cd "$TEST_TMPDIR" || exit 1
unset BUILD_WORKING_DIRECTORY LD_PRELOAD SIMT_CHECK SIMT_THREADS SIMT_GPU SIMT_REPORT
failures=0

fail() {
    echo "FAILED: $*"
    sed 's/^/  out: /' out
    sed 's/^/  err: /' err
    failures=$((failures + 1))
}

# finds CASE TEXT...: the case is stopped, and all the texts are said.
finds() {
    local name=$1
    shift
    "$run" "$program" "$name" >out 2>err
    [ $? -eq 3 ] || fail "$name: exit status is not 3"
    grep -qF "dependent launch: thread" err || fail "$name: not told"
    for text in "$@"; do
        grep -qF -- "$text" err || fail "$name: stderr does not say: $text"
    done
}

# passes CASE: nothing is said.
passes() {
    "$run" "$program" "$1" >out 2>err || fail "$1: exit status is not 0"
    [ ! -s err ] || fail "$1: stderr is not empty"
}

finds reads "reads 4 bytes at 0x" "that kernel produce(int const*, int*, int) before it writes at" \
    "dependent.cu:23" "in kernel never_waits(int const*, int*) at" "dependent.cu:39" \
    "hint: call cudaGridDependencySynchronize()"
finds overwrites "writes 4 bytes" "before it reads"
finds writes_the_same "writes 4 bytes" "before it writes at"
finds waits_late "waits_late(int const*, int*)"
finds one_block_waits "of block (1,0,0) reads"
finds no_barrier "thread (32,0,0)"
finds adds_to_written "updates 4 bytes"
finds reads_sum "before it writes at" "dependent.cu:21"
finds early_bulk_copy "thread (0,0,0) of block (0,0,0) reads 16 bytes"
finds not_waited_between "in kernel waits(int const*, int*)" "that kernel produce" \
    "a kernel between the two has not waited"
finds second_of_two "that kernel waits(int const*, int*) before it writes"
for case in waits thread_waits prologue cluster_waits bulk_copy both_read both_add ordinary \
    host_waits set_between waited_between kernel_between; do
    passes $case
done
for check in bounds full,-streams; do
    SIMT_CHECK=$check "$run" "$program" reads >out 2>err || fail "reads with $check: not 0"
done
[ "$failures" -eq 0 ]
