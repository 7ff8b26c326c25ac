#!/bin/bash
# Shell test of quantize and of perplexity --compare.
# usage: quantize_test.sh PROGRAMS_SH QUANTIZE GENERATE PERPLEXITY MAKE_TEST_CHECKPOINT RANDOM_BERT WRITE_DEQUANTIZED
set -u
# shellcheck source=common/testing/programs.sh
. "$1"
quantize=$PWD/$2
generate=$PWD/$3
perplexity=$PWD/$4
make=$PWD/$5
random_bert=$PWD/$6
write_dequantized=$PWD/$7
"$make" "$TEST_TMPDIR" || exit 1
cd "$TEST_TMPDIR" || exit 1
unset BUILD_WORKING_DIRECTORY
: >in
for i in {1..12}; do echo "abc cab a bad cab $i"; done >text.txt

# Flags.
accepts "$quantize" --help
grep -q -- '--calibrate' out || fail "--help does not list --calibrate"
refuses "no output: give --output DIR" "$quantize" tiny_f16
refuses "--bits 3: 8 or 4" "$quantize" tiny_f16 --bits 3 -o new
refuses "--group -1: at least 1" "$quantize" tiny_f16 --group -1 -o new
refuses "--method is 'rtn', 'gptq' or 'awq', not 'rpn'" "$quantize" tiny_f16 --method rpn -o new
refuses "--method awq wants a text" "$quantize" tiny_f16 --method awq -o new
refuses "--method gptq wants a text" "$quantize" tiny_f16 --method gptq -o new
refuses "--calibrate has no effect with --method rtn" "$quantize" tiny_f16 --calibrate text.txt -o new
refuses "--output tiny: exists already" "$quantize" tiny_f16 -o tiny
refuses "absent.txt" "$quantize" tiny_f16 --method gptq --calibrate absent.txt -o new
refuses "a GPT-NeoX is not supported" "$quantize" gpt_neox -o new
refuses "cannot make the folder" "$quantize" tiny_f16 -o /proc/nowhere/new
refuses "absent: cannot open" "$quantize" absent -o new
head -c 3000 tiny.gguf >cut.gguf
refuses "cut.gguf: the file ends within" "$quantize" cut.gguf -o new
head -c "$(($(stat -c %s tiny.gguf) - 100))" tiny.gguf >cut.gguf
refuses "cut.gguf: " "$quantize" cut.gguf -z tiny_tokenizer.bin -o new
cp -r tiny_f16 cut
truncate -s -100 cut/model.safetensors
refuses "cut/model.safetensors: " "$quantize" cut -o new
{ [ -e new ] || [ -e new.partial ]; } && fail "a refusal left a folder behind"

# 8 bits are nearly the model, 4 bits less so; each form of the checkpoint gives the same model.
bits_of() { # the relative difference of bits per byte, in percent, without its sign
    accepts "$perplexity" --compare tiny_f16 "$1" -f text.txt -n 60
    awk '/^  reference/ { gsub(/[(+-]/, "", $3); print $3 }' out
}
accepts "$quantize" tiny_f16 -o int8
accepts "$quantize" tiny_f16 --bits 4 --group 16 -o int4
accepts "$quantize" tiny_f16 --bits 4 --group 16 --method gptq --calibrate text.txt -o gptq4
ls int8 >files
printf 'config.json\nmodel.safetensors\ntokenizer.bin\n' | cmp -s - files || fail "files: $(cat files)"
accepts "$quantize" tiny_f16 --bits 4 --group 12 -o int4_12 # a row's last group is shorter
eight=$(bits_of int8)
four=$(bits_of int4)
bits_of gptq4 >gptq
# AWQ's model computes what it did before it is rounded: in 8 bits it is nearly the model, too.
accepts "$quantize" tiny_f16 --method awq --calibrate text.txt -o awq8
accepts "$quantize" tiny_f16 --bits 4 --group 16 --method awq --calibrate text.txt -o awq4
cmp -s awq8/model.safetensors int8/model.safetensors && fail "awq changes nothing"
awk -v a="$(bits_of awq8)" -v b="$(bits_of awq4)" 'BEGIN { exit !(a < 0.2 && b < 10) }' ||
    fail "bits per byte after awq differ by $(bits_of awq8) % in 8 bits, by $(bits_of awq4) % in 4"
awk -v a="$eight" -v b="$four" -v c="$(cat gptq)" 'BEGIN { exit !(a < 0.2 && b < 10 && c < 10 && c != b) }' ||
    fail "bits per byte differ by $eight % in 8 bits, by $four % and $(cat gptq) % in 4"
