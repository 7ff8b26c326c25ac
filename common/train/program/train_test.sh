#!/bin/bash
# The train program from outside, on the CPU.
# usage: train_test.sh PROGRAMS_SH TRAIN PERPLEXITY
set -u
# shellcheck source=common/testing/programs.sh
. "$1"
train=$PWD/$2 perplexity=$PWD/$3
cd "$TEST_TMPDIR" || exit 1
unset BUILD_WORKING_DIRECTORY
: >in

# Texts in which most words follow from the word before, texts of one word each, and news whose class
# stands in them.
awk 'BEGIN { srand(3); n = split("the film was good and plot is dull but actor who can not act", w, " ")
    for (i = 0; i < 80; i++) { s = ""; at = int(rand() * n)
        for (j = 0; j < 6 + i % 5; j++) { s = s w[at % n + 1] " "; at += rand() < 0.9 ? 1 : 3 }
        print s } }' >texts.txt
awk 'BEGIN { split("war ball bank chip film", w, " ")
    for (i = 0; i < 80; i++) { for (j = 0; j < 10; j++) printf "%s ", w[i % 5 + 1]; print "" } }' >same.txt
awk 'BEGIN { split("war ball bank chip", w, " ")
    for (i = 0; i < 60; i++) printf "%d,\"the %s\",\"is %s\"\n", i % 4 + 1, w[i % 4 + 1],
        i % 3 ? "good and dull" : "not good" }' >news.csv
(printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n'
    printf '%s\n' the film was good and plot is dull but actor who can not act war ball bank chip) >vocab.txt
# llama2.c's format: longest piece, then score, length, piece of <unk>, <s>, </s> and 256 bytes.
LC_ALL=C awk 'BEGIN { printf "\\x06\\x00\\x00\\x00"
    split("<unk> <s> </s>", w, " ")
    for (i = 0; i < 259; i++) { t = i < 3 ? w[i + 1] : sprintf("<0x%02X>", i - 3)
        printf "\\x00\\x00\\x00\\x00\\x%02x\\x00\\x00\\x00%s", length(t), t } }' >escaped
printf '%b' "$(cat escaped)" >tokenizer.bin

sizes=(--hidden 32 --layers 1 --heads 2 --max-length 16 --batch-size 8 --log-every 1 --lr 0.01)
text=(--dataset text --data texts.txt)
mlm=("$train" --task mlm "${text[@]}" --vocab vocab.txt "${sizes[@]}")
news=("$train" --task classify --dataset agnews --data news.csv --vocab vocab.txt "${sizes[@]}")
lm=("$train" --task lm "${text[@]}" --vocab tokenizer.bin "${sizes[@]}")

# Flags.
accepts "$train" --help
for flag in task dataset data format text-column label-column max-length batch-size epochs lr output-dir do-train do-eval do-profile \
    load-checkpoint seed schedule warmup accumulate save-every resume log; do
    says "--$flag" out
