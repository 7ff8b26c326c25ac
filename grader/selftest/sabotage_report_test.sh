#!/bin/bash
# The report over two labs, with the programs that grade learners: lab 04's submission does harm, lab
# 05's is right. The run must come to its end, say of lab 04 what happened, and grade lab 05.
# usage: sabotage_report_test.sh REPORT SGEMM_PARITY SGEMM_SPEEDUP ROWS_PARITY
set -u
report=$PWD/$1 sgemm_parity=$PWD/$2 sgemm_speedup=$PWD/$3 rows_parity=$PWD/$4
work=$TEST_TMPDIR/work
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# program NAME LINES: a program that is graded.
program() {
    printf '#!/bin/bash\n%s\n' "$2" >"$work/graders/$1"
    : >"$work/graders/${1%_*}_worker"
    chmod +x "$work/graders/$1" "$work/graders/${1%_*}_worker"
}

# The report leaves a program no variables that choose its tests, so these programs set them: few
# tests of each, as a run of all takes minutes.
make_course() {
    local variables="export WARPBOOK_PATIENCE=4 WARPBOOK_WORKER_MIB=512"
    rm -rf "$work"
    mkdir -p "$work/graders" "$work/labs/04_sgemm" "$work/labs/05_layernorm_softmax"
    echo "// $1" >"$work/labs/04_sgemm/sgemm.cu"
    echo "// right" >"$work/labs/05_layernorm_softmax/layernorm_softmax.cu"
    program 04_sgemm_parity "$variables WRONG_SABOTAGE=$1
export GTEST_FILTER=parity.transposed_b:parity.plain_b:parity.too_large_is_refused
exec $sgemm_parity"
    program 04_sgemm_speedup "$variables WRONG_SABOTAGE=$1 GTEST_FILTER=speedup.kernel
exec $sgemm_speedup"
    program 05_layernorm_softmax_parity "export WRONG_ROWS=right GTEST_FILTER=parity.no_rows
exec $rows_parity"
    program 05_layernorm_softmax_speedup "exit 0"
}

# goes_on SUBMISSION MESSAGE: both labs are graded, and the first one's line says what happened.
goes_on() {
    make_course "$1"
    local output
    output=$(cd "$work" && BUILD_WORKSPACE_DIRECTORY=$work timeout 900 "$report" \
        --graders "$work/graders" --timeout 300 --labs 4,5 2>&1) || fail "$1: status $?: $output"
    grep -qE "^04_sgemm +wrong +0 / 100" <<<"$output" || fail "$1: lab 04 is not wrong in: $output"
    grep -qF -- "$2" <<<"$output" || fail "$1: '$2' is not in: $output"
    # Its parity was graded: that makes 20 points. It has no speedup test here.
    grep -qE "^05_layernorm_softmax +[a-z]+ +20 / 100" <<<"$output" ||
        fail "$1: lab 05 was not graded in: $output"
    grep -q '"lab":"05_layernorm_softmax".*"verdict":"pass"' "$work/results/grade.jsonl" ||
        fail "$1: no record of lab 05"
    ! grep -q '"lab":"04_sgemm".*"verdict":"pass"' "$work/results/grade.jsonl" ||
        fail "$1: a test passed: $(cat "$work/results/grade.jsonl")"
}

goes_on loops "did not come to an end within "
goes_on forks ", which is not allowed here"
goes_on takes_memory "used more than 512 MiB of memory"
goes_on crashes_at_start "before its first call"
goes_on forged_text "got nan, want"
goes_on kills_parent "called kill, which is not allowed here"
[ "$failures" -eq 0 ]
