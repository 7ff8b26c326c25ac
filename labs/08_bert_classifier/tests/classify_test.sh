#!/bin/bash
# The classify program from outside.
# usage: classify_test.sh PROGRAMS_SH CLASSIFY RANDOM_BERT
set -u
# shellcheck source=common/testing/programs.sh
. "$1"
classify=$PWD/$2
random_bert=$PWD/$3
cd "$TEST_TMPDIR" || exit 1
unset BUILD_WORKING_DIRECTORY
: >in
bare "$classify"
"$random_bert" -o model --labels 3 >/dev/null || exit 1
cpu=("$classify" --checkpoint model --device cpu)

# Flags.
echo GGUF >a.gguf
refuses "a.gguf: is no checkpoint; give a folder with config.json" "$classify" -c a.gguf --device cpu a
accepts "$classify" --help
for flag in checkpoint vocab random shape max-length batch-size device stage dtype threads file logits json; do
    says "--$flag" out
done
refuses "unknown flag '--colour'" "$classify" --colour
refuses "no --checkpoint given, and datasets/reviews_bert is not there: give --checkpoint DIR" "${bare[@]}" -- text
says "bazel run //datasets:random_bert" err
refuses "give --checkpoint or --random, not both" "${cpu[@]}" --random -- text
refuses "--batch-size 0: must be from 1 to 4096" "${cpu[@]}" --batch-size 0 -- text
refuses "--batch-size 4097: must be from 1 to 4096" "${cpu[@]}" --batch_size 4097 -- text
refuses "--max-length 2: must be at least 3" "${cpu[@]}" --max-length 2 -- text
refuses "--max-length -1: must be at least 3" "${cpu[@]}" --max_length=-1 -- text
refuses "--max-length 129: the model has 128 positions" "${cpu[@]}" -l 129 -- text
refuses "--threads 0: must be from 1 to 1024" "${cpu[@]}" -t 0 -- text
refuses "--device is 'auto', 'gpu' or 'cpu', not 'tpu'" "$classify" --random --device tpu -- text
refuses "--shape has no effect without --random" "${cpu[@]}" --shape base -- text
refuses "--shape is 'tiny' or 'base', not 'huge'" "$classify" --random --shape huge -- text
refuses "--stage '99_magic': unknown stage; choose one of 01_cpu_matmul" "$classify" --random --stage 99_magic -- text
refuses "give texts as arguments or with --file, not both" "${cpu[@]}" --file in -- text
refuses "give texts as arguments or with --file, not both" "${cpu[@]}" --file in -

# Stages by number.
for stage in 1 01 01_c; do
    accepts "${cpu[@]}" --stage "$stage" -- text
done
refuses "--stage '0': unknown stage" "${cpu[@]}" --stage 0 -- text

# What never ends is refused at once.
refuses "/dev/zero: never ends" "${cpu[@]}" -f /dev/zero

# Without a checkpoint: the workspace's own.
mkdir -p course/datasets course/labs && cp -r model course/datasets/reviews_bert && : >course/WORKSPACE
accepts "${cpu[@]}" -- "a fine film"
mv out named
accepts env BUILD_WORKSPACE_DIRECTORY="$PWD/course" "$classify" --device cpu -- "a fine film"
cmp -s out named || fail "the workspace's checkpoint answers otherwise"
accepts env -u RUNFILES_DIR -C course/labs "$PWD/bare/classify" --device cpu -- "a fine film"
cmp -s out named || fail "the checkpoint of the workspace around answers otherwise"
mkdir -p archive/labs/08 archive/datasets && cp -r model archive/datasets/reviews_bert && : >archive/manifest.tsv
cp "$classify" archive/labs/08/classify
accepts env -C bare -u RUNFILES_DIR "$PWD/archive/labs/08/classify" --device cpu -- "a fine film"
cmp -s out named || fail "the checkpoint of the archive around the program answers otherwise"
rm course/datasets/reviews_bert/vocab.txt
refuses "course/datasets/reviews_bert/vocab.txt: cannot open" env -u RUNFILES_DIR -C course "$PWD/bare/classify" -- text

