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
for flag in shape op dtype step plot stability all quick; do
    grep -q -- "--$flag" out || fail "--help does not list --$flag"
done
accepts --stability
grep -qE '^ +10000 .*' out || fail "--stability: no row for a mean of 10000: $(cat out)"
[ -e "$WARPBOOK_RESULTS" ] && fail "--help or --stability left a record"

refuses "unknown flag '--shap'" --shap 1,2
refuses "unexpected argument 'more'" --quick more
for shape in "" 512 "64," ,48 64,48,32 64,x 64x48 -64,48 +64,48 0,48 64,0 "64, 48" 64,48.5 64,1e3 \
    99999999999999999999,1; do
    run --shape="$shape"
    [ "$code" -eq 1 ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] &&
        grep -qF -- "--shape wants two sizes ROWS,C, each at least 1, not '$shape'" err ||
        fail "--shape='$shape': exit status $code: $(cat err)"
done
for shape in 1,1073741825 1099511627777,1 18446744073709551615,2; do
    refuses "--shape $shape: C is at most 1073741824, all elements together 1099511627776" --shape "$shape"
done
# More than any GPU holds, on simt also more than it does in a minute.
refuses "needs [0-9]+ bytes of device memory, .* has [0-9]+|elements take simt very long" \
    --shape 1000000,1000000
refuses "--op is 'layernorm', 'rmsnorm' or 'softmax', not 'batchnorm'" --op batchnorm
refuses "--dtype is 'fp32', 'fp16' or 'bf16', not 'fp8'" --dtype fp8
refuses "--step v99_magic: there is v[0-9]" --step v99_magic

# A shape: a record for each step, which says whose time it is. --all: on a busy machine simt may take
# long for a step, which is then left out.
accepts --quick --all --shape 12,48 --op layernorm --dtype fp32 --plot roofline.svg
grep -qE '^(labs|solutions): (modelled for|measured on) ' out || fail "nobody says whose time: $(cat out)"
grep -qE '^layernorm fp32, 12 rows of 48, (modelled|measured)$' out || fail "no title: $(cat out)"
grep -qE 'WRONG' out && fail "a wrong step: $(cat out)"
steps=$(grep -cE '^  v[0-9]' out)
[ "$steps" -ge 1 ] || fail "the table has no step: $(cat out)"
"$check_records" "$WARPBOOK_RESULTS" >/dev/null || fail "the records are not whole"
[ "$(grep -cF '"shape":"12x48"' "$WARPBOOK_RESULTS")" -eq "$steps" ] || fail "not a record a step"
[ "$(grep -cF '"bytes":4608' "$WARPBOOK_RESULTS")" -eq "$steps" ] || fail "2*12*48*4 bytes are not recorded"
[ "$(grep -cF '"op":"layernorm"' "$WARPBOOK_RESULTS")" -eq "$steps" ] || fail "the operator is not recorded"
grep -q 'BERT' out && fail "--shape also runs BERT"
grep -q '</svg>' roofline.svg || fail "no picture"
for op in layernorm rmsnorm softmax; do
    accepts --quick --all --shape 5,33 --op $op --dtype fp16
    grep -q "^$op fp16, 5 rows of 33" out || fail "--op $op --dtype fp16: $(cat out)"
done
accepts --quick --all --shape 3,17
[ "$(grep -c ' 3 rows of 17' out)" -eq 5 ] || fail "not five tables: $(cat out)"

# One step alone.
name=$(sed -nE 's/^  (v[0-9][^ ]*) .*/\1/p' out | head -n 1)
accepts --quick --all --shape 8,8 --op softmax --dtype bf16 --step "$name"
[ "$(grep -cE '^  v[0-9]' out)" -eq 1 ] || fail "--step $name: $(cat out)"

# Records and pictures that cannot be written are an error.
: >file
WARPBOOK_RESULTS=$TEST_TMPDIR/file/results.jsonl run --quick --shape 8,8
[ "$code" -eq 1 ] && [ "$(wc -l <err)" -eq 1 ] || fail "unwritable records: $code: $(cat err)"
run --quick --shape 8,8 --plot file/x.svg
[ "$code" -eq 1 ] && [ "$(wc -l <err)" -eq 1 ] || fail "unwritable picture: $code: $(cat err)"

# The machine's lack of a GPU is one line: a device that does not exist.
if grep -q 'measured on' out; then
    CUDA_VISIBLE_DEVICES=99 run --quick --shape 8,8
    [ "$code" -eq 1 ] && [ "$(wc -l <err)" -eq 1 ] || fail "no GPU: $code: $(cat err)"
fi

[ "$failures" -eq 0 ] && echo "all checks passed"
exit $((failures > 0))
