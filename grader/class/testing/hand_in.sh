# shellcheck shell=bash
# Real submissions to lab 02, of all kinds that a class hands in; a script sources this file.
#   hand_in_all FOLDER MAKE_ZIP STARTER MISTAKES SOLUTION STARTER_04
# makes them in FOLDER and prints a line for each: NAME, a tab, its state, a tab, words that its page
# has. Two states stand where the machine's load decides which limit comes first, that of a call or that of
# the program. MISTAKES is //grader/selftest:wrong_gpu_matmul.cu, SOLUTION the folder
# of solution 02.

# mistake NAME: a submission that makes one of the mistakes of the self-test; "right" is none.
mistake() {
    printf '#define only_mistake MISTAKE_%s\n' "$1"
    sed -e 's|#include "grader/selftest/mistakes.h"|enum mistake {\n#define ENUMERATOR(name) MISTAKE_##name,\nMISTAKES(ENUMERATOR)\n};\nstatic enum mistake chosen_mistake() { return only_mistake; }|' \
        "$mistakes"
}

# solution STEP: one step of it, v2_block_an_output or v3_warp_an_output, in one file.
solution() {
    echo '#include "labs/02_gpu_matmul/gpu_matmul.h"'
    echo "gpu_matmul_kernel gpu_matmul_$1;"
    cat "$steps/steps/grid.cuh" "$steps/steps/gpu_matmul_$1.cu" "$steps/gpu_matmul.cu" |
        sed -e '/#include "solutions\//d' -e "s/^static inline/[[maybe_unused]] &/" -e "/{\"v[1-4]_/{/\"$1\"/!d}" \
            -e "s/return gpu_matmul_v4_tile_a_warp(/return gpu_matmul_$1(/"
}

good() {
    solution v2_block_an_output
}

gold() {
    solution v3_warp_an_output
}

