#!/bin/bash
# A submission to lab 01 that uses more threads than it may must fail the timed test.
# usage: more_threads_test.sh EXPECT_VERDICT SPEEDUP_TEST
set -u
if [ "$(nproc)" -lt 2 ]; then
    echo "skipped: more threads than processors gain nothing, and there is one processor"
    exit 0
fi
taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')" bash "$1" fail \
    "your code kept [0-9.]+ processors busy in calls that may use 1 thread: what is required" \
    "$2" WRONG_MATMUL=more_threads GTEST_FILTER=speedup.kernel
