#!/bin/bash
# The evaluate program from outside.
# usage: evaluate_test.sh PROGRAMS_SH EVALUATE RANDOM_BERT
set -u
# shellcheck source=common/testing/programs.sh
. "$1"
evaluate=$PWD/$2
random_bert=$PWD/$3
cd "$TEST_TMPDIR" || exit 1
unset BUILD_WORKING_DIRECTORY
: >in
bare "$evaluate"
"$random_bert" -o two >/dev/null || exit 1
"$random_bert" -o four --labels 4 >/dev/null || exit 1

# A small data set of either kind, texts of many lengths.
mkdir -p imdb/test/neg imdb/test/pos
for i in 1 2 3 4 5 6; do
    head -c $((i * 8)) /dev/zero | tr '\0' 'a' | sed 's/aaa/dul /g' >imdb/test/neg/$i.txt
    head -c $((i * 13)) /dev/zero | tr '\0' 'z' | sed 's/zzzz/fine/g' >imdb/test/pos/$i.txt
done
awk 'BEGIN { for (i = 0; i < 16; i++) printf "\"%d\",\"Title %d\",\"text \"\"%d\"\" and\\more\"\n",
    i % 4 + 1, i, i * i * i }' >news.csv
imdb=("$evaluate" --checkpoint two --device cpu --threads 1 --dataset imdb --data imdb)
news=("$evaluate" --checkpoint four --device cpu --threads 1 --dataset agnews --data news.csv)

# Flags.
accepts "$evaluate" --help
for flag in dataset data format text-column label-column json split limit skip padded predictions max-length batch-size dtype; do
    says "--$flag" out
done
refuses "unexpected argument 'more'" "${imdb[@]}" more
refuses "no --checkpoint given, and datasets/reviews_bert is not there: give --checkpoint DIR" "${bare[@]}" --dataset imdb --data imdb
refuses "no --data given, and datasets/reviews_sample.tsv is not there" "${bare[@]}" --random --dataset sample
refuses "give --data FILE with labelled texts of your own" "$evaluate" -c two
refuses "--dataset imdb: give its folder or file with --data" "$evaluate" -c two --dataset imdb
refuses "not 'smaple'" "$evaluate" -c two --dataset smaple
refuses "--data imdb: give --dataset imdb, agnews, text or sample, or for a file of your own --format" "$evaluate" -c two --data imdb
refuses "--format, --text-column and --label-column are for files of your own, not for --dataset imdb" "${imdb[@]}" --format csv
refuses "--dataset text --split test: these texts have no labels" "$evaluate" -c two --data a.txt
refuses "a data set is 'imdb', 'agnews', 'text', 'sample' (the project's own) or 'file' (yours), not 'sst2'" "$evaluate" -c two --dataset sst2 --data x
refuses "--dtype is 'fp32', 'fp16' or 'bf16', not 'int8'" "${imdb[@]}" --dtype int8
refuses "--dtype fp16: it computes in fp32 only; stages with fp16: " "${imdb[@]}" --dtype fp16
refuses "a split is 'test' or 'train' (of imdb also 'unsup'), not 'dev'" "${imdb[@]}" --split dev
refuses "--dataset imdb --split unsup: these texts have no labels" "${imdb[@]}" --split unsup
refuses "--dataset text --split test: these texts have no labels" "${imdb[@]}" --dataset text
refuses "--limit -1, --skip 0: must be at least 0" "${imdb[@]}" --limit=-1

# Data.
refuses "absent: cannot open" "$evaluate" -c two --dataset imdb --data absent
refuses "imdb: holds no folder 'train' with reviews" "${imdb[@]}" --split train
refuses "two: the model has 2 labels, but agnews has 4; give a model for that data" \
    "$evaluate" -c two --dataset agnews --data news.csv
refuses "four: the model has 4 labels, but imdb has 2; give a model for that data" \
    "$evaluate" -c four --dataset imdb --data imdb
