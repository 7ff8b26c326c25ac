#!/bin/bash
# What a program prints is what a file holds: same_test.sh PROGRAM FILE [ARGUMENT...]
set -eu
"$1" "${@:3}" >"$TEST_TMPDIR/printed"
if ! diff -u "$2" "$TEST_TMPDIR/printed"; then
    echo "$2 is not what $1 ${*:3} prints: write that to it"
    exit 1
fi
