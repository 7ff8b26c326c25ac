#!/bin/bash
# The bench from outside, on simt or a GPU.
# usage: bench_test.sh BENCH_TESTING_SH BENCH CHECK_RECORDS
set -u
# shellcheck source=common/bench/bench_testing.sh
. "$1"
enter "$2" "$3"

# tokens_per_second STAGE: of its first decoding row.
tokens_per_second() {
    grep -F "\"stage\":\"$1\"" "$WARPBOOK_RESULTS" | grep -F '"op":"llama2_decode"' |
        sed -nE 's/.*"figure":"tokens_per_second","figure_value":([0-9.e+]+).*/\1/p' | head -n 1
}

# slower STAGE STAGE: the first decodes fewer tokens a second.
slower() {
    local first second
    first=$(tokens_per_second "$1")
    second=$(tokens_per_second "$2")
    awk -v a="$first" -v b="$second" 'BEGIN { exit !(a > 0 && a < b) }' ||
        fail "$1 decodes $first tokens a second, $2 $second"
}

# figure NAME: the value of the record with this figure.
figure() {
    sed -nE "s/.*\"figure\":\"$1\",\"figure_value\":([-0-9.e+]+).*/\1/p" "$WARPBOOK_RESULTS"
}

helps stage shape checkpoint dtype prompt context steps threads quick
refuses_strangers
refuses "--shape is 260k, 15m, 110m, 1.1b or 7b, not '13b'" --shape 13b
refuses "--dtype is 'fp32', 'fp16' or 'bf16', not 'int8'" --dtype int8
refuses "--stage '99': unknown stage; choose one of 01_cpu_matmul, 02_" --stage 99
refuses "--steps -1: at least 1, or 0" --steps=-1
refuses "--context -5: at least 1, or 0" --context=-5
refuses "--prompt -2: at least 1, or 0" --prompt=-2
refuses "--threads 0: from 1 to 1024" --threads 0
refuses "--shape or --checkpoint, not both" --shape 15m --checkpoint tiny.bin
refuses "absent.bin: cannot open" --checkpoint absent.bin
: >empty.bin
refuses "empty.bin" --checkpoint empty.bin
fails_in_one_line "a long prompt" --shape 260k --prompt 513
grep -qF "a prompt of 513 tokens" err || fail "the prompt is not named: $(cat err)"
fails_in_one_line "a long context" --shape 260k --context 510 --steps 2
grep -qF "3 after a context of 510: the model has 512 positions" err || fail "not said: $(cat err)"
fails_in_one_line "no 16 bits" --shape 260k --dtype bf16 --stage 03
grep -qF "stage 03_resident_weights computes in fp32 alone, not in bf16" err || fail "$(cat err)"
[ -e "$WARPBOOK_RESULTS" ] && fail "a refused run left a record"

# Every stage; logits agree, or the bench would have failed.
accepts --shape 260k --prompt 4 --context 12 --steps 2 --threads 1
stages=$(grep -cE '^  [0-9]{2}_[a-z0-9_]+ .*(measured|modelled)$' out)
[ "$stages" -eq 9 ] || fail "$stages stages: $(cat out)"
[ "$(recorded '"figure":"tokens_per_second"')" = $((2 * stages)) ] || fail "not two records a stage"
[ "$(recorded '"op":"llama2_prefill"')" = "$stages" ] || fail "not a record of the prompt a stage"
grep -qF '"shape":"260K, 4 tokens"' "$WARPBOOK_RESULTS" || fail "no shape of the prompt"
[ "$(recorded '"op":"layer_reads"')" = 0 ] || fail "a cost of one context"
grep -qF '"shape":"260K, context 12"' "$WARPBOOK_RESULTS" || fail "no context"
grep -qF '"figure":"share_of_read_bandwidth"' "$WARPBOOK_RESULTS" || fail "no share"
# 15 operators a layer, 5 layers, and 3 around them.
grep -qE '^  03_resident_weights .* 78  ' out ||
    fail "launches of stage 03: $(cat out)"
grep -qF "a token reads 1.04 MB of weights, and 0.0013 MB of keys" out || fail "bytes: $(cat out)"
grep -qE 'logits differ by [0-9.e-]+ of the largest from 01_cpu_matmul' out || fail "no comparison"
if grep -q 'modelled for' out; then
    grep '"name":"simt:' "$WARPBOOK_RESULTS" | grep -qv '"modelled":true' && fail "a modelled record is not marked"
    grep -qE '^  09_kv_cache .* modelled$' out || fail "modelled times are not marked: $(cat out)"
    # The cost model orders the stages as a GPU does.
    slower 03_resident_weights 09_kv_cache
    if grep -q '^solutions: ' out; then
        slower 09_kv_cache 10_llama2_decoder
    fi
fi

# A long context's cost beside reads of its bytes. Of so few the cost itself may be lost (a starter
# waits for the host), and so may one context's read over the other's.
rm "$WARPBOOK_RESULTS"
accepts --shape 260k --stage 10 --prompt 64 --context 64 --steps 1
grep -qE '^  10_llama2_decoder: 64 tokens before it cost a token -?[0-9.]+ ms more than 16 do$' out ||
    fail "no cost of the context: $(cat out)"
grep -qF '  0.061 MB of keys and values more, only read' out || fail "not the context's bytes: $(cat out)"
for yardstick in "at the probe's speed" "a launch a layer" "between weights, over the weights alone" \
    "between weights, over the short context"; do
    grep -qE "^    $yardstick +-?[0-9.]+ +(-|[0-9.]+)$" out || fail "no row '$yardstick': $(cat out)"
done
for read in read_kv read_weights read_weights_kv read_weights_kv_short read_weights_kv_long; do
    [ "$(recorded "\"stage\":\"$read\",\"op\":\"layer_reads\"")" = 1 ] || fail "$read is not recorded"
done
for name in context_ms_at_read_bandwidth context_ms_a_launch_a_layer context_ms_between_weights; do
    awk -v ms="$(figure $name)" 'BEGIN { exit !(ms > 0) }' || fail "$name is '$(figure $name)'"
done
[[ "$(figure context_ms)" =~ ^-?[0-9] ]] || fail "the cost is '$(figure context_ms)'"
[[ "$(figure context_ms_beyond_short_context)" =~ ^-?[0-9] ]] || fail "nothing over the short context"

# 16 bits: the stages that have a decoder, and a second context only where there is room.
rm "$WARPBOOK_RESULTS"
for dtype in fp16 bf16; do
    accepts --shape 260k --dtype $dtype --prompt 4 --context 2 --steps 1
    [ "$(grep -cE '(measured|modelled)$' out)" -eq 2 ] || fail "not two stages in $dtype: $(cat out)"
    [ "$(recorded "\"dtype\":\"$dtype\"")" -ge 4 ] || fail "no records in $dtype"
    [ "$(recorded '"shape":"260K, context 2"')" != 0 ] || fail "no context 2"
done
rm "$WARPBOOK_RESULTS"
accepts --quick --shape 260k --stage 09 --prompt 2 --context 1 --steps 1
[ "$(grep -cE '(measured|modelled)$' out)" -eq 1 ] || fail "more than one stage: $(cat out)"
fails_cleanly --shape 260k --stage 09 --prompt 2 --context 1 --steps 1
finish
