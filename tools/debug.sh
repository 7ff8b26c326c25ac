#!/bin/bash
# Runs a lab's bench under a debugger. See --help.
# usage, by BUILD: debug.sh simt|gpu PROGRAM [ARGUMENTS]
set -u

device=$1 program=$2
shift 2

usage() {
    cat <<END
usage: bazel run //${program%/*}:debug -- [FLAGS OF THE BENCH]

Runs the lab's bench under a debugger. On a GPU that is cuda-gdb, at its prompt:
"break sgemm.cu:35" and "run" stop in a kernel's line, "info cuda threads" tells
which threads are there. The build must name the GPU or have found it, see
CONTRIBUTING.md.
Without a GPU it is gdb, which stops where simt finds the first fault of a kernel:
the message tells thread and source line, the backtrace which launch it was.
Add --copt=-g to \`bazel run\` to see the lines of C code, too. Without gdb the
bench just runs, with all of simt's checks.

If standard input is no terminal, gdb prints the backtrace and ends.
END
}

for argument in "$@"; do
    case "$argument" in
    --debug-help | --help | -h)
        usage
        exit 0
        ;;
    esac
done

# cuda-gdb is found where nvcc is.
if [ "$device" = gpu ]; then
    debugger=$(command -v cuda-gdb || ls "${CUDA_HOME:-/usr/local/cuda}/bin/cuda-gdb" 2>/dev/null)
    if [ -z "$debugger" ]; then
        echo "debug: cuda-gdb is not installed: it is part of the CUDA toolkit (package cuda-gdb-13-0); or add --config=simt" >&2
        exit 1
    fi
    # The compiler's own folder is gone; sources are found by their names.
    sources=()
    for folder in "${BUILD_WORKSPACE_DIRECTORY:-.}/${program%/*}"{,/steps}; do
        [ ! -d "$folder" ] || sources+=(-d "$folder")
    done
    exec "$debugger" -q "${sources[@]}" --args "$program" "$@"
fi

export SIMT_CHECK=${SIMT_CHECK:-full}
if ! command -v gdb >/dev/null; then
    echo "debug: gdb is not installed (Debian: apt-get install gdb); this runs the bench with all checks" >&2
    exec "$program" "$@"
fi

# On a fault: the message has been printed; then who launched the kernel.
commands=(-q -iex "set confirm off" -iex "set debuginfod enabled off" -iex "set pagination off"
    -ex "set breakpoint pending on" -ex "tbreak simt_fault_found" -ex run)
if [ -t 0 ]; then
    exec gdb "${commands[@]}" -ex backtrace --args "$program" "$@"
fi
exec gdb -batch "${commands[@]}" -ex backtrace --args "$program" "$@"
