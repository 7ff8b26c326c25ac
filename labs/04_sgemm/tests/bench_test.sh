#!/bin/bash
# The bench from outside: one clear line for each bad command line, whole records of good runs.
# usage: bench_test.sh BENCH_TESTING_SH BENCH CHECK_RECORDS
set -u
# shellcheck source=common/bench/bench_testing.sh
. "$1"
enter "$2" "$3"

helps shape form step plot all quick why first
refuses_strangers
for shape in "" 512 64,48 "64,48," ",48,32" 64,48,32,16 64,48,x 64x48x32 -64,48,32 +64,48,32 0,48,32 \
    64,0,32 64,48,0 "64, 48,32" 64,48,32.5 64,48,1e3 99999999999999999999,1,1; do
    refuses "--shape wants three sizes M,N,K, each at least 1, not '$shape'" --shape="$shape"
done
for shape in 536870913,1,1 1,536870913,1 1,1,536870913 18446744073709551615,2,2; do
    refuses "--shape $shape: a size is at most 536870912" --shape "$shape"
done
# More than any GPU holds, on simt also more than it does in a minute.
refuses_like "needs [0-9]+ bytes of device memory, .* has [0-9]+|products take simt very long" \
    --shape 536870912,536870912,1
refuses_like "needs [0-9]+ bytes of device memory, .* has [0-9]+" --shape 536870912,1,16
refuses "--form is 'plain' or 'transposed', not 'upright'" --form upright
refuses_like "--step 'v99_magic': unknown step; choose one of v[0-9]" --step v99_magic

# A shape: a record for each step. --all: on a busy machine simt may take long for a step, which is
# then left out.
accepts --quick --all --shape 64,48,32 --plot roofline.svg
shows_ladder '^M 64, N 48, K 32, B transposed, (modelled|measured)$'
recorded_each '"shape":"64x48x32"'
recorded_each '"flops":196608' # 2*64*48*32
recorded_each '"op":"sgemm_transposed"'
grep -q '</svg>' roofline.svg || fail "no picture"
accepts --quick --all --shape 33,17,5 --form plain
grep -q 'B plain' out || fail "--form plain: $(cat out)"

# What limits each kernel: below each step, and of a step named alone.
accepts --quick --all --shape 64,48,32 --why
rows=$(grep -c '^  v[0-9]' out)
reasons=$(grep -cE '^    why: .*: [0-9]+ blocks? of [0-9]+ threads on [0-9]+ of [0-9]+ multi.* warps resident' out)
{ [ "$rows" -gt 0 ] && [ "$rows" -eq "$reasons" ]; } || fail "$reasons reasons for $rows steps: $(cat out)"
accepts --quick --first
[ "$(grep -c '^  step ' out)" -eq 1 ] || fail "--first: $(cat out)"
grep -q '^    why: ' out && fail "a reason nobody asked for: $(cat out)"

one_step 1 --quick --all --shape 8,8,8
fails_cleanly --quick --shape 8,8,8
fails_in_one_line "unwritable picture" --quick --shape 8,8,8 --plot file/x.svg
finish
