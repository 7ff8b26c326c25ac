#!/bin/bash
# The generate program on the stages of reference_stages.c: stages, types, --roll, chat, Ctrl-C.
# usage: generate_stages_test.sh PROGRAMS_SH GENERATE MAKE_TEST_CHECKPOINT
set -u
# shellcheck source=common/testing/programs.sh
. "$1"
generate=$PWD/$2
"$PWD/$3" "$TEST_TMPDIR" || exit 1
cd "$TEST_TMPDIR" || exit 1
unset BUILD_WORKING_DIRECTORY
: >in
tiny=("$generate" tiny.bin -z tiny_tokenizer.bin)

# Stages: by name, number, or the beginning of the name; the default is the last one.
accepts "$generate" --help
says "--stage NAME" out
says "default: the last one if there is a GPU, else the last one on the CPU" out
accepts "${tiny[@]}" -t 0 -i abc
says "stage 04_reference on the CPU" err
mv out greedy
for stage in 03_drawing 3 03 03_d; do
    accepts "${tiny[@]}" -t 0 -i abc --stage "$stage"
    says "stage 03_drawing on the CPU" err
    cmp -s out greedy || fail "stage $stage writes other text: $(cat out)"
done
refuses "--stage '5': unknown stage; choose one of 01_stuck, 02_slow, 03_drawing, 04_reference" "${tiny[@]}" --stage 5
refuses "--stage '0': unknown stage; choose one of 01_stuck" "${tiny[@]}" --stage 0
refuses "--stage '': unknown stage; choose one of 01_stuck" "${tiny[@]}" --stage=

# An engine that samples by itself writes the same text as the host's sampler.
for how in "-n 64" "-n 0" "-n 300 --roll" "-k 3" "-k 3 -p 0.5" "-t 0.7 -p 1" "-t 0 -n 500 --roll"; do
    read -ra flags <<<"$how"
    accepts "${tiny[@]}" -s 9 "${flags[@]}"
    mv out want
    accepts "${tiny[@]}" -s 9 "${flags[@]}" --stage 3
    cmp -s out want || fail "$how: an engine that samples writes other text: $(cat out)"
done
accepts "${tiny[@]}" -s 9 -k 1
mv out want
accepts "${tiny[@]}" -t 0
cmp -s out want || fail "--top-k 1 is not greedy"
refuses "--top-k -1: must be at least 0" "${tiny[@]}" -k -1

# Types: as stored if the stage supports the type, else fp32.
accepts "$generate" tiny_bf16 -t 0 -i abc
says "stage 04_reference on the CPU" err
mv out want
for type in "" --dtype=bf16 --dtype=fp32; do
    accepts "$generate" tiny_bf16 -t 0 -i abc --stage 3 $type
    cmp -s out want || fail "the stored bf16 gives other text with '$type'"
    says "stage 03_drawing$([ "$type" = --dtype=fp32 ] || echo " in bf16") on the CPU" err
done
accepts "${tiny[@]}" --stage 3 --dtype fp16
says "stage 03_drawing in fp16 on the CPU" err
refuses "--dtype is 'fp32', 'fp16' or 'bf16', not 'int8'" "${tiny[@]}" --dtype int8
refuses "--dtype bf16: stage 04_reference computes Llama2 in fp32 only" "${tiny[@]}" --dtype bf16

# A model that an engine's decoder does not support runs operator by operator.
accepts "$generate" narrow -z tiny_tokenizer.bin -t 0
mv out want
accepts "$generate" narrow -z tiny_tokenizer.bin -t 0 --stage 3
cmp -s out want || fail "a model without a decoder writes other text"
refuses "--dtype fp16: stage 03_drawing computes this model in fp32 only" \
    "$generate" narrow -z tiny_tokenizer.bin --stage 3 --dtype fp16

# The end of the context: reported if --steps asks for more; --roll continues beyond it.
for stage in 3 4; do
    accepts "${tiny[@]}" -t 0 -n 64 --stage "$stage"
    mv out whole
    [ "$(wc -l <err)" -eq 1 ] || fail "a text of the whole context prints more than its figures: $(cat err)"
    accepts "${tiny[@]}" -t 0 -n 65 --stage "$stage"
    cmp -s out whole || fail "the text is not kept at the context's end"
    says "generate: stopped at the model's context of 64 tokens, --steps asks for 65; --roll continues" err
    accepts "${tiny[@]}" -t 0 -n 400 --roll --stage "$stage"
    says "generated 400 tokens" err
    says "; rolls: 11; " err
    head -c $(($(wc -c <whole) - 1)) whole | cmp -s - <(head -c $(($(wc -c <whole) - 1)) out) ||
        fail "the text of --roll begins otherwise"
    long=$(printf 'a%.0s' {1..100})
    refuses "the prompt has 102 tokens, the model's context is 64; --roll continues beyond it" \
        "${tiny[@]}" -i "$long" --stage "$stage"
    accepts "${tiny[@]}" -i "$long" -t 0 -n 150 --roll --stage "$stage"
    [ "$(head -c 100 out)" = "$long" ] || fail "a long prompt is not printed: $(cat out)"
    says "prompt 102 tokens" err
    says "generated 49 tokens" err
