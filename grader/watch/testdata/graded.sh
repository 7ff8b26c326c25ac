#!/bin/sh
# Stands in for a graded program: NN_topic_parity or NN_topic_speedup by its own name.
part=${0##*_}
source=labs/04_sgemm/sgemm.cu
grade() {
    printf '{"schema":1,"lab":"04_sgemm","part":"%s","test":"%s","verdict":"%s","message":"%s"%s}\n' \
        "$part" "$1" "$2" "$3" "$4" >>"$WARPBOOK_GRADES"
}
end() {
    printf '{"schema":1,"lab":"04_sgemm","part":"%s","verdict":"end","tests":2,"failed":%s}\n' \
        "$part" "$1" >>"$WARPBOOK_GRADES"
}
device=',"device":{"name":"NVIDIA H200","modelled":true}'
if [ "$part" = parity ]; then
    grade one_tile pass "" "$device"
    if grep -q WRONG $source; then
        echo "your code wrote to standard error:"
        echo "  | race in shared memory: two warps"
        grade odd_sizes fail "shape 33x17x5: element 7 is 1.5, want 2.5" "$device"
        end 1
        exit 1
    fi
    grade odd_sizes pass "" "$device"
    end 0
    exit 0
fi
figures=',"measure":"kernel","baseline_ms":10,"subject_ms":2,"speedup":5,"required":13.8,"steps":[13.8,20,30],"why":"64 blocks on 64 of 132 multiprocessors"'
grade kernel slow "too slow: 5.00x" "$figures$device"
grade end_to_end slow "too slow: 1.10x" "$figures$device"
end 2
exit 1
