#!/bin/bash
# The report over graded programs that are shell scripts: what is run, what is remembered, and what
# becomes of programs that crash, hang, leave early, write nonsense or forge.
set -u
report=$PWD/$1
without=$PWD/$2
work=$TEST_TMPDIR/work
export XDG_STATE_HOME=$TEST_TMPDIR/state # for the key that results are signed with
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# has TEXT: the last output holds it.
has() {
    grep -qF -- "$1" <<<"$output" || fail "'$1' is not in: $output"
}

# shows LAB STATE POINTS: the scoreboard's line of a lab.
shows() {
    grep -qE "^$1 +$2 +$3 / 100" <<<"$output" || fail "$1 is not '$2' with $3 points in: $output"
}

# line LAB PART TEST VERDICT [MEASURE SPEEDUP]
line() {
    local measure=null speedup=null steps=null
    [ $# -lt 6 ] || { measure="\"$5\"" speedup=$6 steps='[20,28,36]'; }
    [ "${5:-}" != end_to_end ] || steps='[3,0,0]'
    printf '{"schema":1,"lab":"%s","part":"%s","test":"%s","verdict":"%s","measure":%s,"speedup":%s,"required":1,"steps":%s,"device":{"name":"made up","modelled":true},"message":"why","seconds":0.1}\n' \
        "$1" "$2" "$3" "$4" "$measure" "$speedup" "$steps"
}

# ends LAB PART TESTS
ends() {
    printf '{"schema":1,"lab":"%s","part":"%s","test":null,"verdict":"end","tests":%s}\n' "$1" "$2" "$3"
}

# program NAME BODY: a graded program, which counts its runs.
program() {
    printf '#!/bin/bash\necho run >>"%s/runs/%s"\n%s\n' "$work" "$1" "$2" >"$work/graders/$1"
    : >"$work/graders/${1%_*}_worker"
    chmod +x "$work/graders/$1" "$work/graders/${1%_*}_worker"
}

# writes NAME STATUS LINES: a graded program that leaves these lines and that status.
writes() {
    program "$1" "cat >>\"\$WARPBOOK_GRADES\" <<'END'
$3
END
exit $2"
}

runs() {
    if [ -f "$work/runs/$1" ]; then wc -l <"$work/runs/$1"; else echo 0; fi
}

# A lab that is right and has a speedup test of its own.
right() {
    writes "$1_parity" 0 "$(line "$1" parity shapes pass; ends "$1" parity 1)"
}

fast_sgemm() {
    writes 04_sgemm_speedup 0 "$(
        line 04_sgemm speedup kernel pass kernel 30
        line 04_sgemm speedup end_to_end pass end_to_end 5
        ends 04_sgemm speedup 2
    )"
}

make_course() {
    local lab
    rm -rf "$work"
    mkdir -p "$work/graders" "$work/runs"
    for lab in 01_cpu_matmul/matmul.c 02_gpu_matmul/gpu_matmul.cu 03_resident_weights/resident.cu \
        04_sgemm/sgemm.cu 05_layernorm_softmax/layernorm_softmax.cu; do
        mkdir -p "$work/labs/${lab%/*}"
        echo "// $lab" >"$work/labs/$lab"
    done
    right 04_sgemm
    fast_sgemm
}

# call FLAGS...: output, code. Seconds a program: few where one hangs, else more than a busy machine needs.
limit=60
call() {
    # shellcheck disable=SC2086 # words
    output=$(cd "$work" && BUILD_WORKSPACE_DIRECTORY=$work $report --graders "$work/graders" --timeout "$limit" "$@" 2>&1)
    code=$?
}

