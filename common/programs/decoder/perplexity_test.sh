#!/bin/bash
# Shell test of the perplexity program on the stages of reference_stages.c.
# usage: perplexity_test.sh PROGRAMS_SH PERPLEXITY MAKE_TEST_CHECKPOINT EXPECTATION_JSON
set -u
# shellcheck source=common/testing/programs.sh
. "$1"
perplexity=$PWD/$2
expectation=$PWD/$4
"$PWD/$3" "$TEST_TMPDIR" || exit 1
cd "$TEST_TMPDIR" || exit 1
unset BUILD_WORKING_DIRECTORY
: >in
bare "$perplexity"
tiny=("$perplexity" tiny.bin -z tiny_tokenizer.bin)
printf 'the quick brown fox jumps over the lazy dog, and once more over it: abcdefghijklmnopqrstuvwxyz' >text

# figure NAME FILE: a number of the JSON that was written.
figure() {
    sed -n "s/^[[:space:]]*\"$1\":[[:space:]]*\([-0-9.e+]*\),*\$/\1/p" "$2"
}

# near WANT GOT TOLERANCE WHAT
near() {
    awk -v want="$1" -v got="$2" -v tolerance="$3" \
        'BEGIN { d = want - got; exit !(got != "" && d <= tolerance && -d <= tolerance) }' ||
        fail "$4: $2, want $1"
}

# Flags.
accepts "$perplexity" --help
for text in --file --context --limit --json --tokenizer --stage --dtype --threads "begins"; do
    says "$text" out
done
refuses "no CHECKPOINT given, and datasets/tiny_llama is not there: give a file of llama2.c" "${bare[@]}"
refuses "no text: give --file FILE" "${tiny[@]}"
refuses "unknown flag '--colour'" "${tiny[@]}" --colour
refuses "--context -1, --limit 0: must be at least 0" "${tiny[@]}" -f text -c -1
refuses "--context 0, --limit -3: must be at least 0" "${tiny[@]}" -f text --limit -3
refuses "--context wants a whole number, not 'x'" "${tiny[@]}" -f text -c x
refuses "--context 65: the model has 64 positions" "${tiny[@]}" -f text -c 65
refuses "--stage '9': unknown stage; choose one of 01_stuck" "${tiny[@]}" -f text --stage 9
refuses "--dtype fp16: stage 04_reference computes Llama2 in fp32 only" \
    "${tiny[@]}" -f text --dtype fp16
refuses "--threads 0: must be at least 1" "${tiny[@]}" -f text --threads 0

# Files.
refuses "absent.txt: cannot open" "${tiny[@]}" -f absent.txt
refuses "absent.bin: cannot open" "$perplexity" absent.bin -f text
refuses "tiny: " "${tiny[@]}" -f tiny
: >empty
refuses "empty: there is no text" "${tiny[@]}" -f empty
refuses "standard input: there is no text" "${tiny[@]}" -f -
printf 'fine so far \xc3\x28' >broken
refuses "broken: not valid UTF-8 at byte 12" "${tiny[@]}" -f broken
cp tiny_tokenizer.bin other.bin && printf '\0\0\0\0\1\0\0\0A' >>other.bin
refuses "other.bin: tokenizer has 287 tokens, the model 286" "$perplexity" tiny.bin -z other.bin -f text
cp -r tiny lacking && rm lacking/model-00001-of-00002.safetensors
refuses "model-00001-of-00002.safetensors: cannot open" "$perplexity" lacking -z tiny_tokenizer.bin -f text
writes_well "${tiny[@]}" -f text -n 10 --json
cp tiny.bin nan.bin
printf '\x00\x00\xc0\x7f' | dd of=nan.bin bs=1 seek=$((28 + 400)) conv=notrunc status=none
refuses "the model's logits for token 0 are not finite: its weights are not usable" \
    "$perplexity" nan.bin -z tiny_tokenizer.bin -f text

