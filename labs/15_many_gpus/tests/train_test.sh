#!/bin/bash
# Training on several GPUs: it equals one GPU's, and itself to the last bit; ranks that are killed,
# disks that are full, arguments that do not fit.
# usage: train_test.sh PROGRAMS_SH TRAIN [KILLS]
#     KILLS: kills at random times, 0 by default; by hand, for example 100:
#     bazel build --config=solutions //solutions/15_many_gpus:train && TEST_TMPDIR=$(mktemp -d) \
#         labs/15_many_gpus/tests/train_test.sh common/testing/programs.sh \
#         bazel-bin/solutions/15_many_gpus/train 100
set -u
# shellcheck source=common/testing/programs.sh
. "$1"
train=$PWD/$2
kills=${3:-0}
cd "$TEST_TMPDIR" || exit 1
unset BUILD_WORKING_DIRECTORY SLURM_STEP_ID OMPI_COMM_WORLD_RANK PMI_RANK
export SIMT_DEVICES=4
: >in
awk 'BEGIN { for (i = 0; i < 50; i++) print "the is good", i % 2 ? "war ball" : "dull bank chip" }' >texts.txt
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the is good dull war ball bank chip >vocab.txt

# of_layers COUNT: the command lines of a model of so many layers.
of_layers() {
    common=("$train" --dataset text --data texts.txt --vocab vocab.txt --task mlm --max-length 8
        --batch-size 3 --hidden 16 --layers "$1" --heads 2 --epochs 1 --lr 0.001 --log-every 1)
    two=("${common[@]}" --gpus 2 --accumulate 2 --save-every 2)
}

# curve FOLDER: the curve without what the clock said.
curve() {
    sed 's/,"tokens_per_s":[^,]*,"seconds":[^}]*//' "$1/log.jsonl"
}

# same FOLDER: it has the bits of `two`.
same() {
    local file
    for file in final/model.safetensors checkpoint-4/optimizer.safetensors; do
        cmp "two/$file" "$1/$file" || fail "$1/$file has other bits"
    done
    cmp <(curve two) <(curve "$1") || fail "$1 has another curve: $(curve "$1")"
    [ -z "$(find "$1" -name '*.partial' -o -name '*.old')" ] || fail "left behind: $(ls "$1")"
}

# losses FOLDER: of each step.
losses() {
    sed -n 's/.*"kind":"train".*"loss":\([0-9.e-]*\).*/\1/p' "$1/log.jsonl"
}

# near FOLDER FOLDER: the losses of all steps agree to 2e-6, relative: a few roundings of fp32.
near() {
    paste <(losses "$1") <(losses "$2") | awk '{ d = ($1 - $2) / $1; if (d < 0) d = -d
        if (d > worst) worst = d } END { exit !(NR == 4 && worst <= 2e-6) }' ||
        fail "$1 and $2 have other losses: $(paste <(losses "$1") <(losses "$2"))"
}

# ---- Right ----

of_layers 2
accepts "${common[@]}" --accumulate 4 -o one
accepts "${two[@]}" -o two
says "2 GPUs: 4 batches of 3 in a step" out
near one two
accepts "${two[@]}" -o again
same again
accepts "${two[@]}" --zero 1 -o zero
same zero
accepts "${common[@]}" --gpus 4 -o four
near one four

# For all that follows one layer is enough, and takes half the time.
of_layers 1
rm -rf two
accepts "${two[@]}" -o two

# ---- Wrong ----

refuses "train: --gpus 0: from 1 to 8" "${common[@]}" -o no --gpus 0
refuses "train: --gpus 9: from 1 to 8" "${common[@]}" -o no --gpus 9
refuses "train: --zero 1 has no effect without --gpus above 1" "${common[@]}" -o no --zero 1
refuses "train: --zero 3: from 0 to 1" "${common[@]}" -o no --gpus 2 --zero 3
refuses "train: --gpus 2: --device cpu is no GPU" "${common[@]}" -o no --gpus 2 --device cpu
SIMT_DEVICES=2 refuses "--gpus 4: there are 2 here" "${common[@]}" -o few --gpus 4
run "${common[@]}" --gpus 2 --save-every 2 --resume -o two
[ "$code $(wc -l <err)" = "1 1" ] || fail "not one line: $code: $(cat err)"
says "--accumulate: 1 on each of 2 GPUs here, 2 on each of 2 GPUs in the run that --resume would" err
refuses "nowhere: " "${two[@]}" -o /proc/nowhere/run
[ ! -e no ] || fail "a run was begun: $(ls no)"

# Ranks that somebody has started with different flags or texts.
# ranks FLAGS_OF_0 FLAGS_OF_1: on emulated GPUs of their own.
started=0
ranks() {
    local rank pids=() flags=("$1" "$2")
    : >err
    started=$((started + 1))
    for rank in 0 1; do
        # shellcheck disable=SC2086
        PMI_RANK=$rank PMI_SIZE=2 SIMT_DEVICE=shared:train-$$-$started \
            "${two[@]}" ${flags[$rank]} --resume >out.$rank 2>>err <in &
        pids+=($!)
    done
    wait "${pids[0]}"
    code=$?
    wait "${pids[1]}" || code=$?
}

sed 's/war/bank/' texts.txt >others.txt
ranks "-o differ" "-o differ --lr 0.002"
[ "$(wc -l <err)" -eq 1 ] || fail "not one line: $(cat err)"
says "--lr must be the same on all ranks: rank 0 has 0.001, rank 1 has 0.002" err
rm -rf differ
ranks "-o differ" "-o differ --data others.txt"
[ "$(wc -l <err)" -eq 1 ] || fail "not one line: $(cat err)"
says "the training data must be the same on all ranks: " err
rm -rf differ
accepts "${common[@]}" --seed 2 -o other
ranks "-o differ --load-checkpoint two/final" "-o differ --load-checkpoint other/final"
[ "$(wc -l <err)" -eq 1 ] || fail "not one line: $(cat err)"
says "--load-checkpoint must be the same on all ranks: rank 0 has weights with the checksum" err
rm -rf differ
ranks "-o srun" "-o srun"
[ $code -eq 0 ] && [ ! -s err ] || fail "ranks that somebody started: $code: $(cat err)"
same srun

