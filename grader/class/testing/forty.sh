#!/usr/bin/env bash
# By hand: forty.sh GRADE_CLASS MAKE_ZIP FOLDER: real submissions to lab 02 of all kinds (hand_in.sh),
# graded with the real kit on this machine and on two Slurm nodes of loopback daemons (./setup.sh
# --cluster). Each verdict must be the expected one, and the same in both, test by test. FOLDER receives
# handed_in, local and slurm; what is there from an interrupted call is gone on with. It takes an
# hour of one core.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=$(realpath "$1")
make_zip=$(realpath "$2")
mkdir -p "$3" && cd "$3" || exit 1
root=$here/../../..
# The same inputs in both, so that messages are the same, too.
export WARPBOOK_SEED=28 XDG_STATE_HOME=$PWD/state
failures=0
# shellcheck source=/dev/null
. "$here/hand_in.sh"
# shellcheck source=/dev/null
. "$here/../slurm/cluster.sh"

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# grade OUTPUT FLAGS...
grade() {
    local output=$1 begun=$SECONDS code resume=""
    shift
    [ -e "$output/class.json" ] && resume=--resume
    # shellcheck disable=SC2086 # none or one
    "$program" handed_in --output "$output" --labs 02,04 --timeout 100 $resume "$@" >"$output.out" 2>"$output.err"
    code=$?
    [ "$code" -eq 3 ] || fail "$output: exit status $code: $(tail -3 "$output.err")"
    echo "$output: $(cat "$output.out"), $((SECONDS - begun)) s"
}

# state OUTPUT NAME: lab 02's state, or why there is none.
state() {
    jq -r --arg name "$2" '.submissions[] | select(.name == $name)
        | .labs["02_gpu_matmul"].state // .state' "$1/results.json"
}

# shows OUTPUT NAME WORDS: on its page.
shows() {
    local page
    page=$1/$(jq -r --arg name "$2" '.submissions[] | select(.name == $name) | .page' "$1/results.json")
    grep -qF -- "$3" "$page" || fail "$1: the page of $2 does not have '$3'"
}

as_expected() {
    local name want words got
    while IFS=$'\t' read -r name want words; do
        got=$(state "$1" "$name")
        [[ "|$want|" == *"|$got|"* ]] || fail "$1: $name is '$got', want '$want'"
        [ -z "$words" ] || shows "$1" "$name" "$words"
    done <expected
}

# verdicts OUTPUT: a line for each submission: its points, and each test's verdict unless it ran until a
# limit.
verdicts() {
    local name want
    while IFS=$'\t' read -r name want _; do
        jq -r --arg name "$name" --argjson tests "$([[ $want == *"|"* ]] && echo false || echo true)" \
            --slurpfile results <(cat "$1"/tasks/*/result.json) '.submissions[] | select(.name == $name)
            | .id as $id | [.name, .points, .why] + [select($tests) | $results[] | select(.id == $id)
            | .run.labs[] | .lab as $lab | (.parity, .speedup) | .grades[] | $lab, .test, .verdict,
              (.message // "" | split("\n")[0])] | @tsv' "$1/results.json"
    done <expected
}

if [ ! -e expected ]; then
    hand_in_all handed_in "$make_zip" "$root/labs/02_gpu_matmul/given/starter.cu" \
        "$root/grader/selftest/wrong_gpu_matmul.cu" "$root/solutions/02_gpu_matmul" \
        "$root/labs/04_sgemm/given/starter.cu" >expected.part
    mv expected.part expected
fi
echo "$(wc -l <expected) submissions"
grade local --jobs 2
as_expected local
bring_up "$here/../slurm/test_cluster.sh" --cpus 1 --gpus 1 || exit 1
grade slurm --backend slurm --backend-options "--partition=gpu --gres=gpu:1"
as_expected slurm
verdicts local >local.verdicts
verdicts slurm >slurm.verdicts
diff local.verdicts slurm.verdicts >verdicts.diff || fail "the back ends differ: $(head -20 verdicts.diff)"
[ "$failures" -eq 0 ] && echo "all verdicts are as expected, and the same in both"
exit $((failures > 0))
