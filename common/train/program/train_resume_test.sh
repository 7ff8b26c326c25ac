#!/bin/bash
# Runs of train that are killed, interrupted, or out of disk, and go on.
# usage: train_resume_test.sh PROGRAMS_SH TRAIN RUNS_SH
set -u
# shellcheck source=common/testing/programs.sh
. "$1"
train=$PWD/$2 runs=$PWD/$3
cd "$TEST_TMPDIR" || exit 1
unset BUILD_WORKING_DIRECTORY
# shellcheck source=common/train/program/train_runs.sh
. "$runs"

# kill_when COMMAND: starts the run and kills it as soon as the command succeeds. False: it ended.
kill_when() {
    start "${run_one[@]}" -o killed --resume
    while kill -0 "$pid" 2>/dev/null; do
        if eval "$1"; then
            kill -9 "$pid"
            wait "$pid" 2>/dev/null
            return 0
        fi
    done
    wait "$pid"
}

# at_step_4: waits for that line without a pause, as the whole run takes less than a second.
at_step_4() {
    until grep -q 'step 4/' out || ! kill -0 "$pid" 2>/dev/null; do :; done
}

# Killed while a checkpoint is written, again and again: some of the time there is half of one.
half=0
for _ in 1 2 3 4 5; do # a busy machine looks too late
    [ "$half" -lt 3 ] || break
    rm -rf killed
    for step in 3 6 9 12 15 18 21 24 27 30 33 36; do
        kill_when "[ -e killed/checkpoint-$step.partial ]"
        [ -e "killed/checkpoint-$step.partial" ] && half=$((half + 1))
    done
done
[ "$half" -ge 3 ] || fail "only $half kills came while a checkpoint was written"
# Killed while the best model is replaced.
kill_when "[ -e killed/best.partial ] || [ -e killed/best.old ]"
accepts "${run_one[@]}" -o killed --resume
same killed

# Killed at any time.
rm -rf killed
for delay in 0.02 0.11 0.05 0.17 0.08 0.13 0.2 0.03 0.15 0.1; do
    start "${run_one[@]}" -o killed --resume
    sleep "$delay"
    kill -9 "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
done
accepts "${run_one[@]}" -o killed --resume
same killed

# Interrupted: it writes a checkpoint, says so in one line, and goes on from there.
rm -rf killed
start "${common[@]}" --task classify --save-every 1000 -o killed
at_step_4
kill -INT "$pid"
ends 130
grep -qE '^train: interrupted at step [0-9]+ of 36: continue with --resume$' err || fail "said: $(cat err)"
accepts "${run_one[@]}" -o killed --resume
says "resuming at step" out
same killed

# A terminal that closes sends SIGHUP, and its shell sends another: the checkpoint is written.
rm -rf killed
start "${common[@]}" --task classify --save-every 1000 -o killed
at_step_4
kill -HUP "$pid"
kill -HUP "$pid" 2>/dev/null
ends 129
grep -qE '^train: interrupted at step [0-9]+ of 36: continue with --resume$' err || fail "said: $(cat err)"
accepts "${run_one[@]}" -o killed --resume
says "resuming at step" out
same killed

# Interrupted again and again, mostly in an evaluation: that is repeated, and none is lost.
often=("${common[@]}" --task classify --save-every 1000 --eval-every 1)
accepts "${often[@]}" -o every
rm -rf killed
for delay in 0.1 0.2 0.05 0.15 0.25; do
    start "${often[@]}" -o killed --resume
    sleep "$delay"
    kill -INT "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
done
accepts "${often[@]}" -o killed --resume
cmp every/final/model.safetensors killed/final/model.safetensors || fail "another model"
cmp every/best/model.safetensors killed/best/model.safetensors || fail "another best model"
cmp <(curve every) <(curve killed) || fail "another curve: $(curve killed)"

# Two at a time: the second one is refused.
rm -rf killed
start "${run_one[@]}" -o killed --epochs 300
await [ -e killed/log.jsonl ]
if kill -STOP "$pid" 2>/dev/null; then # it holds the folder, and prints nothing meanwhile
    refuses "killed: another program is training into this folder" "${run_one[@]}" -o killed --resume
    kill -9 "$pid"
fi
wait "$pid" 2>/dev/null

# A full disk: files may not grow beyond 200 blocks of 1024 bytes, the log does not reach them.
rm -rf killed
for _ in 1 2 3 4 5 6 7 8 9 10; do
    kill_when "[ -e killed/checkpoint-3 ]" && [ -e killed/checkpoint-3 ] && break
    rm -rf killed
done
"${run_one[@]}" -o killed --resume --help >/dev/null
before=$(cat killed/checkpoint-*/optimizer.safetensors | cksum)
(
    ulimit -f 200
    exec "${run_one[@]}" -o killed --resume
) >out 2>err <in
[ $? -eq 1 ] || fail "a full disk goes unnoticed"
[ "$(wc -l <err)" -eq 1 ] || fail "not one line: $(cat err)"
says "model.safetensors: cannot write: File too large" err
[ "$before" = "$(cat killed/checkpoint-*[0-9]/optimizer.safetensors | cksum)" ] ||
    fail "the checkpoint is another one: $(ls killed)"
[ -z "$(find killed -name '*.partial')" ] || fail "left behind: $(ls killed)"
accepts "${run_one[@]}" -o killed --resume
same killed

# In fp32 on all cores: resumed wherever it was killed, and on one core, it has the same bits.
fast=("${run_one[@]}" --device cpu)
accepts "${fast[@]}" -o fast
for delay in 0.05 0.1 0.02 0.15 0.08; do
    start "${fast[@]}" -o fast2 --resume
    sleep "$delay"
    kill -9 "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
done
accepts "${fast[@]}" -o fast2 --resume
accepts taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')" "${fast[@]}" -o fast3
for file in final/model.safetensors checkpoint-36/optimizer.safetensors; do
    cmp "fast/$file" "fast2/$file" || fail "a resumed run has other bits in $file"
    cmp "fast/$file" "fast3/$file" || fail "one core has other bits in $file"
done

# The same of a language model: hidden tokens and rows of a stream are found again.
awk 'BEGIN { for (i = 0; i < 50; i++) print "the is good", i % 2 ? "war ball" : "dull bank chip" }' >texts.txt
again=("$train" --dataset text --data texts.txt --vocab vocab.txt --task mlm --max-length 8
    --batch-size 6 --hidden 16 --layers 1 --heads 2 --epochs 4 --save-every 2)
accepts "${again[@]}" -o mlm
for delay in 0.05 0.1 0.02 0.15 0.08; do
    start "${again[@]}" -o mlm2 --resume
    sleep "$delay"
    kill -9 "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
done
accepts "${again[@]}" -o mlm2 --resume
cmp mlm/final/model.safetensors mlm2/final/model.safetensors || fail "hidden tokens are others"
finish
