#!/bin/bash
# ./grade over programs that are shell scripts: what --quick runs, how, and what it leaves out; how
# Ctrl-C ends it. bundle_test.sh has the real programs.
# usage: grade_test.sh GRADE
set -u
script=$PWD/$1
bundle=$TEST_TMPDIR/bundle
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

has() {
    grep -qF -- "$1" <<<"$output" || fail "'$1' is not in: $output"
}

# shows LAB PROGRAM VERDICT: the scoreboard has that line.
shows() {
    grep -qE "^  $1 +$2 +$3( |\$)" <<<"$output" || fail "$1 $2 is not $3 in: $output"
}

# program LAB KIND PATH BODY
program() {
    printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>"$bundle/manifest.tsv"
    mkdir -p "$bundle/$(dirname "$3")"
    printf '#!/bin/bash\necho "%s $*" >>"%s/runs"\n%s\n' "$3" "$bundle" "$4" >"$bundle/$3"
    chmod +x "$bundle/$3"
}

# make_bundle SECONDS [CORES]: two labs of five programs each; --quick ends after SECONDS.
make_bundle() {
    rm -rf "$bundle"
    mkdir -p "$bundle"
    sed "s/^readonly quick_seconds=.*/readonly quick_seconds=$1/" "$script" >"$bundle/grade"
    chmod +x "$bundle/grade"
    grep -q "^readonly quick_seconds=$1\$" "$bundle/grade" || fail "grade has no quick_seconds"
    printf 'subject\tlabs\t-\n' >"$bundle/manifest.tsv"
    echo 0123456789 >"$bundle/commit"
    local lab
    for lab in 01_a 02_b; do
        program "$lab" parity "grader/${lab}_parity" "echo right"
        program "$lab" speedup "grader/${lab}_speedup" "echo fast"
        program "$lab" bench "labs/$lab/bench" "echo a table"
        program "$lab" program "labs/$lab/generate" "echo usage: generate"
        program "$lab" test "labs/$lab/ladder_test" "echo steps"
    done
    mkdir "$bundle/bin"
    printf '#!/bin/bash\necho %s\n' "${2:-8}" >"$bundle/bin/nproc"
    chmod +x "$bundle/bin/nproc"
    program common program common/device/gpu_info "printf 'made up\na made up GPU\n'"
}

call() {
    output=$(cd "$TEST_TMPDIR" && PATH=$bundle/bin:$PATH "$bundle/grade" --results "$TEST_TMPDIR/results" "$@" 2>&1 </dev/null)
    code=$?
}

everything_runs() {
    make_bundle 60
    call
    [ "$code" -eq 0 ] || fail "status $code: $output"
    has "all 11 passed"
    grep -q "^labs/01_a/generate --help\$" "$bundle/runs" || fail "a program is not asked for --help"
    if grep -q "left out" <<<"$output"; then fail "something is left out: $output"; fi
}

quick_runs_graded_tests_alone() {
    make_bundle 60
    call --quick
    [ "$code" -eq 0 ] || fail "status $code: $output"
    has "all 4 passed"
    has "left out by --quick: 2 benches, 2 tests and 3 other programs"
    shows 01_a parity PASS
    shows 02_b speedup PASS
    if grep -q "bench\|generate\|ladder_test" "$bundle/runs"; then fail "more runs: $(cat "$bundle/runs")"; fi
    call --quick --labs common
    [ "$code" -eq 2 ] || fail "status $code for a group without graded tests"
    has "--quick and --starters run graded tests alone, and common has none"
    call --quick --starters
    [ "$code" -eq 2 ] || fail "status $code for --quick --starters"
    has "--quick and --starters: one of them"
}

