#!/bin/bash
# A small archive on a machine that has nothing: it unpacks, its programs find all their libraries in
# it, and ./grade runs from an empty folder with an empty environment. programs_test.sh looks at the
# programs of the whole one.
# usage: bundle_test.sh small-bundle.tar.xz CHECK_RECORDS
set -u
archive=$PWD/$1
check_records=$PWD/$2
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

cd "$TEST_TMPDIR" || exit 1
tar xf "$archive" || exit 1
bundle=$PWD/small-bundle

# grade ARGS: in an empty folder and environment; leaves out, err and code.
mkdir empty
grade() {
    rm -rf empty/results
    (cd empty && env -i "$bundle/grade" "$@" >../out 2>../err </dev/null)
    code=$?
}

# Programs carry all but the C library and the driver, and what is shared lies in the archive: it is
# found without LD_LIBRARY_PATH, and before what is installed here.
programs_are_whole() {
    local file line count=0
    while IFS= read -r -d '' file; do
        [ "$(head -c 4 "$file" | tr -d '\177\0')" = ELF ] || continue
        count=$((count + 1))
        while read -r line; do
            case $line in
            linux-vdso.so.* | /lib*/ld-linux* | "statically linked") ;;
            libc.so.6\ * | libm.so.6\ * | libpthread.so.0\ * | libdl.so.2\ * | librt.so.1\ *) ;;
            libcuda.so.1\ *) ;;
            *" => $bundle/"*) ;;
            *) fail "${file#"$bundle"/} needs $line" ;;
            esac
        done < <(env -i ldd "$file")
    done < <(find "$bundle" -type f -print0)
    [ "$count" -ge 4 ] || fail "only $count programs in the bundle"
    echo "$count programs and libraries looked at"
}

# refuses TEXT ARGS: one line on standard error that holds TEXT, exit status 2, no results.
refuses() {
    local text=$1
    shift
    grade "$@"
    [ "$code" -eq 2 ] || fail "exit status $code, want 2: $*"
    if [ -s out ] || [ "$(wc -l <err)" -ne 1 ] || ! grep -qF -- "$text" err; then
        fail "want one line with '$text': $* -> $(cat out err)"
    fi
    [ -e empty/results ] && fail "left results: $*"
}

programs_are_whole

# The checkpoints come along; a program of the archive finds them from any folder.
classify=$(find "$bundle" -path '*/08_bert_classifier/classify')
(cd empty && env -i "$classify" --device cpu -- "a dull, lifeless film" >../out 2>../err </dev/null)
grep -q '^neg' out || fail "classify has no checkpoint in the archive: $(cat out err)"

grade --help
[ "$code" -eq 0 ] && grep -q '^usage: ./grade' out || fail "--help: $(cat out err)"
refuses "unknown argument '--quik'" --quik
refuses "--labs wants a value" --labs
refuses "no lab '99_none' here, but " --labs 99_none
refuses "--timeout wants whole seconds, not '1h'" --timeout=1h
grade --list
[ "$code" -eq 0 ] || fail "--list: exit status $code"
for program in parity speedup bench program; do
    grep -qE "^01_cpu_matmul +$program " out || fail "--list does not show lab 01's $program"
done

# on_scoreboard PROGRAM...: lab 01's programs, of which only speedup may fail: whether it is fast
# enough is not this test's matter.
on_scoreboard() {
    local program
    cat out err
    [ -s err ] && fail "said on standard error: $(cat err)"
    for program in "$@"; do
        if [ "$program" = speedup ]; then
            grep -qE "^  01_cpu_matmul +$program +(PASS|FAIL) " out || fail "$program is not on the scoreboard"
        else
            grep -qE "^  01_cpu_matmul +$program +PASS " out || fail "$program did not pass"
        fi
    done
    if grep -qE '^  01_cpu_matmul +[a-z_]+ +FAIL ' out; then
        [ "$code" -eq 1 ] || fail "a program failed, and the exit status is $code"
        grep -q "^1 of $# did not pass:\$" out || fail "the failed program is not named"
    else
        [ "$code" -eq 0 ] || fail "all passed, and the exit status is $code"
        grep -qE '^  01_cpu_matmul +speedup +PASS +kernel [0-9.]+x of ' out || fail "no figures"
    fi
    [ "$(grep -c '^{"schema":1,"time":"20.*"lab":"01_cpu_matmul",.*}$' empty/results/grade.jsonl)" -eq $# ] ||
        fail "grade.jsonl: $(cat empty/results/grade.jsonl)"
}