what_has_not_changed_is_not_run() {
    make_course
    call --labs 4
    shows 04_sgemm passed 88
    [ "$code" -eq 0 ] || fail "status $code"
    [ "$(grep -c . "$work/results/grade.jsonl")" -eq 5 ] || fail "grade.jsonl: $(cat "$work/results/grade.jsonl")"
    call --labs 04_sgemm
    shows 04_sgemm passed 88
    has "not changed since they were graded: 04"
    [ "$(runs 04_sgemm_parity)" -eq 1 ] || fail "run again without a change"
    call --labs 4 --again
    [ "$(runs 04_sgemm_parity)" -eq 2 ] || fail "--again runs nothing"
    echo "// better" >>"$work/labs/04_sgemm/sgemm.cu"
    call --labs 4
    [ "$(runs 04_sgemm_parity)" -eq 3 ] || fail "a changed file runs nothing"
    echo "# another" >>"$work/graders/04_sgemm_speedup"
    call --labs 4
    [ "$(runs 04_sgemm_speedup)" -eq 4 ] || fail "a changed grader runs nothing"
    call --labs 4,5
    [ "$(runs 04_sgemm_speedup)" -eq 4 ] || fail "another lab makes this one run"
}

# forged SED: a remembered result that somebody has changed is none.
forged() {
    make_course
    call --labs 4
    sed -i "$1" "$work/results/report-labs.json"
    call --labs 4
    has "report-labs.json was not signed with $TEST_TMPDIR/state/warpbook/report.key: its labs are graded again"
    [ "$(runs 04_sgemm_parity)" -eq 2 ] || fail "believes what was changed by $1"
    call --labs 4
    [ "$(runs 04_sgemm_parity)" -eq 2 ] || fail "does not remember what was graded again"
}

only_what_is_signed_is_remembered() {
    forged 's/"speedup":5/"speedup":50/'
    forged 's/,"signature":"[0-9a-f]*"//'
    forged 's/"signature":"./"signature":"x/'
    [ "$(stat -c %a "$TEST_TMPDIR/state/warpbook/report.key")" = 600 ] || fail "others read the key"
    make_course
    echo short >"$TEST_TMPDIR/state/warpbook/report.key"
    call --labs 4
    has "report.key: not a key of 32 bytes; remove it, and another one is made"
    shows 04_sgemm passed 88
    [ ! -e "$work/results/report-labs.json" ] || fail "remembers without a key"
    rm "$TEST_TMPDIR/state/warpbook/report.key"
}

what_does_not_hold_is_said_or_refused() {
    local lacks="files outside its folder not readable (Landlock)"
    make_course
    program 04_sgemm_parity "echo \"isolation: \$WARPBOOK_REQUIRE_ISOLATION\"
cat >>\"\$WARPBOOK_GRADES\" <<'END'
$(line 04_sgemm parity shapes pass; ends 04_sgemm parity 1)
END"
    local whole=$report
    report="$without landlock $whole"
    call --labs 4
    has "not held on the machine that graded: $lacks"
    shows 04_sgemm passed 88
    call --labs 4 --again --require-isolation
    [ "$code" -eq 1 ] || fail "status $code"
    has "report: --require-isolation: nothing is graded here, as this machine lacks: $lacks"
    report=$whole
    [ "$(runs 04_sgemm_parity)" -eq 1 ] || fail "graded where it may not"
    call --labs 4 --again --require-isolation
    if [ "$code" -eq 0 ]; then
        shows 04_sgemm passed 88
        grep -qx "isolation: 1" "$work/results/report/04_sgemm_parity.log" || fail "the graders are not told"
    else
        has "this machine lacks: "
    fi
}

what_was_built_counts() {
    make_course
    call --labs 4
    # A file that is saved while its lab is graded: the next build has another worker.
    echo "# of another file" >>"$work/graders/04_sgemm_worker"
    call --labs 4
    [ "$(runs 04_sgemm_parity)" -eq 2 ] || fail "a changed worker runs nothing"
    # A file that does not compile: the graded programs link none of it, and are there.
    rm "$work/graders/04_sgemm_worker"
    call --labs 4
    shows 04_sgemm "not built" 0
    has "04_sgemm_worker: No such file or directory"
    [ "$(runs 04_sgemm_parity)" -eq 2 ] || fail "a lab without a worker runs"
}

