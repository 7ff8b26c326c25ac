#!/bin/bash
# What is wrong with collective operations is explained in a line, within a stated time.
# usage: nccl_case_test.sh RUN CASE
set -u
run=$1 case=$2
export SIMT_DEVICES=2 SIMT_WAIT_SECONDS=1
failed=0

# want MODE NAME STATUS TEXT ...
want() {
    local mode=$1 name=$2 status=$3 out
    shift 3
    out=$(SIMT_DEVICE=$mode timeout 60 "$run" "$case" "$name" 2>&1)
    local got=$?
    [ $got = "$status" ] || {
        echo "FAILED: $name ($mode): status $got, not $status"
        echo "$out"
        failed=1
    }
    for text in "$@"; do
        grep -qF -- "$text" <<<"$out" || {
            echo "FAILED: $name ($mode): '$text' is missing in:"
            echo "$out"
            failed=1
        }
    done
}

for mode in inside process; do
    want $mode right 0 "no error; cudaSuccess; then no error"
    want $mode absent 3 \
        "rank 0 of 2 has waited 1 s in ncclAllReduce of 100 float32, sum (operation 1 of its communicator) for rank 1, which has not called it" \
        "then remote process exited"
    want $mode counts 3 \
        "ncclAllReduce of 100 float32, sum for rank 0, but ncclAllReduce of 200 float32, sum for rank 1" \
        "then invalid usage"
    want $mode operations 3 "sum for rank 0, but ncclAllReduce of 100 float32, max for rank 1"
    want $mode kinds 3 "but ncclBroadcast of 100 float32, root 0 for rank 1"
    want $mode sends 3 "rank 0 sends 100 float32 to rank 1, which wants to receive 200 float32"
    want $mode unanswered 3 "in ncclRecv of 100 float32 from rank 0, which has not called ncclSend"
    want $mode left 3 "for rank 1, which has left the communicator"
    want $mode lonely 3 "rank 1 of 3 has waited 3 s: 1 of 3 ranks have come; rank 0 has not"
    want $mode read_early 3 "race between streams" "cudaMemsetAsync" "ncclAllReduce"
done
exit $failed
