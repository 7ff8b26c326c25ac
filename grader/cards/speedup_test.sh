#!/bin/bash
# On the GPU that $SIMT_GPU names a lab's solution must pass its speedup test, and the starter must
# miss every time that is required by a factor of two. usage: speedup_test.sh SOLUTION [STARTER]
#
# Without STARTER the solution's baseline is the starter: its time stands in the same record.
set -u
export WARPBOOK_SEED=1
readonly of_solution=$TEST_TMPDIR/solution.jsonl of_starter=$TEST_TMPDIR/starter.jsonl

# run PROGRAM RECORDS: keeps what it prints in $output and its status in $status.
run() {
    local start=$SECONDS
    output=$(WARPBOOK_GRADES=$2 "$1" 2>&1)
    status=$?
    echo "${1##*_}: $((SECONDS - start)) s"
}

# fail WHY: with what the last program printed.
fail() {
    echo "$output"
    echo "FAILED on $SIMT_GPU: $1"
    exit 1
}

# timed RECORDS: the lines of tests that compared times; a wrong result is never timed.
timed() {
    grep '"measure":"' "$1"
}

run "$1" "$of_solution"
[ "$status" -eq 0 ] || fail "the solution does not pass"
grep -E ' (required|allowed) ' <<<"$output"

if [ $# -gt 1 ]; then
    run "$2" "$of_starter"
    grep -q '"verdict":"end"' "$of_starter" || fail "the starter did not run to its end"
    [ "$(timed "$of_starter" | wc -l)" -eq "$(timed "$of_solution" | wc -l)" ] ||
        fail "the starter is wrong: a test has no time"
    readonly times=subject_ms
else
    cp "$of_solution" "$of_starter"
    readonly times=baseline_ms
fi
if grep -q 'needs two GPUs' <<<"$output"; then
    echo "the lab needs GPUs that reach each other, which are not of this kind"
    exit 0
fi
timed "$of_starter" | grep -q . || fail "no test compared times"

# The time that was needed over the one allowed, of each timed test. Modelled times of two workers
# differ by less than a thousandth.
timed "$of_starter" | awk -v times="$times" '
    function number(name) {
        match($0, "\"" name "\":[-+.eE0-9]+")
        return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3)
    }
    {
        match($0, /"measure":"[a-z_0-9]+/)
        measure = substr($0, RSTART + 11, RLENGTH - 11)
        # Launch and wait, and the rest of a model, do not count.
        match($0, /"steps":\[[-+.eE0-9]+/)
        pass = substr($0, RSTART + 9, RLENGTH - 9)
        own = number(times) - number("fixed_ms")
        missed = own / (number("baseline_ms") / pass - number("fixed_ms"))
        printf "starter, %s: misses what is required by a factor of %.2f\n", measure, missed
        near = near || missed < 1.999
    }
    END { exit near }' || fail "a starter must miss what is required by a factor of two"