# Checkpoints and vocabularies.
refuses "absent/config.json: cannot open" "$classify" -c absent -- text
cp -r model bad
head -c 1000 model/model.safetensors >bad/model.safetensors
refuses "bad/model.safetensors" "$classify" -c bad -- text
cp model/model.safetensors bad/model.safetensors
sed 's/"hidden_size":\t*[0-9]*/"hidden_size": 32/' model/config.json >bad/config.json
cmp -s model/config.json bad/config.json && fail "the configuration was not changed"
refuses "bad/model.safetensors" "$classify" -c bad -- text
sed 's/"num_hidden_layers":\t*[0-9]*/"num_hidden_layers": 5/' model/config.json >bad/config.json
refuses 'bad/model.safetensors: tensor "bert.encoder.layer.2' "$classify" -c bad -- text
sed 's/"num_hidden_layers":\t*[0-9]*/"num_hidden_layers": 1/' model/config.json >bad/config.json
refuses 'bad/model.safetensors: there is a tensor "bert.encoder.layer.1.attention.self.query.weight", but "num_hidden_layers" in config.json is 1' \
    "$classify" -c bad -- text
sed '/"hidden_size"/d' model/config.json >bad/config.json
refuses 'bad/config.json: "hidden_size" is missing' "$classify" -c bad -- text
sed 's/"hidden_size":\t*[0-9]*/"hidden_size": "wide"/' model/config.json >bad/config.json
refuses 'bad/config.json: "hidden_size" is not a number' "$classify" -c bad -- text
sed 's/"2":\t*"LABEL_2"/"2": "c", "3": "d"/' model/config.json >bad/config.json
refuses 'tensor "classifier.weight" has shape (3, 64), the configuration says (4, 64)' \
    "$classify" -c bad -- text
sed -e '/"id2label"/,/}/d' -e 's/\("layer_norm_eps":.*\),$/\1/' model/config.json >bad/config.json
grep -q id2label bad/config.json && fail "the labels were not taken away"
refuses 'tensor "classifier.weight" has shape (3, 64), the configuration says (2, 64)' \
    "$classify" -c bad -- text
cp model/config.json bad/config.json
printf 'GGUF\003\000\000\000%040d' 0 >bad/model.safetensors
refuses "bad/model.safetensors: this is a GGUF file; a safetensors file belongs here" "$classify" -c bad -- text
head -c 100000 model/model.safetensors >bad/model.safetensors
refuses "bad/model.safetensors: tensor" "$classify" -c bad -- text
says "end behind the file's" err
cp model/model.safetensors bad/model.safetensors
echo '{' >bad/config.json
refuses "bad/config.json" "$classify" -c bad -- text
cp model/config.json bad/config.json
rm bad/vocab.txt
refuses "bad/vocab.txt: cannot open" "$classify" -c bad -- text
(cat model/vocab.txt; echo more) >long.txt
refuses "the vocabulary has 142 pieces, the checkpoint's word embedding 141 rows" \
    "${cpu[@]}" --vocab long.txt -- text
printf '[UNK]\nb\n' >special.txt
refuses "special.txt: vocabulary of 2 pieces has no [CLS]" "${cpu[@]}" --vocab special.txt -- text
accepts "$classify" -c bad --vocab model/vocab.txt -d cpu -- text
accepts "$classify" -c model/model.safetensors -d cpu -- text