# Its parity counts from the first change on.
the_starter_is_not_begun() {
    make_course
    writes 04_sgemm_speedup 1 "$(
        line 04_sgemm speedup kernel fail kernel 1
        ends 04_sgemm speedup 1
    )"
    mkdir "$work/labs/04_sgemm/given"
    cp "$work/labs/04_sgemm/sgemm.cu" "$work/labs/04_sgemm/given/starter.cu"
    call --labs 4
    shows 04_sgemm "not begun" 0
    echo "// changed" >>"$work/labs/04_sgemm/sgemm.cu"
    call --labs 4
    shows 04_sgemm slow 20
}

one_report_at_a_time() {
    make_course
    program 04_sgemm_parity "touch '$work/begun'; while [ ! -e '$work/end' ]; do sleep 0.1; done"
    (cd "$work" && BUILD_WORKSPACE_DIRECTORY=$work exec "$report" --graders "$work/graders" --labs 4 >first 2>&1) &
    local first=$! i
    for ((i = 0; i < 600; i++)); do
        [ -e "$work/begun" ] && break
        sleep 0.1
    done
    call --labs 4
    [ "$code" -eq 1 ] || fail "a second report: status $code"
    has "another report is grading with"
    touch "$work/end"
    wait "$first" || fail "the first report: $(cat "$work/first")"
    call --labs 4
    [ "$code" -eq 0 ] || fail "the report behind it: status $code"
}

trouble_stays_with_its_lab() {
    make_course
    program 01_cpu_matmul_parity 'echo "about to fail"; kill -SEGV $$'
    right 02_gpu_matmul
    program 02_gpu_matmul_speedup 'sleep 100 & echo "waiting for ever"; wait'
    writes 03_resident_weights_parity 0 "this is no JSON"
    right 03_resident_weights_speedup
    right 05_layernorm_softmax
    program 05_layernorm_softmax_speedup 'exit 0'
    limit=4
    call
    shows 01_cpu_matmul "not built" 0 # it has no speedup test
    has "01_cpu_matmul: parity: it crashed (signal 11, Segmentation fault): about to fail"
    shows 02_gpu_matmul broken 20
    has "02_gpu_matmul: speedup: it did not end within 4 s and was stopped: waiting for ever"
    shows 03_resident_weights "not built" 0
    has "03_resident_weights: parity: its record holds 1 line that no grader writes"
    shows 04_sgemm passed 88
    shows 05_layernorm_softmax broken 20
    has "05_layernorm_softmax: speedup: it exited with status 0 before its tests were over"
    shows 10_llama2_decoder "not built" 0
    [ "$code" -eq 0 ] || fail "status $code without --strict"
    call --strict
    [ "$code" -eq 1 ] || fail "status $code with --strict"
    [ "$(runs 02_gpu_matmul_speedup)" -eq 2 ] || fail "what hung is taken for graded"
    limit=60
    call --strict --labs 4
    [ "$code" -eq 0 ] || fail "status $code with --strict and a lab that passes"
}

nobody_forges() {
    make_course
    # Lines for another lab, a verdict behind the end, a good record with a bad status.
    writes 04_sgemm_speedup 0 "$(line 05_layernorm_softmax speedup softmax pass softmax 900; ends 04_sgemm speedup 1)"
    call --labs 4
    shows 04_sgemm broken 20
    writes 04_sgemm_speedup 7 "$(line 04_sgemm speedup kernel pass kernel 900; ends 04_sgemm speedup 1)"
    call --labs 4
    shows 04_sgemm broken 20
    has "its exit status, 7, contradicts its tests"
    fast_sgemm
    writes 04_sgemm_parity 1 "$(line 04_sgemm parity shapes fail; ends 04_sgemm parity 1)"
    call --labs 4
    shows 04_sgemm wrong 0
    # Variables of GoogleTest that would leave tests out do not reach the program.
    program 04_sgemm_parity '[ -z "${GTEST_FILTER:-}" ] || exit 3; exit 4'
    GTEST_FILTER=none call --labs 4
    has "it exited with status 4"
}

