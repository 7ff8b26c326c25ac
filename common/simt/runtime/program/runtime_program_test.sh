#!/bin/bash
# The emulator's library from outside: messages, exit statuses, reports, settings.
# usage: runtime_program_test.sh RUN CASE STATIC_PROGRAM MACHINE_CODE_PROGRAM
set -u
run=$PWD/$1
program=$PWD/$2
static=$PWD/$3
machine=$PWD/$4
cd "$TEST_TMPDIR" || exit 1
unset BUILD_WORKING_DIRECTORY LD_PRELOAD
unset SIMT_CHECK SIMT_THREADS SIMT_INSTRUCTION_LIMIT SIMT_GPU SIMT_REPORT SIMT_XRAY
failures=0

fail() {
    echo "FAILED: $*"
    sed 's/^/  out: /' out
    sed 's/^/  err: /' err
    failures=$((failures + 1))
}

# ends CODE ARGS: runs the emulator; leaves out and err.
ends() {
    local want=$1
    shift
    "$run" "$@" >out 2>err </dev/null
    local code=$?
    [ "$code" -eq "$want" ] || fail "exit status $code, want $want: $*"
}

# says TEXT, prints TEXT: on stderr, on stdout.
says() {
    grep -qF -- "$1" err || fail "stderr does not say: $1"
}

prints() {
    grep -qF -- "$1" out || fail "stdout does not say: $1"
}

# quiet: nothing on stderr.
quiet() {
    [ -s err ] && fail "stderr is not empty"
}

# one_line: exactly one on stderr.
one_line() {
    [ "$(wc -l <err)" -eq 1 ] || fail "stderr is not one line"
}

ends 0 "$program" nothing
quiet

# A kernel's faults: explained at once, returned by the next call that waits.
ends 3 "$program" out_of_bounds
prints "at once cudaSuccess"
prints "cudaErrorIllegalAddress"
says "out of bounds"
says "kernels.cu:"
ends 3 "$program" sticky
prints "copied cudaErrorIllegalAddress, freed cudaErrorIllegalAddress, device cudaSuccess"
prints "last cudaErrorIllegalAddress"
ends 3 "$program" assertion
prints "cudaErrorAssert"
says "value > 0"
ends 3 "$program" trap
prints "cudaErrorLaunchFailure"
SIMT_INSTRUCTION_LIMIT=10000 ends 3 "$program" endless
prints "cudaErrorLaunchTimeout"
SIMT_INSTRUCTION_LIMIT=10000 ends 3 "$program" handshake
says "the loop reads memory of the host (cudaHostAlloc, 4 bytes)"
says "hint: simt runs a kernel to its end before the host goes on"
ends 0 "$program" reset
prints "first cudaErrorIllegalAddress"
prints "then 8"

# Work of streams that nothing orders.
ends 3 "$program" streams_meet
prints "cudaErrorLaunchFailure"
says "race between streams: scale(int*, int const*, int, int, int) in stream 2"
says "4064 bytes into allocation"
says "that scale(int*, int const*, int, int, int) in stream 1 wrote before"
says "hint: let the second stream wait for the first"
ends 0 "$program" streams_apart
quiet
ends 0 "$program" streams_ordered
quiet
ends 3 "$program" streams_not_blocking
says "race between streams: cudaMemsetAsync in stream 0 writes"
SIMT_CHECK=full,-streams ends 0 "$program" streams_meet
quiet

# The host uses managed memory before it has waited for the kernel.
ends 3 "$program" early_read
prints "cudaErrorLaunchFailure"
says "race with the host: the host reads managed memory at 0x"
says "12 bytes into allocation"
says "that scale(int*, int const*, int, int, int) in stream 0 writes, and has not waited for it"
says "hint: wait before the host uses managed memory: cudaDeviceSynchronize()"
ends 3 "$program" early_write
says "race with the host: the host writes managed memory"
says "in stream 0 reads, and has not waited for it"
ends 3 "$program" early_variable
says "race with the host: the host reads managed memory"
ends 3 "$program" early_stream
says "in stream 2 writes, and has not waited for it"
ends 0 "$program" early_neighbour
quiet
ends 0 "$program" waited
quiet
SIMT_CHECK=full,-streams ends 0 "$program" early_read
quiet

# Host code and device memory.
ends 1 "$program" dereference
says "dereferences a device pointer"
ends 3 "$program" overrun
prints "cudaErrorInvalidValue"
says "cudaMemcpy writes 404 bytes"
says "400"

# Copies take along what was never written.
ends 3 "$program" uninitialised_copy
says "uninitialised: thread (0,0,0)"
ends 3 "$program" uninitialised_rows
prints "first cudaSuccess"
says "uninitialised: thread (16,0,0)"

