#!/bin/bash
# Shell test of a generate program: good runs, and bad ones, which must print one clear line.
# usage: generate_test.sh PROGRAMS_SH GENERATE MAKE_TEST_CHECKPOINT TOKENS STAGE; a STAGE of - is none
set -u
# shellcheck source=common/testing/programs.sh
. "$1"
generate=$PWD/$2
tokens=$4
stage=$5
make=$PWD/$3
"$make" "$TEST_TMPDIR" || exit 1
cd "$TEST_TMPDIR" || exit 1
unset BUILD_WORKING_DIRECTORY
: >in
bare "$generate"
if [ "$stage" != - ]; then
    printf '#!/bin/bash\nexec %q --stage %q "$@"\n' "$generate" "$stage" >on_stage && chmod +x on_stage
    generate=$PWD/on_stage
fi

tiny=("$generate" tiny.bin -z tiny_tokenizer.bin)

# Flags.
accepts "$generate" --help
grep -q -- '--temperature' out || fail "--help does not list --temperature"
refuses "no CHECKPOINT given, and datasets/tiny_llama is not there: give a file of llama2.c" "${bare[@]}"
refuses "wants one CHECKPOINT, got 2" "${tiny[@]}" more
refuses "unknown flag '--colour'" "${tiny[@]}" --colour
refuses "unknown flag '-q'" "${tiny[@]}" -q
refuses "--temperature wants a number, not 'warm'" "${tiny[@]}" -t warm
refuses "--temperature wants a number, not 'nan'" "${tiny[@]}" -t nan
refuses "--steps wants a whole number, not '1.5'" "${tiny[@]}" -n 1.5
refuses "--steps wants a whole number from -2147483648 to 2147483647, not '2147483648'" \
    "${tiny[@]}" -n 2147483648
accepts "${tiny[@]}" -n -1 -t 0
says "generate: --steps -1 is below 0: using 0" err
refuses "--system-prompt has no effect without --mode chat" "${tiny[@]}" -y hello
refuses "-n wants a value" "${tiny[@]}" -n
refuses "--mode is 'generate' or 'chat', not 'sing'" "${tiny[@]}" -m sing
refuses "--threads 0: must be at least 1" "${tiny[@]}" --threads 0

# Files.
refuses "absent.bin: cannot open" "$generate" absent.bin -z tiny_tokenizer.bin
refuses "absent.bin: cannot open" "$generate" tiny.bin -z absent.bin
refuses "tokenizer.bin: cannot open" "$generate" tiny.bin
says "; give the checkpoint's own with --tokenizer FILE" err
refuses "config.json: cannot open" "$generate" . -z tiny_tokenizer.bin
: >empty.bin
refuses "empty.bin" "$generate" empty.bin -z tiny_tokenizer.bin
refuses "empty.bin" "$generate" tiny.bin -z empty.bin
head -c 1000 tiny.bin >short.bin
refuses "short.bin" "$generate" short.bin -z tiny_tokenizer.bin
(cat tiny.bin; echo more) >long.bin
refuses "long.bin" "$generate" long.bin -z tiny_tokenizer.bin
head -c 5000 /dev/zero | tr '\0' '\377' >ones.bin
refuses "ones.bin" "$generate" ones.bin -z tiny_tokenizer.bin
refuses "ones.bin" "$generate" tiny.bin -z ones.bin
head -c 700 tiny_tokenizer.bin >short_tokenizer.bin
refuses "short_tokenizer.bin" "$generate" tiny.bin -z short_tokenizer.bin

# Other formats are named.
printf 'GGUF\003\000\000\000%040d' 0 >a.gguf
refuses "a.gguf: the header announces" "$generate" a.gguf
printf 'PK\003\004%040d' 0 >pytorch_model.bin
refuses "pytorch_model.bin: this is a zip archive (as PyTorch's .bin" "$generate" pytorch_model.bin
printf 'the\nquick\n' >text.txt
refuses "text.txt: this is a text file; give llama2.c's tokenizer.bin or a tokenizer.json" \
    "$generate" tiny.bin -z text.txt
