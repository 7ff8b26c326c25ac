#!/bin/bash
# Makes the checkpoints of datasets/reviews_bert, tiny_llama and tiny_neox on one GPU, in calls of at most ten minutes.
# usage: recipe.sh BIN DATA OUT [STEP...]
#   BIN   folder with train, train_vocab, evaluate, classify, generate, perplexity (their libraries in
#         BIN or BIN/lib)
#   DATA  folder with aclImdb_unsup.tar.xz, aclImdb_labelled.tar.xz, ag_news_test.csv
#   OUT   folder for models, curves and logs; finished steps are not repeated, and an interrupted
#         training is continued: call the script again until it says "all done"
#   STEP  of: vocab speed_mlm mlm imdb agnews test_imdb test_agnews speed_lm lm test_lm neox ship; without: all, in order
# Every figure below can be set in the environment: MLM_SECONDS=300 recipe.sh ...
# TINY=1: a few steps of tiny models, for rehearsals on the CPU (DEVICE=gpu DTYPE=bf16 for simt).
# STEPS_MLM, STEPS_LM: number of steps; without them as many as the time allows at the speed that speed_mlm and
# speed_lm measured. STEPS_NEOX: number of steps of tiny_neox.
# Exit status: 0 all done; 3 time is over, call it again; 1 a step failed (the other steps were done).
set -u
BIN=${1:?BIN} DATA=${2:?DATA} OUT=${3:?OUT}
shift 3
export LD_LIBRARY_PATH=$BIN:$BIN/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
mkdir -p "$OUT/logs"
OUT=$(cd "$OUT" && pwd)

# ---- Time limits: of the call, and of each step ----
CALL_SECONDS=${CALL_SECONDS:-570} # the script ends earlier than this
STOP_SECONDS=${STOP_SECONDS:-15}  # time for a program that is asked to stop to write its checkpoint
VOCAB_SECONDS=${VOCAB_SECONDS:-120}
SPEED_SECONDS=${SPEED_SECONDS:-90}
MLM_SECONDS=${MLM_SECONDS:-420} # the number of steps is chosen to take this long
IMDB_SECONDS=${IMDB_SECONDS:-180}
AGNEWS_SECONDS=${AGNEWS_SECONDS:-90}
LM_SECONDS=${LM_SECONDS:-420}
TEST_SECONDS=${TEST_SECONDS:-120}

# ---- Models and training ----
DEVICE=${DEVICE:-auto} DTYPE=${DTYPE:-bf16} SEED=${SEED:-1}
WORDPIECE=${WORDPIECE:-6000} BPE=${BPE:-3072}
LENGTH=${LENGTH:-512}
# With 6,000 pieces and 512 positions: 8.26 MB in bf16, 8 MiB are 8.39.
BERT=${BERT:---hidden 256 --layers 4 --heads 4 --intermediate 640}
# With 3,072 pieces, tied: 7.95 MB.
LLAMA=${LLAMA:---hidden 256 --layers 4 --heads 4 --intermediate 688}
# With 3,072 pieces, tied: 4.08 MB in bf16, below 4 MiB.
NEOX=${NEOX:---model gpt-neox --hidden 160 --layers 5 --heads 5 --tied}
MLM_TRAIN=${MLM_TRAIN:---batch-size 64 --lr 1e-3 --warmup 0.02 --dropout 0 --weight-decay 0.01 --mlm-probability 0.15}
IMDB_TRAIN=${IMDB_TRAIN:---batch-size 32 --epochs 4 --lr 1e-4 --warmup 0.1 --dropout 0.1 --weight-decay 0.01}
# AG News: first masked-language training without labels. Both settings were chosen on rows held out of the training rows.
AGNEWS_MLM=${AGNEWS_MLM:---batch-size 64 --max-steps 3000 --lr 5e-4 --warmup 0.05 --dropout 0.1 --weight-decay 0.01}
AGNEWS_TRAIN=${AGNEWS_TRAIN:---batch-size 32 --epochs 4 --lr 4e-4 --warmup 0.1 --dropout 0.1 --weight-decay 0.01}
LM_TRAIN=${LM_TRAIN:---batch-size 32 --lr 1.5e-3 --warmup 0.02 --schedule cosine --weight-decay 0.1 --beta2 0.99}
NEOX_TRAIN=${NEOX_TRAIN:-${LM_TRAIN/1.5e-3/2e-3}}
STEPS_MLM=${STEPS_MLM:-0} STEPS_LM=${STEPS_LM:-0} STEPS_NEOX=${STEPS_NEOX:-20000} SPEED_STEPS=${SPEED_STEPS:-300}
EVERY=${EVERY:-1000} # steps between checkpoints and between evaluations
HELD_OUT=${HELD_OUT:-1000} # texts held out of each training, for its curve and the choice of the best model
ROWS=${ROWS:-0} VOCAB_ROWS=${VOCAB_ROWS:-0} TEST_ROWS=${TEST_ROWS:-0} # 0: all
AG_TRAIN=6000 AG_TEST=1600 # rows of the test file: the first for training, the last for evaluation

