#!/bin/bash
# The Gradescope report has the fields, the types and the words that its documentation names.
set -eu
python=$1
schema=$2
report=$3
run=$4
validate() {
    "$python" -W ignore -m jsonschema -i "$1" "$schema"
}
"$report" --from "$run" --format=gradescope --output "$TEST_TMPDIR/results.json"
validate "$TEST_TMPDIR/results.json"
# The schema can say no.
refuses() {
    sed "$1" "$TEST_TMPDIR/results.json" >"$TEST_TMPDIR/wrong.json"
    if cmp -s "$TEST_TMPDIR/results.json" "$TEST_TMPDIR/wrong.json"; then
        echo "'$1' changes nothing"
        exit 1
    fi
    if validate "$TEST_TMPDIR/wrong.json" 2>/dev/null >&2; then
        echo "accepted after '$1'"
        exit 1
    fi
}
refuses 's/"status":\(\s*\)"passed"/"status":\1"gold"/'
refuses 's/"visibility":\(\s*\)"visible"/"visibility":\1"public"/'
refuses 's/"max_score"/"points"/'
refuses 's/"score":\(\s*\)\([0-9][0-9]*\)/"score":\1"\2"/'