printf 'version https://git-lfs.github.com/spec/v1\n' >pointer
mkdir pointed && cp tiny/config.json pointed/ && cp pointer pointed/model.safetensors
refuses "pointed/model.safetensors: this is a pointer of Git LFS" "$generate" pointed -z tiny_tokenizer.bin
refuses "/dev/zero: not a regular file" "$generate" /dev/zero

# A configuration of another model is refused.
cp -r tiny fewer
sed -i 's/"num_hidden_layers":\([[:space:]]*\)[0-9]*/"num_hidden_layers":\11/' fewer/config.json
refuses 'there is a tensor "model.layers.1.self_attn.q_proj.weight", but "num_hidden_layers" in config.json is 1' \
    "$generate" fewer -z tiny_tokenizer.bin
sed -i 's/"num_hidden_layers":\([[:space:]]*\)[0-9]*/"num_hidden_layers":\19/' fewer/config.json
refuses 'tensor "model.layers.' "$generate" fewer -z tiny_tokenizer.bin

# One weight that is not a number makes one logit of all that is none: one line, on every stage.
for value in '\x00\x00\xc0\x7f' '\x00\x00\x80\x7f'; do
    cp tiny.bin nan.bin
    printf '%b' "$value" | dd of=nan.bin bs=1 seek=$((28 + 400)) conv=notrunc status=none
    for how in "-t 0" "-t 1 -s 5"; do
        read -ra flags <<<"$how"
        run "$generate" nan.bin -z tiny_tokenizer.bin -i abc -n 20 "${flags[@]}"
        { [ "$code" -eq 1 ] && [ "$(wc -l <err)" -eq 1 ]; } || fail "a bad weight: $code: $(cat err)"
        grep -q "^generate: the model's logits at position [0-9]* are not finite" err || fail "said: $(cat err)"
        [ "$(tail -c 1 out | od -An -tx1)" = " 0a" ] || fail "the text has no end of line: $(cat out)"
    done
done

# Hugging Face's folders: the same model, the same text.
accepts "${tiny[@]}" -t 0 -n 20 -i abc
mv out from_file
accepts "$generate" tiny -z tiny_tokenizer.bin -t 0 -n 20 -i abc
cmp -s out from_file || fail "a folder writes other text than the file: $(cat out)"
refuses "tokenizer" "$generate" tiny
cp tiny_tokenizer.bin tiny/tokenizer.bin
accepts "$generate" tiny -t 0 -n 20 -i abc
cmp -s out from_file || fail "the folder's own tokenizer gives other text"

# A GGUF file with its vocabulary: the folder's text.
accepts "$generate" tiny_f16 -t 0 -n 20 -i abc
mv out from_folder
accepts "$generate" tiny.gguf -t 0 -n 20 -i abc
cmp -s out from_folder || fail "a GGUF file writes other text than the folder: $(cat out)"
accepts "$generate" tiny.gguf -z tiny_tokenizer.bin -t 0 -n 20 -i abc
cmp -s out from_folder || fail "a GGUF file with another tokenizer writes other text: $(cat out)"
sed 's/tokenizer.ggml.model/tokenizer.ggml.Model/' tiny.gguf >no_model.gguf
refuses 'no_model.gguf: "tokenizer.ggml.model" "" is not supported' "$generate" no_model.gguf
sed 's/blk.1.attn_q/blk.1.attn_Q/' tiny.gguf >lacks.gguf
refuses 'lacks.gguf: tensor "blk.1.attn_q.weight" is missing' "$generate" lacks.gguf
head -c 30000 tiny.gguf >short.gguf
refuses 'short.gguf: tensor "' "$generate" short.gguf