# hostile CODE: right, but for code that runs at each launch; raw() is a system call that no name shows.
hostile() {
    cat <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
__attribute__((unused)) static long raw(long call, long a, long b, long c) {
    long got;
    __asm__ volatile("syscall" : "=a"(got) : "a"(call), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return got;
}
END
    mistake right | sed -e "s|^    enum mistake mistake = chosen_mistake();|    $1\n&|"
}

# at_start CODE: right, but for code that runs before its first call.
at_start() {
    hostile ""
    printf '__attribute__((constructor)) static void at_start(void) { %s }\n' "$1"
}

# into NAME STATE WORDS: standard input is a submission of that name, a folder with the file.
into() {
    mkdir -p "$folder/$1"
    cat >"$folder/$1/gpu_matmul.cu"
    expect "$@"
}

expect() {
    printf '%s\t%s\t%s\n' "$1" "$2" "${3:-}"
}

commit() {
    git -C "$1" init -q
    git -C "$1" add -A
    git -C "$1" -c user.name=a -c user.email=a@example.org commit -qm "lab 02"
}

right_ones() {
    good | into "anna" passed
    gold | into "Zoë von B" gold
    gold >"$scratch/file" && "$make_zip" "$folder/bert.zip" "bert/gpu_matmul.cu" "$scratch/file"
    expect bert gold
    good | into "carla" passed && commit "$folder/carla"
    gold | into "dirk" gold && commit "$folder/dirk" && git clone -q --bare "$folder/dirk" "$folder/dirk.git"
    rm -rf "$folder/dirk"
    good >"$folder/emma_gpu_matmul.cu" && expect emma passed
    good >"$scratch/file" && "$make_zip" "$folder/Fán 你好.zip" 'labs\02_gpu_matmul\gpu_matmul.cu' "$scratch/file"
    expect "Fán 你好" passed
    mkdir -p "$folder/gesa/labs/02_gpu_matmul" "$folder/gesa/labs/04_sgemm" "$folder/gesa/solutions/02_gpu_matmul"
    gold >"$folder/gesa/labs/02_gpu_matmul/gpu_matmul.cu" && expect gesa gold
    cp "$starter_04" "$folder/gesa/labs/04_sgemm/sgemm.cu"
    mistake zeros >"$folder/gesa/solutions/02_gpu_matmul/gpu_matmul.cu"
}

slow_ones() {
    into "hugo" "not begun" <"$starter"
    { cat "$starter" && echo "/* mine */"; } | into "ines" slow
    mistake slow | into "jan" slow
    mistake right | into "kim" slow # right, and not fast enough
}

wrong_ones() {
    local name
    for name in zeros transposed odd_sizes last_row no_check no_barrier behind changes_input remembers \
        stale leaks; do
        mistake "$name" | into "$name" wrong
    done
}

uncompiled_ones() {
    mistake right | sed 's/float sum = 0;/float sum = nothing;/' | into "undefined" "not built" 'identifier &quot;nothing&quot; is undefined'
    echo '#error </pre><script>alert(1)</script>' | into "<img src=x onerror=alert(1)>" "not built" '&lt;script&gt;alert(1)'
    mistake right | sed 's/gpu_matmul_destroy/destroy_it/' | into "without a function" "not built"
    : | into "nothing" "not built"
    printf '#include "/etc/passwd"\n' | into "curious" "not built" "nothing else can be included, nor embedded"
    head -c 100000 /dev/urandom | into "garbage" "not built"
}

broken_ones() {
    hostile 'static volatile int *nowhere; *nowhere = 1;' | into "crash" wrong
    hostile 'for (volatile int i = 0;; i = 0) { }' | into "hangs" "wrong|broken"
    mistake right | sed 's/size_t m = blockIdx.x/for (volatile int i = 0; N > 0; i = 0) { }\n&/' | into "kernel hangs" wrong
    at_start 'for (volatile int i = 0;; i = 0) { }' | into "hangs at start" "wrong|broken"
    hostile 'for (long i = 0; i < 100000000; i++) { puts("a line that nobody reads"); }' | into "loud" "wrong|broken"
}

hostile_ones() {
    hostile 'exit(0);' | into "exit" wrong
    hostile 'while (raw(57, 0, 0, 0) >= 0) { }' | into "forks" wrong
    hostile 'for (;;) { memset(malloc(1 << 30), 1, 1 << 30); }' | into "memory" "wrong|broken"
    hostile 'raw(62, raw(110, 0, 0, 0), 9, 0);' | into "kills the grader" wrong
    hostile 'static int done; if (!done++) { printf("[  PASSED  ] 10 tests.\\n"); } return STATUS_OK;' | into "forges" wrong
    at_start 'raw(2, (long)"/etc/shadow", 0, 0); raw(2, (long)"/tmp/mine", 01101, 0666);' | into "looks around" slow
}

refused_ones() {
    mkdir "$folder/link" "$folder/fifo" "$folder/empty"
    ln -s /etc/passwd "$folder/link/gpu_matmul.cu"
    expect link refused "gpu_matmul.cu is a link"
    mkfifo "$folder/fifo/gpu_matmul.cu" && expect fifo refused "is no plain file"
    expect empty refused "no file of a lab is in it"
    head -c 100000000 /dev/zero >"$scratch/file" && "$make_zip" "$folder/bomb.zip" gpu_matmul.cu "$scratch/file"
    expect bomb refused "has 100000000 bytes, at most 1048576 count"
    "$make_zip" "$folder/outside.zip" ../gpu_matmul.cu "$starter" && expect outside refused "leaves its folder"
    "$make_zip" "$folder/nested.zip" anna.zip "$folder/outside.zip" && expect nested refused "anna.zip is not unpacked"
    into twin refused "two submissions of one student" <"$starter"
    cp "$starter" "$folder/TWIN.cu" && expect TWIN refused "two submissions of one student"
}

hand_in_all() {
    folder=$1 make_zip=$2 starter=$3 mistakes=$4 steps=$5 starter_04=$6
    scratch=$(mktemp -d)
    mkdir -p "$folder"
    right_ones
    slow_ones
    wrong_ones
    uncompiled_ones
    broken_ones
    hostile_ones
    refused_ones
    rm -rf -- "$scratch"
}
