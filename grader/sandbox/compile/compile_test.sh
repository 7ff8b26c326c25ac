#!/usr/bin/env bash
# What a submission's file may ask of its compiler: each refusal in words, and within its limits.
#   compile_test.sh COMPILE TOOLKIT_FILE
set -u
compile=$PWD/$1
toolkit=$PWD/$2
workspace=$(dirname "$(realpath grader/sandbox/compile/BUILD)")
failed=0
cd "$(mktemp -d)" || exit 1

fail() {
    echo "FAILED: $*"
    failed=1
}

# try FILE [OPTION...]: compiles it with little memory and time; its words are in $said.
try() {
    local file=$1
    shift
    rm -f object.o
    said=$("$compile" --output=object.o --host=/usr/bin/gcc --read="$PWD/$file" --cpu=2 --memory=200 "$@" \
        -- /usr/bin/gcc -O2 -c "$PWD/$file" 2>&1)
}

# refused WORDS SOURCE: it must not compile, and one line must say so.
refused() {
    printf '%s\n' "$2" >refused.c
    if try refused.c; then
        fail "compiles: $2"
    elif ! grep -qE -- "$1" <<<"$said"; then
        fail "nothing matches '$1': $said"
    elif [ -e object.o ]; then
        fail "leaves an object file: $2"
    fi
}

# bomb N BODY: macros that make 10^N of it.
bomb() {
    printf '#define X0 %s\n' "$2"
    for i in $(seq "$1"); do
        echo "#define X$i" "$(yes "X$((i - 1))" | head -n 10 | tr '\n' ' ')"
    done
}

echo 'int seven(void) { return 7; }' >right.c
try right.c || fail "an honest file: $said"
gcc -O2 -c -o same.o right.c
cmp object.o same.o || fail "the sandbox changes what comes out"
echo '#include "own.h"' >own.c
echo 'int own;' >own.h
try own.c --read="$PWD/own.h" || fail "its own header: $said"

# Text of the file's own comes back in diagnostics, and goes to a terminal.
printf '#warning "a \033]0;title\007 b \302\233 c \233 d \342\200\256 e \303\244"\nint warned;\n' >warns.c
try warns.c || fail "a warning: $said"
grep -qF 'a ?]0;title? b ? c ? d ? e' <<<"$said" || fail "not plain: $said"
printf '#error "\033[2J"\n' >errs.c
try errs.c && fail "an error compiles"
grep -qF '?[2J' <<<"$said" || fail "not plain: $said"

only='nothing else can be included, nor embedded'
if try own.c; then
    echo "no Landlock: a header that nobody declared is found, and what may be read is not tried"
else
    for file in /etc/passwd /proc/1/environ "$workspace/compile.c" "$PWD/right.c" \
        /usr/bin/env; do
        [ -r "$file" ] || continue
        refused "$only" "#include \"$file\""
        refused "$only" "__asm__(\".incbin \\\"$file\\\"\");"
        refused "$only" "__asm__(\".include \\\"$file\\\"\");"
    done
    ln -s /etc/passwd link.h
    refused "$only" '#include "link.h"'
    refused "$only" '__asm__(".incbin \"/proc/self/cwd/right.c\"");'
fi
refused 'unable to include|file not found' '__asm__(".incbin \"/dev/zero\"");'
refused 'the compiler used more than 200 MiB of memory' "$(bomb 9 '1 +')
int a = X9 0;"
refused 'the compiler used more than 2 s of CPU time' \
    '__asm__(".rept 1000000\n.rept 1000000\n.endr\n.endr");'
refused 'the compiler wrote more than 1048576 bytes of text' \
    "$(bomb 5 '_Pragma("GCC warning \"word after word\"")')
X5"
refused 'what it is compiled to is larger than 256 MiB' 'char much[1u << 29] = {1};'
refused 'expected' 'int broken('
# What steers a linker, which runs outside of the sandbox: section() FLAGS CONTENT.
section() {
    printf '__asm__(".section %s\\n%s\\n.previous");' "$1" "$2"
}
for name in .gnu.lto_.opts .gnu.lto_main.0 .deplibs .linker-options .llvmbc .interp .dynamic .dynstr \
    .gnu.warning.main .gnu.version_r .gnu.linkonce.t.main .init .ctors .plt .got.plt .zdebug_str; do
    refused "its section $name has the linker do more than link" "$(section "$name,\\\"a\\\",@progbits" .byte\ 0)"