# Without a checkpoint: the workspace's own.
mkdir -p course/datasets course/labs && cp -r tiny course/datasets/tiny_llama && : >course/WORKSPACE
accepts env BUILD_WORKSPACE_DIRECTORY="$PWD/course" "$generate" -t 0 -n 20 -i abc
cmp -s out from_file || fail "the workspace's checkpoint writes other text"
# A program built with the checkpoint must run without it here, as a program with a CPU stage can.
around=("$generate")
[ "$stage" != - ] && around=(env -u RUNFILES_DIR "$PWD/bare/${2##*/}")
accepts env -C course/labs "${around[@]}" -t 0 -n 20 -i abc
cmp -s out from_file || fail "the checkpoint of the workspace around writes other text"
rm course/datasets/tiny_llama/tokenizer.bin
refuses "course/datasets/tiny_llama" env -C course "${around[@]}"

# Folders that are incomplete.
cp -r tiny lacking && rm lacking/model-00002-of-00002.safetensors
refuses "model-00002-of-00002.safetensors: cannot open" "$generate" lacking
cp -r tiny other && sed 's/"hidden_size":[^,]*/"hidden_size": 64/' tiny/config.json >other/config.json
refuses "the configuration says" "$generate" other
cp -r tiny larger && sed 's/"vocab_size":[^,]*/"vocab_size": 300/' tiny/config.json >larger/config.json
refuses "the configuration says (300, 32)" "$generate" larger
# change NAME SED FILE: a copy of tiny, called NAME, with one file changed.
change() {
    rm -rf "$1" && cp -r tiny "$1" && sed "$2" "tiny/$3" >"$1/$3"
    cmp -s "tiny/$3" "$1/$3" && fail "$3 was not changed by $2"
}
change heads 's/"num_key_value_heads":[^,]*/"num_key_value_heads": 4/' config.json
refuses 'tensor "model.layers.0.self_attn.k_proj.weight" has shape (16, 32), the configuration says (32, 32)' \
    "$generate" heads
change layers 's/"num_hidden_layers":[^,]*/"num_hidden_layers": 3/' config.json
refuses 'tensor "model.layers.2.input_layernorm.weight" is missing' "$generate" layers
change misled 's/"model-00002-of-00002/"model-00001-of-00002/' model.safetensors.index.json
refuses "is missing; the index says that it is here" "$generate" misled
change outside 's|"model-00002-of-00002|"../tiny/model-00002-of-00002|' model.safetensors.index.json
refuses "which is not inside the folder" "$generate" outside
change torn "\$d" model.safetensors.index.json
refuses "torn/model.safetensors.index.json" "$generate" torn
cp -r tiny cut && head -c 3000 tiny/model-00001-of-00002.safetensors >cut/model-00001-of-00002.safetensors
refuses "cut/model-00001-of-00002.safetensors: " "$generate" cut
cp -r tiny none && rm none/model*
refuses "neither model.safetensors nor model.safetensors.index.json" "$generate" none
refuses "tiny/model-00001-of-00002.safetensors: give the folder" "$generate" tiny/model-00001-of-00002.safetensors
head -c 4 tiny_tokenizer.bin >few.bin && tail -c +5 tiny_tokenizer.bin | head -c -9 >>few.bin
refuses "few.bin: tokenizer has 285 tokens, the model 286" "$generate" tiny.bin -z few.bin
refuses "few.bin: tokenizer has 285 tokens, the model 286" "$generate" tiny -z few.bin