done

# Chat: its end, and --roll.
printf 'hello\nhello\nhello\nhello\nhello\n' >in
accepts "${tiny[@]}" -m chat -y "" -t 0 -n 0
says "generate: the chat has used its 64 tokens, the model's context; --roll continues beyond them" err
says "generated" err
accepts "${tiny[@]}" -m chat -y "" -t 0 -n 40
says "generate: the chat has used its 40 tokens (--steps); --roll continues beyond them" err
for stage in 3 4; do
    accepts "${tiny[@]}" -m chat -y "" -t 0 -n 50 --roll --stage "$stage"
    [ "$(grep -o 'Assistant: ' out | wc -l)" -eq 5 ] || fail "not five answers: $(cat out)"
    says "; rolls: " err
    mv out "talk$stage"
done
cmp -s talk3 talk4 || fail "an engine that samples chats otherwise: $(cat talk3 talk4)"
: >in

# Ctrl-C after some text: the line is ended, figures are printed, status 130; SIGTERM: 143.
for signal in INT:130 TERM:143; do
    start "${tiny[@]}" --stage 2 -n 100000 --roll -s 3
    await test -s out
    kill "-${signal%:*}" "$pid"
    ends "${signal#*:}"
    [ "$(tail -c 1 out | wc -l)" -eq 1 ] || fail "the text does not end with its line"
    [ "$(wc -l <err)" -eq 1 ] || fail "not one line: $(cat err)"
    says "tokens/s; stage 02_slow on the CPU" err
done

# Ctrl-C between two batches of a prompt.
start "${tiny[@]}" --stage 2 --roll -n 0 -i "$(printf 'ab%.0s' {1..20000})"
await watching 2
kill -INT "$pid"
ends 130
says "generated 0 tokens; " err
[ "$(cat out)" = "" ] || fail "an unread prompt was printed"

# A second Ctrl-C ends the program at once.
start "${tiny[@]}" --stage 1
await watching 2
kill -INT "$pid"
await heard 2
sleep 0.3
waiting || fail "the first Ctrl-C does not wait for the current token"
kill -INT "$pid"
ends 130
[ -s err ] && fail "the second Ctrl-C is not sudden: $(cat err)"

# Ctrl-C in chat: while it asks, and while it answers.
mkfifo talk.pipe
exec 3<>talk.pipe
: >out
env --default-signal=INT "${tiny[@]}" -m chat -y "" >out 2>err <talk.pipe &
pid=$!
await grep -q "User: " out
await watching 2
await waiting
kill -INT "$pid"
ends 130
says "prompt 0 tokens; generated 0 tokens; stage 04_reference" err
: >out
env --default-signal=INT "${tiny[@]}" -m chat -y "" -i hi -t 0 --roll -n 0 --stage 2 >out 2>err <talk.pipe &
pid=$!
await grep -q "Assistant: ." out
kill -INT "$pid"
ends 130
says "tokens/s; stage 02_slow on the CPU" err
exec 3>&-

# A signal that the parent ignores stays ignored.
: >out
(trap '' INT && exec "${tiny[@]}" --stage 2 -n 60 -t 0 -i abc >out 2>err <in) &
pid=$!
await test -s out
kill -INT "$pid"
ends 0

# Output that cannot be written: the program stops at once, with one line.
status_of_pipe() {
    { timeout 20 env --default-signal=PIPE "$@" 2>err <in; echo $? >code; } | head -c 3 >/dev/null
}
for stage in 2 3 4; do
    status_of_pipe "${tiny[@]}" --stage "$stage" -n 1000000 --roll -t 0 -i abc
    [ "$(cat code)" -eq 1 ] || fail "a closed pipe gives $(cat code)"
    [ "$(cat err)" = "generate: cannot write to standard output: Broken pipe" ] || fail "$(cat err)"
done
status_of_pipe "${tiny[@]}" -m chat -y "" -i hello -n 1000000 --roll -t 0
[ "$(cat code)" -eq 1 ] || fail "a closed pipe in chat gives $(cat code)"
if [ -w /dev/full ]; then
    for mode in generate chat; do
        timeout 20 "${tiny[@]}" -m "$mode" -y "" -n 1000000 --roll -i abc >/dev/full 2>err <in
        code=$?
        [ "$code" -eq 1 ] || fail "a full disk gives $code"
        [ "$(cat err)" = "generate: cannot write to standard output: No space left on device" ] ||
            fail "$(cat err)"
    done
fi
finish
