#!/bin/bash
# TEST_STOP is a failure that is reported once, also on standard error; later tests are not run.
# usage: stop_test.sh STOP_EXAMPLE
set -u
out=$("$1" 2>"$TEST_TMPDIR/err")
code=$?
failures=0

fail() {
    echo "FAILED: $*"
    failures=1
}

[ "$code" -eq 1 ] || fail "exit status $code, want 1"
[ "$(cat "$TEST_TMPDIR/err")" = "stopped: nothing works without 2 legs" ] || fail "$(cat "$TEST_TMPDIR/err")"
[ "$(grep -c '^nothing works without 2 legs$' <<<"$out")" -eq 1 ] || fail "the reason is not there once: $out"
grep -q 'ran after TEST_STOP' <<<"$out" && fail "others have run: $out"
grep -q '^\[  PASSED  \] 1 test' <<<"$out" || fail "the test before it does not count: $out"
exit "$failures"
