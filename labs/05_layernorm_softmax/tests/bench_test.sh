#!/bin/bash
# The bench from outside: one clear line for each bad command line, whole records of good runs.
# usage: bench_test.sh BENCH_TESTING_SH BENCH CHECK_RECORDS
set -u
# shellcheck source=common/bench/bench_testing.sh
. "$1"
enter "$2" "$3"

helps shape op dtype step plot stability all quick
accepts --stability
grep -qE '^ +10000 .*' out || fail "--stability: no row for a mean of 10000: $(cat out)"
[ -e "$WARPBOOK_RESULTS" ] && fail "--stability left a record"

refuses_strangers
for shape in "" 512 "64," ,48 64,48,32 64,x 64x48 -64,48 +64,48 0,48 64,0 "64, 48" 64,48.5 64,1e3 \
    99999999999999999999,1; do
    refuses "--shape wants two sizes ROWS,C, each at least 1, not '$shape'" --shape="$shape"
done
for shape in 1,1073741825 1099511627777,1 18446744073709551615,2; do
    refuses "--shape $shape: C is at most 1073741824, all elements together 1099511627776" --shape "$shape"
done
# More than any GPU holds, on simt also more than it does in a minute.
refuses_like "needs [0-9]+ bytes of device memory, .* has [0-9]+|elements take simt very long" \
    --shape 1000000,1000000
refuses "--op is 'layernorm', 'rmsnorm' or 'softmax', not 'batchnorm'" --op batchnorm
refuses "--dtype is 'fp32', 'fp16' or 'bf16', not 'fp8'" --dtype fp8
refuses_like "--step 'v99_magic': unknown step; choose one of v[0-9]" --step v99_magic

# A shape: a record for each step. --all: on a busy machine simt may take long for a step, which is
# then left out.
accepts --quick --all --shape 12,48 --op layernorm --dtype fp32 --plot roofline.svg
shows_ladder '^layernorm fp32, 12 rows of 48, (modelled|measured)$'
recorded_each '"shape":"12x48"'
recorded_each '"bytes":4608' # 2*12*48*4
recorded_each '"op":"layernorm"'
grep -q '</svg>' roofline.svg || fail "no picture"
for op in layernorm rmsnorm softmax; do
    accepts --quick --all --shape 5,33 --op $op --dtype fp16
    grep -q "^$op fp16, 5 rows of 33" out || fail "--op $op --dtype fp16: $(cat out)"
done
accepts --quick --all --shape 3,17
[ "$(grep -c ' 3 rows of 17' out)" -eq 5 ] || fail "not five tables: $(cat out)"

one_step 1 --quick --all --shape 8,8 --op softmax --dtype bf16
fails_cleanly --quick --shape 8,8
fails_in_one_line "unwritable picture" --quick --shape 8,8 --plot file/x.svg
finish
