#!/bin/bash
# How many warp instructions simt runs a second of processor time in programs of NVIDIA's
# cuda-samples, by checks: million of them, best of ROUNDS runs each on one CPU thread.
# usage: samples.sh LIBCUDART LAUNCH_SECONDS SAMPLES [ROUNDS]
# SAMPLES: a clone of https://github.com/NVIDIA/cuda-samples; nvcc must be in PATH.
cudart=$(realpath "$1")
seconds=$(realpath "$2")
cd "${BUILD_WORKING_DIRECTORY:-.}" || exit 1
samples=$(realpath -e "${3:?usage: samples.sh LIBCUDART LAUNCH_SECONDS SAMPLES [ROUNDS]}") || exit 1
rounds=${4:-5}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

fail() {
    echo "samples.sh: $1" >&2
    exit 1
}

# build NAME FOLDER EDIT: compiles a sample; EDIT makes it small. Its results are checked all the same.
build() {
    local source=$samples/Samples/$2
    [ -d "$source" ] || fail "$source is not there: the argument must be a clone of cuda-samples"
    mkdir "$work/$1.src"
    cp -r "$source"/. "$work/$1.src"
    find "$work/$1.src" -name '*.c*' -exec sed -i "$3" {} +
    mapfile -t files < <(find "$work/$1.src" -name '*.cu' -o -name '*.cpp')
    nvcc -cudart shared --compress-mode=none -lineinfo -O3 -std=c++17 \
        -gencode arch=compute_80,code=compute_80 -I"$samples/Common" -I"$work/$1.src/inc" \
        "${files[@]}" -o "$work/$1" >"$work/log" 2>&1 || fail "nvcc $1: $(tail -3 "$work/log")"
}

# launch NAME CHECK: processor seconds in launches, in the file `seconds`
launch() {
    LAUNCH_SECONDS=$work/seconds SIMT_THREADS=1 SIMT_CHECK=$2 SIMT_REPORT=text SIMT_REPORT_FILE=$work/report \
        LD_PRELOAD="$seconds $cudart" "$work/$1" >"$work/log" 2>&1 ||
        fail "$1 with SIMT_CHECK=$2: $(tail -3 "$work/log")"
}

# measure NAME CHECK
measure() {
    for ((n = 0; n < rounds; n++)); do
        launch "$1" "$2"
        awk '/warp instructions/ { sum += $NF } END { printf "%s ", sum }' "$work/report"
        cat "$work/seconds"
    done | awk '$2 > 0 { speed = $1 / $2 / 1e6; best = speed > best ? speed : best }
                END { printf " %8.1f", best }'
}

build matrixMul 0_Introduction/matrixMul 's/nIter = 300/nIter = 30/'
build convolutionSeparable 2_Concepts_and_Techniques/convolutionSeparable \
    's/\(image[WH] *= \)3072/\11024/; s/iterations = 16/iterations = 3/'
build mergeSort 0_Introduction/mergeSort 's/N  *= 4 \* 1048576/N = 262144/'
build MC_EstimatePiInlineP 2_Concepts_and_Techniques/MC_EstimatePiInlineP ''
build MC_SingleAsianOptionP 2_Concepts_and_Techniques/MC_SingleAsianOptionP ''

printf '%-22s %8s %8s %8s\n' program off bounds full
for name in matrixMul convolutionSeparable mergeSort MC_EstimatePiInlineP MC_SingleAsianOptionP; do
    printf '%-22s' "$name"
    for check in off bounds full; do
        measure "$name" "$check"
    done
    echo
done