done
refuses "--task classify|mlm|lm is needed" "$train"
refuses "--task is 'classify', 'mlm' or 'lm', not 'gan'" "$train" --task gan
refuses "--data PATH is needed" "$train" --task mlm
refuses "--data folder: give --dataset imdb, agnews, text or sample, or for a file of your own --format" "$train" -t mlm --data folder
refuses "--label-column team: --task mlm reads no labels" "$train" -t mlm --data x.csv --label-column team
refuses "--format, --text-column and --label-column are for files of your own" "$train" -t mlm "${text[@]}" --format csv
refuses "not 'sst2'" "$train" -t mlm --dataset sst2 --data x
refuses "--dataset text: its texts have no labels" "$train" -t classify "${text[@]}" -o o
refuses "--output-dir DIR is needed" "${mlm[@]}"
refuses "--output-dir DIR is needed" "${mlm[@]}" --output-dir ""
refuses "--do-eval without --do-train needs --load-checkpoint DIR" "${mlm[@]}" --do-eval
refuses "--vocab FILE is needed: vocab.txt" "$train" -t mlm "${text[@]}" -o o
refuses "--vocab FILE is needed: tokenizer.bin" "$train" -t lm "${text[@]}" -o o
refuses "give --config or --load-checkpoint, not both" "${mlm[@]}" -o o --config c --load_checkpoint l
refuses "unexpected argument 'more'" "${mlm[@]}" -o o more
refuses "--batch-size 0: from 1 to" "${mlm[@]}" -o o --batch_size 0
refuses "--max-length 2: from 3 to" "${mlm[@]}" -o o --max_length 2
refuses "--epochs 0: from 1 to" "${mlm[@]}" -o o -e 0
refuses "--lr -1: at least 0" "${mlm[@]}" -o o --lr=-1
refuses "--dropout 1: at least 0 and below 1" "${mlm[@]}" -o o --dropout 1
refuses "--mlm-probability 0: more than 0 and below 1" "${mlm[@]}" -o o --mlm-probability 0
refuses "--mlm-probability 1: more than 0 and below 1" "${mlm[@]}" -o o --mlm_probability 1
refuses "--eps 0: more than 0" "${mlm[@]}" -o o --eps 0
refuses "--dropout has no effect without --task classify or mlm: language models have none" "${lm[@]}" -o o --dropout 0.2
refuses "--mlm-probability has no effect without --task mlm" "${news[@]}" -o o --mlm-probability 0.2
refuses "--kv-heads has no effect without --task lm" "${mlm[@]}" -o o --kv-heads 1
refuses "--kv-heads has no effect without --task lm --model llama2" "${lm[@]}" -o o --model gpt-neox --kv-heads 1
refuses "--model has no effect without --task lm" "${mlm[@]}" -o o --model gpt-neox
refuses "--model is 'llama2' or 'gpt-neox', not 'gpt2'" "${lm[@]}" -o o --model gpt2
refuses "--tied has no effect without --task lm" "${mlm[@]}" -o o --tied=false
refuses "--schedule is 'linear' or 'cosine', not 'step'" "${mlm[@]}" -o o --schedule step
refuses "--dtype is 'fp32' or 'bf16', not 'fp16'" "${mlm[@]}" -o o --dtype fp16
refuses "--save-dtype is 'fp32', 'fp16' or 'bf16', not 'int8'" "${mlm[@]}" -o o --save-dtype int8
refuses "--hidden 32 is no multiple of --heads 3" "${mlm[@]}" -o o --heads 3
refuses "a split is 'test' or 'train'" "${mlm[@]}" -o o --split dev
refuses "text has no split 'unsup'" "${mlm[@]}" -o o --split unsup
[ ! -e o/checkpoint-0 ] || fail "something was trained"

# Files.
refuses "absent: cannot open" "$train" -t mlm --dataset text --data absent --vocab vocab.txt -o o
refuses "absent.txt: cannot open" "$train" -t mlm "${text[@]}" --vocab absent.txt -o o
refuses "--load-checkpoint absent: there is no such folder" "${mlm[@]}" -c absent -o o
refuses "absent.json: cannot open" "${mlm[@]}" --config absent.json -o o
echo '{' >broken.json
refuses "broken.json" "${mlm[@]}" --config broken.json -o o
refuses "texts.txt/o: cannot make the folder: Not a directory" "${mlm[@]}" -o texts.txt/o
refuses "--train-rows 80, --eval-rows 0: too few texts: the data has 80" "${mlm[@]}" -o o --train-rows 80
[ ! -e o ] || fail "a run that did not begin leaves a folder"
refuses "too few texts: the data has 80" "${mlm[@]}" -o o --train-rows 70 --eval-rows 11
grep -v MASK vocab.txt >short.txt
refuses "short.txt: there is no [MASK]" "$train" -t mlm "${text[@]}" --vocab short.txt -o o

refuses "vocab.txt: this is a text file; give llama2.c's tokenizer.bin or a tokenizer.json" \
    "$train" -t lm "${text[@]}" --vocab vocab.txt -o o
