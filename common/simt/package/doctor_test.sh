#!/bin/bash
# simt doctor on programs of many kinds, and on what is none.
# usage: doctor_test.sh HELPERS SIMT PLAIN DEFAULT MACHINE MIXED DEBUG VIDEO LAUNCHER LINKED INCOMPLETE CASE
# shellcheck source=common/testing/programs.sh
source "$1"
simt=$PWD/$2
plain=$PWD/$3
default=$PWD/$4
machine=$PWD/$5
mixed=$PWD/$6
debug=$PWD/$7
video=$PWD/$8
launcher=$PWD/$9
linked=$PWD/${10}
incomplete=$PWD/${11}
case=$PWD/${12}
cd "$TEST_TMPDIR" || exit 1
: >in

# examined CODE PROGRAM [FLAGS]: the doctor's exit status, and a verdict that agrees with it.
examined() {
    local want=$1
    shift
    run "$simt" doctor "$@"
    [ "$code" -eq "$want" ] || fail "exit status $code, want $want: $* -> $(cat out err)"
    [ -s err ] && fail "stderr: $* -> $(cat err)"
    local count
    count=$(grep -c '^  refused ' out)
    case $want in
    0) { [ "$count" -eq 0 ] && grep -qx 'it runs' out; } || fail "no verdict: $(cat out)" ;;
    1) { [ "$count" -gt 0 ] && grep -qx "would be refused: $count" out; } || fail "no verdict: $(cat out)" ;;
    esac
}

# no_program TEXT FILE: bad input.
no_program() {
    run "$simt" doctor "${@:2}"
    [ "$code" -eq 2 ] || fail "exit status $code, want 2: ${*:2}"
    [ -s out ] && fail "printed text: ${*:2}"
    [ "$(wc -l <err)" -eq 1 ] || fail "not one line: ${*:2} -> $(cat err)"
    says "$1" err
}

examined 0 "$plain"
says "ok       64-bit program for x86-64" out
says "ok       CUDA runtime: shared, libcudart.so.13" out
says "ok       compiled by CUDA 13" out
says "ok       PTX for compute_75 in 1 fat binary" out
says "ok       PTX is not compressed" out
says "ok       1 kernel in PTX" out
says "ok       messages name source lines" out
examined 0 "$debug"
says "PTX is compressed" out
examined 0 "$mixed"
says "note     machine code for sm_75" out
says "PTX for compute_75 in 1 fat binary" out

# nvcc's defaults: the runtime linked statically.
examined 1 "$default"
says "refused  CUDA runtime: linked statically, which is nvcc's default: link the program again with nvcc -cudart shared" out
examined 1 "$machine"
says "note     machine code for sm_90" out
says "refused  the program has only machine code and no PTX" out

# Instructions and functions that simt does not have.
examined 1 "$video"
says "refused  increment(int*, int) uses vadd.s32.s32.s32 at " out
says "sample.cu:" out
examined 1 "$case"
says "refused  cudaDeviceFlushGPUDirectRDMAWrites(): returns cudaErrorNotSupported" out
says "refused  video(int*) uses vadd.s32.s32.s32 at " out
grep -q "scale" out && fail "a kernel that runs was refused"

# Programs of nvcc -rdc=true.
examined 0 "$linked"
examined 1 "$launcher"
says "dynamic parallelism" out
examined 1 "$incomplete"
says "refused  missing(int): used in " out

# Another GPU.
examined 0 --gpu t4 "$plain"
no_program "--gpu is one of t4, " --gpu voodoo "$plain"

# A library that needs a driver: a name of the same length in the list of needed libraries.
LC_ALL=C sed 's/libstdc++\.so\.6/libcublas.so.1/' "$plain" >needs_cublas
examined 1 needs_cublas
says "cuBLAS holds machine code and needs the driver" out

# Other machines: byte 18 is the machine (183: AArch64), byte 4 the class.
cp "$plain" arm && chmod u+w arm && printf '\267' | dd of=arm bs=1 seek=18 conv=notrunc status=none
examined 1 arm
says "refused  a program for AArch64" out
cp "$plain" narrow && chmod u+w narrow && printf '\001' | dd of=narrow bs=1 seek=4 conv=notrunc status=none
examined 1 narrow

# No programs.
for size in 3 40 63 64 1000 10000; do
    head -c "$size" "$plain" >short
    no_program "short: " short
done
no_program "the end is missing" short
echo "int main() { }" >text.c
no_program "text.c: not a program: it is no ELF file" text.c
printf '#!/bin/sh\n' >script
no_program "a script: ask about the program that it starts" script
: >empty
no_program "empty: not a program" empty
no_program "not a regular file" .
no_program "missing: cannot open" missing
no_program "it takes one program"
no_program "it takes one program" "$plain" "$plain"
no_program "unknown flag" --nonsense "$plain"
run "$simt" doctor --help
[ "$code" -eq 0 ] || fail "--help: exit status $code"
finish
