#!/bin/bash
# The way of the user's own texts and labels through four programs: a vocabulary, training, figures,
# answers. The commands are those of datasets/README.md.
# usage: own_labels_test.sh PROGRAMS_SH CLASSIFY EVALUATE TRAIN TRAIN_VOCAB CSV
set -u
# shellcheck source=common/testing/programs.sh
. "$1"
classify=("$PWD/$2" --device cpu --checkpoint requests/best)
evaluate=("$PWD/$3" --device cpu --checkpoint requests/best)
train=$PWD/$4
train_vocab=$PWD/$5
csv=$PWD/$6
cd "$TEST_TMPDIR" || exit 1
unset BUILD_WORKING_DIRECTORY
: >in
text=(--data "$csv" --text-column message)

accepts "$train_vocab" --size 600 "${text[@]}" --output vocab.txt
accepts "$train" --task classify "${text[@]}" --label-column team --vocab vocab.txt --eval-rows 24 \
    --hidden 64 --layers 1 --heads 4 --max-length 24 --batch-size 8 --epochs 20 --lr 3e-3 \
    --device cpu --output-dir requests
says "4 labels: 'billing', 'delivery', 'returns', 'thanks'" out
trained=$(sed -n 's/.*accuracy \([0-9.]*\), the best so far/\1/p' out | tail -n 1)

# What training said of the best model, evaluate says of the same texts.
accepts "${evaluate[@]}" "${text[@]}" --label-column team --skip 72 --predictions answers
says "accuracy $trained," out
awk -v a="$trained" 'BEGIN { exit !(a >= 0.75) }' || fail "it has learnt too little: $trained"
[ "$(cut -f 1 answers | sort | uniq -c | xargs)" = "6 billing 6 delivery 6 returns 6 thanks" ] ||
    fail "other labels: $(cat answers)"
accepts "${evaluate[@]}" "${text[@]}" --label-column team --skip 72 --json
says '"confusion":[{"label":"billing","answer":"' out
accepts "${classify[@]}" -- "Can I collect the parcel at the depot myself?"
grep -qE '^delivery	billing [0-9.]+	delivery 0\.[0-9]+	returns [0-9.]+	thanks [0-9.]+$' out ||
    fail "not the names of the texts: $(cat out)"
finish
