#!/bin/bash
# The bench from outside: one clear line for each bad command line, whole records of good runs.
# usage: bench_test.sh BENCH_TESTING_SH BENCH CHECK_RECORDS
set -u
# shellcheck source=common/bench/bench_testing.sh
. "$1"
enter "$2" "$3"

helps op shape model window step all quick
refuses_strangers
refuses "--shape wants --op" --shape 8,8
refuses "--op is 'attention' or 'add_norms', not 'softmax'" --op softmax
refuses "--model is '70m', '160m', '2.8b', '6.9b' or 'llama2-7b', not '13b'" --model 13b
refuses "--window -1: from 1 to 100000, or 0" --window -1
refuses "--op and --shape are an operator's; --model and --window are a model's" --op attention --window 8
refuses_like "--shape of --op add_norms is C,N: C up to [0-9]+, 1 or 2 norms" --op add_norms --shape 64,3
for shape in 4,1,1,8 16,3,2,8 16,2,2,257 70000,1,1,8; do
    refuses_like "--shape of --op attention is ROWS,NH,KVH,HS: .*" --op attention --shape "$shape"
done
refuses_like "--step 'v99_magic': unknown step; choose one of v[0-9]" --step v99_magic

# A shape: a record for each step.
accepts --quick --all --op attention --shape 9,2,1,24
shows_ladder '^endless_attention bf16, 4 sinks and 5, 2 heads of 24, 1 key heads, (modelled|measured)$'
recorded_each '"op":"endless_attention"'
recorded_each '"bytes":864' # 2*2*9*24
rm -f results.jsonl
accepts --quick --all --op add_norms --shape 100,1
shows_ladder '^endless_add_norms fp32, C100, 1 LayerNorm, '
recorded_each '"bytes":2800' # 4*(4+3)*100
rm -f results.jsonl

# Time per token: four records for each step.
accepts --quick --window 6
rows=$(grep -cE '^  v[0-9]' out)
[ "$rows" -ge 1 ] || fail "no steps: $(cat out)"
[ "$(recorded '"op":"endless_token"')" -eq $((3 * rows)) ] || fail "not three records of $rows steps"
[ "$(recorded '"op":"token_launched_singly"')" -eq "$rows" ] || fail "not one record of $rows steps"
grep -q 'position 100000' results.jsonl || fail "no late position: $(cat results.jsonl)"
fails_cleanly --quick --op add_norms --shape 64,2
finish