# The printed figures are those in the JSON, and they agree with each other.
accepts "${tiny[@]}" -f text -c 10 --json a.json
[ -s err ] && fail "said on standard error: $(cat err)"
tokens=$(figure tokens a.json)
nats=$(figure nats_per_token a.json)
says "tokens          $tokens ($(wc -c <text) bytes), windows of 10: $(((tokens + 9) / 10))" out
says "nats per token  $(printf %.6f "$nats")" out
says "stage 04_reference on the CPU" out
near "$(awk -v n="$nats" 'BEGIN { printf "%.12g", exp(n) }')" "$(figure perplexity a.json)" 1e-6 "perplexity"
near "$(awk -v n="$nats" -v t="$tokens" -v b="$(wc -c <text)" 'BEGIN { printf "%.12g", n * t / log(2) / b }')" \
    "$(figure bits_per_byte a.json)" 1e-9 "bits per byte"
says '"modelled":	false' a.json
cp text in
accepts "${tiny[@]}" -f - -c 10 --json b.json
: >in
[ "$(figure nats_per_token b.json)" = "$nats" ] || fail "standard input gives other figures"

# Every stage gives the same figures; so does the same model in a folder, and the one in bf16.
for how in "tiny.bin --stage 3" "tiny" "tiny --stage 3"; do
    read -ra flags <<<"$how"
    accepts "$perplexity" "${flags[@]}" -z tiny_tokenizer.bin -f text -c 10 --json b.json
    near "$nats" "$(figure nats_per_token b.json)" 1e-5 "nats of $how"
done
accepts "$perplexity" tiny_bf16 -f text --json a.json
accepts "$perplexity" tiny_bf16 -f text --stage 3 --json b.json
near "$(figure nats_per_token a.json)" "$(figure nats_per_token b.json)" 1e-9 "nats in bf16"
says '"dtype":	"bf16"' b.json
says "stage 03_drawing in bf16 on the CPU" out

# The beginning of the text: its tokens, windows and bytes.
accepts "${tiny[@]}" -f text -c 10 -n 20 --json a.json
accepts "${tiny[@]}" -f text -c 10 -n 10 --json b.json
[ "$(figure tokens a.json) $(figure windows a.json)" = "20 2" ] || fail "--limit: $(cat a.json)"
[ "$(figure bytes b.json)" = 9 ] || fail "10 tokens, a blank that is put first among them, are not 9 bytes"

# Ctrl-C: the figures so far, and status 130.
start "${tiny[@]}" --stage 2 -f text
await watching 2
kill -INT "$pid"
ends 130
says "perplexity: interrupted after " err

# A closed pipe and a full disk are errors.
if [ -w /dev/full ]; then
    "${tiny[@]}" -f text >/dev/full 2>err && fail "a full disk goes unnoticed"
    says "perplexity: cannot write to standard output: No space left on device" err
    "$perplexity" --help >/dev/full 2>err && fail "a full disk goes unnoticed by --help"
    says "perplexity: cannot write to standard output: No space left on device" err
fi

# stories260K on a real text, compared with expectations/make_perplexity.py, which computes in
# double. fp32's rounding errors are far below 2e-5.
data=${WARPBOOK_DATA:-}
if [ -r "$data/stories260K.bin" ] && [ -r "$data/tok512.bin" ] && [ -r "$data/ag_news_test.csv" ]; then
    checked=0
    while IFS=$'\t' read -r context limit bytes nats bits; do
        accepts "$perplexity" "$data/stories260K.bin" -z "$data/tok512.bin" \
            --file "$data/ag_news_test.csv" --context "$context" --limit "$limit" --json a.json
        [ "$(figure bytes a.json)" = "$bytes" ] || fail "$limit tokens: $(figure bytes a.json) bytes, want $bytes"
        near "$nats" "$(figure nats_per_token a.json)" 2e-5 "nats, windows of $context"
        near "$bits" "$(figure bits_per_byte a.json)" 2e-5 "bits, windows of $context"
        checked=$((checked + 1))
    done < <(sed -n 's/^ *{"context": \([0-9]*\), "limit": \([0-9]*\), "bytes": \([0-9]*\), "nats_per_token": \([0-9.]*\), "bits_per_byte": \([0-9.]*\)},*$/\1\t\2\t\3\t\4\t\5/p' "$expectation")
    [ "$checked" -eq 3 ] || fail "$checked cases of the expectation were checked, want 3"
else
    echo "skipped: the real checkpoint; set WARPBOOK_DATA to a folder with stories260K.bin, tok512.bin and ag_news_test.csv"
fi
finish
