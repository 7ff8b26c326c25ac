#!/bin/bash
# The bench from outside: one clear line for each bad command line, whole records of good runs.
# usage: bench_test.sh BENCH_TESTING_SH BENCH CHECK_RECORDS
set -u
# shellcheck source=common/bench/bench_testing.sh
. "$1"
enter "$2" "$3"

helps shape form step plot all quick why first
refuses_strangers
for shape in "" 512 64,48 "64,48," 64,48,32,16 64,48,x -64,48,32 0,48,32 64,48,0 64,48,1e3; do
    refuses "--shape wants three sizes M,N,K, each at least 1, not '$shape'" --shape="$shape"
done
for shape in 268435457,1,1 1,268435457,1 1,1,268435457; do
    refuses "--shape $shape: a size is at most 268435456" --shape "$shape"
done
refuses_like "needs [0-9]+ bytes of device memory, .* has [0-9]+|products take simt very long" \
    --shape 268435456,268435456,1
refuses "--form is 'plain', 'bias', 'gelu' or 'residual', not 'upright'" --form upright
refuses_like "--step 'v99_magic': unknown step; choose one of v[0-9]" --step v99_magic

# A shape: a record for each step.
accepts --quick --all --shape 64,48,32 --plot roofline.svg
shows_ladder '^M 64, N 48, K 32, bf16, (modelled|measured)$'
recorded_each '"shape":"64x48x32"'
recorded_each '"flops":196608' # 2*64*48*32
recorded_each '"op":"gemm16_plain"'
recorded_each '"dtype":"bf16"'
grep -q '</svg>' roofline.svg || fail "no picture"
for form in bias gelu residual; do
    rm -f results.jsonl
    accepts --quick --all --shape 33,17,5 --form "$form"
    recorded_each "\"op\":\"gemm16_$form\""
done
accepts --quick --first
[ "$(grep -c '^  step ' out)" -eq 1 ] || fail "--first: $(cat out)"

one_step 1 --quick --all --shape 8,8,8
fails_cleanly --quick --shape 8,8,8
fails_in_one_line "unwritable picture" --quick --shape 8,8,8 --plot file/x.svg
finish
