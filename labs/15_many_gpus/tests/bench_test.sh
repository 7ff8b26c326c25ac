#!/bin/bash
# The bench from outside: one clear line for each bad command line, whole records of a good run, whose
# sums and logits it checks itself, the persistent kernel's, too.
# usage: bench_test.sh BENCH_TESTING_SH BENCH CHECK_RECORDS
set -u
# shellcheck source=common/bench/bench_testing.sh
. "$1"
enter "$2" "$3"

helps ranks model sums quick
refuses "unknown flag '--shape'" --shape 1,2,3
refuses "--ranks wants a value" --ranks
refuses "--ranks 9: from 2 to 8" --ranks 9
refuses "--ranks 1: from 2 to 8" --ranks 1
refuses "--model is '1.1b' or '7b', not '13b'" --model 13b
accepts --quick
rows=$(grep -cE '^  v[0-9]' out)
[ "$rows" -ge 3 ] || fail "no steps: $(cat out)"
[ "$(recorded '"op":"decode"')" -ge 2 ] || fail "no tokens: $(cat results.jsonl)"
[ "$(recorded '"op":"all_reduce"')" -ge 2 ] || fail "no sums: $(cat results.jsonl)"
finish
