#!/bin/bash
# Runs the random_bert program.
# usage: random_bert_test.sh RANDOM_BERT
set -u
random_bert=$PWD/$1
cd "$TEST_TMPDIR" || exit 1
unset BUILD_WORKING_DIRECTORY
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# refuses TEXT ARGS: expects exit status 1, no output, and one line with TEXT on stderr.
refuses() {
    local text=$1
    shift
    "$random_bert" "$@" >out 2>err </dev/null
    [ $? -eq 1 ] || fail "exit status, want 1: $*"
    [ -s out ] && fail "printed text: $*"
    [ "$(wc -l <err)" -eq 1 ] || fail "not one line: $* -> $(cat err)"
    grep -qF -- "$text" err || fail "want '$text': $* -> $(cat err)"
}

refuses "--output-dir DIR is needed"
refuses "unexpected argument 'more'" -o x more
refuses "--shape is 'tiny' or 'base', not 'large'" -o x --shape large
refuses "--labels is 0, must be from 1 to 1000" -o x --labels 0
refuses "absent.txt: cannot open" -o x --vocab absent.txt
printf 'one\ntwo\n' >short.txt
refuses "short.txt" -o x --vocab short.txt
[ -e x ] && fail "a refused run made its folder"
: >file
refuses "file/model" -o file/model
refuses "file/vocab.txt" -o file

"$random_bert" --output_dir one --labels 4 >out 2>err || fail "tiny: $(cat err)"
grep -q '4 labels; its answers mean nothing' out || fail "says nothing: $(cat out)"
for name in config.json model.safetensors vocab.txt; do
    [ -s "one/$name" ] || fail "no one/$name"
done
[ "$(find one -type f | wc -l)" -eq 3 ] || fail "more than three files: $(ls one)"
"$random_bert" --output-dir two --labels 4 --seed 2 >out 2>err || fail "seed: $(cat err)"
# A link stays one, a file follows the umask, a full disk is an error.
mkdir linked && ln -s ../target linked/model.safetensors
(umask 027 && "$random_bert" --output-dir linked --labels 4 >out 2>err) || fail "linked: $(cat err)"
[ -L linked/model.safetensors ] || fail "a link was replaced"
cmp -s target one/model.safetensors || fail "the link's target is not the model"
[ "$(stat -c %a target linked/config.json | xargs)" = "640 640" ] || fail "the umask is not heeded"
mkdir full && ln -s /dev/full full/model.safetensors
refuses "full/model.safetensors: cannot write: No space left on device" -o full
[ -c /dev/full ] || fail "/dev/full was replaced"

cmp -s one/model.safetensors two/model.safetensors && fail "another seed gives the same weights"
"$random_bert" --output-dir two --labels 4 --seed 1 >out 2>err || fail "again: $(cat err)"
cmp -s one/model.safetensors two/model.safetensors || fail "the same seed gives other weights"

[ "$failures" -eq 0 ] && echo "all checks passed"
exit $((failures > 0))
