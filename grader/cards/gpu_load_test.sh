#!/bin/bash
# Each load launches something, and a wrong command line is told.
set -u
for kind in memory arithmetic tensor; do
    output=$("$1" "$kind" 0 2>&1) || { echo "FAILED: $kind: $output" && exit 1; }
    [ "$output" = "loading the GPU: $kind
1 launches" ] || { echo "FAILED: $kind: $output" && exit 1; }
done
for arguments in "" "memory" "heat 1" "memory x" "memory -1"; do
    # shellcheck disable=SC2086 # words
    output=$("$1" $arguments 2>&1) && echo "FAILED: '$arguments' is taken" && exit 1
    [ "$output" = "usage: gpu_load memory|arithmetic|tensor SECONDS" ] ||
        { echo "FAILED: '$arguments': $output" && exit 1; }
done
