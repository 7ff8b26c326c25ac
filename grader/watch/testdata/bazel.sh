#!/bin/sh
# Stands in for Bazel: what labs/04_sgemm/sgemm.cu says decides how the build ends.
source=labs/04_sgemm/sgemm.cu
echo "$@" >>builds
if grep -q SYNTAX $source; then
    echo "$source(7): error: identifier \"tile\" is undefined"
    echo "      tile = 3;"
    echo "      ^"
    echo
    echo "1 error detected in the compilation of \"$source\"."
    echo "Target //grader:04_sgemm_parity failed to build"
    exit 1
fi
if grep -q ENDLESS $source; then
    echo $$ >pid
    sleep 1000 &
    echo $! >>pid
    touch running
    wait
fi
