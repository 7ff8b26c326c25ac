#!/bin/bash
# The train program on the device: as on the reference in double, and resumed bit for bit.
# usage: train_test.sh PROGRAMS_SH TRAIN all|functions; functions: only what the lab's own are called
# for, as the rest of the program is the same code in both packages
set -u
# shellcheck source=common/testing/programs.sh
. "$1"
train=$PWD/$2 which=$3
cd "$TEST_TMPDIR" || exit 1
unset BUILD_WORKING_DIRECTORY
: >in
awk 'BEGIN { srand(3); n = split("the film was good and plot is dull but actor who can not act", w, " ")
    for (i = 0; i < 24; i++) { s = ""
        for (j = 0; j < 3 + i % 7; j++) s = s w[int(rand() * n) + 1] " "
        print s } }' >texts.txt
awk '{ printf "%d,\"x\",\"%s\"\n", NR % 4 + 1, $0 }' texts.txt >news.csv
(printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n'
    printf '%s\n' the film was good and plot is dull but actor who can not act) >vocab.txt
# llama2.c's format: longest piece, then score, length, piece of <unk>, <s>, </s> and 256 bytes.
LC_ALL=C awk 'BEGIN { printf "\\x06\\x00\\x00\\x00"
    split("<unk> <s> </s>", w, " ")
    for (i = 0; i < 259; i++) { t = i < 3 ? w[i + 1] : sprintf("<0x%02X>", i - 3)
        printf "\\x00\\x00\\x00\\x00\\x%02x\\x00\\x00\\x00%s", length(t), t } }' >escaped
printf '%b' "$(cat escaped)" >tokenizer.bin

sizes=(--hidden 32 --layers 1 --heads 2 --max-length 12 --batch-size 4 --log-every 1 --lr 0.003
    --max-steps 2 --warmup 0)
mlm=("$train" --task mlm --dataset text --data texts.txt --vocab vocab.txt "${sizes[@]}")
news=("$train" --task classify --dataset agnews --data news.csv --vocab vocab.txt "${sizes[@]}")
lm=("$train" --task lm --dataset text --data texts.txt --vocab tokenizer.bin --kv-heads 1 "${sizes[@]}")

# alike FOLDER WANT TOLERANCE: two steps' losses are the reference's, but for rounding.
alike() {
    paste <(sed -n 's/.*"train".*"loss":\([0-9.e-]*\).*/\1/p' "$1/log.jsonl") \
        <(sed -n 's/.*"train".*"loss":\([0-9.e-]*\).*/\1/p' "$2/log.jsonl") >losses
    awk -v t="$3" '{ d = $1 - $2; if (d * d > t * t * $2 * $2) bad++ }
        END { exit !(NR == 2 && bad == 0) }' losses || fail "$1 and $2: $(cat losses)"
}

refuses "--device is 'auto', 'gpu', 'cpu' or 'reference', not 'tpu'" "${mlm[@]}" -o o --device tpu
refuses "--dtype bf16: the CPU computes in fp32 only" "${mlm[@]}" -o o -d cpu --dtype bf16
refuses "--dtype bf16: the reference computes in double only" "${mlm[@]}" -o o -d reference --dtype bf16
# check_task NAME COMMAND: two steps in fp32 and in bf16.
check_task() {
    local task=$1
    shift
    accepts "$@" -o "$task.double" --do-train --device reference
    accepts "$@" -o "$task.gpu" --do-train --device gpu
    grep -q "on the CPU" out && fail "$task did not run on the device"
    alike "$task.gpu" "$task.double" 1e-4
    run "$@" -o "$task.bf16" --do-train --device gpu --dtype bf16
    if [ "$code" -eq 0 ]; then
        alike "$task.bf16" "$task.double" 0.02
    else
        says "bf16" err # a GPU that is too old says so
    fi
}
check_task mlm "${mlm[@]}"
check_task lm "${lm[@]}"
[ "$which" = functions ] && finish
check_task news "${news[@]}"

# On a GPU the steps may all be done before anybody looks: any checkpoint will do.
has_checkpoint() {
    compgen -G 'killed/checkpoint-[0-9]' >/dev/null
}

# Killed behind the first step, or a later one, and resumed, it ends with the same bytes.
accepts "${mlm[@]}" -o whole --device gpu --save-every 1 --max-steps 3
start "${mlm[@]}" -o killed --device gpu --save-every 1 --max-steps 3
await has_checkpoint
kill -9 "$pid" 2>/dev/null
wait "$pid" 2>/dev/null
accepts "${mlm[@]}" -o killed --device gpu --save-every 1 --max-steps 3 --resume
says "resuming at step" out
cmp whole/final/model.safetensors killed/final/model.safetensors || fail "the model is another one"
cmp whole/checkpoint-3/optimizer.safetensors killed/checkpoint-3/optimizer.safetensors ||
    fail "the moments are others"
run "${mlm[@]}" -o killed --device reference --save-every 1 --max-steps 3 --resume
says "the weights' type: fp64 here, fp32 in the run that --resume would continue" err

# A profile of the device's operators.
accepts "${mlm[@]}" -o profiled --device gpu --do-profile
says "layernorm_backward" out
finish
