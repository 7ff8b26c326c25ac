#!/bin/bash
# The JUnit report has the elements, the order and the attributes that common viewers ask for.
set -eu
if ! command -v xmllint >/dev/null; then
    echo "skipped: xmllint is not installed (./setup.sh --dev)"
    exit 0
fi
schema=$1
report=$2
run=$3
"$report" --from "$run" --format=junit --output "$TEST_TMPDIR/junit.xml"
xmllint --noout --schema "$schema" "$TEST_TMPDIR/junit.xml"
# The schema can say no.
sed 's/ hostname="localhost"//' "$TEST_TMPDIR/junit.xml" >"$TEST_TMPDIR/wrong.xml"
if xmllint --noout --schema "$schema" "$TEST_TMPDIR/wrong.xml" 2>/dev/null; then
    echo "a suite without a host was accepted"
    exit 1
fi
# The page is well-formed apart from what HTML leaves open, and asks for nothing from outside.
"$report" --from "$run" --format=html --output "$TEST_TMPDIR/report.html"
if grep -qE '<script|https?://|@import|url\(' "$TEST_TMPDIR/report.html"; then
    echo "the page needs more than itself"
    exit 1
fi
grep -q 'prefers-color-scheme:dark' "$TEST_TMPDIR/report.html"
