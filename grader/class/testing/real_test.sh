#!/usr/bin/env bash
# grade_class with the real kit: lab 04's starter, changed so that its verdict comes early. What is right,
# slow or wrong takes minutes on simt, and is //grader:04_sgemm_*'s matter.
#   real_test.sh GRADE_CLASS STARTER
set -u
program=$PWD/$1
starter=$PWD/$2
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

sed 's/float sum = 0.0f;/float sum = nothing;/' "$starter" >handed_in/broken.cu
{
    echo '#include "/etc/passwd"'
    cat "$starter"
} >handed_in/curious.cu
{
    cat "$starter"
    printf '#include <unistd.h>\n__attribute__((constructor)) static void before(void) { (void)!fork(); }\n'
} >handed_in/forks.cu

"$program" handed_in --output graded --labs 04 --jobs 2 >out 2>err || fail "it ends with $?: $(cat err)"
[ "$(grep -c ',graded,' graded/results.csv)" -eq 3 ] || fail "not all are graded: $(cat graded/results.csv err)"
page broken 'labs/04_sgemm/sgemm.cu'
page broken 'identifier &quot;nothing&quot; is undefined'
page curious 'nothing else can be included, nor embedded'
page forks 'which is not allowed here'
grep -lF "$PWD" graded/submissions/*.html && fail "a page shows folders of this machine"
[ "$failures" -eq 0 ] && echo "all checks passed"
exit $((failures > 0))
