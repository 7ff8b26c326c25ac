# What tests of interrupted runs share, read by them behind programs.sh: a run that is never stopped,
# in `whole`, and a look at whether another one ended like it. `train` is the program.
# shellcheck shell=bash disable=SC2034,SC2154
: >in
awk 'BEGIN { srand(5); split("war ball bank chip", w, " ")
    for (i = 0; i < 160; i++) { printf "%d,\"the %s\",\"is", i % 4 + 1, w[i % 4 + 1]
        for (j = 0; j < i % 9; j++) printf " %s", rand() < 0.5 ? "good" : "dull"
        printf "\"\n" } }' >news.csv
# Many pieces make checkpoints that take a while to write; the reference takes a while between them.
(printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n'
    printf '%s\n' the is good dull war ball bank chip
    awk 'BEGIN { for (i = 0; i < 4000; i++) print "[unused" i "]" }') >vocab.txt
common=("$train" --dataset agnews --data news.csv --vocab vocab.txt --max-length 16 --batch-size 5
    --accumulate 2 --hidden 64 --layers 1 --heads 2 --epochs 3 --lr 0.001 --log-every 4
    --train-rows 120 --eval-rows 40 --device reference)
run_one=("${common[@]}" --task classify --save-every 3)

accepts "${run_one[@]}" -o whole
mv out whole.out

# curve FOLDER: the curve without what the clock said.
curve() {
    sed 's/,"tokens_per_s":[^,]*,"seconds":[^}]*//' "$1/log.jsonl"
}
curve whole >whole.curve
# Lines every 4 steps and checkpoints every 3: a run that goes on has lost no step of a line.
[ "$(grep -c '"train"' whole.curve) $(grep -c '"eval"' whole.curve)" = "9 3" ] ||
    fail "the curve: $(cat whole.curve)"

# same FOLDER: it ended as the run that was never stopped.
same() {
    for file in final/model.safetensors best/model.safetensors checkpoint-36/optimizer.safetensors \
        checkpoint-36/model.safetensors; do
        cmp "whole/$file" "$1/$file" || fail "$1/$file is another one"
    done
    [ -z "$(find "$1" -name '*.partial' -o -name '*.old')" ] || fail "left behind: $(ls "$1")"
    [ "$(echo "$1"/checkpoint-*)" = "$1/checkpoint-36" ] || fail "checkpoints: $(ls "$1")"
    # The curve is the same, line by line, but for the time that it took.
    curve "$1" >curve
    cmp whole.curve curve || fail "another curve: $(cat curve)"
}