printf '1,a,b\n"2","open,c\n' >broken.csv
refuses "broken.csv: line 2: the quote that opens here is never closed" \
    "${news[@]}" --data broken.csv
printf '1,a,b\n9,a,b\n' >broken.csv
refuses "broken.csv: line 2: a class is 1 to 4, not '9'" "${news[@]}" --data broken.csv
printf '1,a,b\n0,a,b\n' >broken.csv
refuses "broken.csv: line 2: a class is 1 to 4, not '0'" "${news[@]}" --data broken.csv
printf '1,a,b\n5,a,b\n' >broken.csv
refuses "broken.csv: line 2: a class is 1 to 4, not '5'" "${news[@]}" --data broken.csv
printf '1,a,b\n2,"x"y,c\n' >broken.csv
refuses "broken.csv: line 2: broken quotes: text after the closing quote" \
    "${news[@]}" --data broken.csv
printf '1,a,b\n2,a\n' >broken.csv
refuses "broken.csv: line 2: the row has 2 fields, must have class, title and description" \
    "${news[@]}" --data broken.csv
printf '1,a,caf\xe9\n' >broken.csv
refuses "broken.csv: line 1: not valid UTF-8 at byte 5 (0xE9)" "${news[@]}" --data broken.csv
printf '1,a,b\n2,a,b\n' >broken.csv
refuses "broken.csv: no text has the label 'Business'" "${news[@]}" --data broken.csv
refuses "news.csv: no texts after the first 99" "${news[@]}" --skip 99
mv imdb/test/neg away
refuses "imdb/test/neg: cannot read the reviews labelled 'neg'" "${imdb[@]}"
mkdir imdb/test/neg
refuses "imdb: no text has the label 'neg'" "${imdb[@]}"
printf 'caf\xe9\n' >imdb/test/neg/1.txt
refuses "imdb/test/neg/1.txt: not valid UTF-8 at byte 3 (0xE9)" "${imdb[@]}"
: >imdb/test/neg/1.txt
refuses "imdb/test/neg/1.txt: there is no text" "${imdb[@]}"
rm -r imdb/test/neg
mv away imdb/test/neg

# Figures.
accepts "${imdb[@]}"
says "imdb, test: 12 texts" out
says "accuracy 0." out
says "macro F1 0." out
says "texts/s" out
[ -s err ] && fail "said on standard error: $(cat err)"
grep -qE '^  neg +[01]\.[0-9]{4} +[01]\.[0-9]{4} +[01]\.[0-9]{4} +6$' out || fail "no row of neg: $(cat out)"
accepts "${news[@]}"
grep -qE '^  Sci/Tech( +[0-9]+){4}$' out || fail "no confusion matrix: $(cat out)"
accepts "${news[@]}" --limit 6 --skip 10
says "agnews, test: 6 texts" out
accepts "$evaluate" --random --device cpu --dataset agnews --data news.csv --max_length 16 --batch_size 4
says "random weights: of the figures below only the speed is meaningful" out

# The same answers whatever the batches; the figures are those of the answers. Most random weights
# give one answer to all texts, which would prove little: take the first seed that does not.
for seed in {1..40}; do
    "$random_bert" -o two --seed "$seed" >/dev/null || exit 1
    accepts "${imdb[@]}" --predictions want
    [ "$(cut -f 2 want | sort -u | wc -l)" -eq 2 ] && break
done
[ "$(cut -f 2 want | sort -u | wc -l)" -eq 2 ] || fail "no seed gives two answers"
[ "$(wc -l <want)" -eq 12 ] || fail "not an answer a text: $(cat want)"
right=$(awk '$1 == $2' want | wc -l)
says "accuracy $(awk "BEGIN { printf \"%.4f\", $right / 12 }")" out
[ "$(awk '$1 == "neg"' want | wc -l)" -eq 6 ] || fail "labels are not the data's: $(cat want)"
for how in "-b 1" "-b 8" "-b 1 --padded" "-b 8 --padded" "-b 5 --padded"; do
    # shellcheck disable=SC2086 # flags
    accepts "${imdb[@]}" $how --predictions got
    cmp -s want got || fail "other answers with $how"
