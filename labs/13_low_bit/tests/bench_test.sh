#!/bin/bash
# The bench from outside: one clear line for each bad command line, whole records of good runs.
# usage: bench_test.sh BENCH_TESTING_SH BENCH CHECK_RECORDS
set -u
# shellcheck source=common/bench/bench_testing.sh
. "$1"
enter "$2" "$3"

helps shape weights step plot all quick why first
refuses_strangers
for shape in "" 1 1,48 "1,48," 1,48,32,16 1,48,x -1,48,32 0,48,32 1,48,0 1,48,1e3; do
    refuses "--shape wants three sizes M,N,K, each at least 1, not '$shape'" --shape="$shape"
done
refuses "--shape 17,48,32: M is at most 16" --shape 17,48,32
refuses_like "--shape 1,48,64: N and K are at most 268435456, and K is at least a group of 128" \
    --shape 1,48,64 --weights int4
refuses_like "needs [0-9]+ bytes of device memory, .* has [0-9]+|products take simt very long" \
    --shape 1,268435456,268435456
refuses "--weights is 'int8', 'int4', 'int4g32' or 'fp8', not 'int2'" --weights int2
refuses_like "--step 'v99_magic': unknown step; choose one of v[0-9]" --step v99_magic

# A shape: a record for each step.
accepts --quick --all --shape 2,48,256 --weights int4 --plot roofline.svg
shows_ladder '^M 2, N 48, K 256, int4 in groups of 128, (modelled|measured)'
recorded_each '"shape":"2x48x256"'
recorded_each '"flops":49152'
recorded_each '"bytes":7648' # 48*(128 + 2*3) + 2*(2*256 + 2*48)
recorded_each '"op":"low_bit_int4_128"'
grep -q '</svg>' roofline.svg || fail "no picture"
for weights in int8 int4g32 fp8; do
    rm -f results.jsonl
    accepts --quick --all --shape 1,33,65 --weights "$weights"
    recorded_each "\"dtype\":\"$weights\""
done
accepts --quick --first
[ "$(grep -c '^  step ' out)" -eq 1 ] || fail "--first: $(cat out)"

one_step 1 --quick --all --shape 1,8,8
fails_cleanly --quick --shape 1,8,8
finish
