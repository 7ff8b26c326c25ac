#!/bin/bash
# The generate program from outside: good runs, and one clear line for each bad one.
# usage: generate_test.sh GENERATE MAKE_TEST_CHECKPOINT
set -u
generate=$PWD/$1
"$PWD/$2" "$TEST_TMPDIR" || exit 1
cd "$TEST_TMPDIR" || exit 1
unset BUILD_WORKING_DIRECTORY
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# run ARGS: leaves out, err and code.
run() {
    "$generate" "$@" >out 2>err </dev/null
    code=$?
}

# refuses TEXT ARGS: exits with 1, prints nothing, says TEXT in one line.
refuses() {
    local text=$1
    shift
    run "$@"
    [ "$code" -eq 1 ] || fail "exit status $code, want 1: $*"
    [ -s out ] && fail "printed text: $*"
    [ "$(wc -l <err)" -eq 1 ] || fail "not one line: $* -> $(cat err)"
    grep -qF -- "$text" err || fail "want '$text': $* -> $(cat err)"
}

# accepts ARGS: exits with 0.
accepts() {
    run "$@"
    [ "$code" -eq 0 ] || fail "exit status $code: $* -> $(cat err)"
}

tiny=(tiny.bin -z tiny_tokenizer.bin)

# Flags.
accepts --help
grep -q -- '--temperature' out || fail "--help does not list --temperature"
refuses "wants one CHECKPOINT, got 0"
refuses "wants one CHECKPOINT, got 2" "${tiny[@]}" more
refuses "unknown flag '--colour'" "${tiny[@]}" --colour
refuses "unknown flag '-q'" "${tiny[@]}" -q
refuses "--temperature wants a number, not 'warm'" "${tiny[@]}" -t warm
refuses "--temperature wants a number, not 'nan'" "${tiny[@]}" -t nan
refuses "--steps wants a whole number, not '1.5'" "${tiny[@]}" -n 1.5
refuses "-n wants a value" "${tiny[@]}" -n
refuses "--mode is 'generate' or 'chat', not 'sing'" "${tiny[@]}" -m sing
refuses "--threads 0: at least 1" "${tiny[@]}" --threads 0

# Files.
refuses "absent.bin: cannot open" absent.bin -z tiny_tokenizer.bin
refuses "absent.bin: cannot open" tiny.bin -z absent.bin
refuses "tokenizer.bin: cannot open" tiny.bin
refuses "config.json: cannot open" . -z tiny_tokenizer.bin
: >empty.bin
refuses "empty.bin" empty.bin -z tiny_tokenizer.bin
refuses "empty.bin" tiny.bin -z empty.bin
head -c 1000 tiny.bin >short.bin
refuses "short.bin" short.bin -z tiny_tokenizer.bin
(cat tiny.bin; echo more) >long.bin
refuses "long.bin" long.bin -z tiny_tokenizer.bin
head -c 5000 /dev/zero | tr '\0' '\377' >ones.bin
refuses "ones.bin" ones.bin -z tiny_tokenizer.bin
refuses "ones.bin" tiny.bin -z ones.bin
head -c 700 tiny_tokenizer.bin >short_tokenizer.bin
refuses "short_tokenizer.bin" tiny.bin -z short_tokenizer.bin

# Hugging Face's folders: the same model, the same text.
accepts "${tiny[@]}" -t 0 -i abc
mv out from_file
accepts tiny -z tiny_tokenizer.bin -t 0 -i abc
cmp -s out from_file || fail "a folder writes other text than the file: $(cat out)"
refuses "tokenizer" tiny
cp tiny_tokenizer.bin tiny/tokenizer.bin
accepts tiny -t 0 -i abc
cmp -s out from_file || fail "the folder's own tokenizer gives other text"
cp -r tiny lacking && rm lacking/model-00002-of-00002.safetensors
refuses "model-00002-of-00002.safetensors: cannot open" lacking
cp -r tiny other && sed 's/"hidden_size":[^,]*/"hidden_size": 64/' tiny/config.json >other/config.json
refuses "the configuration says" other
cp -r tiny larger && sed 's/"vocab_size":[^,]*/"vocab_size": 300/' tiny/config.json >larger/config.json
refuses "300" larger