# Texts that are none.
refuses "argument 1: there is no text" "${cpu[@]}" -- ""
refuses "argument 2: there is no text" "${cpu[@]}" -- one "  "
refuses "standard input: there is no text" "${cpu[@]}"
refuses "absent.txt: cannot open" "${cpu[@]}" --file absent.txt
printf 'one\n\nthree\n' >in
refuses "line 2: there is no text" "${cpu[@]}"
printf 'one\n\xc3\x28\n' >in
refuses "line 2: not valid UTF-8 at byte 0 (0xC3) of 2 bytes" "${cpu[@]}"
refuses "line 2: not valid UTF-8" "${cpu[@]}" --file in

# Answers: a line a text, probabilities that add up to 1.
printf 'a dull, lifeless film\nGREAT!\nthird, without a line feed' >in
accepts "${cpu[@]}"
[ "$(wc -l <out)" -eq 3 ] || fail "not three lines: $(cat out)"
awk -F '\t' '{ sum = 0; for (i = 2; i <= NF; i++) { split($i, p, " "); sum += p[2] }
    if (NF != 4 || sum < 0.9998 || sum > 1.0002 || $1 !~ /^LABEL_[012]$/) exit 1 }' out ||
    fail "not labels and probabilities: $(cat out)"
[ -s err ] && fail "said on standard error: $(cat err)"
mv out three
accepts "${cpu[@]}" --file in
cmp -s out three || fail "--file answers otherwise than standard input"
accepts "${cpu[@]}" --file in --batch-size 1
cmp -s out three || fail "batches of one answer otherwise"
accepts "${cpu[@]}" -- "a dull, lifeless film" 'GREAT!' "third, without a line feed"
cmp -s out three || fail "arguments answer otherwise than standard input"
# Logits as JSON: three texts, three finite numbers each, softmax of which is what was printed.
accepts "${cpu[@]}" --file in --logits logits.json
cmp -s out three || fail "--logits changes the answers"
says '{"stage":"01_cpu_matmul","dtype":"fp32","texts":[' logits.json
[ "$(grep -cE '^\{"ids":\[[0-9,]+\],"logits":\[-?[0-9.e+-]+,-?[0-9.e+-]+,-?[0-9.e+-]+\]\},?$' logits.json)" -eq 3 ] ||
    fail "not three texts: $(cat logits.json)"
sed -n 's/.*"logits":\[\(.*\)\]},*$/\1/p' logits.json | awk -F , '{ s = exp($1) + exp($2) + exp($3)
    printf "%.4f %.4f %.4f\n", exp($1) / s, exp($2) / s, exp($3) / s }' >softmax
awk -F '[\t ]' '{ print $3, $5, $7 }' three | cmp -s softmax - ||
    fail "logits are not those of the probabilities: $(cat softmax three)"
writes_well "${cpu[@]}" --file in --logits
refuses "--dtype is 'fp32', 'fp16' or 'bf16', not 'fp64'" "${cpu[@]}" --dtype fp64 -- text
refuses "--dtype bf16: it computes in fp32 only; stages with bf16: " "${cpu[@]}" --dtype bf16 -- text
sed 's/LABEL_0/bad/; s/LABEL_1/so-so/; s/LABEL_2/good/' model/config.json >bad/config.json
accepts "$classify" -c bad --vocab model/vocab.txt -d cpu --file in
says "so-so 0." out

# As JSON, with the same answers.
accepts "${cpu[@]}" --file in --json
[ "$(grep -cE '^\{"text":".*","label":"LABEL_[012]","probabilities":\{("LABEL_[012]":[0-9.e-]+,?){3}\},"cut":false\}$' out)" -eq 3 ] ||
    fail "not three objects: $(cat out)"
says '{"text":"a dull, lifeless film","label":' out
sed 's/.*"LABEL_0":\([^,]*\),"LABEL_1":\([^,]*\),"LABEL_2":\([^}]*\).*/\1 \2 \3/' out |
    awk '{ printf "%.4f %.4f %.4f\n", $1, $2, $3 }' | cmp -s softmax - || fail "other probabilities: $(cat out)"
accepts "${cpu[@]}" --json -l 5 -- "many words are cut"
says '"cut":true}' out

