#!/bin/bash
# A GPU lab's bench from outside, on simt or a GPU: one clear line for each bad command line, whole
# records of a good run.
# usage: gpu_bench_test.sh BENCH MAKE_TEST_CHECKPOINT CHECK_RECORDS STAGES ladder|decode
set -u
bench=$PWD/$1
check_records=$PWD/$3
stages=$4
parts=$5
"$PWD/$2" "$TEST_TMPDIR" || exit 1
cd "$TEST_TMPDIR" || exit 1
unset BUILD_WORKING_DIRECTORY BUILD_WORKSPACE_DIRECTORY
export WARPBOOK_RESULTS=$TEST_TMPDIR/results.jsonl WARPBOOK_COMMIT=test
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# run ARGS: leaves out, err and code.
run() {
    "$bench" "$@" >out 2>err </dev/null
    code=$?
}

# refuses TEXT ARGS: exits with 1, prints nothing, says TEXT in one line, records nothing.
refuses() {
    local text=$1
    shift
    run "$@"
    [ "$code" -eq 1 ] || fail "exit status $code, want 1: $*"
    [ -s out ] && fail "printed text: $*"
    [ "$(wc -l <err)" -eq 1 ] || fail "not one line: $* -> $(cat err)"
    grep -qF -- "$text" err || fail "want '$text': $* -> $(cat err)"
    [ -e "$WARPBOOK_RESULTS" ] && fail "left a record: $*"
}

run --help
[ "$code" -eq 0 ] && grep -q -- '--shape' out || fail "--help: $(cat out err)"
refuses "unknown flag '--shap'" --shap 15m
refuses "unexpected argument 'more'" more
refuses "--shape wants a value" --shape
for shape in "" 15 15M 7b 512,512,512 -1; do
    refuses "--shape is 15m, 110m or 1.1b, not '$shape'" --shape="$shape"
done
refuses "--threads 0: from 1 to 1024" --threads 0
refuses "--steps -1: at least 1, or 0" --steps=-1
refuses "--steps wants a whole number, not 'two'" --steps two
refuses "absent.bin: cannot open" --checkpoint absent.bin
: >empty.bin
refuses "empty.bin" --checkpoint empty.bin
head -c 1000 tiny.bin >short.bin
refuses "short.bin" --checkpoint short.bin

run --checkpoint tiny.bin --steps 3 --threads 1
[ "$code" -eq 0 ] || fail "exit status $code: $(cat err)"
[ -s err ] && fail "said on standard error: $(cat err)"
grep -q '^Llama2 decode, tiny.bin, 3 tokens' out || fail "nothing is decoded: $(cat out)"
"$check_records" "$WARPBOOK_RESULTS" >/dev/null || fail "the records are not whole"
count=$(grep -cF '"figure":"tokens_per_second"' "$WARPBOOK_RESULTS")
[ "$count" -eq "$stages" ] || fail "$count records of tokens per second, want $stages"
grep -qF '"figure":"bus_bytes_per_token"' "$WARPBOOK_RESULTS" || fail "no bytes are recorded"
if grep -q 'modelled for' out; then
    grep -q 'modelled, the GPU' out || fail "modelled times are not marked: $(cat out)"
    grep '"name":"simt:' "$WARPBOOK_RESULTS" | grep -qv '"modelled":true' && fail "a modelled record is not marked"
fi

# Less of everything; each step of a ladder is recorded.
rm -f "$WARPBOOK_RESULTS"
run --quick --steps 1 --threads 1
[ "$code" -eq 0 ] || fail "--quick: exit status $code: $(cat err)"
[ "$(grep -c '^Llama2 decode, 15M shape' out)" -eq 1 ] || fail "--quick decodes more than 15M or nothing: $(cat out)"
rows=$(grep -cE '^  v[0-9]' out)
[ "$([ "$rows" -gt 0 ] && echo ladder || echo decode)" = "$parts" ] || fail "a table of $rows steps: $(cat out)"
[ "$(grep -cF '"op":"matmul"' "$WARPBOOK_RESULTS")" -eq "$rows" ] || fail "not every step is recorded"
"$check_records" "$WARPBOOK_RESULTS" >/dev/null || fail "the records of --quick are not whole"

[ "$failures" -eq 0 ] && echo "all checks passed"
exit $((failures > 0))