# printf of kernels stands where it belongs.
ends 0 "$program" print
[ "$(cat out)" = "before
thread 0 of 3
thread 1 of 3
thread 2 of 3
after
cudaSuccess" ] || fail "lines of printf are out of order"

# What is left over, and who is told.
ends 0 "$program" leak
says "never freed: 3 allocations, 864 bytes"
says "cudaMallocHost of 64 bytes"
SIMT_CHECK=bounds ends 0 "$program" leak
quiet
ends 3 "$program" unsupported
prints "cudaErrorNotSupported"
says "cudaDeviceFlushGPUDirectRDMAWrites is not supported"
one_line

for check in off full; do
    SIMT_CHECK=$check ends 3 "$program" instruction
    prints "cudaErrorNotSupported"
    says "simt: video(int*) uses vadd.s32.s32.s32 at "
    says "kernels.cu:"
    one_line
done

# Reports.
ends 0 --report=text --check=bounds "$program" leak
says "scale(int*, int const*, int, int, int): 1 launch"
says "modelled, not measured"
ends 0 --report=json --check=bounds --gpu=a100 "$program" leak
says '"device":"simt:a100"'
says '"launches":1'
says '"global_store_sectors":13'
says '"set":{"count":2,"bytes":800}'
one_line
mv err first
ends 0 --report=json --check=bounds --gpu=a100 --threads=3 "$program" leak
cmp -s first err || fail "the report depends on the number of threads"

# Findings for code hosts.
ends 3 --report=sarif "$program" out_of_bounds
says '{"$schema":"https://json.schemastore.org/sarif-2.1.0.json","version":"2.1.0","runs":[{"tool":{"driver":{"name":"simt","rules":['
says '"ruleId":"out-of-bounds","ruleIndex":0,"level":"error","message":{"text":"out of bounds: thread'
says '"artifactLocation":{"uri":"common/simt/runtime/testdata/kernels.cu"},"region":{"startLine":'
ends 0 --report=sarif "$program" nothing
says '"results":[]}]}'

# A device process can write no page.
SIMT_DEVICE=process ends 1 --xray=page.html "$program" nothing
says "simt: SIMT_XRAY needs the device in the program's process"
one_line

# The x-ray page: written at the end, told in one line, the same on any number of threads.
xray_tests() {
    ends 0 --xray=page.html --check=bounds "$program" leak
    says "simt: x-ray of 1 launch: $PWD/page.html"
    one_line
    grep -q '"kernel":"scale(int\*, int const\*, int, int, int)","launches":1,' page.html || fail "the page has no kernel"
    mv page.html first.html
    SIMT_XRAY=page.html ends 0 --check=bounds --threads=3 "$program" leak
    cmp -s first.html page.html || fail "the page depends on the number of threads"
    ends 0 --xray=page.html --check=bounds "$program" nothing
    says "simt: x-ray of 0 launches"
    ends 1 --xray=no/such/folder/page.html "$program" nothing
    says "no/such/folder"
    one_line
}
[ "$SIMT_DEVICE" = process ] || xray_tests

# Which device.
SIMT_DEVICE=voodoo ends 1 "$program" nothing
says "simt: SIMT_DEVICE is one of inside, process, shared:NAME, or a descriptor's number"
one_line
SIMT_DEVICE=63 ends 1 "$program" nothing
one_line

# Bad settings: one line, exit status 1.
SIMT_CHECK=some ends 1 "$program" nothing
says "simt: SIMT_CHECK is one or more of off, bounds, uninitialised, races, copies, shuffles, leaks, streams, sampled, full, separated by commas"
says "not 'some'"
one_line
SIMT_GPU=voodoo ends 1 "$program" nothing
says "simt: SIMT_GPU is one of t4, l4, rtx3060, rtx3090, rtx4090, rtx5090, a100, h100, h200, b200, not 'voodoo'"
one_line
SIMT_THREADS=0 ends 1 "$program" nothing
says "SIMT_THREADS is a whole number from 1 to"
one_line
SIMT_INSTRUCTION_LIMIT=1e9 ends 1 "$program" nothing
says "SIMT_INSTRUCTION_LIMIT is a whole number"
one_line
SIMT_REPORT=xml ends 1 "$program" nothing
says "SIMT_REPORT is one of none, text, json, sarif, not 'xml'"
one_line

# Programs that cannot run.
ends 1 "$static"
says "link it with nvcc -cudart shared"
one_line
ends 1 "$machine"
says "no PTX"
one_line
ends 1 no_such_program
says "no_such_program"
one_line
ends 1
says "which program?"
ends 0 --help
prints "PROGRAM"
ends 1 --nonsense "$program"
says "nonsense"
ends 5 /bin/sh -c "exit 5"

# Paths mean what they mean where the user stands.
mkdir -p elsewhere
cp "$program" elsewhere/copied
BUILD_WORKING_DIRECTORY=$TEST_TMPDIR/elsewhere ends 0 ./copied nothing

exit $((failures > 0))
