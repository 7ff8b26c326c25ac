#!/bin/bash
# The bench from outside, on simt or a GPU.
# usage: bench_test.sh PROGRAMS_SH BENCH CHECK_RECORDS
set -u
# shellcheck source=common/testing/programs.sh
. "$1"
bench=$PWD/$2
check_records=$PWD/$3
cd "$TEST_TMPDIR" || exit 1
unset BUILD_WORKING_DIRECTORY BUILD_WORKSPACE_DIRECTORY
export WARPBOOK_RESULTS=$TEST_TMPDIR/results.jsonl WARPBOOK_COMMIT=test
: >in

accepts "$bench" --help
for flag in stage shape dtype batch-size max-length threads quick seconds lengths; do
    says "--$flag" out
done
refuses "unknown flag '--colour'" "$bench" --colour
refuses "unexpected argument 'more'" "$bench" more
refuses "--stage '99_magic': unknown stage; choose one of 01_cpu_matmul, 02_" "$bench" --stage 99_magic
refuses "--shape is 'tiny' or 'base', not 'huge'" "$bench" --shape huge
refuses "--batch-size 33: from 1 to 32, or 0" "$bench" -b 33
refuses "--max-length 2: at least 3, or 0" "$bench" -l 2
refuses "--max-length 129: the model has 128 positions" "$bench" --shape tiny --max_length 129
refuses "--threads 0: from 1 to 1024" "$bench" -t 0
refuses "--seconds 0: from 1 to 100000" "$bench" --seconds 0
refuses "--dtype is 'fp32', 'fp16' or 'bf16', not 'int8'" "$bench" --dtype int8
run "$bench" --shape tiny --dtype bf16 --stage 07_attention
{ [ "$code" -eq 1 ] && [ "$(wc -l <err)" -eq 1 ]; } || fail "fp32 alone: $code: $(cat err)"
says "--dtype bf16: it computes in fp32 only; stages with bf16: " err
accepts "$bench" --lengths
[ "$(wc -l <out)" -eq 32 ] || fail "not 32 lengths: $(cat out)"
awk '$1 + 0 < 3 { exit 1 }' out || fail "not lengths: $(cat out)"
[ -e "$WARPBOOK_RESULTS" ] && fail "a refused run left a record"

# Every stage, a record a layout; logits agree, or the bench would have failed.
accepts "$bench" --shape tiny -b 2 -l 16
stages=$(grep -c '^stage .* in fp32' out)
[ "$stages" -ge 8 ] || fail "only $stages stages: $(cat out)"
"$check_records" "$WARPBOOK_RESULTS" >/dev/null || fail "the records are not whole"
for op in bert_dense bert_padded bert_packed; do
    [ "$(grep -F '"dtype":"fp32"' "$WARPBOOK_RESULTS" | grep -cF "\"op\":\"$op\"")" -eq "$stages" ] || fail "not a record of $op a stage"
done
# The summary: a row a stage, the launches of a layer, and what logits differ by.
says "one model through the stages: 2 texts of 16 tokens" out
[ "$(grep -cE '^  0[0-9]_[a-z_]+ +fp32 +[0-9.]+ +[0-9.]+ +[0-9.]+ ' out)" -eq "$stages" ] ||
    fail "not a row a stage: $(cat out)"
grep -qE '^  03_resident_weights +fp32 .* 14 +[0-9.]+x ' out || fail "not 14 launches: $(cat out)"
grep -qE '^  01_cpu_matmul +fp32 .* [0-9.]+e-[0-9]+$' out || fail "logits are not compared: $(cat out)"
says "02_gpu_matmul: launches are not counted: it copies and waits" out
says '"shape":"BERT C64 L2, 2x16 tokens"' "$WARPBOOK_RESULTS"
says '"figure":"samples_per_second"' "$WARPBOOK_RESULTS"
grep -F '"stage":"03_resident_weights"' "$WARPBOOK_RESULTS" | grep -F '"op":"bert_launches"' |
    grep -qE '"figure":"launches_per_layer","figure_value":14(\.0*)?[,}]' || fail "launches are not recorded"
if grep -q 'modelled for' out; then
    grep '"name":"simt:' "$WARPBOOK_RESULTS" | grep -qv '"modelled":true' && fail "a modelled record is not marked"
    grep -q '^stage 04_sgemm.*, modelled$' out || fail "modelled times are not marked: $(cat out)"
fi
rm "$WARPBOOK_RESULTS"
accepts "$bench" --quick --shape tiny --stage 01_cpu_matmul -l 16
[ "$(grep -c '^stage ' out)" -eq 1 ] || fail "more than one stage: $(cat out)"
[ "$(wc -l <"$WARPBOOK_RESULTS")" -eq 6 ] || fail "not two batches in three layouts"
: >file
WARPBOOK_RESULTS=$TEST_TMPDIR/file/results.jsonl run "$bench" --stage 01_cpu_matmul --shape tiny -b 1 -l 8
{ [ "$code" -eq 1 ] && [ "$(wc -l <err)" -eq 1 ]; } || fail "unwritable records: $code: $(cat err)"
finish