# A relative of Llama2, with a byte-level tokenizer.
accepts "$generate" qwen2 -t 0 -n 40 -i "caf$(printf '\303\251') abc"
[ "$(head -c 9 out)" = "caf$(printf '\303\251') abc" ] || fail "without BOS the prompt is not printed: $(cat out)"
refuses "the prompt is empty, and the tokenizer has no token that begins a text" "$generate" qwen2
refuses "computes models with scaled rotary embedding in fp32 only" "$generate" qwen2 --dtype bf16 -i a
accepts "$generate" qwen2 -t 0 -n 20 -i "<|im_end|>" --json
says '"prompt_tokens":10,' out
accepts "$generate" qwen2 -t 0 -n 20 -i "<|im_end|>" --json --special-tokens
says '"prompt_tokens":1,' out
printf 'hello\nagain\n' | "$generate" qwen2 -m chat -t 0 -y brief -n 60 >chatml 2>err || fail "chatml: $(cat err)"
says "prompt 39 tokens" err # each marker is one of them
printf 'hello\nagain\n' | "$generate" qwen2 -m chat -t 0 -y brief -n 60 --chat-template chatml >out 2>err
cmp -s out chatml || fail "the added tokens do not tell the template"
cp -r qwen2 unknown && printf '{"chat_template":"{{ strange }}"}' >unknown/tokenizer_config.json
refuses "unknown/tokenizer_config.json: the chat template is none that is known" "$generate" unknown -m chat
change_relative() {
    rm -rf changed && cp -r qwen2 changed && sed "$1" "qwen2/$2" >"changed/$2"
    cmp -s "qwen2/$2" "changed/$2" && fail "$2 was not changed by $1"
}
change_relative 's/"qwen2"/"qwen2_moe"/' config.json
refuses 'changed/config.json: "model_type" is "qwen2_moe", which needs mixture of experts' "$generate" changed -i a
change_relative 's/\[256,258\]/"<>"/' config.json
refuses 'changed/config.json: "eos_token_id" is neither a token nor a list of tokens' "$generate" changed -i a
change_relative 's/"ByteLevel","add_prefix_space":false/"Whitespace"/' tokenizer.json
refuses "changed/tokenizer.json: " "$generate" changed -i a

# Prompts.
refuses "UTF-8" "${tiny[@]}" -i "$(printf 'abc\xff')"
refuses "the prompt has 102 tokens, the model's context is 64" "${tiny[@]}" -i "$(printf 'a%.0s' {1..100})"

# Greedy is the same with any seed; sampling is the same with the same seed.
accepts "${tiny[@]}" -t 0 -n 20 -s 1 -i abc
mv out greedy
accepts "${tiny[@]}" -t 0 -n 20 -s 2 -i abc
cmp -s out greedy || fail "greedy text depends on the seed"
[ "$(head -c 3 out)" = abc ] || fail "the prompt is not printed first"
accepts "${tiny[@]}" --temperature 1 --seed 7 --steps 24
mv out sampled
accepts "${tiny[@]}" -t 1 -s 7 -n 24
cmp -s out sampled || fail "the same seed gives other text"
accepts "${tiny[@]}" -t 1 -s 8 -n 24
cmp -s out sampled && fail "another seed gives the same text"
accepts "${tiny[@]}" -t 1 -s 7 -n 24 -p 0.1
cmp -s out sampled && fail "--top-p changes nothing"

# A real checkpoint writes its known text.
data=${WARPBOOK_DATA:-}
if [ -r "$data/stories260K.bin" ] && [ -r "$data/tok512.bin" ]; then
    case $tokens in
    40) want=689968a7c1fbdbd23a0bc3e11346aec265a0c479e103c7e5324ed19c11544d5e ;;
    200) want=f5a0e67db7424051520e7d8db9880b3dc2aa13577db570c28805c1b51c42eaf0 ;;
    512) want=e0c267ef267cb50130db210849536569e50920fbfdf130bc9784d6d5ae66aaad ;;
    *) fail "no text of $tokens tokens is known" ;;
    esac
    accepts "$generate" "$data/stories260K.bin" -z "$data/tok512.bin" -t 0.0 -n "$tokens"
    sum=$(sha256sum <out | cut -d' ' -f1)
    [ "$sum" = "$want" ] || fail "stories260K writes other text in $tokens tokens ($sum): $(cat out)"
    refuses "tokenizer has 32000 tokens, the model 512" "$generate" "$data/stories260K.bin" -z "$data/llama2_tokenizer.bin"
    # fp16 as a folder and as a GGUF file; an emulated GPU takes a minute for it, and tiny.gguf's text above
    # tells as much of a stage.
    if [ "$stage" = - ] && [ "$tokens" -eq 512 ]; then
        "$make" "$PWD" "$data/stories260K.bin" "$data/tok512.bin" || fail "no story.gguf"
        accepts "$generate" story_f16 -t 0.0 -n 200
        mv out from_folder
        accepts "$generate" story.gguf -t 0.0 -n 200
        cmp -s out from_folder || fail "stories260K writes other text from GGUF: $(cat out)"
    fi
