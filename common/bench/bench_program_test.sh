#!/bin/bash
# A bench from outside: one clear line for each bad command line, whole records of good runs.
# usage: bench_program_test.sh BENCH_TESTING_SH BENCH CHECK_RECORDS MAKE_TEST_CHECKPOINT
set -u
# shellcheck source=common/bench/bench_testing.sh
. "$1"
"$PWD/$4" "$TEST_TMPDIR" || exit 1
enter "$2" "$3"

helps threads shape checkpoint steps quick
refuses_strangers
for shape in "" 512 64,48 "64,48," ",48,32" 64,48,32,16 64,48,x a,b,c 64x48x32 -64,48,32 64,-48,32 \
    64,48,-32 +64,48,32 0,48,32 64,0,32 64,48,0 "64, 48,32" 64,48,32.5 64,48,1e3 \
    99999999999999999999,1,1 1,1,99999999999999999999; do
    refuses "--shape wants three sizes M,N,K, each at least 1, not '$shape'" --shape="$shape"
done
for shape in 65536,65536,65536 4294967296,4294967296,1 1,4294967296,4294967296 \
    18446744073709551615,2,2 16384,16384,16384 1,1,268435457; do
    refuses "--shape $shape is too much" --shape "$shape"
done
refuses "--threads 0: from 1 to 1024" --threads 0
refuses "--threads -2: from 1 to 1024" --threads=-2
refuses "--threads 1025: from 1 to 1024" --threads 1025
refuses "--threads wants a whole number, not 'two'" --threads two
refuses "--threads wants a whole number, not '1.5'" -t 1.5
refuses "--threads wants a whole number from -2147483648 to 2147483647, not '99999999999'" -t 99999999999
refuses "--steps 0: at least 1" --steps 0
refuses "absent.bin: cannot open" --checkpoint absent.bin
refuses "not a regular file" --checkpoint .
: >empty.bin
refuses "empty.bin" --checkpoint empty.bin
head -c 1000 tiny.bin >short.bin
refuses "short.bin" --checkpoint short.bin
(cat tiny.bin; echo more) >long.bin
refuses "long.bin" --checkpoint long.bin
refuses "short.bin" --checkpoint short.bin --shape 64,48,32

# A shape: a record for each step, and for OpenBLAS where there is one.
accepts --quick --shape 64,48,32 --threads 1
grep -q '^M 64, N 48, K 32, up to 1 thread$' out || fail "the table has no title: $(cat out)"
grep -q '^  v1_naive ' out || fail "the table has no v1_naive: $(cat out)"
grep -q 'Llama2' out && fail "--shape also decodes"
count=$(recorded '"shape":"64x48x32"')
[ "$count" -eq "$(grep -cE '^  (v[0-9]|OpenBLAS)' out)" ] || fail "$count records of: $(cat out)"
[ "$(recorded '"stage":"v1_naive"')" -eq 1 ] || fail "v1_naive is not recorded once"
[ "$(recorded '"flops":196608,')" -eq "$count" ] || fail "2*64*48*32 FLOPs are not recorded"
if grep -q '^  OpenBLAS' out; then
    peer=$(sed -nE 's/^  (OpenBLAS [0-9.]+ [^ ]+) .*/\1/p' out)
    [ "$(recorded "\"peer\":\"$peer\"")" -eq $((count - 1)) ] || fail "the peer '$peer' is not recorded"
fi

# OpenBLAS that may not choose for itself is told from one that may.
if grep -q '^  OpenBLAS' out; then
    (unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE && "$bench" --quick --shape 8,8,8 >out 2>err)
    grep 'note:' out | grep -qv 'does not know this CPU' && fail "a note without need: $(grep note: out)"
    OPENBLAS_CORETYPE=Nehalem "$bench" --quick --shape 8,8,8 >out 2>err
    kernels=$(sed -nE 's/^  OpenBLAS [0-9.]+ ([^ ]+) .*/\1/p' out)
    [ "$(grep -c "^note: OPENBLAS_CORETYPE makes OpenBLAS use its $kernels kernels; unset it" out)" -eq 1 ] ||
        fail "no note on OPENBLAS_CORETYPE: $(cat out)"
    (unset OPENBLAS_CORETYPE && OPENBLAS_L2_SIZE=512 "$bench" --quick --shape 8,8,8 >out 2>err)
    [ "$(grep -c '^note: .*OPENBLAS_L2_SIZE; unset it' out)" -eq 1 ] ||
        fail "no note on OPENBLAS_L2_SIZE: $(cat out)"
fi

# A checkpoint: decoders only, tokens per second recorded.
rm -f "$WARPBOOK_RESULTS"
accepts --checkpoint tiny.bin --steps 8 --threads 2
grep -q '^Llama2 decode, tiny.bin, 8 tokens' out || fail "nothing is decoded: $(cat out)"
grep -q 'matmul is [0-9.]*% of decoding' out || fail "no profile: $(cat out)"
grep -q '^M ' out && fail "--checkpoint also runs the ladder"
[ "$(recorded '"figure":"tokens_per_second"')" -ge 2 ] || fail "no tokens per second recorded"
[ "$(recorded '"stage":"plain"')" -eq 1 ] || fail "the plain decoder is not recorded"
accepts --checkpoint tiny.bin --steps 1000000 --threads 1
grep -q '^Llama2 decode, tiny.bin, 64 tokens' out || fail "--steps beyond the context: $(cat out)"

# Paths mean the folder that bazel run was called in.
mkdir -p elsewhere
(cd elsewhere && BUILD_WORKING_DIRECTORY=$TEST_TMPDIR "$bench" --checkpoint tiny.bin --steps 1 >../out 2>../err) ||
    fail "BUILD_WORKING_DIRECTORY is not used: $(cat err)"

# Records that cannot be written are an error.
WARPBOOK_RESULTS=$TEST_TMPDIR/tiny.bin/results.jsonl fails_in_one_line "unwritable records" --quick --shape 8,8,8
grep -q 'tiny.bin' err || fail "unwritable records: not named: $(cat err)"
finish