refuses "/dev/zero: never ends" "${mlm[@]}" --data /dev/zero -o o
if [ "$(id -u)" -ne 0 ]; then
    mkdir -p locked/model && chmod 0 locked
    refuses "locked/model/config.json: cannot open: Permission denied" "${mlm[@]}" -c locked/model -o o
    refuses "locked/run: cannot make the folder: Permission denied" "${mlm[@]}" -o locked/run
    chmod 755 locked
fi

# A curve that cannot be written is refused before the texts are read.
refuses "absent/log: cannot append: No such file or directory" "${mlm[@]}" -o o --log absent/log --data absent
refuses "o: cannot append: Is a directory" "${mlm[@]}" -o o --log o --data absent
rm -rf o
# It goes to a device, to a pipe, whose reader sees the end once, and to a descriptor.
short=("${mlm[@]}" --max-steps 3)
accepts "${short[@]}" -o o1 --log /dev/null
[ -c /dev/null ] || fail "/dev/null was replaced"
mkfifo pipe
cat pipe >through &
reader=$!
accepts "${short[@]}" -o o2 --log pipe
[ -p pipe ] || { fail "a pipe was replaced" && kill "$reader"; }
wait "$reader"
[ "$(wc -l <through)" -eq 4 ] || fail "not four lines through the pipe: $(cat through)"
echo before >third
accepts "${short[@]}" -o o3 --log /dev/fd/3 3>>third
[ "$(wc -l <third) $(head -n 1 third)" = "5 before" ] || fail "not appended: $(cat third)"

# loss NUMBER: of the first or the last line of the curve.
loss() {
    grep '"train"' "$2/log.jsonl" | sed -n "$1s/.*\"loss\":\([0-9.e-]*\).*/\1/p"
}
# learns FOLDER FACTOR: the last loss is below FACTOR times the first.
learns() {
    awk -v a="$(loss 1 "$1")" -v b="$(loss '$' "$1")" -v f="$2" 'BEGIN { exit !(b < a * f) }' ||
        fail "$1: the loss went from $(loss 1 "$1") to $(loss '$' "$1")"
}

# Each task learns, and says what it trained on.
accepts "${mlm[@]}" --data same.txt -o mlm -e 30 --dropout 0
learns mlm 0.4
says "train: text, train of same.txt, texts 1 to 72 of them: 72 sequences" out
says "evaluate: text, train of same.txt, texts 73 to 80 of them: 8 sequences" out
says "the best so far" out
for file in best/model.safetensors final/config.json final/vocab.txt checkpoint-270/optimizer.safetensors; do
    [ -s "mlm/$file" ] || fail "no mlm/$file"
done
[ "$(echo mlm/checkpoint-*)" = mlm/checkpoint-270 ] || fail "more than one checkpoint"
accepts "${news[@]}" -o news -e 25 --dropout 0 --train-rows 40 --eval-rows 20 --save-dtype bf16
learns news 0.2
says "agnews, train of news.csv, texts 41 to 60 of them: 20 sequences" out
says "accuracy 1.0000" out
says '"0":	"World"' news/final/config.json
says '"bfloat16"' news/final/config.json
accepts "${lm[@]}" -o lm -e 30 --kv-heads 1
cp out lm.out
learns lm 0.75
says "bits per byte" out
[ -s lm/final/tokenizer.bin ] || fail "no tokenizer beside the model"
# Of a text that is one window, they are those of `perplexity`.
printf 'the film' >window.txt
accepts "${lm[@]}" --data window.txt --do-eval -c lm/final
bits=$(sed -n 's/.* \([0-9.]*\) bits per byte.*/\1/p' out)
accepts "$perplexity" lm/final --file window.txt
awk -v a="$bits" -v b="$(sed -n 's/^bits per byte *//p' out)" \
    'BEGIN { d = a - b; exit !(a > 0 && b > 0 && d * d < 1e-8) }' || fail "$bits bits per byte, perplexity: $(cat out)"

