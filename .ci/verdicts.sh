#!/usr/bin/env bash
# Reads Bazel's build events and judges the tests they name.
# usage: verdicts.sh solutions|starters EVENTS.json
#
# With `solutions` every test must have passed. With `starters` every *_speedup
# must have failed by a failed expectation, not by a crash or a time-out, and
# every other test must have passed.
#
# Prints one line per test that is not as it should be, then "PASSED FAILED" as
# two numbers. Bazel writes one event a line, in JSON without spaces.
set -u
mode=$1
events=$2

# "LABEL STATUS" of every finished test.
statuses() {
    sed -nE 's/^\{"id":\{"testSummary":\{"label":"([^"]+)".*"overallStatus":"([A-Z_]+)".*/\1 \2/p' \
        "$events" | sort -u
}

# failed_by_expectation LABEL: GoogleTest itself reported failed cases; a crash leaves no such report.
failed_by_expectation() {
    local report
    report=$(grep -F '"testResult":{"label":"'"$1"'"' "$events" |
        sed -nE 's/.*"name":"test\.xml","uri":"file:\/\/([^"]+)".*/\1/p' | head -n 1)
    [ -r "$report" ] && grep -E -m1 '<testsuites ' "$report" |
        grep -E ' failures="[1-9][0-9]*"' | grep -qE ' errors="0"'
}

# wrong LABEL STATUS: what is wrong with one test; nothing when it is as it should be.
wrong() {
    if [ "$mode" = starters ] && [[ $1 == *_speedup ]]; then
        if [ "$2" != FAILED ]; then
            echo "$2, but a starter must miss the required speedup"
        elif ! failed_by_expectation "$1"; then
            echo "did not run to its end"
        fi
    elif [ "$2" != PASSED ]; then
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
