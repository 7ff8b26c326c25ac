#!/bin/bash
# The bench from outside: one clear line for each bad command line, whole records of good runs.
# usage: bench_test.sh BENCH_TESTING_SH BENCH CHECK_RECORDS
set -u
# shellcheck source=common/bench/bench_testing.sh
. "$1"
enter "$2" "$3"

helps op shape dtype step model batch-size max-length kernels launches all quick
refuses_strangers
refuses "--shape wants --op" --shape 8,8
for shape in "" 512 "64," ,48 64,48,32 64,x -64,48 0,48 64,0 "64, 48" 64,16385 16777217,8 \
    99999999999999999999,1; do
    refuses "--shape of --op layernorm is ROWS,C, numbers from 1 on, ROWS up to 16777216, C up to 16384; not '$shape'" \
        --op layernorm --shape="$shape"
done
for shape in 1,2,3 1,2,3,12 1,2,3,136 1,0,3,8 5000,1,1,8; do
    refuses "--shape of --op attention is B,NH,T,HS, numbers from 1 on, B up to 4096, NH up to 1024, T up to 4096, HS a multiple of 8 up to 128; not '$shape'" \
        --op attention --shape="$shape"
done
refuses "--shape of --op adamw is PARAMETERS, numbers from 1 on, up to 1099511627776; not '1,2'" \
    --op adamw --shape 1,2
# More than any GPU holds, or than simt does.
refuses_like "--shape needs [0-9.]+ GB on the GPU, which has [0-9.]+" --op adamw --shape 1099511627776
refuses "--op is 'layernorm', 'attention' or 'adamw', not 'softmax'" --op softmax
refuses "--dtype is 'fp32' or 'bf16', not 'fp16'" --dtype fp16
refuses "--batch-size 1025: from 1 to 1024, or 0" --batch-size 1025
refuses "--max-length -1: from 1 to 4096, or 0" --max-length -1
refuses "--kernels 1001: from 1 to 1000, or 0" --kernels 1001
for words in --model "--batch-size 2" "--max-length 8" "--kernels 3"; do
    # shellcheck disable=SC2086
    refuses "--op and --shape are a function's; --model, --batch-size, --max-length and --kernels are training steps'" \
        $words --op adamw
done
refuses "--launches goes with --kernels" --launches out.csv
refuses_like "--step 'v99_magic': unknown step; choose one of v[0-9]" --step v99_magic

# A shape: a record for each step. --all: on a busy machine simt may take long for a step, which is
# then left out.
accepts --quick --all --op layernorm --shape 12,48 --dtype bf16
shows_ladder '^layernorm_backward bf16, 12x48, (modelled|measured)$'
recorded_each '"shape":"12x48"'
recorded_each '"bytes":4512' # 3*12*48*2 + 8*12 + 20*48
recorded_each '"op":"layernorm_backward"'
rm -f results.jsonl
accepts --quick --all --op attention --shape 2,3,17,24 --dtype bf16
shows_ladder '^attention_backward bf16, b2 h3 s17 d24, '
recorded_each '"flops":416160' # 10*2*3*24*17*17
rm -f results.jsonl
accepts --quick --all --op adamw --shape 5000
[ "$(grep -c '^adamw .*, 5000 parameters' out)" -eq 2 ] || fail "not two tables: $(cat out)"
recorded_each '"shape":"5000 parameters"'
rm -f results.jsonl

one_step 2 --quick --all --op adamw --shape 999
rm -f results.jsonl

# Training steps alone: a row and two records for each step, with the type that was asked for.
accepts --quick --model --dtype bf16 --batch-size 3 --max-length 8
[ "$(grep -c '^training step, ' out)" -eq 1 ] || fail "not one table: $(cat out)"
grep -qE '^training step, BERT C[0-9]+ L[0-9]+, 3x8 tokens, bf16: .*, (modelled|measured)$' out ||
    fail "not the batch that was asked for: $(cat out)"
grep -q '_backward' out && fail "--model also runs the ladder"
recorded_each '"op":"training_step"'
recorded_each '"op":"training_launches"'
[ "$(recorded '"dtype":"bf16"')" -eq "$((2 * $(step_rows)))" ] || fail "not all records say bf16"
if grep -qE '^(labs|solutions): modelled' out; then
    grep -qF 'the 0.0328 M weights' out || fail "not 4*64*64 + 2*64*128 weights: $(cat out)"
    recorded_each '"flops":4866048' # 6*32768*24 + 12*3*8*8*64
fi
rm -f results.jsonl

# --kernels N: the last step's N slowest, and one row for all others, which add up to what was counted.
accepts --quick --dtype fp32 --step last --kernels 3 --max-length 8 --launches list.csv
[ "$(step_rows)" -eq 1 ] || fail "--step last: $(cat out)"
kernels=$(sed -nE '/^launches of a step, v[0-9]/,$s/^ +([0-9]+) +[0-9.]+ +[0-9.]+%  .*/\1/p' out)
[ "$(wc -w <<<"$kernels")" -eq 4 ] || fail "not three kernels and all others: $(cat out)"
launches=$(sed -nE 's/.*"figure":"launches_per_step","figure_value":([0-9]+).*/\1/p' results.jsonl)
sum=0
for count in $kernels; do sum=$((sum + count)); done
[ "$(wc -l <list.csv)" -eq $((launches + 1)) ] || fail "--launches: $(head list.csv)"
[ "$sum" = "$launches" ] || fail "$sum launches in the table, $launches in the record: $(cat out)"
rm -f results.jsonl

# All of it: the tables, and training steps.
accepts --quick
[ "$(grep -c '^training step, BERT ' out)" -ge 2 ] || fail "no training steps: $(cat out)"
[ "$(recorded '"op":"training_step"')" -ge 2 ] || fail "training steps are not recorded"
[ "$(recorded '"figure":"tokens_per_second"')" -ge 2 ] || fail "nor are their tokens"
fails_cleanly --quick --op adamw --shape 8
finish