# A GPT-NeoX: its loss falls, its folder is one of transformers', and perplexity computes the same of it.
accepts "${lm[@]}" --model gpt-neox -o neox -e 3
says "GPT-NeoX of 1 layers of 32 channels" out
says '"model_type":	"gpt_neox"' neox/final/config.json
accepts "${lm[@]}" --data window.txt --do-eval -c neox/final
neox_bits=$(sed -n 's/.*, \([0-9.]*\) bits per byte.*/\1/p' out | tail -n 1)
accepts "$perplexity" neox/final --file window.txt
awk -v a="$neox_bits" -v b="$(sed -n 's/^bits per byte *//p' out)" \
    'BEGIN { d = a - b; exit !(a > 0 && a < 8 && d * d < 1e-8) }' || fail "$neox_bits bits per byte of a GPT-NeoX, perplexity: $(cat out)"

# Own labels, in files of three formats: sorted, written to config.json, learnt.
awk 'BEGIN { split("war ball bank chip", w, " "); split("10 9", k, " ")
    printf "id,body,team\r\n"
    for (i = 0; i < 60; i++) printf "%d,\"the %s\nis %s\",\"%s\"\r\n", i, w[i % 4 + 1],
        i % 3 ? "good and dull" : "not good", (i % 4 == 1) ? "sport, etc." : (i % 4 == 0) ? "foreign" : k[1 + i % 2] }' >own.csv
own=("$train" --task classify --vocab vocab.txt "${sizes[@]}" --epochs 25 --dropout 0 --lr 0.003 --seed 3)
accepts "${own[@]}" --data own.csv --text-column body --label-column team -o own
learns own 0.3
says "4 labels: '10', '9', 'foreign', 'sport, etc.'" out
says "train: file, train of own.csv, texts 1 to 54 of them: 54 sequences" out
says "accuracy 1.0000" out
says '"3":	"sport, etc."' own/final/config.json
says '"sport, etc.":	3' own/final/config.json
# JSON lines with whole numbers: sorted by value; another file to evaluate on, with another ending.
awk 'BEGIN { split("war ball bank chip", w, " ")
    for (i = 0; i < 40; i++) printf "{\"label\": %d, \"text\": \"%s is good\"}\n", 12 - 4 * (i % 4), w[i % 4 + 1] }' >own.jsonl
printf 'label\ttext\n8\tball ball\n12\twar\n' >few.tsv
accepts "${own[@]}" --data own.jsonl --eval-data few.tsv -o numbers
says "4 labels: '0', '4', '8', '12'" out
says "evaluate: file, test of few.tsv: 2 sequences" out
says "accuracy 1.0000" out
printf 'label\ttext\n8\tball\n7\twar\n' >unknown.tsv
refuses "unknown.tsv: line 3: the model does not know the label '7'; its labels are '0', '4', '8', '12'" \
    "${own[@]}" --data own.jsonl --eval-data unknown.tsv -o o
