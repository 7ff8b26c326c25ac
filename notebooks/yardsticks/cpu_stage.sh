#!/bin/bash
# The CPU stage beside its peers, on an idle machine and beside a busy process.
#
# usage: notebooks/yardsticks/cpu_stage.sh [--python PYTHON] [--run-c RUN.C] [--rounds N]
#   --python  an interpreter with torch and transformers, for BERT and its training
#   --run-c   llama2.c's run.c, for decoding; it is compiled with -Ofast -march=native
#   --rounds  of all programs in turn (default 7); a figure is their median
# $WARPBOOK_DATA: the folder with stories260K.bin, tok512.bin and llama2_tokenizer.bin
#
# A peer that is not given is left out. Builds what it measures. Takes about a minute a round.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
python='' run_c='' rounds=7
while [ $# -gt 1 ]; do
    case $1 in
    --python) python=$2 ;;
    --run-c) run_c=$2 ;;
    --rounds) rounds=$2 ;;
    *) break ;;
    esac
    shift 2
done
if [ $# -gt 0 ] || [ -z "${WARPBOOK_DATA:-}" ]; then
    sed -n '4,11s/^# \?//p' "${BASH_SOURCE[0]}" >&2
    exit 2
fi

# BAZEL may name flags of the machine at hand: BAZEL="bazel --output_base=DIR".
${BAZEL:-bazel} build --config=solutions //solutions/01_cpu_matmul:generate \
    //solutions/08_bert_classifier:evaluate //common/train/program:train || exit 1
scratch=$(mktemp -d)
busy=''
trap '[ -n "$busy" ] && kill "$busy"; rm -rf "$scratch"' EXIT
cp -L bazel-bin/solutions/01_cpu_matmul/generate bazel-bin/solutions/08_bert_classifier/evaluate \
    bazel-bin/common/train/program/train "$scratch" || exit 1
python3 notebooks/random_llama2.py 15M "$scratch/15M.bin"
if [ -n "$run_c" ]; then
    "${CC:-gcc}" -Ofast -march=native -o "$scratch/run" "$run_c" -lm || exit 1
    "${CC:-gcc}" -Ofast -march=native -fopenmp -o "$scratch/run_omp" "$run_c" -lm || exit 1
fi
all=$(nproc)

# note NAME VALUE: one measurement; an empty one is left out.
note() {
    [ -z "$2" ] || echo "$2" >>"$scratch/$1.values"
}

# decode NAME CHECKPOINT TOKENIZER TOKENS: the stage's tokens/s and run.c's, on one thread and on all.
decode() {
    local threads
    for threads in 1 "$all"; do
        note "$1.$threads" "$("$scratch/generate" "$2" -z "$3" -t 0 -n "$4" -i Once --threads "$threads" 2>&1 >/dev/null |
            sed -n 's/.*generated [0-9]* tokens, \([0-9.]*\) tokens.*/\1/p')"
    done
    [ -n "$run_c" ] || return
    note "$1.1.peer" "$("$scratch/run" "$2" -z "$3" -t 0 -n "$4" -i Once 2>&1 >/dev/null |
        sed -n 's/achieved tok.s: //p')"
    note "$1.$all.peer" "$(OMP_NUM_THREADS=$all "$scratch/run_omp" "$2" -z "$3" -t 0 -n "$4" -i Once 2>&1 >/dev/null |
        sed -n 's/achieved tok.s: //p')"
}

bert() {
    local threads
    for threads in 1 "$all"; do
        note "bert.$threads" "$("$scratch/evaluate" --checkpoint datasets/reviews_bert --device cpu --threads "$threads" \
            --dataset sample --data datasets/reviews_sample.tsv | sed -n 's/^\([0-9.]*\) texts.s.*/\1/p')"
        [ -z "$python" ] || note "bert.$threads.peer" \
            "$("$python" notebooks/yardsticks/pytorch_cpu.py classify "$threads" 2>"$scratch/python.err")"
    done
}

# train_tokens DEVICE STEPS: tokens/s of the last step.
train_tokens() {
    rm -rf "$scratch/model"
    "$scratch/train" --task classify --dataset sample --data datasets/reviews_sample.tsv -c datasets/reviews_bert \
        --max-length 128 --batch-size 16 --max-steps "$2" --train-rows 128 --do-train --log-every "$2" \
        --epochs "$2" --device "$1" -o "$scratch/model" >/dev/null
    sed -n 's/.*"tokens_per_s":\([0-9.]*\).*/\1/p' "$scratch/model/log.jsonl" | tail -n 1
}

training() {
    note "train.$all" "$(train_tokens cpu 32)"
    note "reference.$all" "$(train_tokens reference 2)"
    [ -z "$python" ] || note "train.$all.peer" \
        "$("$python" notebooks/yardsticks/pytorch_cpu.py train "$all" 2>"$scratch/python.err")"
}

# threads NAME: a model that is worth two threads, as generate starts it and on one.
threads() {
    decode_tiny=("$scratch/generate" datasets/tiny_llama -t 0 -n 500 -i The)
    note "$1.default" "$("${decode_tiny[@]}" 2>&1 >/dev/null |
        sed -n 's/.*generated [0-9]* tokens, \([0-9.]*\) tokens.*/\1/p')"
    note "$1.one" "$("${decode_tiny[@]}" --threads 1 2>&1 >/dev/null |
        sed -n 's/.*generated [0-9]* tokens, \([0-9.]*\) tokens.*/\1/p')"
}

for round in $(seq "$rounds"); do
    echo "round $round of $rounds" >&2
    decode 260K "$WARPBOOK_DATA/stories260K.bin" "$WARPBOOK_DATA/tok512.bin" 340
    decode 15M "$scratch/15M.bin" "$WARPBOOK_DATA/llama2_tokenizer.bin" 200
    bert
    training
    threads idle
    (while :; do :; done) &
    busy=$!
    sleep 0.2
    threads busy
    kill "$busy" && wait "$busy" 2>/dev/null
    busy=''
done

# median NAME: of what was noted, or nothing.
median() {
    [ -e "$scratch/$1.values" ] || return
    sort -g "$scratch/$1.values" | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}

# row TEXT NAME PEER
row() {
    awk -v text="$1" -v a="$(median "$2")" -v b="$(median "$3")" 'BEGIN {
        printf "  %-58s %11s %11s %9s\n", text, a == "" ? "-" : sprintf("%.1f", a), b == "" ? "-" : sprintf("%.1f", b),
            a == "" || b == "" ? "-" : sprintf("%.2fx", a / b) }'
}

sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1
printf '%s CPUs, median of %s rounds, load at the end%s\n\n' "$all" "$rounds" "$(uptime | sed 's/.*average//')"
printf '  %-58s %11s %11s %9s\n' "" "CPU stage" "peer" "ratio"
for threads in $(printf '1\n%s\n' "$all" | sort -u); do
    row "Llama2 260K, tokens/s, $threads thread(s); peer: run.c" "260K.$threads" "260K.$threads.peer"
    row "Llama2 15M, tokens/s, $threads thread(s); peer: run.c" "15M.$threads" "15M.$threads.peer"
    row "reviews_bert, texts/s, $threads thread(s); peer: PyTorch" "bert.$threads" "bert.$threads.peer"
done
row "fine-tuning reviews_bert, tokens/s; peer: PyTorch" "train.$all" "train.$all.peer"
row "fine-tuning reviews_bert, tokens/s; peer: --device reference" "train.$all" "reference.$all"
row "tiny_llama, tokens/s, all threads; peer: one thread" idle.default idle.one
row "the same beside a busy process" busy.default busy.one
