#!/bin/bash
# What thresholds.c promises holds for the records: records_test.sh CARDS_TABLE RECORDS...
set -u
failures=0
for records in "${@:2}"; do
    "$1" --check "$records" || failures=$((failures + 1))
done

# And a record that breaks each of the promises is told.
record() { # SUBJECT CARD SHARE [COUNT MOST]
    printf '{"card":"%s","lab":"04_sgemm","subject":"%s","test":"kernel","verdict":"slow","measure":"kernel","baseline_ms":10,"subject_ms":1,"speedup":10,"fixed_ms":0,"ideal_ms":%s,"share":%s,%s"device":{"name":"made up","modelled":false}}\n' \
        "$2" "$1" "$3" "$3" "${4:+\"count\":$4,\"most\":$5,}"
}
{
    record solutions a 0.24
    record solutions b 0.26
    record starter a 0.11
    record starter b 0.09
    record starter c 0.11 1 1
    record starter d 0.11 2 1
    record middle a 0.21
    record middle b 0.66
} >"$TEST_TMPDIR/broken.jsonl"
told=$("$1" --check "$TEST_TMPDIR/broken.jsonl")
[ "$told" = "04_sgemm kernel, solutions on a: 1.20 of the share that passes
04_sgemm kernel, starter on a: 0.55 of the share that passes
04_sgemm kernel, starter on c: 0.55 of the share that passes
04_sgemm kernel: middling submissions are 2 steps apart" ] || { echo "FAILED: $told" && failures=$((failures + 1)); }
[ "$failures" -eq 0 ]
