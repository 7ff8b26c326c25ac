#!/bin/bash
# Runs train_vocab: good runs, and one clear line for each bad run.
# usage: train_vocab_test.sh PROGRAMS_SH TRAIN_VOCAB
set -u
# shellcheck source=common/testing/programs.sh
. "$1"
train=$PWD/$2
cd "$TEST_TMPDIR" || exit 1
unset BUILD_WORKING_DIRECTORY
: >in

printf 'the low lower lowest\n\nthe new newer newest\n' >a.txt
printf 'low and new, the end\n' >b.txt
text=("$train" --dataset text --data "a.txt,b.txt" --min-count 1)

# WordPiece.
accepts "${text[@]}" --size 40 --output vocab.txt
says "vocab.txt: 40 pieces: 5 special, 23 characters, 12 merged" out
says "3 texts, 14 words, 10 of them different" out
says "0.0000% of the words are [UNK]" out
[ -s err ] && fail "a good run says something: $(cat err)"
[ "$(wc -l <vocab.txt)" -eq 40 ] || fail "not 40 pieces"
[ "$(head -n 5 vocab.txt | tr '\n' ' ')" = "[PAD] [UNK] [CLS] [SEP] [MASK] " ] || fail "no special pieces first"
grep -qx the vocab.txt || fail "'the' is no piece"
accepts "$train" --dataset text --data b.txt,a.txt --min_count 1 --size 40 --output other.txt
cmp -s vocab.txt other.txt || fail "other files first, another vocabulary"
printf 'Caf\xc3\xa9 Caf\xc3\xa9\n' >cased.txt
accepts "$train" --dataset text --data cased.txt --output cased
grep -qx cafe cased || fail "lower-case is not the default"
says "cased" out
accepts "$train" --dataset text --data cased.txt --lowercase=false --output cased
grep -qx "$(printf 'Caf\xc3\xa9')" cased || fail "--lowercase=false: $(cat cased)"
says "instead of the 8000 of --size: no other pair occurs 2 times" err

# The user's own files: of any format, several at once.
printf 'id,body\n1,"the low\nlower lowest"\n' >own.csv
printf '{"body": "the new newer newest"}\n{"body": "low and new, the end"}\n' >own.jsonl
accepts "$train" --data own.csv,own.jsonl --text-column body --min-count 1 --size 40 -o other.txt
cmp -s vocab.txt other.txt || fail "the same texts in other files, another vocabulary"
accepts "$train" --data b.txt,a.txt --min-count 1 --size 40 -o other.txt
cmp -s vocab.txt other.txt || fail ".txt is not --dataset text"

# BPE.
accepts "${text[@]}" --type bpe --size 285 -o tokenizer.bin
says "285 pieces: 259 special" out
says "bytes a piece" out
grep -qa ' the' tokenizer.bin || fail "' the' is no piece"

# A failure leaves the existing file unchanged.
cp vocab.txt before
printf 'ba\xff\n' >bad.txt
refuses "bad.txt: " "$train" --dataset text --data bad.txt --output vocab.txt
refuses "more than the 1 there is room for" "${text[@]}" --size 6 --output vocab.txt
cmp -s before vocab.txt || fail "a failure changed the file"
[ -z "$(find . -name 'vocab.txt.*')" ] || fail "a temporary file is left"

# Where the vocabulary goes.
writes_well "${text[@]}" --size 40 --output

# Flags.
accepts "$train" --help
says "--min-count" out
refuses "--data PATH and --output FILE are required" "$train"
refuses "--data PATH and --output FILE are required" "$train" --dataset text --data a.txt
refuses "--data folder: give --dataset imdb, agnews, text or sample" "$train" --data a.txt,folder -o x
refuses "a.txt: its name does not end in .tsv, .csv or .jsonl: give --format" "$train" --dataset file --data a.txt -o x
refuses "--type is 'wordpiece' or 'bpe', not 'unigram'" "${text[@]}" --type unigram -o x
refuses "--size is 5, must be from 6 to 1048576 for wordpiece" "${text[@]}" --size 5 -o x
refuses "--size is 259, must be from 260 to 1048576 for bpe" "${text[@]}" --type bpe --size 259 -o x
refuses "--characters is 0, --min-count is 1; both must be at least 1" "${text[@]}" --characters 0 -o x
refuses "--skip is 0, --limit is -1; neither may be negative" "${text[@]}" --limit -1 -o x
refuses "unexpected argument 'more'" "${text[@]}" -o x more
refuses "a data set is" "$train" --dataset books --data a.txt -o x
refuses "absent.txt: cannot open" "$train" --dataset text --data a.txt,absent.txt -o x
refuses "no character occurs 9 times" "$train" --dataset text --data b.txt --min-count 9 -o x
[ -e x ] && fail "a failed run left a file"

# Output that cannot be written is an error.
if [ -w /dev/full ]; then
    "${text[@]}" --size 40 -o full.txt >/dev/full 2>err && fail "a full disk goes unnoticed"
fi

finish
