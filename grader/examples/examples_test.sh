#!/bin/bash
# The examples are what they should be: YAML and shell that parse, and a Gradescope run, with a
# stand-in for Bazel, from a submission to results.json.
set -u
report=$PWD/$1
here=$PWD/grader/examples
export AUTOGRADER=$TEST_TMPDIR/autograder
course=$AUTOGRADER/source/warpbook
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

parses() {
    local script
    for script in "$here"/gradescope/*; do
        bash -n "$script" || fail "$script is no shell"
        if command -v shellcheck >/dev/null; then
            shellcheck --severity=warning "$script" || fail "$script"
        fi
    done
    if ! python3 -c 'import yaml' 2>/dev/null; then
        echo "the YAML is not parsed: python3 has no yaml here"
        return
    fi
    python3 - "$here/github/grade.yml" >"$TEST_TMPDIR/steps.sh" <<'END' || fail "grade.yml"
import sys, yaml
flow = yaml.safe_load(open(sys.argv[1]))
assert True in flow or "on" in flow  # YAML 1.1 reads the key as a truth value
steps = flow["jobs"]["grade"]["steps"]
assert all("run" in step or "uses" in step for step in steps)
print("\n".join(step["run"] for step in steps if "run" in step))
END
    bash -n "$TEST_TMPDIR/steps.sh" || fail "a step of grade.yml is no shell"
    grep -q -- '--format=junit' "$TEST_TMPDIR/steps.sh" || fail "no JUnit file is written"
}

# A course with one lab, whose graders Bazel "builds" from the submitted file, if it says so.
make_course() {
    rm -rf "$AUTOGRADER"
    mkdir -p "$course/labs/04_sgemm" "$course/bazel-bin/grader/report" "$AUTOGRADER/submission" "$TEST_TMPDIR/bin"
    # shellcheck disable=SC2016 # backquotes of the handout
    echo '**You edit one file:** [`sgemm.cu`](sgemm.cu).' >"$course/labs/04_sgemm/README.md"
    echo "starter" >"$course/labs/04_sgemm/sgemm.cu"
    ln -s "$report" "$course/bazel-bin/grader/report/report_alone"
    # What was built before: the starter's worker.
    printf '#!/bin/sh\nexit 1\n' >"$course/bazel-bin/grader/04_sgemm_worker" &&
        chmod +x "$course/bazel-bin/grader/04_sgemm_worker"
    cat >"$TEST_TMPDIR/bin/bazel" <<'END'
#!/bin/bash
echo "$*" >>"$TEST_TMPDIR/calls"
head='{"schema":1,"lab":"04_sgemm"'
for part in parity speedup; do
    file=bazel-bin/grader/04_sgemm_$part
    printf '#!/bin/bash\ncat >"$WARPBOOK_GRADES" <<"GRADES"\n' >"$file"
    if [ $part = parity ]; then
        echo "$head,\"part\":\"$part\",\"test\":\"shapes\",\"verdict\":\"pass\"}" >>"$file"
    else
        echo "$head,\"part\":\"$part\",\"test\":\"kernel\",\"verdict\":\"pass\",\"measure\":\"kernel\",\"speedup\":47}" >>"$file"
    fi
    printf '%s,"part":"%s","verdict":"end","tests":1}\nGRADES\n' "$head" "$part" >>"$file"
    chmod +x "$file"
done
# The graded programs link none of the file; the worker does.
grep -q compiles labs/04_sgemm/sgemm.cu || { echo "sgemm.cu:1: error: not C"; exit 1; }
echo >bazel-bin/grader/04_sgemm_worker && chmod +x bazel-bin/grader/04_sgemm_worker
END
    chmod +x "$TEST_TMPDIR/bin/bazel"
}

# grades WHAT TEXT...: runs the autograder; results.json must hold each text.
grades() {
    local what=$1 text results
    shift
    PATH=$TEST_TMPDIR/bin:$PATH WARPBOOK_LABS=04_sgemm bash "$here/gradescope/run_autograder" >"$TEST_TMPDIR/said" 2>&1 ||
        fail "$what: status $?"
    results=$(tr -d '\n\t' <"$AUTOGRADER/results/results.json")
    for text; do
        grep -qF -- "$text" <<<"$results" || fail "$what: '$text' is not in $results"
    done
}

parses
make_course
grades "no file" '{"score": 0, "output": "No file of a lab'
echo "compiles" >"$AUTOGRADER/submission/sgemm.cu"
echo "compiles" >"$AUTOGRADER/submission/unasked.c"
grades "a good file" '"score":80' '"name":"04_sgemm kernel"' '"max_score":60'
[ "$(cat "$course/labs/04_sgemm/sgemm.cu")" = compiles ] || fail "the submission was not taken"
[ ! -e "$course/labs/04_sgemm/unasked.c" ] || fail "a file that nobody asked for was taken"
make_course
echo "nonsense" >"$AUTOGRADER/submission/sgemm.cu"
grades "a file that does not compile" '"score":0' 'was not built'
grep -q 'sgemm.cu:1: error: not C' "$TEST_TMPDIR/said" || fail "the compiler's message is lost"
[ "$failures" -eq 0 ]