if [ "${TINY:-0}" = 1 ]; then
    [ "$DEVICE" = auto ] && DEVICE=cpu && DTYPE=fp32
    WORDPIECE=400 BPE=400 LENGTH=32 STEPS_MLM=${TINY_STEPS:-12} STEPS_LM=${TINY_STEPS:-12} STEPS_NEOX=${TINY_STEPS:-12} SPEED_STEPS=${TINY_SPEED:-3} EVERY=4 HELD_OUT=8
    ROWS=40 VOCAB_ROWS=200 TEST_ROWS=12 AG_TRAIN=60 AG_TEST=12
    BERT="--hidden 32 --layers 2 --heads 2" LLAMA="--hidden 32 --layers 2 --heads 2"
    NEOX="--model gpt-neox --hidden 32 --layers 2 --heads 2 --tied" NEOX_TRAIN="$NEOX_TRAIN --batch-size 4"
    MLM_TRAIN="$MLM_TRAIN --batch-size 8 --accumulate 2" LM_TRAIN="$LM_TRAIN --batch-size 4"
    IMDB_TRAIN="$IMDB_TRAIN --epochs 2" AGNEWS_TRAIN="$AGNEWS_TRAIN --epochs 2"
    AGNEWS_MLM="$AGNEWS_MLM --batch-size 8 --max-steps 6"
fi
BOTH=(--dtype "$DTYPE" --device "$DEVICE" --seed "$SEED" --save-dtype bf16)
UNSUP=(--dataset imdb --data "${UNSUP_ARCHIVE:-$DATA/aclImdb_unsup.tar.xz}" --split unsup)
LABELLED=(--dataset imdb --data "$DATA/aclImdb_labelled.tar.xz")
AGNEWS=(--dataset agnews --data "$DATA/ag_news_test.csv")
AGAIN=3

failures=0 over=0
say() { echo "[$SECONDS s] $*" | tee -a "$OUT/logs/recipe.log"; }
left() { echo $((CALL_SECONDS - SECONDS)); }

# limited NAME SECONDS COMMAND: runs it for at most that time, and not beyond the end of the call; appends its output
# to logs/NAME.log and prints the last lines. A training program writes a checkpoint when it is asked to stop.
# Returns the exit status of the command, or AGAIN if its time was over.
limited() {
    local name=$1 seconds=$2 most code
    shift 2
    most=$(($(left) - STOP_SECONDS))
    [ "$seconds" -gt "$most" ] && seconds=$most
    if [ "$seconds" -lt 5 ]; then
        say "$name: no time is left in this call"
        return $AGAIN
    fi
    echo "\$ $*" >>"$OUT/logs/$name.log"
    timeout --preserve-status --kill-after "$STOP_SECONDS" "$seconds" "$@" >>"$OUT/logs/$name.log" 2>&1 </dev/null
    code=$?
    tail -n 2 "$OUT/logs/$name.log" | sed "s/^/    /"
    case $code in
        0) return 0 ;;
        143 | 137) say "$name: stopped after $seconds s" && return $AGAIN ;;
        *) return "$code" ;;
    esac
}

