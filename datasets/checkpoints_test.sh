#!/bin/bash
# The project's own checkpoints must be complete and small.
# usage: checkpoints_test.sh PROGRAMS_SH [FOLDER FILE,FILE...]...
#   FILE,FILE...  the files that FOLDER must hold, besides README.md
set -u
# shellcheck source=common/testing/programs.sh
. "$1"
shift
most=$((8 << 20))

while [ $# -ge 2 ]; do
    folder=$1
    IFS=, read -ra files <<<"README.md,$2"
    shift 2
    want=$(printf '%s\n' "${files[@]}" | sort)
    got=$(cd "$folder" && find . -mindepth 1 -printf '%P\n' | sort)
    [ "$want" = "$got" ] || fail "$folder holds ${got//$'\n'/ }, want ${want//$'\n'/ }"
    bytes=0
    for file in "${files[@]}"; do
        [ -s "$folder/$file" ] || fail "$folder/$file is empty or missing"
        bytes=$((bytes + $(stat -Lc %s "$folder/$file" || echo "$most")))
    done
    [ "$bytes" -le "$most" ] || fail "$folder has $bytes bytes, at most $most"
    echo "$folder: $bytes bytes"
    for word in Data Configuration Commands Results Limits; do
        grep -q "^## .*$word" "$folder/README.md" || fail "$folder/README.md has no section '$word'"
    done
done
[ $# -eq 0 ] || fail "no files named for $1"
finish
