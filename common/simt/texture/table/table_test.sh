#!/bin/bash
# What `table` prints on simt is what an H100 printed, on any number of threads.
# usage: table_test.sh RUN TABLE COMPARE RECORD
set -u
unset SIMT_CHECK SIMT_THREADS SIMT_REPORT SIMT_XRAY SIMT_GPU
for threads in 1 2 4; do
    output=$TEST_TMPDIR/table$threads.txt
    "$1" --threads="$threads" "$2" >"$output" 2>"$TEST_TMPDIR/err" || {
        echo "FAILED: table ended with $?"
        tail "$TEST_TMPDIR/err"
        exit 1
    }
    if grep '^FAILED' "$output"; then
        exit 1
    fi
    "$3" "$4" "$output" || {
        echo "FAILED: not what an H100 prints, with $threads threads"
        exit 1
    }
done
# An address of a device process is nothing for a message.
grep -q '^simt: cudaCreateTextureObject: what it was given is no array, or one that was freed$' \
    "$TEST_TMPDIR/err" || {
    echo "FAILED: no line about a handle that is no array"
    exit 1
}
# A value that differs is seen.
sed '20s/3f800000/3f800001/' "$TEST_TMPDIR/table1.txt" >"$TEST_TMPDIR/changed.txt"
if "$3" "$4" "$TEST_TMPDIR/changed.txt" >"$TEST_TMPDIR/said"; then
    echo "FAILED: a changed value goes unseen"
    exit 1
fi
grep -q 'recorded 3f800000, now 3f800001' "$TEST_TMPDIR/said"
