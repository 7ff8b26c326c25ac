# Helpers of tests of benches from outside, read by them.
# shellcheck shell=bash
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# enter BENCH CHECK_RECORDS: goes to the test's temporary folder; records go there.
enter() {
    bench=$PWD/$1
    check_records=$PWD/$2
    cd "$TEST_TMPDIR" || exit 1
    unset BUILD_WORKING_DIRECTORY BUILD_WORKSPACE_DIRECTORY
    export WARPBOOK_RESULTS=$TEST_TMPDIR/results.jsonl WARPBOOK_COMMIT=test
}

# run ARGS: leaves out, err and code.
run() {
    "$bench" "$@" >out 2>err </dev/null
    code=$?
}

# expect_refusal GREP_FLAG TEXT ARGS: exits with 1, prints nothing, says TEXT in one line, records nothing.
expect_refusal() {
    local kind=$1 text=$2
    shift 2
    run "$@"
    [ "$code" -eq 1 ] || fail "exit status $code, want 1: $*"
    [ -s out ] && fail "printed text: $*"
    [ "$(wc -l <err)" -eq 1 ] || fail "not one line: $* -> $(cat err)"
    grep -q "$kind" -- "$text" err || fail "want '$text': $* -> $(cat err)"
    [ -e "$WARPBOOK_RESULTS" ] && fail "left a record: $*"
}

# refuses TEXT ARGS
refuses() {
    expect_refusal -F "$@"
}

# refuses_like PATTERN ARGS: as refuses, for a line that names what this machine has.
refuses_like() {
    expect_refusal -E "$@"
}

# fails_in_one_line WHAT ARGS: exits with 1 after one line, whatever it printed or recorded before.
fails_in_one_line() {
    local what=$1
    shift
    run "$@"
    { [ "$code" -eq 1 ] && [ "$(wc -l <err)" -eq 1 ]; } || fail "$what: exit status $code: $(cat err)"
}

# accepts ARGS: exits with 0, says nothing on standard error.
accepts() {
    run "$@"
    [ "$code" -eq 0 ] || fail "exit status $code: $* -> $(cat err)"
    [ -s err ] && fail "said on standard error: $* -> $(cat err)"
}

# helps FLAGS: --help lists them, and leaves no record.
helps() {
    local flag
    accepts --help
    for flag in "$@"; do
        grep -q -- "--$flag" out || fail "--help does not list --$flag"
    done
    [ -e "$WARPBOOK_RESULTS" ] && fail "--help left a record"
}

# refuses_strangers: words that no bench knows.
refuses_strangers() {
    refuses "unknown flag '--shap'" --shap 1,2,3
    refuses "unknown flag '-x'" -x
    refuses "unexpected argument 'more'" --quick more
    refuses "--shape wants a value" --shape
}

# recorded TEXT: how many records hold TEXT, or, where one is not whole, no number.
recorded() {
    if "$check_records" "$WARPBOOK_RESULTS" >/dev/null; then
        grep -cF -- "$1" "$WARPBOOK_RESULTS"
    else
        echo "not whole:"
    fi
}

# The rows of steps in what was printed.
step_rows() {
    grep -cE '^  v[0-9]' out
}

# recorded_each TEXT: there are steps in the table, and as many records hold TEXT.
recorded_each() {
    local steps count
    steps=$(step_rows)
    [ "$steps" -ge 1 ] || fail "the table has no step: $(cat out)"
    count=$(recorded "$1")
    [ "$count" = "$steps" ] || fail "$count records hold $1, want one of $steps steps"
}

# shows_ladder PATTERN: the ladder alone, under a line that says whose time it is and a title.
shows_ladder() {
    grep -qE '^(labs|solutions): (modelled for|measured on) ' out || fail "nobody says whose time: $(cat out)"
    grep -qE -- "$1" out || fail "no title '$1': $(cat out)"
    grep -qE 'WRONG|FAILED' out && fail "a wrong step: $(cat out)"
    grep -q 'BERT' out && fail "--shape also runs BERT"
}

# one_step TABLES ARGS: of what was printed last, one step alone in each of so many tables.
one_step() {
    local tables=$1 name
    shift
    name=$(sed -nE 's/^  (v[0-9][^ ]*) .*/\1/p' out | head -n 1)
    accepts "$@" --step "$name"
    [ "$(step_rows)" -eq "$tables" ] || fail "--step $name: $(cat out)"
}

# fails_cleanly ARGS: records that cannot be written are an error, as is a machine without a GPU (a
# device that does not exist); each is one line.
fails_cleanly() {
    : >file
    WARPBOOK_RESULTS=$TEST_TMPDIR/file/results.jsonl fails_in_one_line "unwritable records" "$@"
    if grep -q 'measured on' out; then
        CUDA_VISIBLE_DEVICES=99 fails_in_one_line "no GPU" "$@"
    fi
}

finish() {
    [ "$failures" -eq 0 ] && echo "all checks passed"
    exit $((failures > 0))
}
