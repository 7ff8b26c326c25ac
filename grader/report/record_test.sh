#!/bin/bash
# What a graded program leaves behind, where, and what happens when it cannot.
set -u
example=$PWD/$1
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# holds FILE LINE...: each expression matches one line of the file, in this order, and none is left.
holds() {
    local file=$1 number=0 line
    shift
    [ "$(wc -l <"$file")" -eq $# ] || fail "$file has $(wc -l <"$file") lines, not $#"
    for line in "$@"; do
        number=$((number + 1))
        sed -n "${number}p" "$file" | grep -qE -- "$line" || fail "line $number is not $line: $(sed -n "${number}p" "$file")"
    done
}

cd "$TEST_TMPDIR" || exit 1
mkdir here
unset TEST_UNDECLARED_OUTPUTS_DIR BUILD_WORKSPACE_DIRECTORY
WARPBOOK_GRADES=$PWD/given/grades.jsonl WARPBOOK_COMMIT=abc "$example" >log 2>&1 && fail "the example passes"
head='^\{"schema":1,"time":"20[0-9T:Z-]+","commit":"abc","lab":"04_sgemm","subject":"labs","part":"speedup",'
number='[0-9.]+'
gpu='"device":\{"name":"a \\"made up\\" GPU","modelled":true\},"limits":\{"read":4[0-9e+]+,"read_spread":1.01,.*"clock_khz":0\}'
holds given/grades.jsonl \
    "$head\"test\":\"passes\",\"verdict\":\"pass\",\"measure\":null,\"baseline_ms\":null,.*\"required\":null,.*\"message\":null,\"seconds\":[0-9.]+\}$" \
    "$head\"test\":\"is_fast\",\"verdict\":\"pass\",\"measure\":\"kernel\",\"baseline_ms\":100,\"subject_ms\":2,\"speedup\":50,\"required\":$number,\"fixed_ms\":1,\"ideal_ms\":1,\"share\":1,\"limit\":\"the fp32 units' speed\",\"steps\":\[$number,$number,$number\],\"why\":null,$gpu,\"message\":null," \
    "$head\"test\":\"is_slow\",\"verdict\":\"slow\",\"measure\":\"kernel\",.*\"speedup\":2,\"required\":$number,.*\"share\":0.0204[0-9]*,.*\"why\":\"64 blocks\",$gpu,\"message\":\"04_sgemm kernel is too slow: modelled 2.00x, required [0-9.]+x\\\\n" \
    "$head\"test\":\"is_wrong_and_slow\",\"verdict\":\"fail\",\"measure\":null,\"baseline_ms\":null,.*\"speedup\":null,.*\"why\":null,.*\"message\":\"row 1:\\\\n got 2" \
    "$head\"test\":\"is_disturbed\",\"verdict\":\"slow\",.*\"message\":\"04_sgemm kernel is not judged: other programs are busy" \
    "$head\"test\":\"is_skipped\",\"verdict\":\"skip\",\"measure\":null,.*\"message\":\"no data\"" \
    "$head\"test\":null,\"verdict\":\"end\",\"tests\":6,\"failed\":3\}$"

# The other places.
TEST_UNDECLARED_OUTPUTS_DIR=$PWD/outputs "$example" >/dev/null 2>&1
[ "$(wc -l <outputs/grade.jsonl)" -eq 7 ] || fail "nothing among a test's outputs"
BUILD_WORKSPACE_DIRECTORY=$PWD/workspace "$example" >/dev/null 2>&1
[ "$(wc -l <workspace/results/grade.jsonl)" -eq 7 ] || fail "nothing in the workspace"
(cd here && "$example" >/dev/null 2>&1)
[ "$(wc -l <here/results/grade.jsonl)" -eq 7 ] || fail "nothing in this folder"

# Where nothing can be written the verdict is the same, and it is said once.
WARPBOOK_GRADES=$PWD/log/grades.jsonl "$example" --gtest_filter='*passes:*is_fast' >said 2>&1 || fail "a verdict depends on the record: $(cat said)"
[ "$(grep -c 'grades are not recorded' said)" -eq 1 ] || fail "not said once: $(cat said)"
[ "$failures" -eq 0 ]