# The ids are the checkpoint's, even if a file lacks a label: in an evaluation, and in more training.
accepts "${own[@]}" --do-eval -c numbers/final --data few.tsv
says "4 labels: '0', '4', '8', '12'" out
says "accuracy 1.0000" out
refuses "unknown.tsv: line 3: the model does not know the label '7'" "${own[@]}" --do-eval -c numbers/final --data unknown.tsv
accepts "${own[@]}" -e 1 -c numbers/final --data few.tsv --do-train -o further
says "4 labels: '0', '4', '8', '12'" out
grep -q "initialised at random" out && fail "the classifier was not kept: $(cat out)"
# Other labels get a new classifier.
accepts "${own[@]}" -e 1 -c numbers/final --data unknown.tsv --do-train -o renewed
says "2 labels: '7', '8'" out
says "numbers/final has no head for this task: 2 tensors are initialised at random, from \"classifier.weight\" on" out
# A sorted file leaves labels that no training text has.
(echo text,label; for i in 1 2 3 4 5 6 7 8 9; do echo good,a; done; echo dull,b) >sorted.csv
accepts "${own[@]}" -e 1 --data sorted.csv -o sorted
says "no training text has the label 'b': the first texts of the file train, the last ones evaluate" out
(echo text,label; echo good,a; echo dull,a) >single.csv
refuses "single.csv: all texts have the label 'a': a classifier needs two labels or more" "${own[@]}" --data single.csv -o o
refuses "own.csv: line 1: the header has no column 'text', only 'id', 'body', 'team': name the right one with --text-column" "${own[@]}" --data own.csv -o o
# Texts for a language model need no labels.
accepts "$train" --task mlm --data own.csv --text-column body --vocab vocab.txt "${sizes[@]}" -e 1 -o masked
says "train: file, train of own.csv, texts 1 to 54 of them: 54 sequences" out
accepts "$train" --task lm --data same.txt --vocab tokenizer.bin "${sizes[@]}" --max-steps 1 -o by_ending
says "train: text, train of same.txt" out

# Where a data set has a test split of its own, that evaluates.
mkdir -p news.folder imdb/{train,test}/{pos,neg} imdb/train/unsup
cp news.csv news.folder/train.csv
head -n 8 news.csv >news.folder/test.csv
accepts "${news[@]}" --data news.folder -o folder --max-steps 1
says "train: agnews, train of news.folder: 60 sequences" out
says "evaluate: agnews, test of news.folder: 8 sequences" out
for i in 1 2 3 4 5 6 7 8 9 10; do
    echo "good film $i" | tee "imdb/train/pos/$i.txt" "imdb/test/pos/$i.txt" >/dev/null
    echo "dull film is dull and plot is not good but the actor can act" | tee "imdb/train/neg/$i.txt" "imdb/train/unsup/$i.txt" >imdb/test/neg/$i.txt