endless_output_ends() {
    make_course
    program 04_sgemm_parity 'yes'
    call --labs 4
    has "04_sgemm: parity: it "
    [ "$(stat -c %s "$work/results/report/04_sgemm_parity.log")" -le $((64 << 20)) ] || fail "the log has no limit"
}

memory_is_not_lost() {
    make_course
    mkdir -p "$work/results"
    echo "{ broken" >"$work/results/report-labs.json"
    call --labs 4
    has "begun anew, the old file is $work/results/report-labs.json.broken"
    [ "$(grep -c 'begun anew' <<<"$output")" -eq 1 ] || fail "said more than once: $output"
    [ "$(cat "$work/results/report-labs.json.broken")" = "{ broken" ] || fail "the old file is gone"
    shows 04_sgemm passed 88
    call --labs 4
    has "not changed since they were graded: 04"
}

an_interrupted_run_keeps_what_it_has() {
    make_course
    right 05_layernorm_softmax
    program 05_layernorm_softmax_speedup 'kill -TERM $PPID; sleep 1.5'
    call
    [ "$code" -eq 130 ] || fail "status $code of an interrupted run"
    shows 04_sgemm passed 88
    shows 05_layernorm_softmax "not run" 20
    shows 06_fused_epilogues "not run" 0
    call --labs 4
    has "not changed since they were graded: 04"
}

# runs_still PIDFILE: whether that process is there and no zombie.
runs_still() {
    local state
    state=$(sed 's/.*) //; s/ .*//' "/proc/$(cat "$1")/stat" 2>/dev/null) && [ "$state" != Z ]
}

a_killed_report_takes_its_program_along() {
    make_course
    program 04_sgemm_parity "echo \$\$ >'$work/pid.new'; mv '$work/pid.new' '$work/pid'; exec sleep 300"
    (cd "$work" && BUILD_WORKSPACE_DIRECTORY=$work exec "$report" --graders "$work/graders" --labs 4 >/dev/null 2>&1) &
    local killed=$! i
    for ((i = 0; i < 600; i++)); do
        [ -e "$work/pid" ] && break
        sleep 0.1
    done
    runs_still "$work/pid" || fail "the graded program did not start"
    kill -KILL "$killed"
    wait "$killed" 2>/dev/null
    for ((i = 0; i < 100; i++)); do
        runs_still "$work/pid" || return 0
        sleep 0.1
    done
    fail "the graded program outlives the report"
    kill -KILL "$(cat "$work/pid")"
}

# from FOLDER FLAGS...: a report that `bazel run` did not start, in that folder.
from() {
    output=$(cd "$1" && env -u BUILD_WORKSPACE_DIRECTORY -u BUILD_WORKING_DIRECTORY "$report" \
        --graders "$work/graders" --timeout "$limit" "${@:2}" 2>&1)
    code=$?
}

started_in_another_folder() {
    make_course
    : >"$work/WORKSPACE"
    from "$work/labs/04_sgemm" --labs 4
    shows 04_sgemm passed 88
    from "$work" --labs 4
    has "not changed since they were graded: 04"
    if grep -q "No such file" <<<"$output"; then fail "the learner's file is missed: $output"; fi
    [ ! -e "$work/labs/04_sgemm/results" ] || fail "results lie in the folder it was started in"
    mkdir "$TEST_TMPDIR/elsewhere"
    from "$TEST_TMPDIR/elsewhere" --labs 4,5
    has "report: ./labs/04_sgemm/sgemm.cu: No such file or directory, nor other labs' files; "
    has "start the report in the workbook's folder"
    shows 04_sgemm passed 88
}

no_place_to_write() {
    make_course
    echo "a file" >"$work/results"
    TMPDIR=$TEST_TMPDIR call --labs 4
    has "nothing is remembered"
    shows 04_sgemm passed 88
    [ "$(cat "$work/results")" = "a file" ] || fail "the file in the way is changed"
    rm "$work/results"
    call --labs 4 --output /proc/nowhere/report.txt
    [ "$code" -eq 1 ] || fail "status $code when the report cannot be written"
    has "/proc/nowhere/report.txt"
}