# A pipe is answered line by line, before the next line is there; a file of lines in batches.
accepts "${cpu[@]}" -
cmp -s out three || fail "- answers otherwise than --file"
# shellcheck disable=SC2002 # a pipe, not a file
cat in | "${cpu[@]}" - >out 2>err || fail "a pipe: $(cat err)"
cmp -s out three || fail "a pipe answers otherwise than a file: $(cat out)"
for how in "" --json; do
    # shellcheck disable=SC2086 # no flag, or one
    coproc classifier { exec "${cpu[@]}" $how - 2>err; }
    pid=$!
    while IFS= read -r line; do
        printf '%s\n' "$line" >&"${classifier[1]}"
        IFS= read -r -t 120 answer <&"${classifier[0]}" || fail "no answer to: $line: $(cat err)"
        echo "$answer"
    done < <(cat in; echo) >answers
    to=${classifier[1]}
    exec {to}>&-
    wait "$pid" || fail "a coprocess ended with $?: $(cat err)"
    [ -s err ] && fail "said on standard error: $(cat err)"
    [ -n "$how" ] && says '{"text":"third, without a line feed","label":' answers
    [ -n "$how" ] || cmp -s answers three || fail "line by line it answers otherwise: $(cat answers)"
done
# Lines before a bad one are answered, whatever arrives together.
for delay in 0 0.3; do
    (printf 'a dull, lifeless film\nGREAT!\n'; sleep $delay; printf ' \nmore\n') | "${cpu[@]}" >out 2>err && fail "a blank line is a text"
    [ "$(cat err)" = "classify: line 3: there is no text" ] || fail "another message: $(cat err)"
    head -n 2 three | cmp -s - out || fail "not the two lines before: $(cat out)"
done
: | "${cpu[@]}" - >out 2>err && fail "no text is a text"
says "standard input: there is no text" err

# 100,000 words are cut, which is said once.
awk 'BEGIN { for (i = 0; i < 100000; i++) printf "word "; print ""; print "short";
    for (i = 0; i < 300; i++) printf "again "; print "" }' >in
accepts "${cpu[@]}"
[ "$(wc -l <out)" -eq 3 ] || fail "not three lines: $(cat out)"
[ "$(cat err)" = "classify: 2 of 3 texts cut to 128 tokens (--max-length), the first: line 1" ] ||
    fail "the cut is not said once: $(cat err)"
# shellcheck disable=SC2002 # a pipe, not a file
cat in | "${cpu[@]}" >out 2>err || fail "a pipe: $(cat err)"
[ "$(cat err)" = "classify: 2 of 3 texts cut to 128 tokens (--max-length), the first: line 1" ] ||
    fail "the cut of a pipe is not said once: $(cat err)"
accepts "${cpu[@]}" -l 5 -- word
says "1 of 1 texts cut to 5 tokens (--max-length), the first: argument 1" err

# Random weights say what they are worth.
accepts "$classify" --random --device cpu -- text
says "random weights: the answers mean nothing" err

# Every stage answers alike; on simt, too.
accepts "${cpu[@]}" -- text
mv out want
for stage in $("$classify" --random --stage none -- text 2>&1 | sed 's/.*choose one of //; s/,//g'); do
    accepts "$classify" -c model --stage "$stage" -- text
    cmp -s out want || fail "stage $stage answers otherwise: $(cat out want)"
done

# Paths mean the folder that bazel run was called in.
mkdir -p elsewhere
: >in
(cd elsewhere && BUILD_WORKING_DIRECTORY=$TEST_TMPDIR "${cpu[@]}" -- text >../out 2>../err) ||
    fail "BUILD_WORKING_DIRECTORY is not used: $(cat err)"
if [ -w /dev/full ]; then
    "${cpu[@]}" -- text >/dev/full 2>err && fail "a full disk goes unnoticed"
fi
finish
