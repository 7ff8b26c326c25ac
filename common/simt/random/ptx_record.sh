#!/bin/bash
# Keeps the PTX of the random kernels in the repository, so that builds need not compile it.
#
#     ptx_record.sh write FILE.ptx...            writes recorded_ptx.tar.xz into the workspace
#     ptx_record.sh check ARCHIVE FILE.ptx...    says whether the archive holds these files
#
# What only debuggers read is left out: line numbers, names of inlined functions, comments. It
# would be half of the archive, and holds the path of the file that was compiled.
set -euo pipefail
action=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

strip() {
    mkdir -p "$folder/compiled"
    for file in "$@"; do
        sed -e '/^[[:space:]]*\.section/,$d' -e '/^[[:space:]]*\.\(loc\|file\)[[:space:]]/d' \
            -e 's/_INTERNAL_[0-9a-f]\{8\}_/_INTERNAL_00000000_/g' \
            -e '/^[[:space:]]*\/\//d' -e '/^[[:space:]]*$/d' \
            "$file" >"$folder/compiled/$(basename "$file")"
    done
}

case $action in
write)
    strip "$@"
    archive=$BUILD_WORKSPACE_DIRECTORY/common/simt/random/recorded_ptx.tar.xz
    tar -C "$folder/compiled" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner \
        --mode=0644 -c . | xz -9e >"$folder/archive"
    cp "$folder/archive" "$archive"
    echo "$archive: $# files, $(wc -c <"$archive") bytes"
    ;;
check)
    archive=$1
    shift
    strip "$@"
    mkdir "$folder/recorded"
    tar -C "$folder/recorded" -xJf "$archive"
    diff -rq "$folder/recorded" "$folder/compiled" || {
        echo "FAILED: the recorded PTX is not what the generator and nvcc make now. If the change" \
            "is wanted, write it again: bazel run //common/simt/random:record_ptx"
        exit 1
    }
    ;;
esac