else
    echo "skipped: the real checkpoint; set WARPBOOK_DATA to a folder with stories260K.bin and tok512.bin"
fi

# All that follows is the program's, whatever computes: simt would take most of a minute for it, and other
# labs' tests ask the same on the CPU.
[ "$tokens" -gt 40 ] || finish

# Values that llama2.c replaces are replaced, with a warning.
accepts "${tiny[@]}" -t -1 -n 20 -i abc
cmp -s out greedy || fail "a negative temperature is not greedy"
grep -q 'below 0' err || fail "no warning about the negative temperature"
accepts "${tiny[@]}" -s 7 -n 24 -p 1.5
mv out replaced
accepts "${tiny[@]}" -s 7 -n 24 -p 0.9
cmp -s out replaced || fail "--top-p 1.5 is not 0.9"
accepts "${tiny[@]}" -t 0 -i abc -n 64
mv out whole
accepts "${tiny[@]}" -t 0 -i abc -n 0
cmp -s out whole || fail "-n 0 is not the whole context"
accepts "${tiny[@]}" -t 0 -i abc -n 9999
cmp -s out whole || fail "-n beyond the context is not the whole context"
says "stopped at the model's context of 64 tokens, --steps asks for 9999; --roll continues" err
accepts "${tiny[@]}" -t 0 -i abc -n 100 --roll
says "; rolls: 2; " err
head -c $(($(wc -c <whole) - 1)) whole | cmp -s - <(head -c $(($(wc -c <whole) - 1)) out) ||
    fail "the text of --roll begins otherwise: $(cat out)"
accepts "${tiny[@]}" -t 0 -i abcdef -n 3
[ "$(cat out)" = "ab" ] || fail "-n 3 of ' abcdef' is '$(cat out)'" # pieces: "", "a", "b"
accepts "${tiny[@]}" -n 10 --profile
grep -Eq 'matmul|decoder' err || fail "--profile prints no operator"

# Flags of one mode.
refuses "--json is not for --mode chat" "${tiny[@]}" -m chat --json
refuses "--prompt-file is not for --mode chat" "${tiny[@]}" -m chat --prompt-file in
refuses "--prompt and --prompt-file: give one of them" "${tiny[@]}" -i a --prompt-file in
refuses "--chat-template has no effect without --mode chat" "${tiny[@]}" --chat-template llama3
refuses "--chat-template is llama2, llama3, chatml, mistral or zephyr, not 'alpaca'" "${tiny[@]}" -m chat --chat-template alpaca

