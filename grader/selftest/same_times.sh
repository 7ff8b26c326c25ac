#!/bin/bash
# Runs a baseline's recorder once more, with other inputs: its modelled times must be those that the
# build recorded. Other tokens take other rows of the embedding, which a cache notices: a ten-thousandth
# was seen (lab 07's model), and twice that is allowed.
# usage: same_times.sh RECORDER TIMES [CASE]; CASE: the one that runs, else all
set -u
again=$TEST_TMPDIR/times
if ! output=$(GTEST_FILTER=speedup.${3:-*} WARPBOOK_BASELINE_TIMES=$again WARPBOOK_SEED=2 "$1" 2>&1); then
    echo "$output"
    exit 1
fi
paste <(grep -E "^${3:-}" "$2") "$again" | awk -F '\t' '
    $1 != $4 || $2 != $5 || $3 <= 0 || $6 > $3 * 1.0002 || $6 < $3 * 0.9998 { wrong = 1 }
    { print $1 ": recorded " $3 ", again " $6 }
    END { exit wrong || NR == 0 }'