done
says "padding" out
writes_well "${imdb[@]}" --device cpu --limit 2 -l 8 --predictions

# Own labels: the checkpoint's names, in three formats, with columns by name.
sed 's/LABEL_0/refund, please/; s/LABEL_1/bug/' two/config.json >named.json && cp named.json two/config.json
printf 'body,id,team\r\n"it ""broke""\nagain",1,bug\r\nmoney back,2,"refund, please"\r\nbroken,3,bug\r\n' >own.csv
printf 'text\tlabel\nit broke again\tbug\nmoney back\trefund, please\nbroken\tbug\n' >own.tsv
printf '%s\n' '{"text": "it broke again", "label": "bug"}' '{"label": "refund, please", "text": "money back"}' >own.jsonl
own=("$evaluate" -c two --device cpu --threads 1)
columns=(--text-column body --label-column team)
accepts "${own[@]}" --data own.csv "${columns[@]}" --predictions answers
says "own.csv: 3 texts, 0 of them cut" out
grep -qE '^  refund, please +[01]\.[0-9]{4} +[01]\.[0-9]{4} +[01]\.[0-9]{4} +1$' out || fail "no row of refunds: $(cat out)"
[ "$(cut -f 1 answers | xargs)" = "bug refund, please bug" ] || fail "other labels: $(cat answers)"
accepts "${own[@]}" --data own.tsv
says "own.tsv: 3 texts" out
accepts "${own[@]}" --dataset file --data own.jsonl --limit 1
says "own.jsonl: 1 texts" out
accepts "${own[@]}" --data own.csv "${columns[@]}" --json --predictions objects
[ "$(wc -l <out)" -eq 1 ] || fail "not one object: $(cat out)"
says '{"dataset":"own.csv","texts":3,"cut":0,' out
says '{"label":"refund, please","precision":' out
[ "$(grep -cE '^\{"text":".*","label":"(bug|refund, please)","answer":"(bug|refund, please)","probability":0\.[0-9]+\}$' objects)" -eq 3 ] ||
    fail "not three objects: $(cat objects)"
[ "$(sed 's/.*"label":"//; s/","answer":"/\t/; s/","probability.*//' objects)" = "$(cat answers)" ] ||
    fail "--json answers otherwise: $(cat objects answers)"
refuses "own.csv: line 1: the header has no column 'text', only 'body', 'id', 'team': name the right one with --text-column" \
    "${own[@]}" --data own.csv
printf 'text,label\n"two\nlines",bug\nx,praise\n' >other.csv
refuses "other.csv: line 4: the model does not know the label 'praise'; its labels are 'refund, please', 'bug'" \
    "${own[@]}" --data other.csv

# On the GPU, or simt, the same again.
if "$evaluate" --random --stage none --dataset imdb --data imdb 2>&1 | grep -q 07_attention; then
    accepts "${imdb[@]}" --limit 4 -l 24 --predictions want
    accepts "${imdb[@]}" --limit 4 -l 24 --device gpu --predictions got
    cmp -s want got || fail "the GPU answers otherwise"
    grep -qE 'texts/s, .*\((measured|modelled), model only\)' out || fail "nobody says whose time: $(cat out)"
fi

# The real data.
data=${WARPBOOK_DATA:-}
if [ -r "$data/aclImdb_labelled.tar.xz" ] && [ -r "$data/ag_news_test.csv" ]; then
    accepts "${imdb[@]}" --data "$data/aclImdb_labelled.tar.xz" --split train --limit 6 -l 16
    says "imdb, train: 6 texts, 6 of them cut to 16 tokens" out
    accepts "${news[@]}" --data "$data/ag_news_test.csv" --skip 6000 --limit 40
    says "agnews, test: 40 texts" out
else
    echo "skipped: the real data sets; set WARPBOOK_DATA to a folder with aclImdb_labelled.tar.xz and ag_news_test.csv"
fi
finish