# ---- Killed ----

# ranks_of: process ids of the ranks.
ranks_of() {
    pgrep -P "$pid"
}

# ended TEXT: all have ended within 10 s, with one line of train's; simt has its own.
ended() {
    local begun=$SECONDS
    wait "$pid"
    code=$?
    [ $((SECONDS - begun)) -le 10 ] || fail "took $((SECONDS - begun)) s"
    [ "$code" -ne 0 ] || return 0
    [ "$(grep -c '^train: ' err)" -eq 1 ] || fail "not one line: $(cat err)"
    grep -qE "$1" err || fail "want '$1': $(cat err)"
    [ -z "${VERBOSE:-}" ] || cat err
    sed -n 's/.* while \(.*\): the other.*/\1/p' err >>phases
}

# comes COMMAND PAUSE: repeats the command until it succeeds, or until the run has ended.
comes() {
    until eval "$1"; do
        kill -0 "$pid" 2>/dev/null || return 1
        $2
    done
}

# two_ranks: sets the array `ranks`.
two_ranks() {
    mapfile -t ranks < <(ranks_of)
    [ ${#ranks[@]} -eq 2 ]
}

# kill_rank N EARLIER COMMAND: starts the run, and kills rank N as soon as the command succeeds, which
# it does after EARLIER. Nothing is started between that and the kill: a checkpoint is written in a
# few milliseconds.
kill_rank() {
    local ranks=()
    start "${two[@]}" -o killed --resume
    comes two_ranks "sleep 0.02" && comes "$2" "sleep 0.02" && comes "$3" : &&
        kill -9 "${ranks[$1]}" 2>/dev/null
    ended "train: rank $1 of 2 was killed by signal 9"
}

# A checkpoint is written soon after step 1 or 3.
readonly soon='grep -q "step [13]/" out'
readonly writing='[ -e killed/checkpoint-2.partial ] || [ -e killed/checkpoint-4.partial ]'

# While they load: their texts come from a pipe that nobody fills.
# read_pipe: both have opened it.
read_pipe() {
    local rank count=0
    for rank in $(ranks_of); do
        [ -z "$(find "/proc/$rank/fd" -lname '*/pipe')" ] || count=$((count + 1))
    done
    [ $count -eq 2 ]
}

mkfifo pipe
exec 7<>pipe
for rank in 0 1; do
    start "${two[@]}" --data pipe -o loading 7>&-
    await read_pipe
    ranks_of | sed -n "$((rank + 1))p" | xargs kill -9
    ended "^train: rank $rank of 2 was killed by signal 9 .* while loading: the other ranks end, too"
    [ "$code" -eq 1 ] || fail "exit status $code"
done
exec 7>&-

: >phases
for rank in 0 1; do
    rm -rf killed
    kill_rank $rank true true
    rm -f killed/log.jsonl
    kill_rank $rank '[ -e killed/log.jsonl ]' true
    kill_rank $rank 'grep -q "step 1/" out' true
    kill_rank $rank "$soon" "$writing"
done
for ((i = 0; i < kills; i++)); do
    [ -e killed/final ] && rm -rf killed
    kill_rank $((RANDOM % 2)) "sleep $((RANDOM % 4)).$((RANDOM % 10))" true
done
# The run may have been killed behind a checkpoint all the same.
for ((i = 0; i < 20; i++)); do
    grep -q "writing a checkpoint" phases && break
    rm -rf killed
    kill_rank $((i % 2)) "$soon" "$writing"
done
accepts "${two[@]}" -o killed --resume
same killed
for phase in training "writing a checkpoint"; do
    says "$phase" phases
done
echo "killed while: $(sort phases | uniq -c | tr -s ' \n' ' ')"

# Ctrl-C and SIGTERM of one rank: a checkpoint of all, and it goes on.
rm -rf killed
start "${two[@]}" --save-every 100 -o killed --resume
await grep -q "step [12]/" out
kill -TERM "$(ranks_of | sed -n 2p)"
ended "^train: interrupted at step [0-9] of 4: continue with --resume"
[ "$code" -eq 143 ] || fail "exit status $code after SIGTERM"
accepts "${two[@]}" --save-every 100 -o killed --resume
same killed

# A full disk: files may not grow beyond 2 blocks of 1024 bytes; the checkpoint before stays.
rm -rf killed
kill_rank 1 '[ -e killed/checkpoint-2 ]' true
before=$(cat killed/checkpoint-*[0-9]/* | cksum)
(
    ulimit -f 2
    exec "${two[@]}" -o killed --resume
) >out 2>err <in
[ $? -eq 1 ] || fail "a full disk goes unnoticed"
[ "$(wc -l <err)" -eq 1 ] || fail "not one line: $(cat err)"
says ": cannot write: File too large" err
[ "$before" = "$(cat killed/checkpoint-*[0-9]/* | cksum)" ] || fail "the checkpoint is another one"
[ -z "$(find killed -name '*.partial')" ] || fail "left behind: $(ls killed)"
accepts "${two[@]}" -o killed --resume
same killed

# Nothing is left: no process, no shared memory.
await test -z "$(pgrep -f "^$train ")"
[ -z "$(find /dev/shm -name '*warpbook*')" ] || fail "shared memory is left"
finish
