#!/bin/bash
# The bench from outside: one clear line for each bad command line, whole records of good runs.
# usage: bench_test.sh BENCH_TESTING_SH BENCH CHECK_RECORDS
set -u
# shellcheck source=common/bench/bench_testing.sh
. "$1"
enter "$2" "$3"

helps shape op step all quick
refuses_strangers
for shape in "" 512 64,48 64,48,32,16 64,48,x -64,48,32 0,48,32 64,0,32 64,48,0 "64, 48,32" 1e3,1,1; do
    refuses "--shape wants three sizes M,N,K, each at least 1, not '$shape'" --shape="$shape"
done
for shape in 536870913,1,1 1,4194305,1 1,1,4194305; do
    refuses "--shape $shape: M is at most 536870912, N and K 4194304" --shape "$shape"
done
# More than any GPU holds, on simt also more than it does in a minute.
refuses_like "needs [0-9]+ bytes of device memory, .* has [0-9]+" --shape 536870912,4194304,1
refuses "--op is 'linear', 'linear_activation', 'linear_add', 'linear_add_norm', 'gelu_linear_add_norm', 'add_norm' or 'add_keep_norm', not 'softmax'" --op softmax
refuses_like "--step 'v99_magic': unknown step; choose one of v[0-9]" --step v99_magic

# One operation: a record for each step. --all: on a busy machine simt may take long for a step, which
# is then left out.
accepts --quick --all --op linear_add_norm --shape 40,36,24
shows_ladder '^linear\+add\+norm, M 40, N 36, K 24, (modelled|measured); the plain matmul: '
recorded_each '"shape":"40x36x24"'
recorded_each '"op":"linear_add_norm"'
grep -q '"launches"' "$WARPBOOK_RESULTS" || fail "launches are not recorded"

# All seven operations, one step alone.
one_step 7 --quick --all --shape 9,8,7
fails_cleanly --quick --all --op linear --shape 8,8,8
finish