# step NAME FILE...: runs step_NAME once, if the files that it needs exist.
step() {
    local name=$1 file code
    shift
    { [ -e "$OUT/$name.done" ] || [ "$over" -eq 1 ]; } && return
    for file in "$@"; do
        if [ ! -e "$OUT/$file" ]; then
            say "$name: skipped, there is no $file"
            return
        fi
    done
    say "$name"
    "step_$name"
    code=$?
    case $code in
        0) touch "$OUT/$name.done" && say "$name: done" ;;
        "$AGAIN") over=1 ;;
        *) failures=$((failures + 1)) && say "$name: FAILED, exit status $code: see logs/$name.log" ;;
    esac
}

# rows HELD_OUT: flags for training on the first ROWS texts (0: all others) and evaluating on HELD_OUT texts.
rows() {
    [ "$ROWS" -gt 0 ] && printf -- '--train-rows %s ' "$ROWS"
    printf -- '--eval-rows %s\n' "$1"
}

# If DATA has both vocabularies, they are copied: the same texts give the same files.
step_vocab() {
    if [ "${TINY:-0}" != 1 ] && [ -s "$DATA/vocab.txt" ] && [ -s "$DATA/tokenizer.bin" ]; then
        cp "$DATA/vocab.txt" "$DATA/tokenizer.bin" "$OUT/"
        return
    fi
    limited vocab_wordpiece "$VOCAB_SECONDS" "$BIN/train_vocab" --type wordpiece --size "$WORDPIECE" \
        "${UNSUP[@]}" --limit "$VOCAB_ROWS" --output "$OUT/vocab.txt" &
    local one=$!
    limited vocab_bpe "$VOCAB_SECONDS" "$BIN/train_vocab" --type bpe --size "$BPE" \
        "${UNSUP[@]}" --limit "$VOCAB_ROWS" --output "$OUT/tokenizer.bin"
    local code=$?
    wait "$one" && return "$code"
}

# The commands of the two long trainings; the folder and the number of steps vary.
# shellcheck disable=SC2086 # flags in words
mlm() { # NAME SECONDS FOLDER STEPS FLAGS
    local name=$1 seconds=$2 folder=$3 steps=$4
    shift 4
    limited "$name" "$seconds" "$BIN/train" --task mlm "${UNSUP[@]}" --vocab "$OUT/vocab.txt" $BERT \
        --max-length "$LENGTH" --max-steps "$steps" $MLM_TRAIN "${BOTH[@]}" --output-dir "$folder" "$@"
}
# shellcheck disable=SC2086
lm() {
    local name=$1 seconds=$2 folder=$3 steps=$4
    shift 4
    limited "$name" "$seconds" "$BIN/train" --task lm "${UNSUP[@]}" --vocab "$OUT/tokenizer.bin" $LLAMA \
        --max-length "$LENGTH" --max-steps "$steps" $LM_TRAIN "${BOTH[@]}" --output-dir "$folder" "$@"
}

# steps_of FOLDER SECONDS: number of steps that fit into the time, at the speed of the second half of the folder's
# curve, less a tenth for reading texts, evaluations and checkpoints.
steps_of() {
    grep '"train"' "$1/log.jsonl" | sed -n 's/.*"step":\([0-9]*\).*"seconds":\([0-9.e+-]*\).*/\1 \2/p' |
        awk -v all="$2" '{ step[NR] = $1; time[NR] = $2 }
            END { for (i = int(NR / 2) + 1; i <= NR; i++) { n += step[i] - step[i - 1]; t += time[i] }
                if (t <= 0) exit 1; print int(0.9 * all * n / t) }'
}