awk -v a="$(bits_of int4_12)" 'BEGIN { exit !(a < 10) }' || fail "groups of 12: $(bits_of int4_12) %"
awk '/KL divergence/ { exit !($3 > 0 && $3 < 0.2) }' out || fail "KL divergence: $(cat out)"
accepts "$perplexity" --compare int8 int8 -f text.txt -n 20 --json figures.json
says "(+0.000 %)" out
says "KL divergence   0.000000" out
says "same first      100.00 %" out
grep -q '"same_first":[[:space:]]*1,*$' figures.json || fail "figures: $(cat figures.json)"

accepts "$quantize" tiny.gguf -z tiny_tokenizer.bin -o from_gguf
accepts "$perplexity" --compare int8 from_gguf -f text.txt -n 60
says "same first      100.00 %" out
says "KL divergence   0.000000" out
accepts "$generate" int8 -t 0 -n 20 -i abc
grep -v 'tokens/s' out >want
accepts "$quantize" tiny.gguf -o own_vocabulary
accepts "$generate" own_vocabulary -t 0 -n 20 -i abc
grep -v 'tokens/s' out | cmp -s - want || fail "a GGUF file with its own vocabulary: another text: $(cat out)"

# What is rounded gives the text and the figures of the same weights in fp32, written by another reader.
for rounded in int8 int4 gptq4 awq4; do
    mkdir plain
    cp tiny_f16/* plain
    rm plain/model.safetensors
    accepts "$write_dequantized" $rounded tiny_f16 plain
    accepts "$perplexity" --compare plain $rounded -f text.txt -n 40
    says "(+0.000 %)" out
    says "KL divergence   0.000000" out
    says "same first      100.00 %" out
    accepts "$generate" plain -t 0 -n 30 -i abc
    grep -v 'tokens/s' out >want
    accepts "$generate" $rounded -t 0 -n 30 -i abc
    grep -v 'tokens/s' out | cmp -s - want || fail "$rounded: another text than in fp32: $(cat out)"
    rm -r plain
done

# A BERT. What is read from the new folder is shown by rounding it again: it is opened first.
accepts "$random_bert" -o bert
accepts "$quantize" bert -o bert8
says "bert8: 12 matrices in 8 bits, rtn" out
[ "$(stat -c %s bert8/model.safetensors)" -lt "$(stat -c %s bert/model.safetensors)" ] || fail "8 bits are not smaller"
cmp bert/vocab.txt bert8/vocab.txt || fail "no vocabulary"
refuses "bert8: its weights have few bits already" "$quantize" bert8 -o new
refuses "bert: a BERT is rounded by --method rtn only" "$quantize" bert --method gptq --calibrate text.txt -o new
sed -i 's/"num_bits":\([[:space:]]*\)8/"num_bits":\14/' bert8/config.json
refuses 'encoder.layer.0.attention.self.query.weight_packed" is' "$quantize" bert8 -o new
[ "$(grep -o bert8/model.safetensors err | wc -l)" -eq 1 ] || fail "the path is there once"

# Wrong folders of few bits.
cp -r int8 wrong
sed -i 's/"num_bits":\([[:space:]]*\)8/"num_bits":\14/' wrong/config.json
refuses 'wrong/model.safetensors: tensor "model.layers.0.self_attn.q_proj.weight_packed" is (32, 8), must be (32, 4)' \
    "$generate" wrong
sed -i 's/pack-quantized/float-quantized/' wrong/config.json
refuses 'wrong/config.json: "quantization_config": "format" is "float-quantized"; supported is' "$generate" wrong

# Other comparisons.
refuses "absent" "$perplexity" tiny_f16 --compare absent -f text.txt
refuses "--recompute or --compare, not both" "$perplexity" tiny_f16 --compare int8 --recompute --window 8 -f text.txt
refuses "its tokens for the text are not those of" "$perplexity" tiny_f16 --compare qwen2 -f text.txt

# A full disk leaves nothing.
if [ -w /dev/full ]; then
    (ulimit -f 16; trap '' XFSZ; "$quantize" tiny_f16 -o full) >out 2>err </dev/null
    code=$?
    { [ "$code" -eq 1 ] && [ "$(wc -l <err)" -eq 1 ]; } || fail "no room: $code: $(cat err)"
    says "cannot write" err
    { [ -e full ] || [ -e full.partial ]; } && fail "a full disk left a folder behind"
fi

finish
