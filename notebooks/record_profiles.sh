#!/usr/bin/env bash
# Records profiles for where_time_goes.ipynb: BERT and Llama2 by operator and stage, and stacks of
# the CPU baseline. See --help.
set -u

usage() {
    cat <<'EOF'
usage: notebooks/record_profiles.sh --bin DIR --out DIR --tokenizer FILE [FLAGS]

  --bin DIR         folder with labs/ and solutions/ as built: bazel-bin, or a bundle unpacked
  --out DIR         where to write, for example notebooks/results/h200/profile
  --tokenizer FILE  llama2.c's tokenizer.bin, of 32000 tokens
  --stages "N ..."  stages of the course (default: "3 4 5 6 7 8 9 10"; BERT has
                    those up to 8, Llama2 all but 8)
  --bert-shape NAME base (default) or tiny; the latter for simt, with texts of 32 tokens
  --llama2 SHAPE    15M (default) or 110M, of random weights
  --steps N         tokens that Llama2 writes (default 64)
  --flame           also the stacks of stage 01, with perf
  --note TEXT       what a reader of the figures should know, for example that others computed, too

A stage whose program fails is named and left out; the exit status is then 1.
EOF
}

fail() {
    echo "record_profiles.sh: $*" >&2
    exit 1
}

bin="" out="" tokenizer="" note=""
left_out=0
stages="3 4 5 6 7 8 9 10" bert_shape=base llama2=15M steps=64 flame=false
while [ $# -gt 0 ]; do
    case "$1" in
    --help | -h)
        usage
        exit 0
        ;;
    --flame)
        flame=true
        shift
        continue
        ;;
    esac
    [ $# -ge 2 ] || fail "$1: no value, or an unknown flag; --help lists them"
    case "$1" in
    --bin) bin=$2 ;;
    --out) out=$2 ;;
    --tokenizer) tokenizer=$2 ;;
    --stages) stages=$2 ;;
    --bert-shape) bert_shape=$2 ;;
    --llama2) llama2=$2 ;;
    --steps) steps=$2 ;;
    --note) note=$2 ;;
    *) fail "unknown flag '$1'; --help lists them" ;;
    esac
    shift 2
done
[ -n "$bin" ] && [ -n "$out" ] && [ -n "$tokenizer" ] || fail "--bin, --out and --tokenizer are needed"
[ -r "$tokenizer" ] || fail "$tokenizer cannot be read"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf -- "$work"' EXIT
mkdir -p "$out/bert" "$out/llama2" || exit 1

# profile_bert STAGE: kernel_statistics.json under the stage's number.
profile_bert() {
    local length=512 batch=16
    local -a where=(--device gpu)
    [ "$bert_shape" = tiny ] && length=32 batch=4
    [ "$1" -eq 1 ] && length=128 batch=1 where=(--device cpu --threads 1)
    "$bin/solutions/08_bert_classifier/profile" --random --shape "$bert_shape" "${where[@]}" \
        --stage "$(stage_name "$1")" --max-length $length --batch-size $batch --batches 1 \
        --trace-batches 1 --output-dir "$work/bert" >"$work/log" 2>&1 &&
        cp "$work/bert/kernel_statistics.json" "$out/bert/$(printf %02d "$1").json"
}

stage_name() {
    local folder
    folder=$(cd "$here/../solutions" && ls -d "$(printf %02d "$1")"_*) || return 1
    echo "${folder%/}"
}

# profile_llama2 STAGE: the profile that generate prints on standard error.
profile_llama2() {
    local -a threads=()
    [ "$1" -eq 1 ] && threads=(--threads 1)
    "$bin/solutions/10_llama2_decoder/generate" "$work/model.bin" -z "$tokenizer" -t 0 -s 1 \
        -n "$steps" -i Once --stage "$1" "${threads[@]}" --profile >/dev/null 2>"$work/log" &&
        grep -v '^$' "$work/log" >"$out/llama2/$(printf %02d "$1").txt"
}

# stacks NAME PROGRAM FLAGS...: stacks sampled by perf, on one thread, one line for each stack.
stacks() {
    local name=$1
    shift
    perf record -q -F 1999 --call-graph fp -e cpu-clock -o "$work/perf.data" -- "$@" --threads 1 \
        >/dev/null 2>"$work/log" &&
        perf script -i "$work/perf.data" -F comm,ip,sym,dso 2>>"$work/log" |
        python3 "$here/fold_stacks.py" >"$out/$name.folded" && [ -s "$out/$name.folded" ]
}

# attempt WHAT COMMAND...: reports a failure and continues.
attempt() {
    local what=$1
    shift
    if ! "$@"; then
        echo "left out: $what: $(grep -v '^$' "$work/log" 2>/dev/null | tail -n 1)" >&2
        left_out=1
    fi
}

python3 "$here/random_llama2.py" "$llama2" "$work/model.bin" || fail "no model of random weights"
for stage in $stages; do
    if [ "$stage" -le 8 ]; then
        attempt "BERT, stage $stage" profile_bert "$stage"
    fi
    if [ "$stage" -ne 8 ]; then
        attempt "Llama2, stage $stage" profile_llama2 "$stage"
    fi
done
if $flame; then
    text=("$work/model.bin" -z "$tokenizer" -t 0 -s 1 -n 250 -i Once)
    attempt "stacks, starter" stacks llama2_starter "$bin/labs/01_cpu_matmul/generate" "${text[@]}"
    attempt "stacks, solution" stacks llama2_solution \
        "$bin/solutions/01_cpu_matmul/generate" "${text[@]}"
    attempt "stacks, BERT" stacks bert_solution "$bin/solutions/08_bert_classifier/profile" \
        --random --shape "$bert_shape" --device cpu --stage "$(stage_name 1)" --max-length 128 \
        --batch-size 1 --batches 2 --trace-batches 1 --output-dir "$work/bert"
fi

commit=${WARPBOOK_COMMIT:-$(git -C "$here" rev-parse HEAD 2>/dev/null)}
cpu=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
family=$(sed -n 's/^cpu family[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
python3 - "$out/about.json" "$commit" "$cpu (family $family)" "Llama2 $llama2" "$note" <<'EOF'
import json, sys, time
path, commit, cpu, model, note = sys.argv[1:]
about = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "commit": commit or None,
         "cpu": cpu, "llama2": model, "note": note or None}
with open(path, "w") as file:
    json.dump(about, file, indent=1)
    file.write("\n")
EOF
exit $left_out
