#!/bin/bash
# Runs of train whose disk is full, and that go on when there is room again.
# usage: train_disk_test.sh PROGRAMS_SH TRAIN RUNS_SH
set -u
disk=$TEST_TMPDIR/disk
if [ "${1:-}" != --inside ]; then
    # A file system of this test's own needs a namespace of its own.
    mkdir -p "$disk"
    # shellcheck disable=SC2016 # for the shell inside
    if ! why=$(unshare -rm sh -c 'mount -t tmpfs -o size=64k tmpfs "$1"' sh "$disk" 2>&1); then
        echo "SKIPPED: no file system can be mounted here: $why"
        exit 0
    fi
    exec unshare -rm "$BASH" "$0" --inside "$@"
fi
shift
# shellcheck source=common/testing/programs.sh
. "$1"
train=$PWD/$2 runs=$PWD/$3
cd "$TEST_TMPDIR" || exit 1
unset BUILD_WORKING_DIRECTORY
# shellcheck source=common/train/program/train_runs.sh
. "$runs"
mount -t tmpfs -o size=32m tmpfs "$disk" || exit 1

# left: KiB that the disk has.
left() {
    df --output=avail -k disk | tail -n 1
}

# room KB: the disk has so much left, and not a byte more.
room() {
    rm -f disk/ballast
    head -c $((($(left) - $1) * 1024)) /dev/zero >disk/ballast || fail "cannot fill the disk"
}

# out_of_room FLAGS: the run ends with one line about the disk, and leaves no part of a folder.
out_of_room() {
    local room
    room=$(left)
    run "${run_one[@]}" -o disk/run --resume "$@"
    [ "$code" -eq 1 ] || fail "room $room: a full disk goes unnoticed: $code"
    [ "$(wc -l <err)" -eq 1 ] || fail "room $room: not one line: $(cat err)"
    says ": No space left on device" err
    [ -z "$(find disk -name '*.partial' -o -name '*.old')" ] || fail "left behind: $(ls disk/run)"
}

# checkpoint: the last one, and what is in it.
checkpoint() {
    echo disk/run/checkpoint-*
    cat disk/run/checkpoint-*/* | cksum
}

# Nothing fits, not even the folder's lock or the curve.
room 0
out_of_room
[ ! -e disk/run/checkpoint-3 ] || fail "a checkpoint on a full disk"

# kb FILES: what they take on that disk, in pages of 4 KiB.
kb() {
    stat -c %s "$@" | awk '{ s += int(($1 + 4095) / 4096) * 4 } END { print s }'
}

# Room for one checkpoint, not for the next.
model=$(kb whole/checkpoint-36/model.safetensors)
all=$(kb whole/checkpoint-36/*)
room $((all + all / 2))
out_of_room
[ -s disk/run/checkpoint-3/training.json ] || fail "room for one checkpoint: $(ls disk/run)"
before=$(checkpoint)

# The disk is full at the curve, which takes 4, and at each of the files that a checkpoint has.
for room in 0 4 $((model / 2)) $((model + 8)) $((all - 4)) "$all"; do
    rm disk/run/log.jsonl # which has no line yet
    room "$room"
    out_of_room
    [ "$before" = "$(checkpoint)" ] || fail "room $room: another checkpoint: $(checkpoint)"
done

# Room again: it ends as the run that was never stopped.
rm disk/ballast
accepts "${run_one[@]}" -o disk/run --resume
says "resuming at step 3 of 36" out
same disk/run

# Not even the first best model fits, which comes before the first checkpoint: all begins again.
rm -rf disk/run
room $((model / 2))
out_of_room --save-every 12
[ -z "$(find disk/run -name 'best*' -o -name 'checkpoint*')" ] || fail "left: $(ls disk/run)"
rm disk/ballast
accepts "${run_one[@]}" -o disk/run --resume
says "--resume: there is no checkpoint, starting a new run" out
same disk/run
finish