# Starters are graded in the place of submissions: one that is too slow is as it must be.
starters_must_be_too_slow() {
    make_bundle 60
    program 03_c parity grader/03_c_parity "echo right"
    program 03_c speedup grader/03_c_speedup "echo '03_c kernel is too slow: 1x'; [ \$WARPBOOK_SUBJECT,\$WARPBOOK_CALLS != starter,2 ]"
    call --starters --labs 03
    [ "$code" -eq 0 ] || fail "status $code: $output"
    has "Scoreboard: starter"
    has "all 1 passed"
    shows 03_c speedup PASS
    grep -q '"subject":"starter"' "$TEST_TMPDIR/results/grade.jsonl" || fail "the subject is not recorded"
    call --starters --labs 01,03_c
    [ "$code" -eq 1 ] || fail "status $code for a starter that passes"
    has "01_a speedup: the starter passes: "
    program 04_d parity grader/04_d_parity "echo right"
    program 04_d speedup grader/04_d_speedup "echo crashed; exit 1"
    call --starters --labs 04
    [ "$code" -eq 1 ] || fail "status $code for a starter that is wrong"
    has "04_d speedup: crashed"
    if grep -q "parity\|bench" "$bundle/runs"; then fail "more runs: $(cat "$bundle/runs")"; fi
}

# A parity test that fails beside others decides alone; a speedup test runs once.
a_red_parity_test_runs_again() {
    make_bundle 60
    # These two wait for each other.
    program 03_c parity grader/03_c_parity "touch '$bundle/three'; until [ -e '$bundle/four' ]; do sleep 0.1; done
[ \$(grep -c 03_c_parity '$bundle/runs') -gt 1 ]"
    program 03_c speedup grader/03_c_speedup "echo 'case.c:1: Failure'; echo slow; exit 1"
    program 04_d parity grader/04_d_parity "touch '$bundle/four'; until [ -e '$bundle/three' ]; do sleep 0.1; done
echo 'case.c:1: Failure'; echo wrong; kill -SEGV \$\$"
    call --quick
    [ "$code" -eq 1 ] || fail "status $code with a slow lab"
    has "2 of 7 did not pass:"
    shows 03_c parity PASS
    shows 03_c speedup FAIL
    shows 04_d parity FAIL
    has "04_d parity: ended by signal 11: wrong"
    [ "$(grep -c 01_a_parity "$bundle/runs")" -eq 1 ] || fail "a parity test that passed runs again"
    [ "$(grep -c 04_d_parity "$bundle/runs")" -eq 2 ] || fail "a parity test that failed does not run alone"
    [ "$(grep -c 03_c_speedup "$bundle/runs")" -eq 1 ] || fail "a speedup test runs again"
    # On one core or two parity tests run alone, and once.
    make_bundle 60 2
    program 03_c parity grader/03_c_parity "exit 1"
    call --quick
    has "parity 1 at a time"
    [ "$(grep -c 03_c_parity "$bundle/runs")" -eq 1 ] || fail "a parity test that failed alone runs again"
}

quick_ends_in_time() {
    make_bundle 4
    program 03_c speedup grader/03_c_speedup "sleep 60"
    program 04_d speedup grader/04_d_speedup "echo fast"
    local begin=$SECONDS
    call --quick
    [ $((SECONDS - begin)) -le 20 ] || fail "--quick takes $((SECONDS - begin)) s, not 4"
    [ "$code" -eq 1 ] || fail "status $code when the time is over"
    shows 02_b speedup PASS
    shows 03_c speedup SKIP
    shows 04_d speedup SKIP
    has "04_d speedup: not graded: --quick ends after 4 s"
    if grep -q 04_d "$bundle/runs"; then fail "a program starts when the time is over"; fi
    grep -q '"lab":"03_c".*"verdict":"skip"' "$TEST_TMPDIR/results/grade.jsonl" || fail "grade.jsonl does not say skip"
}

ctrl_c_ends_it() {
    make_bundle 60
    program 03_c parity grader/03_c_parity "echo \$\$ >'$bundle/pid'; exec sleep 300"
    (cd "$TEST_TMPDIR" && exec "$bundle/grade" --labs 03_c --results "$TEST_TMPDIR/results" >/dev/null 2>&1) &
    local grading=$! i
    for ((i = 0; i < 600; i++)); do
        [ -s "$bundle/pid" ] && break
        sleep 0.1
    done
    kill -TERM "$grading"
    wait "$grading"
    [ $? -eq 130 ] || fail "an interrupted ./grade does not say so"
    if kill -0 "$(cat "$bundle/pid")" 2>/dev/null; then fail "its program runs on"; fi
}

everything_runs
quick_runs_graded_tests_alone
a_red_parity_test_runs_again
starters_must_be_too_slow
quick_ends_in_time
ctrl_c_ends_it
[ "$failures" -eq 0 ] && echo "all checks passed"
exit $((failures > 0))
