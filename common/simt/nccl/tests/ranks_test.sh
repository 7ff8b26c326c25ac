#!/bin/bash
# A process a GPU: programs that share a device process, NCCL between them, memory and events that
# one hands to another, and what is left when a rank dies.
# usage: ranks_test.sh RUN RANK
set -u
run=$1 rank=$2
export SIMT_DEVICES=4 SIMT_WAIT_SECONDS=5
failed=0

fail() {
    echo "FAILED: $1"
    cat "$folder"/*.log
    failed=1
}

# start CASE RANKS: all ranks at once; pids[] has them
start() {
    folder=$TEST_TMPDIR/$1.$2
    mkdir -p "$folder"
    name=$1.$$
    pids=()
    local r
    for ((r = 0; r < $2; r++)); do
        SIMT_DEVICE=shared:$name timeout 60 "$run" "$rank" "$1" "$r" "$2" "$folder" \
            >"$folder/$r.log" 2>&1 &
        pids+=($!)
    done
}

# want RANK STATUS [TEXT]
want() {
    wait "${pids[$1]}"
    local got=$?
    [ $got = "$2" ] || fail "$name: rank $1 ended with $got, not $2"
    [ $# -lt 3 ] || grep -qF -- "$3" "$folder/$1.log" || fail "$name: rank $1 does not say '$3'"
}

for ranks in 2 4; do
    start reduce $ranks
    for ((n = 0; n < ranks; n++)); do
        want "$n" 0
    done
done

start memory 2
want 0 0
want 1 0

start pinned 3
for n in 0 1 2; do
    want $n 0
done

start trespass 2
want 0 0
want 1 3 "out of bounds"

# A rank that dies: the other one learns it, and nothing is left of either.
start early 2
want 1 0
want 0 3 "rank 1 of 2 has ended without ncclCommDestroy()"

start stays 2
while [ ! -e "$folder/there" ] && kill -0 "${pids[1]}" 2>/dev/null; do
    sleep 0.05
done
pkill -KILL -P "${pids[1]}"
begin=$SECONDS
want 0 3 "rank 1 of 2 has ended without ncclCommDestroy()"
[ $((SECONDS - begin)) -le 10 ] || fail "the other rank took longer than 10 s"
wait "${pids[1]}" 2>/dev/null
out=$(SIMT_DEVICE=shared:$name timeout 60 "$run" "$rank" free 0 1 "$folder")
[ "$out" = "0 bytes are taken" ] || fail "after a rank was killed: $out"

# A program that comes as the devices' process ends gets another one.
start ends 1
while [ ! -e "$folder/listens" ] && kill -0 "${pids[0]}" 2>/dev/null; do
    sleep 0.05
done
out=$(SIMT_DEVICE=shared:$name timeout 60 "$run" "$rank" free 0 1 "$folder" 2>&1)
[ "$out" = "0 bytes are taken" ] || fail "after a process that ended: $out"
want 0 0

# What is wrong is said.
out=$(SIMT_DEVICE=shared: "$run" "$rank" free 0 1 / 2>&1) && fail "shared: without a name is taken"
grep -q "shared:NAME" <<<"$out" || fail "$out"
out=$("$run" "$rank" memory 0 2 "$folder" 2>&1) && fail "a handle without a shared device is given"
grep -q "SIMT_DEVICE=shared:NAME" <<<"$out" || fail "$out"
exit $failed