done
refused 'its section .text.x has the linker do more' "$(section '.text.x,\"ax\",@0x70000003' '.byte 0')"
refused 'its section .debug_str has the linker do more' "$(section '.debug_str,\"0x800\",@progbits' '.quad 1,1')"
refused 'is aligned to more than 2 MiB' "$(section '.data.x,\"aw\",@progbits' '.p2align 22\n.byte 1')"
refused 'more than 32 bytes to be merged' "$(section '.rodata.x,\"aM\",@progbits,64' '.zero 64')"
refused 'code and data take more than 1024 MiB' 'char a[1u << 30];'
refused 'code and data take more than 1024 MiB' '__asm__(".comm much, 0x40000000, 8");'
refused 'code and data take more than 1024 MiB' 'char a[600 << 20], b[600 << 20];'
refused 'refers to what other files define more than 65536 times' '__asm__(".rept 70000\n.quad elsewhere\n.endr");'
refused 'a name of more than 8192 characters, or with others than' '__asm__(".globl \"\033[2J\"\n\"\033[2J\": .byte 0");'
refused 'a section whose name holds other characters' "$(section '\"\033[2J\",\"a\",@progbits' '.byte 0')"
refused 'its stack would have to be executable' "$(section '.note.GNU-stack,\"x\",@progbits' '')"

cat >unusual.c <<'END'
#include <stdint.h>
static _Thread_local int own = 3;
static char pool[256 << 20] __attribute__((aligned(1 << 21)));
int mine __attribute__((section("my_section"))) = 4;
__attribute__((constructor(200))) static void begins(void) { mine++; }
__attribute__((destructor)) static void ends(void) { mine--; }
__attribute__((target_clones("avx2", "default"))) float sum(const float *x, int n) {
    float s = 0;
    for (int i = 0; i < n; i++) s += x[i];
    return s;
}
__attribute__((weak)) int perhaps(int n) { return n + own + pool[n]; }
int alias(int n) __attribute__((alias("perhaps")));
END
for options in -O0 -g '-ffunction-sections -fdata-sections -fpic' --coverage; do
    # shellcheck disable=SC2086 # several options
    said=$("$compile" --output=object.o --host=/usr/bin/gcc --read="$PWD/unusual.c" \
        -- /usr/bin/gcc -O2 $options -c "$PWD/unusual.c" 2>&1) || fail "an unusual file with $options: $said"
done

# nvcc starts gcc, and others: they are confined as it is. What: -c, an object, or -fatbin, a GPU's code.
nvcc() {
    printf '%s\n' "$1" >device.cu
    rm -f object.o
    said=$("$compile" --output=object.o "${@:3}" --host=/usr/bin/gcc --toolkit="$toolkit" \
        --read="$PWD/device.cu" -- nvcc "${2:--c}" -x cu -gencode arch=compute_90,code=compute_90 -ccbin /usr/bin/gcc "$PWD/device.cu" 2>&1)
}
if [ -s "$toolkit" ]; then
    nvcc '__global__ void k(float *x) { *x = 1; }' || fail "an honest kernel: $said"
    nvcc '__global__ void k(float *x) { *x = 1; }' -fatbin --unlinked || fail "its code alone: $said"
    [ -s object.o ] || fail "no code of an honest kernel"
    nvcc '__global__ void k(float *x) { *x = 1; }' -fatbin && fail "a GPU's code for an object file"
    [ ! -e object.o ] || fail "a GPU's code is left where an object file is wanted"
    nvcc '#include "/etc/passwd"' && fail "nvcc includes /etc/passwd"
    grep -q "$only" <<<"$said" || fail "nvcc: $said"
    nvcc 'asm(".incbin \"/etc/passwd\"");' && fail "nvcc embeds /etc/passwd"
    grep -q "$only" <<<"$said" || fail "nvcc: $said"
fi
exit "$failed"