# shorter PROGRAM FLAGS VARIABLES: has the program do less; other tests run the whole of it.
shorter() {
    local program=$bundle/$1
    mv "$program" "$program.whole"
    printf '#!/bin/bash\nexec env %s "%s.whole" %s "$@"\n' "$3" "$program" "$2" >"$program"
    chmod +x "$program"
}

# Lab 01 needs no GPU.
shorter grader/01_cpu_matmul_speedup '' GTEST_FILTER=speedup.kernel
shorter "$(cd "$bundle" && echo */01_cpu_matmul/bench)" '--shape 128,128,128' ''
grade --quick --labs 01_cpu_matmul
on_scoreboard parity speedup
grep -qE '^left out by --quick: 1 benches, [01] tests and 1 other programs$' out || fail "--quick does not say what it leaves out"

# All of the lab: what was just graded says and returns it once more.
for program in parity speedup; do
    said=$TEST_TMPDIR/$program.said
    cp "empty/results/logs/01_cpu_matmul_$program.log" "$said" || fail "no log of $program"
    status=0
    grep -qE "^  01_cpu_matmul +$program +PASS " out || status=1
    rm -f "$bundle/grader/01_cpu_matmul_$program"
    printf '#!/bin/bash\ncat "%s"\nexit %d\n' "$said" "$status" >"$bundle/grader/01_cpu_matmul_$program"
    chmod +x "$bundle/grader/01_cpu_matmul_$program"
done
grade --labs 01_cpu_matmul
expected=(parity speedup bench generate)
if grep -q "^subject.solutions" "$bundle/manifest.tsv"; then
    expected+=(ladder_test)
fi
on_scoreboard "${expected[@]}"
"$check_records" empty/results/bench.jsonl || fail "bench.jsonl is not whole"
[ "$(wc -l <empty/results/logs/01_cpu_matmul_bench.log)" -gt 5 ] || fail "no log of the bench"

# A test that fails, one that crashes and one that never ends.
parity=$bundle/grader/01_cpu_matmul_parity
speedup=$bundle/grader/01_cpu_matmul_speedup
rm -f "$parity" "$speedup"
printf '#!/bin/bash\necho "case.c:1: Failure"\necho Failed\necho "shape \\"1x1\\": wrong"\nexit 1\n' >"$parity"
printf '#!/bin/bash\nsleep 60\n' >"$speedup"
rm -f "$bundle/labs/01_cpu_matmul/bench" "$bundle/solutions/01_cpu_matmul/bench"
for folder in labs solutions; do
    [ -d "$bundle/$folder/01_cpu_matmul" ] || continue
    printf '#!/bin/bash\necho in the third loop\nkill -SEGV $$\n' >"$bundle/$folder/01_cpu_matmul/bench"
    chmod +x "$bundle/$folder/01_cpu_matmul/bench"
done
chmod +x "$parity" "$speedup"
grade --labs 01_cpu_matmul --timeout 2 --results "$PWD/other results"
[ "$code" -eq 1 ] || fail "three failures, and the exit status is $code"
grep -q '^  01_cpu_matmul parity: shape "1x1": wrong$' out || fail "the wrong shape is not named: $(cat out)"
grep -q '^  01_cpu_matmul speedup: no end within 2 s$' out || fail "the time-out is not named: $(cat out)"
grep -q '^  01_cpu_matmul bench: ended by signal 11: in the third loop$' out || fail "the crash is not named: $(cat out)"
grep -qF '"test":"parity","verdict":"fail"' "other results/grade.jsonl" &&
    grep -qF '"detail":"shape \"1x1\": wrong"' "other results/grade.jsonl" ||
    fail "grade.jsonl: $(cat "other results/grade.jsonl")"
[ -e empty/results ] && fail "--results is not used"
[ -s err ] && fail "said on standard error: $(cat err)"

[ "$failures" -eq 0 ] && echo "all checks passed"
exit $((failures > 0))
