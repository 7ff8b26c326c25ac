#!/usr/bin/env bash
# grade_class with the real kit, on this machine and, where Slurm is installed, on a cluster of loopback
# daemons: lab 04's starter, changed so that its verdict comes early. What is right, slow or wrong takes
# minutes on simt, and is //grader:04_sgemm_*'s matter; forty.sh tries all kinds by hand.
#   real_test.sh GRADE_CLASS STARTER TEST_CLUSTER CLUSTER_SH
set -u
program=$PWD/$1
starter=$PWD/$2
test_cluster=$PWD/$3
# shellcheck source=/dev/null
. "$4"
export XDG_STATE_HOME=$TEST_TMPDIR/state
cd "$TEST_TMPDIR" || exit 1
mkdir handed_in
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# page NAME WORDS: the submission's page has them.
page() {
    local file
    file=$(grep -lF "<h1>$1</h1>" graded/submissions/*.html)
    grep -qF -- "$2" "$file" || fail "the page of $1 does not have '$2': $(grep '<p class="why">' "$file")"
}

# grade OUTPUT FLAGS...
grade() {
    local output=$1
    shift
    "$program" handed_in --output "$output" --labs 04 "$@" >out 2>err || fail "$output: it ends with $?: $(cat err)"
    [ "$(grep -c ',graded,' "$output/results.csv")" -eq 3 ] || fail "$output: not all are graded: $(cat "$output/results.csv" err)"
}

# verdicts OUTPUT: what was compiled and tested, without times and places.
verdicts() {
    grep -ohE '"(good|test|verdict|message|said)":("([^"\\]|\\.)*"|[a-z]+)' "$1"/tasks/*/result.json
}

sed 's/float sum = 0.0f;/float sum = nothing;/' "$starter" >handed_in/broken.cu
{
    echo '#include "/etc/passwd"'
    cat "$starter"
} >handed_in/curious.cu
{
    cat "$starter"
    printf '#include <unistd.h>\n__attribute__((constructor)) static void before(void) { (void)!fork(); }\n'
} >handed_in/forks.cu

grade graded --jobs 2
page broken 'labs/04_sgemm/sgemm.cu'
page broken 'identifier &quot;nothing&quot; is undefined'
page curious 'nothing else can be included, nor embedded'
page forks 'your code refers to fork'
grep -qF 'your code called clone, which is not allowed here' graded/tasks/*/result.json ||
    fail "no result says that the sandbox refuses a fork"
grep -lF "$PWD" graded/submissions/*.html && fail "a page shows folders of this machine"
bring_up "$test_cluster" --cpus 1 --gpus 1
code=$?
if [ "$code" -eq 0 ]; then
    grade on_slurm --backend slurm --backend-options "--gres=gpu:1"
    diff <(verdicts graded) <(verdicts on_slurm) || fail "the back ends have different verdicts"
    [ "$(verdicts graded | wc -l)" -ge 10 ] || fail "there are hardly any verdicts: $(verdicts graded)"
elif [ "$code" -eq 77 ]; then
    echo "skipped: real submissions on Slurm"
else
    fail "no cluster"
fi
[ "$failures" -eq 0 ] && echo "all checks passed"
exit $((failures > 0))
