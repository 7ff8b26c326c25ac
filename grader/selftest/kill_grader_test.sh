#!/usr/bin/env bash
# Runs kill_grader on a right submission to lab 04, whose temporary files go to a folder of their own.
#   kill_grader_test.sh KILL_GRADER TEST COUNT
set -u
export WRONG_SGEMM=right GTEST_FILTER=parity.transposed_b:parity.plain_b
folder=$(mktemp -d "${TEST_TMPDIR:-/tmp}/kills.XXXXXX") || exit 1
"$PWD/$1" "$PWD/$2" "$3" "$folder"
code=$?
rmdir "$folder" || code=1
exit "$code"
