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
for flag in shape op step all quick; do
    grep -q -- "--$flag" out || fail "--help does not list --$flag"
done
[ -e "$WARPBOOK_RESULTS" ] && fail "--help left a record"

refuses "unknown flag '--shap'" --shap 1,2,3
refuses "unexpected argument 'more'" --quick more
for shape in "" 512 64,48 64,48,32,16 64,48,x -64,48,32 0,48,32 64,0,32 64,48,0 "64, 48,32" 1e3,1,1; do
    run --shape="$shape"
    [ "$code" -eq 1 ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] &&
        grep -qF -- "--shape wants three sizes M,N,K, each at least 1, not '$shape'" err ||
        fail "--shape='$shape': exit status $code: $(cat err)"
done
for shape in 536870913,1,1 1,4194305,1 1,1,4194305; do
    refuses "--shape $shape: M is at most 536870912, N and K 4194304" --shape "$shape"
done
# More than any GPU holds, on simt also more than it does in a minute.
refuses "needs [0-9]+ bytes of device memory, .* has [0-9]+" --shape 536870912,4194304,1
refuses "--op softmax: there is linear, linear_activation" --op softmax
refuses "--step v99_magic: there is v[0-9]" --step v99_magic

# One operation: a record for each step, which says whose time it is.
accepts --quick --all --op linear_add_norm --shape 40,36,24
grep -qE '^(labs|solutions): (modelled for|measured on) ' out || fail "nobody says whose time: $(cat out)"
grep -qE '^linear\+add\+norm, M 40, N 36, K 24, (modelled|measured); the plain matmul: ' out || fail "no title: $(cat out)"
grep -q 'WRONG' out && fail "a wrong step: $(cat out)"
steps=$(grep -cE '^  v[0-9]' out)
[ "$steps" -ge 1 ] || fail "the table has no step: $(cat out)"
"$check_records" "$WARPBOOK_RESULTS" >/dev/null || fail "the records are not whole"
[ "$(grep -cF '"shape":"40x36x24"' "$WARPBOOK_RESULTS")" -eq "$steps" ] || fail "not a record a step"
[ "$(grep -cF '"op":"linear_add_norm"' "$WARPBOOK_RESULTS")" -eq "$steps" ] || fail "the operation is not recorded"
grep -q '"launches"' "$WARPBOOK_RESULTS" || fail "launches are not recorded"
grep -q 'BERT' out && fail "--shape also runs BERT"

# All operations, one step alone.
name=$(sed -nE 's/^  (v[0-9][^ ]*) .*/\1/p' out | head -n 1)
accepts --quick --all --shape 9,8,7 --step "$name"
[ "$(grep -cE '^  v[0-9]' out)" -eq 7 ] || fail "--step $name: $(cat out)"

# Records that cannot be written are an error.
: >file
WARPBOOK_RESULTS=$TEST_TMPDIR/file/results.jsonl run --quick --op linear --shape 8,8,8
[ "$code" -eq 1 ] && [ "$(wc -l <err)" -eq 1 ] || fail "unwritable records: $code: $(cat err)"

# The machine's lack of a GPU is one line: a device that does not exist.
if grep -q 'measured on' out; then
    CUDA_VISIBLE_DEVICES=99 run --quick --shape 8,8,8
    [ "$code" -eq 1 ] && [ "$(wc -l <err)" -eq 1 ] || fail "no GPU: $code: $(cat err)"
fi

[ "$failures" -eq 0 ] && echo "all checks passed"
exit $((failures > 0))