# Prompts of a file: each is answered as if it were alone.
printf 'abc\r\n\n{"prompt":"b c","id":[7,"x"]}\nd' >prompts
accepts "${tiny[@]}" -t 1 -s 5 -n 12 -i abc && cp out together
accepts "${tiny[@]}" -t 1 -s 5 -n 12 -i "b c" && cat out >>together
accepts "${tiny[@]}" -t 1 -s 5 -n 12 -i d && cat out >>together
accepts "${tiny[@]}" -t 1 -s 5 -n 12 --prompt-file prompts
cmp -s out together || fail "a file of prompts gives '$(cat out)', alone they give '$(cat together)'"
says "prompt 13 tokens" err
cp prompts in
accepts "${tiny[@]}" -t 1 -s 5 -n 12 --prompt-file -
: >in
cmp -s out together || fail "standard input gives other texts than the file"
refuses "absent: cannot open: No such file" "${tiny[@]}" --prompt-file absent
printf 'a\n{"text":"b"}\n' >bad_prompts
run "${tiny[@]}" -n 5 --prompt-file bad_prompts
[ "$code" -eq 1 ] || fail "an object without a prompt is accepted"
says 'bad_prompts, line 2: "prompt" is missing or not a string' err
[ -s out ] || fail "the answer before a bad line is lost"
printf 'a\n%s\n' "$(printf 'a%.0s' {1..100})" >bad_prompts
run "${tiny[@]}" -n 5 --prompt-file bad_prompts
says "bad_prompts, line 2: the prompt has 102 tokens, the model's context is 64" err

# JSON: one object a prompt, flushed when it is done.
accepts "${tiny[@]}" -t 1 -s 5 -n 12 --json --prompt-file prompts
[ "$(wc -l <out)" -eq 3 ] || fail "--json prints $(wc -l <out) lines for three prompts"
says '{"prompt":"b c","text":"' out
says '"prompt_tokens":5,' out
says ',"stop":"length","stage":"' out
says '"id":[7,"x"]}' out
texts=$(sed -n 's/^{"prompt":"\([^"]*\)","text":"\(.*\)","tokens":.*/\1\2/p' out | sed 's/\\n/\n/g; s/\\"/"/g; s/\\\\/\\/g; s/\\t/\t/g')
[ -n "$texts" ] || fail "--json has no texts: $(cat out)"
accepts "${tiny[@]}" -t 0 -n 0 -i abc --json
says '"stop":"context"' out
accepts "${tiny[@]}" -t 0 -n 1 -i abc --json # a text that ends at once has no tokens
says '"tokens":[],' out
mkfifo pipe
"${tiny[@]}" -n 5 --json --prompt-file - <pipe >streamed 2>err &
writer=$!
exec 7>pipe
echo abc >&7
await grep -q '"prompt":"abc"' streamed
exec 7>&-
wait "$writer" || fail "answers to a pipe: $(cat err)"

# Paths are relative to the folder that bazel run was called in.
mkdir -p elsewhere
(cd elsewhere && BUILD_WORKING_DIRECTORY=$TEST_TMPDIR "${tiny[@]}" -n 5 >../out 2>../err) ||
    fail "BUILD_WORKING_DIRECTORY is not used: $(cat err)"

# Chat.
printf '\nhello there\nand again\n' | "${tiny[@]}" -m chat -s 3 >out 2>err || fail "chat: $(cat err)"
grep -q 'Assistant: ' out || fail "chat has no answer: $(cat out)"
run "${tiny[@]}" -m chat -i "$(printf 'a%.0s' {1..100})" -y ""
[ "$code" -eq 1 ] || fail "chat accepts a turn beyond the context"
says "are left" err
printf 'ab\n' | "${tiny[@]}" -m chat -y "be short" -s 3 >out 2>err
grep -q 'Assistant: ' out || fail "chat with a system prompt: $(cat out err)"

printf '\nab\ncd\n' | "${tiny[@]}" -m chat -s 3 >llama2 2>err
for template in llama2 mistral chatml; do
    printf '\nab\ncd\n' | "${tiny[@]}" -m chat -s 3 --chat-template $template >out 2>err || fail "$template: $(cat err)"
    case $template:$(cmp -s out llama2; echo $?) in
    llama2:0 | chatml:1 | mistral:*) ;;
    *) fail "--chat-template $template writes '$(cat out)', the default '$(cat llama2)'" ;;
    esac
done

# Output that cannot be written is an error.
if [ -w /dev/full ]; then
    "${tiny[@]}" -n 5 >/dev/full 2>err && fail "a full disk goes unnoticed"
fi

finish
