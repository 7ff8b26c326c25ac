#!/usr/bin/env bash
# Reads Bazel's build events and judges the tests they name.
# usage: verdicts.sh solutions|starters EVENTS.json
#
# With `solutions` every test must have passed. With `starters` every *_speedup
# must have failed by a failed expectation, not by a crash or a time-out, with a
# speed of at most half of what is required; 00_warmups must have failed in every
# exercise that it did not skip; and every other test must have passed.
#
# Prints one line per test that is not as it should be, or was so at a second try only
# (FLAKY, which counts as passed), then "PASSED FAILED" as two numbers.
# Bazel writes one event a line, in JSON without spaces.
set -u
mode=$1
events=$2

# "LABEL STATUS" of every finished test.
statuses() {
    sed -nE 's/^\{"id":\{"testSummary":\{"label":"([^"]+)".*"overallStatus":"([A-Z_]+)".*/\1 \2/p' \
        "$events" | sort -u
}

# report LABEL: the file of GoogleTest's own report.
report() {
    grep -F '"testResult":{"label":"'"$1"'"' "$events" |
        sed -nE 's/.*"name":"test\.xml","uri":"file:\/\/([^"]+)".*/\1/p' | head -n 1
}

# failed_by_expectation REPORT: GoogleTest itself reported failed cases; a crash leaves no such report.
failed_by_expectation() {
    [ -r "$1" ] && grep -E -m1 '<testsuites ' "$1" |
        grep -E ' failures="[1-9][0-9]*"' | grep -qE ' errors="0"'
}

# misses_by_far REPORT: nothing that varies from run to run makes up for a factor of two.
misses_by_far() {
    sed -nE 's/.* is too slow: (measured|modelled) ([0-9.]+)x, required ([0-9.]+)x.*/\2 \3/p' "$1" |
        awk '2 * $1 <= $2 { found = 1 } END { exit !found }'
}

# all_failed REPORT: no case passed; skipped ones say that the GPU cannot tell.
all_failed() {
    local totals tests failures skipped
    totals=$(grep -E -m1 '<testsuites ' "$1")
    tests=$(sed -E 's/.* tests="([0-9]+)".*/\1/' <<<"$totals")
    failures=$(sed -E 's/.* failures="([0-9]+)".*/\1/' <<<"$totals")
    skipped=$(grep -cE '<testcase [^>]*result="skipped"' "$1")
    [ "$tests" -eq $((failures + skipped)) ]
}

# wrong_warmups LABEL STATUS: what is wrong with the warm-ups' starters.
wrong_warmups() {
    local report
    report=$(report "$1")
    if [ "$2" != FAILED ]; then
        echo "$2, but no starter may be a solution"
    elif ! failed_by_expectation "$report"; then
        echo "did not run to its end"
    elif ! all_failed "$report"; then
        echo "an exercise is done in the starter"
    fi
}

# wrong LABEL STATUS: what is wrong with one test; nothing when it is as it should be.
wrong() {
    local report
    if [ "$mode" = starters ] && [[ $1 == *00_warmups ]]; then
        wrong_warmups "$1" "$2"
    elif [ "$mode" = starters ] && [[ $1 == *_speedup ]]; then
        if [ "$2" != FAILED ]; then
            echo "$2, but a starter must miss the required speedup"
            return
        fi
        report=$(report "$1")
        if ! failed_by_expectation "$report"; then
            echo "did not run to its end"
        elif ! misses_by_far "$report"; then
            echo "a starter must miss half of the required speedup"
        fi
    elif [ "$2" != PASSED ] && [ "$2" != FLAKY ]; then
        echo "$2"
    fi
}

passed=0
failed=0
seen=" "
while read -r label status; do
    trouble=$(wrong "$label" "$status")
    if [ -n "$trouble" ]; then
        echo "$label: $trouble"
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
        [ "$status" != FLAKY ] || echo "$label: passed at the second try only"
    fi
    seen+="${label##*_} "
done < <(statuses)
if [ "$mode" = starters ] && [[ $seen != *" parity "* || $seen != *" speedup "* ]]; then
    echo "//grader:all: holds no parity or no speedup test"
    failed=$((failed + 1))
fi
if [ "$passed" -eq 0 ] && [ "$failed" -eq 0 ]; then
    echo "no test has run"
    failed=1
fi
echo "$passed $failed"
