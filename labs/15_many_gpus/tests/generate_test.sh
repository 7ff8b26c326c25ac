#!/bin/bash
# Text on several GPUs is that of one; what does not fit is one line; a killed rank ends the others.
# usage: generate_test.sh PROGRAMS_SH GENERATE MAKE_TEST_CHECKPOINT
set -u
# shellcheck source=common/testing/programs.sh
. "$1"
generate=$PWD/$2
"$PWD/$3" "$TEST_TMPDIR" || exit 1
cd "$TEST_TMPDIR" || exit 1
unset BUILD_WORKING_DIRECTORY SLURM_STEP_ID OMPI_COMM_WORLD_RANK PMI_RANK
export SIMT_DEVICES=4
: >in
tiny=("$generate" tiny.bin -z tiny_tokenizer.bin -n 8)

for how in "-t 0 -i abc" "-s 9 -k 3"; do
    read -ra flags <<<"$how"
    accepts "${tiny[@]}" "${flags[@]}"
    mv out want
    accepts "${tiny[@]}" "${flags[@]}" --gpus 2
    cmp -s out want || fail "$how: two GPUs write other text: $(cat out)"
    [ "$(wc -l <err)" -eq 1 ] || fail "not rank 0 alone speaks: $(cat err)"
done
accepts "$generate" tiny_bf16 -n 8 -t 0 -i abc
mv out want
accepts "$generate" tiny_bf16 -n 8 -t 0 -i abc --gpus 2
cmp -s out want || fail "bf16: two GPUs write other text: $(cat out)"

refuses "generate: --gpus 0: from 1 to 8" "${tiny[@]}" --gpus 0
refuses "generate: --gpus 9: from 1 to 8" "${tiny[@]}" --gpus 9
refuses "--gpus 8: there are 4 here" "${tiny[@]}" --gpus 8
refuses "cannot be cut into 3 parts" "${tiny[@]}" --gpus 3
refuses "--gpus 2: for one prompt, --prompt TEXT; not for --mode chat" "${tiny[@]}" --gpus 2 -m chat
refuses "--gpus 2 and --window: the cut decoder keeps the whole text" "${tiny[@]}" --gpus 2 -w 8
refuses "only a plain Llama2 can be cut; this model has " "$generate" qwen2 --gpus 2

# A rank with another checkpoint, started by somebody else.
: >err
pids=()
for rank in 0 1; do
    checkpoint=(tiny tiny_bf16)
    PMI_RANK=$rank PMI_SIZE=2 SIMT_DEVICE=shared:generate-$$ \
        "$generate" "${checkpoint[$rank]}" -z tiny_tokenizer.bin --gpus 2 >out.$rank 2>>err <in &
    pids+=($!)
done
for pid in "${pids[@]}"; do
    wait "$pid" && fail "a rank with another checkpoint goes on"
done
[ "$(wc -l <err)" -eq 1 ] || fail "not one line: $(cat err)"
says "the checkpoint must be the same on all ranks: rank 0 has " err

# Killed while it writes; and Ctrl-C, which all hear at the same token.
for rank in 0 1; do
    start "${tiny[@]}" --gpus 2 -n 0 -t 0 --roll
    await [ -s out ]
    pgrep -P "$pid" | sed -n "$((rank + 1))p" | xargs kill -9
    begun=$SECONDS
    ends 1
    [ $((SECONDS - begun)) -le 10 ] || fail "took $((SECONDS - begun)) s"
    [ "$(grep -c '^generate: ' err)" -eq 1 ] || fail "not one line: $(cat err)"
    says "generate: rank $rank of 2 was killed by signal 9 (Killed) while generating" err
done
start "${tiny[@]}" --gpus 2 -n 0 -t 0 --roll
await [ -s out ]
kill -INT "$pid"
ends 130
await test -z "$(pgrep -f "^$generate ")"
finish
