# Helpers of this lab's tests of programs, read by them: run from the test's temporary folder.
# shellcheck shell=bash
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# run PROGRAM ARGS: leaves out, err and code. Standard input is the file `in`.
run() {
    "$@" >out 2>err <in
    code=$?
}

# refuses TEXT PROGRAM ARGS: exits with 1, prints nothing, says TEXT in one line.
refuses() {
    local text=$1
    shift
    run "$@"
    [ "$code" -eq 1 ] || fail "exit status $code, want 1: $*"
    [ -s out ] && fail "printed text: $*"
    [ "$(wc -l <err)" -eq 1 ] || fail "not one line: $* -> $(cat err)"
    grep -qF -- "$text" err || fail "want '$text': $* -> $(cat err)"
}

# accepts PROGRAM ARGS: exits with 0.
accepts() {
    run "$@"
    [ "$code" -eq 0 ] || fail "exit status $code: $* -> $(cat err)"
}

# says TEXT FILE: the file has the text.
says() {
    grep -qF -- "$1" "$2" || fail "want '$1' in $2: $(cat "$2")"
}

finish() {
    [ "$failures" -eq 0 ] && echo "all checks passed"
    exit $((failures > 0))
}
