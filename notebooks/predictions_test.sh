#!/bin/bash
# //notebooks:predictions on a small clone: what it prints, what it writes, what it refuses.
# usage: predictions_test.sh PREDICTIONS_TOOL LABS
#   LABS  the folder of the real handouts
set -u
tool=$PWD/$1
real=$PWD/$2
if ! command -v python3 >/dev/null; then
    echo "SKIP: python3 is not installed"
    exit 0
fi
work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/predictions.XXXXXX")
mkdir -p "$work/labs/02_gpu_matmul" "$work/notebooks/results" "$work/results"
export WARPBOOK_WORKSPACE=$work PYTHONDONTWRITEBYTECODE=1
unset WARPBOOK_RESULTS
handout=$work/labs/02_gpu_matmul/README.md

failed=0
fail() {
    echo "FAIL: $1"
    failed=1
}
# predictions ARGUMENTS...: output to $work/out and $work/err, status to $status
predictions() {
    python3 "$tool" "$@" >"$work/out" 2>"$work/err"
    status=$?
}
prints() { grep -qF -- "$1" "$work/out" || fail "no '$1' in: $(cat "$work/out" "$work/err")"; }
prints_not() { if grep -qF -- "$1" "$work/out"; then fail "'$1' in: $(cat "$work/out")"; fi; }
refuses() { # refuses LINE ARGUMENTS...
    predictions "${@:2}"
    if [ "$status" != 1 ] || [ "$(cat "$work/err")" != "predictions: $1" ] || [ -s "$work/out" ]; then
        fail "${*:2}: status $status: $(cat "$work/out" "$work/err")"
    fi
}
# row STAGE MS: a record of lab 02's bench
row() {
    printf '{"schema":1,"time":"2026-01-02T03:04:05Z","lab":"02_gpu_matmul","subject":"labs","stage":"%s","op":"matmul","shape":"1x5632x2048","dtype":"fp32","device":{"name":"simt:h200","kind":"gpu","modelled":true},"ms":{"median":%s}}\n' "$1" "$2"
}
table() { # table PREDICTION PREDICTION PREDICTION
    cat >"$handout" <<END
# Lab
## Predict first

| question | your prediction | measured or modelled |
|---|---|---|
| Sectors a load of \`weight\`: starter; if lanes read along k | $1 | |
| How many times as fast as the starter's is your best kernel there? | $2 | |
| Share of a token's time that goes into copies | $3 | |
END
}

table "" "" ""
predictions
prints "No predictions yet"
predictions 02
prints "3 questions have no prediction yet"
prints_not counted # the answer comes after the prediction

table "32; 8" "4x" ""
{ row v1_a 10.0 && row v2_b 2.0 && echo '{broken'; } >"$work/results/bench.jsonl"
predictions 2
prints "counted     32; 4 sectors  ratio 1.00; 2.00"
prints "modelled    5.00x  ratio 0.800  (your results, simt:h200)"
prints "1 question has no prediction yet"
grep -q "bench.jsonl:3: left out" "$work/err" || fail "the broken line is not named: $(cat "$work/err")"
predictions 02_gpu_matmul --all
prints "no record yet: bazel run //labs/02_gpu_matmul:bench"

before=$(wc -l <"$handout")
predictions 02 --write
prints "labs/02_gpu_matmul/README.md: 2 cells filled in"
grep -qF '| 32; 8 | 32; 4 sectors (counted) |' "$handout" || fail "no count in: $(cat "$handout")"
grep -qF '| 4x | 5.00x (modelled) |' "$handout" || fail "no result in: $(cat "$handout")"
grep -qF 'goes into copies |  | |' "$handout" || fail "a row without a prediction was changed: $(cat "$handout")"
[ "$(wc -l <"$handout")" = "$before" ] || fail "lines were added"
predictions 02 --write
prints "0 cells filled in" # what is noted stays

refuses "'99': unknown lab; choose one of 02_gpu_matmul" 99
refuses "unrecognized arguments: --best; --help shows what there is" --best
predictions --help
prints "your prediction over the result"

# Every count belongs to a question of the real handouts.
rm -r "$work/labs" && cp -rL "$real" "$work/labs"
predictions --all
counted=$(grep -c '^    counted' "$work/out")
known=$(cd "$(dirname "$tool")" && python3 -c 'from warpbook_results.counts import COUNTS; print(len(COUNTS))')
[ "$counted" = "$known" ] || fail "$counted of $known counts have a question in the handouts"
exit "$failed"