done
mkdir -p labelled/train/{pos,neg} labelled/train/unsup
cp imdb/train/pos/* labelled/train/pos/ && cp imdb/train/neg/* labelled/train/neg/
refuses "labelled: there are no texts of the split 'unsup'; --split names another" \
    "$train" --dataset imdb --data labelled --vocab vocab.txt --task mlm -o o
reviews=("$train" --dataset imdb --data imdb --vocab vocab.txt "${sizes[@]}" --max-steps 1)
accepts "${reviews[@]}" --task classify -o reviews --eval-rows 6
says "train: imdb, train of imdb: 20 sequences" out
says "evaluate: imdb, test of imdb, texts 1 to 6 of them: 6 sequences" out
accepts "${reviews[@]}" --task mlm -o unlabelled
says "train: imdb, unsup of imdb, texts 1 to 9 of them: 9 sequences" out
says "evaluate: imdb, unsup of imdb, texts 10 to 10 of them: 1 sequences" out
accepts "${reviews[@]}" --task mlm -o others --split train --eval-split test --train-rows 6
says "train: imdb, train of imdb, texts 1 to 6 of them: 6 sequences" out
says "evaluate: imdb, test of imdb: 20 sequences" out

# Evaluation alone says what the training said last.
last=$(grep evaluation lm.out | tail -n 1 | sed 's/.*evaluation: //; s/, the best so far//')
accepts "${lm[@]}" --do-eval -c lm/final --train-rows 72
says "evaluation: $last" out

# On the CPU in fp32 and on the reference in double a run is the same but for rounding.
for device in cpu reference; do
    accepts "${news[@]}" -o "$device" --device "$device" --train-rows 40 --max-steps 3 --do-train
done
says "on the CPU reference, in double" out
for line in 1 3; do
    awk -v a="$(loss $line cpu)" -v b="$(loss $line reference)" \
        'BEGIN { d = a - b; exit !(d * d < 1e-8 * b * b) }' ||
        fail "loss $line: $(loss $line cpu) on the CPU, $(loss $line reference) on the reference"
done
refuses "--device is 'auto', 'cpu' or 'reference', not 'tpu'" "${news[@]}" -o o --device tpu
refuses "--dtype bf16: the CPU computes in fp32 only" "${news[@]}" -o o --dtype bf16

# A checkpoint is the beginning of another run: the encoder is kept, the head drawn anew.
accepts "${news[@]}" -o tuned -e 1 --train-rows 40 -c mlm/final
says "mlm/final has no head for this task: 4 tensors are initialised at random, from \"bert.pooler.dense.weight\" on" out
accepts "${mlm[@]}" --data same.txt -o more -e 1 -c mlm/final
awk -v a="$(loss 1 mlm)" -v b="$(loss 1 more)" 'BEGIN { exit !(b < a) }' || fail "weights were not loaded"
refuses "mlm/final/config.json" "${lm[@]}" -o o -c mlm/final
accepts "${mlm[@]}" -o two --layers 2 --max-steps 1 --do-train
sed -i 's/"num_hidden_layers":[[:space:]]*2/"num_hidden_layers": 1/' two/final/config.json
run "${mlm[@]}" -o o -c two/final
{ [ "$code" -eq 1 ] && [ "$(wc -l <err)" -eq 1 ]; } || fail "a layer too many: $code, $(cat err)"
says 'there is a tensor "bert.encoder.layer.1.attention.self.query.weight", but "num_hidden_layers" in config.json is 1' err
refuses "--max-length 17: the model has 16 positions" "${mlm[@]}" -o o -c mlm/final -l 17
run "${mlm[@]}" --do-eval -c news/final
{ [ "$code" -eq 1 ] && [ "$(wc -l <err)" -eq 1 ]; } || fail "no head to evaluate: $code, $(cat err)"
says 'news/final: tensor "cls.predictions.' err
(cat vocab.txt; echo more) >long.txt
refuses "long.txt: the vocabulary has 24 pieces, the model 23" \
    "$train" -t mlm "${text[@]}" -c mlm/final --vocab long.txt -l 16 -o o

# A profile says where the time went, and changes nothing else.
accepts "${mlm[@]}" -o plain --max-steps 4
accepts "${mlm[@]}" -o profiled --max-steps 4 --do-profile
grep -qE '^  linear_backward +[0-9]+ +[0-9.]+ +[0-9.]+% +[0-9.]+$' out || fail "no profile: $(cat out)"
says "measured, waiting after each" out
awk '/^  [a-z_]+ .*%/ { sum += $4 } END { exit !(sum > 99 && sum < 101) }' <(sed 's/all else  */all_else 0 /' out) ||
    fail "the shares are not a whole: $(cat out)"
cmp plain/final/model.safetensors profiled/final/model.safetensors || fail "a profile changes the model"

# Accumulated batches are one large batch.
accepts "${mlm[@]}" -o whole --max-steps 4 --dropout 0 --do-train
accepts "${mlm[@]}" -o parts --max-steps 4 --dropout 0 --do-train --batch-size 4 --accumulate 2
awk -v a="$(loss '$' whole)" -v b="$(loss '$' parts)" 'BEGIN { d = a - b; exit !(d * d < 1e-10) }' ||
    fail "accumulated: $(loss '$' parts), at once: $(loss '$' whole)"

# Texts of one token: batches in which none is hidden change nothing, an evaluation of one is refused.
printf 'film\ngood\nthe\nplot\nis\n' >one.txt
run "${mlm[@]}" --data one.txt -o one --batch-size 1 --epochs 1
{ [ "$code" -eq 1 ] && [ "$(wc -l <err)" -eq 1 ]; } || fail "nothing to evaluate: $code, $(cat err)"
says "no token has a label" err
says "step 4/4, epoch 1.00: loss" out

# Evaluations come when they are asked for.
accepts "${mlm[@]}" -o often --max-steps 5 --eval-every 2
[ "$(grep -o '"eval","step":[0-9]*' often/log.jsonl | tr -dc '0-9\n' | xargs)" = "2 4 5" ] ||
    fail "evaluations: $(grep eval often/log.jsonl)"