# Measures the speed of a training and computes its number of steps. Is not resumed: it starts again after a stop.
speed() { # mlm|lm SECONDS_OF_THE_TRAINING STEPS_IF_GIVEN
    if [ "$3" -gt 0 ]; then
        echo "$3" >"$OUT/$1.steps"
        return
    fi
    rm -rf "$OUT/speed_$1"
    "$1" "speed_$1" "$SPEED_SECONDS" "$OUT/speed_$1" "$SPEED_STEPS" --do-train \
        --save-every 1000000 --train-rows $((ROWS > 0 ? ROWS : 4000)) || return
    steps_of "$OUT/speed_$1" "$2" >"$OUT/$1.partial" || return
    mv "$OUT/$1.partial" "$OUT/$1.steps" && rm -rf "$OUT/speed_$1"
    say "$1: $(cat "$OUT/$1.steps") steps"
}
step_speed_mlm() { speed mlm "$MLM_SECONDS" "$STEPS_MLM"; }
step_speed_lm() { speed lm "$LM_SECONDS" "$STEPS_LM"; }

# Limited only by the call: the training stops with a checkpoint, and the next call continues it.
# shellcheck disable=SC2046
step_mlm() {
    mlm mlm 100000 "$OUT/mlm" "$(cat "$OUT/mlm.steps")" $(rows "$HELD_OUT") --save-every "$EVERY" --eval-every "$EVERY" \
        --log-every 50 --resume
}
# shellcheck disable=SC2046
step_lm() {
    lm lm 100000 "$OUT/lm" "$(cat "$OUT/lm.steps")" $(rows "$HELD_OUT") --save-every "$EVERY" --eval-every "$EVERY" \
        --log-every 50 --resume
}

# The same task and texts for a GPT-NeoX.
# shellcheck disable=SC2046
step_neox() {
    local LLAMA=$NEOX LM_TRAIN=$NEOX_TRAIN
    lm neox 100000 "$OUT/neox" "$STEPS_NEOX" $(rows "$HELD_OUT") --save-every "$EVERY" --eval-every "$EVERY" \
        --log-every 100 --resume
}

# The best model is chosen by reviews held out of the training half; the test half is used only once.
# shellcheck disable=SC2086,SC2046
step_imdb() {
    limited imdb "$IMDB_SECONDS" "$BIN/train" --task classify "${LABELLED[@]}" --split train --eval-split train \
        $(rows "$HELD_OUT") --load-checkpoint "$OUT/mlm/final" --max-length "$LENGTH" $IMDB_TRAIN "${BOTH[@]}" \
        --output-dir "$OUT/imdb" --resume
}

# Trains on all training rows, first without labels; no model is chosen.
# shellcheck disable=SC2086
step_agnews() {
    local length=$((LENGTH < 128 ? LENGTH : 128))
    limited agnews_mlm "$AGNEWS_SECONDS" "$BIN/train" --task mlm "${AGNEWS[@]}" --split test --train-rows "$AG_TRAIN" --do-train \
        --load-checkpoint "$OUT/mlm/final" --max-length $length $AGNEWS_MLM --dtype "$DTYPE" --device "$DEVICE" --seed "$SEED" \
        --output-dir "$OUT/agnews_mlm" --resume || return
    limited agnews "$AGNEWS_SECONDS" "$BIN/train" --task classify "${AGNEWS[@]}" --train-rows "$AG_TRAIN" --do-train \
        --load-checkpoint "$OUT/agnews_mlm/final" --max-length $length $AGNEWS_TRAIN "${BOTH[@]}" \
        --output-dir "$OUT/agnews" --resume
}

# The device flags of evaluate and classify: only a GPU computes in bf16.
how() {
    [ "$DEVICE" = cpu ] && echo --device cpu || echo --device gpu --dtype "$DTYPE"
}
# shellcheck disable=SC2046
step_test_imdb() {
    limited test_imdb "$TEST_SECONDS" "$BIN/evaluate" --checkpoint "$OUT/imdb/best" "${LABELLED[@]}" --split test \
        --limit "$TEST_ROWS" --batch-size 64 $(how) --predictions "$OUT/imdb.predictions" || return
    printf 'a dull, lifeless film\nI laughed, I cried, and I would see it again tomorrow.\n' >"$OUT/two.txt"
    limited classify "$TEST_SECONDS" "$BIN/classify" --checkpoint "$OUT/imdb/best" $(how) --file "$OUT/two.txt"
}
# shellcheck disable=SC2046
step_test_agnews() {
    limited test_agnews "$TEST_SECONDS" "$BIN/evaluate" --checkpoint "$OUT/agnews/final" "${AGNEWS[@]}" \
        --skip 6000 --limit "$AG_TEST" --batch-size 64 $(how) --predictions "$OUT/agnews.predictions"
}

