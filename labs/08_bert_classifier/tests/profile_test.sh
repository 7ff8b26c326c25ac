#!/bin/bash
# The profile program from outside.
# usage: profile_test.sh PROGRAMS_SH PROFILE
set -u
# shellcheck source=common/testing/programs.sh
. "$1"
profile=$PWD/$2
cd "$TEST_TMPDIR" || exit 1
unset BUILD_WORKING_DIRECTORY
: >in
bare "$profile"
: >file
random=("$profile" --random --max-length 16 --batch-size 2 --batches 2 --trace-batches 1)

accepts "$profile" --help
for flag in output-dir dataset data batches trace-batches padded dtype; do
    says "--$flag" out
done
refuses "no --checkpoint given, and datasets/reviews_bert is not there: give --checkpoint DIR" "${bare[@]}"
refuses "--batches 0, --trace-batches 3: must be from 1 to 100000" "$profile" --random --batches 0
refuses "--dtype is 'fp32', 'fp16' or 'bf16', not 'int8'" "${random[@]}" --dtype int8 -o never
refuses "--stage 'x': unknown stage; choose one of 01_cpu_matmul" "${random[@]}" --stage x -o never/made
[ -e never/made ] && fail "a refused run left a folder"
refuses "--dataset imdb: give its --data, too, or neither" "$profile" --random --dataset imdb
refuses "file: not a folder" "${random[@]}" --output-dir file
refuses "file/out: cannot make the folder: Not a directory" "${random[@]}" --output-dir file/out
refuses "--output-dir '': give a folder" "${random[@]}" --output-dir ""
refuses "absent.csv: cannot open" "${random[@]}" --dataset agnews --data absent.csv
[ -e profile ] && fail "a refused run left a folder"
refuses "--device gpu: stage 01_cpu_matmul runs on the CPU" "${random[@]}" --device gpu --stage 1
if [ "$(id -u)" -ne 0 ]; then
    mkdir -p locked && chmod 555 locked
    refuses "locked: cannot write there" "${random[@]}" --output-dir locked
fi

accepts "${random[@]}" --device cpu --output_dir a/b
says "stage 01_cpu_matmul on the CPU" out
says "matmul" out
says "no kernels: stage 01_cpu_matmul launches no kernels" out
for name in trace.json kernel_statistics.json benchmark_stats.json; do
    [ -s "a/b/$name" ] || fail "no a/b/$name"
done
[ "$(find a/b -type f | wc -l)" -eq 3 ] || fail "more than three files: $(ls a/b)"
says '"modelled":	false' a/b/benchmark_stats.json

# A full disk at the end does not cost the times.
mkdir full && ln -s /dev/full full/trace.json
run "${random[@]}" --device cpu -o full
{ [ "$code" -eq 1 ] && grep -q matmul out; } || fail "a full disk: status $code, $(cat out)"
says "full/trace.json: cannot write: No space left on device" err

awk 'BEGIN { for (i = 0; i < 5; i++) printf "%d,Title %d,some text\n", i % 4 + 1, i }' >news.csv
accepts "${random[@]}" --device cpu --dataset agnews --data news.csv --padded -o c
says '"samples":	4' c/benchmark_stats.json
says '"padded":	true' c/benchmark_stats.json

if "$profile" --random --stage none 2>&1 | grep -q 07_attention; then
    accepts "${random[@]}" --device gpu -o d
    says "stage 08_bert_classifier on " out
    says "the same batches with each kernel timed separately" out
    grep -qE '^ +[0-9]+ +[0-9.]+ +[0-9.]+%  copy to the host$' out || fail "no kernels: $(cat out)"
    says '"kernels_total_ms"' d/kernel_statistics.json
    says '"cat":"kernels"' d/trace.json
    accepts "${random[@]}" --stage 02_gpu_matmul -o e
    says "no kernels: stage 02_gpu_matmul: it copies and waits in every operator" out
    says '"no_kernels":	"stage 02_gpu_matmul: it copies' e/kernel_statistics.json
    if grep -q 'times are modelled' out; then
        says '"modelled":	true' d/kernel_statistics.json
        says '"clock":"modelled' d/trace.json
    fi
fi
finish
