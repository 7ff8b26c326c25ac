#!/bin/bash
# The bench from outside: one clear line for each bad command line, whole records of good runs.
# usage: bench_test.sh BENCH CHECK_RECORDS
set -u
bench=$PWD/$1
check_records=$PWD/$2
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
    grep -qE -- "$text" err || fail "want '$text': $* -> $(cat err)"
    [ -e "$WARPBOOK_RESULTS" ] && fail "left a record: $*"
}

# accepts ARGS: exits with 0, says nothing on standard error.
accepts() {
    run "$@"
    [ "$code" -eq 0 ] || fail "exit status $code: $* -> $(cat err)"
    [ -s err ] && fail "said on standard error: $* -> $(cat err)"
}

accepts --help
for flag in shape dtype causal step all quick; do
    grep -q -- "--$flag" out || fail "--help does not list --$flag"
done

refuses "unknown flag '--shap'" --shap 1,2,3,4
refuses "unexpected argument 'more'" --quick more
for shape in 512 1,2,3 "1,2,3," 1,2,3,4,5 1,2,3,x -1,2,3,4 +1,2,3,4 0,2,3,4 "1, 2,3,4" 1,2,3,129 \
    99999999999999999999,1,1,1; do
    refuses "--shape is B,NH,T,HS, four numbers from 1 on, HS at most 128, not" "--shape=$shape"
done
refuses "--dtype is 'fp32', 'fp16' or 'bf16', not 'int8'" --dtype int8
refuses "no step 'v99_magic' in the ladder; there is 'v1" --step v99_magic
# More than any GPU holds.
refuses "--shape needs [0-9.]+ GB on the GPU, which has [0-9.]+" --shape 1048576,1024,1048576,128

# A shape: a record for each step, which says whose time it is.
accepts --quick --shape 2,3,17,24 --dtype bf16 --causal
grep -qE '^(labs|solutions): (modelled for|measured on) ' out || fail "nobody says whose time: $(cat out)"
grep -qF 'b2 h3 s17 d24 bf16, causal' out || fail "no title: $(cat out)"
grep -q 'FAILED' out && fail "a wrong step: $(cat out)"
steps=$(grep -cE '^  v[0-9]' out)
[ "$steps" -ge 1 ] || fail "the table has no step: $(cat out)"
"$check_records" "$WARPBOOK_RESULTS" >/dev/null || fail "the records are not whole"
[ "$(grep -cF '"shape":"b2 h3 s17 d24 causal"' "$WARPBOOK_RESULTS")" -eq "$steps" ] || fail "not a record a step"
[ "$(grep -cF '"flops":88128' "$WARPBOOK_RESULTS")" -eq "$steps" ] || fail "4*2*3*24*153 FLOPs are not recorded"
[ "$(grep -cF '"dtype":"bf16"' "$WARPBOOK_RESULTS")" -eq "$steps" ] || fail "the type is not recorded"
grep -q 'BERT' out && fail "--shape also runs BERT"

[ "$failures" -eq 0 ] && echo "all good"
exit "$((failures > 0))"