# A run is not begun over another one; one that is complete stays as it is.
refuses "contains a run with a checkpoint at step 4: continue it with --resume" "${mlm[@]}" -o whole
accepts "${mlm[@]}" -o whole --max-steps 4 --dropout 0 --do-train --resume
says "resuming at step 4 of 4" out
run "${mlm[@]}" -o whole --max-steps 4 --dropout 0 --do-train --resume --lr 0.02
{ [ "$code" -eq 1 ] && [ "$(wc -l <err)" -eq 1 ]; } || fail "another rate: $code, $(cat err)"
says "--lr: 0.02 here, 0.01 in the run that --resume would continue" err
run "${mlm[@]}" -o whole --max-steps 4 --dropout 0 --do-train --resume --mlm-probability 0.2
says "--mlm-probability: 0.2 here, 0.15 in the run that --resume would continue" err
(cat texts.txt; tail -n 1 texts.txt) >others.txt
run "${mlm[@]}" -o whole --max-steps 4 --dropout 0 --do-train --resume --data others.txt
says "the training data: 81 sequences" err

# Damaged checkpoints are refused, each with its line.
damaged() {
    rm -rf bad
    cp -r whole bad
    eval "$1"
    run "${mlm[@]}" -o bad --max-steps 4 --dropout 0 --do-train --resume
    { [ "$code" -eq 1 ] && [ "$(wc -l <err)" -eq 1 ]; } || fail "$1: $code, $(cat err)"
    says "$2" err
}
damaged 'rm bad/checkpoint-4/training.json' "checkpoint-4/training.json: cannot open"
damaged 'echo "{" >bad/checkpoint-4/training.json' "checkpoint-4/training.json:"
damaged 'sed -i "s/\"step\":.*/\"step\": -1,/" bad/checkpoint-4/training.json' '"step" is missing or no whole number'
damaged 'sed -i "s/\"step\":.*/\"step\": 3,/" bad/checkpoint-4/training.json' "training.json is of step 3"
damaged 'sed -i "s/\"schema\":.*/\"schema\": 9,/" bad/checkpoint-4/training.json' '"schema" is 9, not 2'
# One bit, behind the header.
flip() {
    byte=$(od -An -tu1 -j "$2" -N 1 "$1")
    printf "\\x$(printf %x $((byte ^ 1)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}
for name in model optimizer; do
    damaged "flip bad/checkpoint-4/$name.safetensors 9000" \
        "bad/checkpoint-4/$name.safetensors is damaged: its checksum is "
done
damaged 'head -c 3000 whole/checkpoint-4/optimizer.safetensors >bad/checkpoint-4/optimizer.safetensors' \
    "bad/checkpoint-4/optimizer.safetensors is damaged"
damaged 'rm bad/checkpoint-4/model.safetensors' "checkpoint-4/model.safetensors: cannot open"
# Without checksums, as earlier versions wrote it, a checkpoint is read, and its tensors are checked.
unsummed='sed -i "s/\"checksums\"/\"unknown\"/" bad/checkpoint-4/training.json'
rm -rf bad && cp -r whole bad && eval "$unsummed"
grep -q checksums bad/checkpoint-4/training.json && fail "there are checksums"
accepts "${mlm[@]}" -o bad --max-steps 4 --dropout 0 --do-train --resume
damaged "$unsummed"'; cp whole/checkpoint-4/model.safetensors bad/checkpoint-4/optimizer.safetensors' \
    'optimizer.safetensors: tensor "m.bert.embeddings.word_embeddings.weight" is missing'
damaged "$unsummed"'; cp news/final/model.safetensors bad/checkpoint-4/model.safetensors' \
    'model.safetensors: tensor "cls.predictions'
if [ -w /dev/full ]; then
    "${lm[@]}" --do-eval -c lm/final >/dev/full 2>err && fail "a full disk goes unnoticed"
fi
finish
