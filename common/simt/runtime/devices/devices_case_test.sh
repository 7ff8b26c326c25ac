#!/bin/bash
# What is wrong with several devices is told: the message, the error and the exit status.
# usage: devices_case_test.sh RUN CASE
set -u
run=$1 case=$2
export SIMT_DEVICES=2 SIMT_WAIT_SECONDS=1
failed=0

# want MODE NAME STATUS TEXT ...
want() {
    local mode=$1 name=$2 status=$3 out
    shift 3
    out=$(SIMT_DEVICE=$mode "$run" "$case" "$name" 2>&1)
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
    want $mode no_access 3 "in the memory of device 1, to which this kernel's device has no access" \
        "cudaDeviceEnablePeerAccess()" cudaErrorIllegalAddress
    want $mode unordered 3 "race between streams" "of device 1 reads 4 bytes" \
        "of device 0 wrote before" "cudaStreamWaitEvent" cudaErrorLaunchFailure
    want $mode no_fence 3 "race between streams" "__threadfence_system()"
    want $mode with_fence 0 cudaSuccess
    for right in slot_given_back flag_of_its_own system_fences release_and_acquire \
        release_and_fence counter_with_fences; do
        want $mode $right 0 cudaSuccess
    done
    for wrong in slot_reused flag_of_another no_fence_behind device_fence_before \
        device_fence_behind counter_without; do
        want $mode $wrong 3 "race between streams" "of device 0 " "of device 1 " \
            "the flag that belongs to the data" cudaErrorLaunchFailure
    done
    want $mode forever 3 "endless loop" "nothing has happened for 1 s on any device" \
        "wait_for(int volatile*, int, int*)" cudaErrorLaunchTimeout
    want $mode forever_atomic 3 "endless loop" cudaErrorLaunchTimeout
    want $mode never_waited 0 "on device 1 had not ended when the program did"
done

for devices in 0 9 x; do
    out=$(SIMT_DEVICES=$devices "$run" "$case" forever 2>&1) && {
        echo "FAILED: SIMT_DEVICES=$devices is taken"
        failed=1
    }
    grep -q "SIMT_DEVICES is a whole number from 1 to 8, not '$devices'" <<<"$out" || {
        echo "FAILED: SIMT_DEVICES=$devices: $out"
        failed=1
    }
done
exit $failed