# Prompts.
refuses "UTF-8" "${tiny[@]}" -i "$(printf 'abc\xff')"
refuses "the prompt has 102 tokens, the model's context is 64" "${tiny[@]}" -i "$(printf 'a%.0s' {1..100})"

# Greedy is the same with any seed; sampling is the same with the same seed.
accepts "${tiny[@]}" -t 0 -s 1 -i abc
mv out greedy
accepts "${tiny[@]}" -t 0 -s 2 -i abc
cmp -s out greedy || fail "greedy text depends on the seed"
[ "$(head -c 3 out)" = abc ] || fail "the prompt is not printed first"
accepts "${tiny[@]}" --temperature 1 --seed 7 --steps 40
mv out sampled
accepts "${tiny[@]}" -t 1 -s 7 -n 40
cmp -s out sampled || fail "the same seed gives other text"
accepts "${tiny[@]}" -t 1 -s 8 -n 40
cmp -s out sampled && fail "another seed gives the same text"
accepts "${tiny[@]}" -t 1 -s 7 -n 40 -p 0.1
cmp -s out sampled && fail "--top-p changes nothing"

# Values that llama2.c replaces are replaced, and said.
accepts "${tiny[@]}" -t -1 -i abc
cmp -s out greedy || fail "a negative temperature is not greedy"
grep -q 'below 0' err || fail "no word on the negative temperature"
accepts "${tiny[@]}" -s 7 -n 40 -p 1.5
mv out replaced
accepts "${tiny[@]}" -s 7 -n 40 -p 0.9
cmp -s out replaced || fail "--top-p 1.5 is not 0.9"
accepts "${tiny[@]}" -t 0 -i abc -n 64
mv out whole
accepts "${tiny[@]}" -t 0 -i abc -n 0
cmp -s out whole || fail "-n 0 is not the whole context"
accepts "${tiny[@]}" -t 0 -i abc -n 9999
cmp -s out whole || fail "-n beyond the context is not the whole context"
accepts "${tiny[@]}" -t 0 -i abcdef -n 3
[ "$(cat out)" = "ab" ] || fail "-n 3 of ' abcdef' is '$(cat out)'" # pieces: "", "a", "b"
accepts "${tiny[@]}" -n 10 --profile
grep -q matmul err || fail "--profile prints no matmul"

# Paths mean the folder that bazel run was called in.
mkdir -p elsewhere
(cd elsewhere && BUILD_WORKING_DIRECTORY=$TEST_TMPDIR "$generate" "${tiny[@]}" -n 5 >../out 2>../err) ||
    fail "BUILD_WORKING_DIRECTORY is not used: $(cat err)"

# Chat.
printf '\nhello there\nand again\n' | "$generate" "${tiny[@]}" -m chat -s 3 >out 2>err || fail "chat: $(cat err)"
grep -q 'Assistant: ' out || fail "chat has no answer: $(cat out)"
run "${tiny[@]}" -m chat -i "$(printf 'a%.0s' {1..100})" -y ""
[ "$code" -eq 1 ] && grep -q 'are left' err || fail "chat accepts a turn beyond the context: $(cat err)"
printf 'ab\n' | "$generate" "${tiny[@]}" -m chat -y "be short" -s 3 >out 2>err
grep -q 'Assistant: ' out || fail "chat with a system prompt: $(cat out err)"

# Output that cannot be written is an error.
if [ -w /dev/full ]; then
    "$generate" "${tiny[@]}" -n 5 >/dev/full 2>err && fail "a full disk goes unnoticed"
fi

# A real checkpoint writes its known text.
data=${WARPBOOK_DATA:-}
if [ -r "$data/stories260K.bin" ] && [ -r "$data/tok512.bin" ]; then
    accepts "$data/stories260K.bin" -z "$data/tok512.bin" -t 0.0 -n 200
    sum=$(sha256sum <out | cut -d' ' -f1)
    [ "$sum" = f5a0e67db7424051520e7d8db9880b3dc2aa13577db570c28805c1b51c42eaf0 ] ||
        fail "stories260K writes other text ($sum): $(cat out)"
    refuses "tokenizer" "$data/stories260K.bin" -z "$data/llama2_tokenizer.bin"
else
    echo "skipped: the real checkpoint; set WARPBOOK_DATA to a folder with stories260K.bin and tok512.bin"
fi

[ "$failures" -eq 0 ] && echo "all checks passed"
exit $((failures > 0))