# The perplexity of a held-out review, and generated texts; on the CPU with the CPU's stage.
# DATA/held_out.txt is used instead of the archive if it exists, for machines without tar or xz.
# shellcheck disable=SC2046
step_test_lm() {
    local stage=()
    [ "$DEVICE" = cpu ] && stage=(--stage 1)
    if [ -s "$DATA/held_out.txt" ]; then
        cp "$DATA/held_out.txt" "$OUT/held_out.txt"
    else
        tar -xJOf "$DATA/aclImdb_unsup.tar.xz" \
            "$(tar -tJf "$DATA/aclImdb_unsup.tar.xz" | grep '\.txt$' | tail -n 1)" |
            sed 's/<br \/>/\n/g' >"$OUT/held_out.txt"
    fi
    limited perplexity "$TEST_SECONDS" "$BIN/perplexity" "$OUT/lm/best" --file "$OUT/held_out.txt" "${stage[@]}" || return
    local seed
    for seed in 1 2 3; do
        limited generate "$TEST_SECONDS" "$BIN/generate" "$OUT/lm/best" -s "$seed" -n 200 -i "This film" "${stage[@]}" || return
    done
}

# Collects the files for datasets/, and checks that each checkpoint has at most 8 MiB.
step_ship() {
    local name from bytes
    for name in reviews_bert tiny_llama tiny_neox; do
        case $name in
            reviews_bert) from=$OUT/imdb/best ;;
            tiny_llama) from=$OUT/lm/best ;;
            tiny_neox) from=$OUT/neox/best ;;
        esac
        rm -rf "${OUT:?}/ship/$name"
        mkdir -p "$OUT/ship" && cp -r "$from" "$OUT/ship/$name" || return
        bytes=$(cat "$OUT/ship/$name"/* | wc -c)
        say "$name: $bytes bytes"
        [ "$bytes" -le $((8 << 20)) ] || { say "$name: more than 8 MiB"; return 1; }
    done
    cp "$OUT"/imdb/log.jsonl "$OUT/ship/reviews_bert.jsonl"
    cp "$OUT"/mlm/log.jsonl "$OUT/ship/reviews_bert_mlm.jsonl"
    cp "$OUT"/lm/log.jsonl "$OUT/ship/tiny_llama.jsonl"
    cp "$OUT"/neox/log.jsonl "$OUT/ship/tiny_neox.jsonl"
}

needs() {
    case $1 in
        speed_mlm) echo vocab.txt ;;
        speed_lm | neox) echo tokenizer.bin ;;
        mlm) echo vocab.txt mlm.steps ;;
        lm) echo tokenizer.bin lm.steps ;;
        imdb | agnews) echo mlm/final ;;
        test_imdb) echo imdb.done ;;
        test_agnews) echo agnews.done ;;
        test_lm) echo lm/best tokenizer.bin ;;
        ship) echo imdb.done lm.done neox.done ;;
    esac
}

[ $# -gt 0 ] || set -- vocab speed_mlm mlm imdb agnews test_imdb test_agnews speed_lm lm test_lm neox ship
missing=0
for name in "$@"; do
    # shellcheck disable=SC2046
    step "$name" $(needs "$name")
    [ -e "$OUT/$name.done" ] || missing=$((missing + 1))
done
if [ "$missing" -eq 0 ]; then
    say "all done"
elif [ "$failures" -eq 0 ] && [ "$over" -eq 1 ]; then
    say "time is over: $missing steps are left, call it again"
    exit 3
else
    say "$failures steps failed, $missing are not done"
    exit 1
fi
