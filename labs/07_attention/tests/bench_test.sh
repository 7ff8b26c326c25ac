#!/bin/bash
# The bench from outside: one clear line for each bad command line, whole records of good runs.
# usage: bench_test.sh BENCH_TESTING_SH BENCH CHECK_RECORDS
set -u
# shellcheck source=common/bench/bench_testing.sh
. "$1"
enter "$2" "$3"

helps shape dtype causal step all quick
refuses_strangers
for shape in "" 512 1,2,3 "1,2,3," 1,2,3,4,5 1,2,3,x -1,2,3,4 +1,2,3,4 0,2,3,4 "1, 2,3,4" \
    99999999999999999999,1,1,1; do
    refuses "--shape wants four sizes B,NH,T,HS, each at least 1, not '$shape'" --shape="$shape"
done
for shape in 1,2,3,129 1048577,1,1,1 1,4097,1,1 1,1,1048577,1; do
    refuses "--shape $shape: B and T are at most 1048576, NH 4096, HS 128" --shape="$shape"
done
refuses "--dtype is 'fp32', 'fp16' or 'bf16', not 'int8'" --dtype int8
refuses_like "--step 'v99_magic': unknown step; choose one of v1" --step v99_magic
# More than any GPU holds.
refuses_like "needs [0-9]+ bytes of device memory, .* has [0-9]+" --shape 1048576,1024,1048576,128

# A shape: a record for each step. --all: on a busy machine simt may take long for a step, which is
# then left out.
accepts --quick --all --shape 2,3,17,24 --dtype bf16 --causal
shows_ladder 'b2 h3 s17 d24 bf16, causal'
recorded_each '"shape":"b2 h3 s17 d24 causal"'
recorded_each '"flops":88128' # 4*2*3*24*153
recorded_each '"dtype":"bf16"'

one_step 1 --quick --all --shape 1,2,9,8
fails_cleanly --quick --all --shape 1,2,9,8
finish