command_lines() {
    make_course
    call --labs 4,zebra
    has "report: no lab 'zebra'"
    [ "$code" -eq 1 ] || fail "status $code for an unknown lab"
    call --format tex
    has "--format is text, json"
    call --compare one.json
    has "--compare wants two files"
    call --compare one.json two.json
    has "one.json"
    call --labs 4 --format=json --output "$work/a.json"
    call --compare "$work/a.json" "$work/a.json"
    has "88         88   +0"
    call --from "$work/a.json" --format=markdown
    has "| 04_sgemm | passed | 88 |"
    call --from "$work/labs/04_sgemm/sgemm.cu"
    has "not JSON"
    call --subject solutions
    has "this was built for labs"
    call --timeout 0
    has "--timeout is 1 to 86400 seconds"
    call --labs ""
    has "--labs names none"
    call --from "$work/results/report-labs.json" --labs 4
    has "--from does not go with --labs"
    call --compare --output "$work/x" a.json b.json
    has "--compare does not go with --output"
    call --labs 4 --again --output "$work/nowhere/x.html"
    has "nowhere/x.html: cannot write: No such file or directory"
    call --labs 4 --format=markdown --output -
    has "| 04_sgemm | passed | 88 |"
    ln -s before.md "$work/link.md" && : >"$work/before.md"
    call --labs 4 --format=markdown --output "$work/link.md"
    [ -L "$work/link.md" ] && grep -q 04_sgemm "$work/before.md" || fail "--output through a link: $output"
    if [ -w /dev/full ]; then
        (cd "$work" && "$report" --from "$work/results/report-labs.json" --output /dev/full) >/dev/null 2>&1 &&
            fail "a full device goes unnoticed"
        [ -c /dev/full ] || fail "--output took a device's place"
    fi
    call --help
    has "with --strict it is 1"
}

# warmups BODY: the program that counts how many are done.
warmups() {
    mkdir -p "$work/labs/00_warmups"
    printf '#!/bin/bash\necho run >>"%s/runs/warmups"\n%s\n' "$work" "$1" >"$work/labs/00_warmups/check"
    chmod +x "$work/labs/00_warmups/check"
}

# Without points; asked again only when the program has changed.
warmups_are_counted() {
    make_course
    call
    grep -q 00_warmups <<<"$output" && fail "warm-ups without a program: $output"
    # shellcheck disable=SC2016 # for the program
    warmups '[ "$*" = --count ] && echo "12 of 32"'
    call --labs 4
    grep -q 00_warmups <<<"$output" && fail "warm-ups although one lab was asked for: $output"
    call
    grep -qE '^00_warmups +12 of 32 +bazel run //labs/00_warmups:check$' <<<"$output" || fail "no line: $output"
    has "88 / 1500"
    call
    has "12 of 32"
    [ "$(runs warmups)" -eq 1 ] || fail "run again without a change"
    call --labs 00
    grep -qE '^00_warmups +12 of 32 +bazel run //labs/00_warmups:check$' <<<"$output" || fail "no line: $output"
    grep -q 04_sgemm <<<"$output" && fail "labs although only the warm-ups were asked for: $output"
    warmups 'echo "32 of 32"'
    call
    grep -qE '^00_warmups +32 of 32 +done$' <<<"$output" || fail "no line: $output"
    for body in 'echo "33 of 32"' 'echo nonsense' 'kill -SEGV $$'; do
        warmups "$body"
        call
        grep -q 00_warmups <<<"$output" && fail "$body is believed: $output"
    done
}

what_has_not_changed_is_not_run
warmups_are_counted
what_was_built_counts
the_starter_is_not_begun
one_report_at_a_time
trouble_stays_with_its_lab
nobody_forges
endless_output_ends
memory_is_not_lost
only_what_is_signed_is_remembered
what_does_not_hold_is_said_or_refused
an_interrupted_run_keeps_what_it_has
a_killed_report_takes_its_program_along
started_in_another_folder
no_place_to_write
command_lines
[ "$failures" -eq 0 ]
