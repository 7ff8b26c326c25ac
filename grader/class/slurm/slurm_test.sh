#!/usr/bin/env bash
# The Slurm back end with the real slurmctld and slurmd, two nodes on 127.0.0.1, and made-up graders.
# Two clusters side by side, as most of the time is spent waiting.
#   slurm_test.sh DRIVE TEST_CLUSTER MADE_UP_OUTPUT CLUSTER_SH
set -u
drive=$PWD/$1
test_cluster=$PWD/$2
made_up_output=$PWD/$3
failures=0
# shellcheck source=/dev/null
. "$4"

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# says TEXT: in what the collector printed.
says() {
    grep -qE -- "$1" "$log" || fail "want '$1' in: $(cat "$log")"
}

# await COMMAND: until it succeeds, two minutes at most.
await() {
    local begun=$SECONDS
    until "$@" >/dev/null 2>&1; do
        if [ $((SECONDS - begun)) -gt 120 ]; then
            fail "waited for: $*: $(cat "$log")"
            exit 1
        fi
        sleep 0.05
    done
}

results() {
    find "$output/tasks" -name result.json | wc -l
}

# Each task that has a result was graded to the end once.
graded_once() {
    local task
    for task in "$output"/tasks/*; do
        [ "$(cat "$task/graded" 2>/dev/null)" = "$1" ] || fail "$task: graded: $(cat "$task/graded")"
    done
}

collect() {
    "$drive" "$output" "$@" >>"$log" 2>&1 5>&- 6<&- & # the cluster ends with this test
    collector=$!
}

ends() {
    wait "$collector"
    local code=$?
    [ "$code" -eq "$1" ] || fail "exit status $code, want $1: $(cat "$log")"
}

new_output() {
    output=$scratch/$1
    log=$scratch/$1.log
    : >"$log"
    "$made_up_output" "$output" "$2" "$3"
}

runs_on() {
    grep -q "grading on $1" "$output"/tasks/*/said
}

at_least() {
    [ "$(results)" -ge "$1" ]
}

# A slurmctld that is killed before it saved a job gives its number to another one, and takes nodes
# that run both out of service until an administrator comes.
is_saved() {
    [ "$(dirname "$SLURM_CONF")/state/job_state" -nt "$output/tasks/000002/result.json" ]
}

queue_is_empty() {
    [ -z "$(squeue --noheader)" ]
}

# More tasks than an array takes, on four GPUs; one fails once, one grader is killed once, one always
# fails; while it goes on, slurmctld is away, and the collector is killed and started again. More
# tasks than there are GPUs hold them until some were seen to wait, however slow the machine is.
nothing_is_lost() {
    local id
    new_output "with a blank" 12 1
    echo "once code75" >"$output/tasks/000003/does"
    echo "once kill" >"$output/tasks/000004/does"
    echo "code 64" >"$output/tasks/000005/does"
    for id in 000006 000007 000008 000009 000010 000011 000012; do
        echo held >"$output/tasks/$id/does"
    done
    collect 12 "--partition=gpu --time=5"
    await at_least 2
    await is_saved
    kill -KILL "$collector"
    wait "$collector" 2>/dev/null
    ctl kill slurmctld
    collect 12
    await grep -q "Unable to contact" "$log"
    ctl start slurmctld
    await grep -q "first in the queue at place 1 of" "$log"
    touch "$output/go"
    ends 0
    says "^given up 5"
    [ "$(results)" -eq 11 ] || fail "$(results) results of 11: $(cat "$log")"
    mkdir "$scratch/no" && mv "$output/tasks/000005" "$scratch/no"
    graded_once graded
    [ -e "$output/backend/batches/2" ] || fail "all in one array, which takes only 7"
    grep -q "grading on n[12]" "$output/tasks/000001/said" || fail "said is missing"
}

# A node is lost while both have tasks; then Ctrl-C, and resume.
node_is_lost() {
    new_output node 6 3
    collect 6
    await runs_on n1
    ctl fail n1
    await grep -q "on n1 ended without a result: NODE_FAIL" "$log"
    ctl start n1
    ends 0
    [ "$(results)" -eq 6 ] || fail "$(results) results of 6: $(cat "$log")"
    graded_once graded
}

interrupt_and_resume() {
    new_output interrupted 6 2
    collect 6 "" 2
    await at_least 1
    [ "$(squeue --noheader --array --states=running | wc -l)" -le 2 ] || fail "more than --jobs 2 at a time"
    kill -INT "$collector"
    ends 130
    await queue_is_empty
    [ "$(results)" -lt 6 ] || fail "nothing was cancelled"
    collect 6
    ends 0
    [ "$(results)" -eq 6 ] || fail "$(results) results of 6: $(cat "$log")"
    graded_once graded
}

# A node fails every task while the other works: it is said, and neither waiting nor later tasks go there.
node_fails_every_task() {
    local id
    new_output bad 8 0
    for id in 000001 000002; do
        echo "sleep 14" >"$output/tasks/$id/does"
    done
    echo n2 >"$output/bad"
    collect 8
    await grep -q "node n2 failed .* it gets no more of them" "$log"
    local before
    before=$(cat "$output"/tasks/*/attempts | grep -c " n2 ")
    ends 0
    # Four waited when it was said, or were submitted later.
    [ "$(squeue --noheader --array --states=all --format=%x | grep -cx n2)" -ge 4 ] ||
        fail "waiting tasks might have gone to n2: $(squeue --array --states=all --format='%i %T %N %x')"
    [ "$(results)" -eq 8 ] || fail "$(results) results of 8: $(cat "$log")"
    [ "$(cat "$output"/tasks/*/attempts | grep -c " n2 ")" -eq "$before" ] || fail "n2 got more tasks"
    grep -c "node n2 failed" "$log" | grep -qx 1 || fail "not said once: $(cat "$log")"
}

# refuses TEXT ARGUMENTS: one line, nothing submitted.
refuses() {
    local text=$1
    shift
    new_output refused 1 0
    "$drive" "$output" 1 "$@" >"$log" 2>&1 && fail "not refused: $*"
    says "$text"
    [ "$(wc -l <"$log")" -eq 1 ] || fail "not one line: $(cat "$log")"
}

refusals() {
    refuses "is set by grade_class itself" "--array=1-5"
    refuses "a quote is not closed" "--comment2='x"
    PATH=/proc/nowhere refuses_without_slurm
}

refuses_without_slurm() {
    "$drive" "$output" 1 >"$log" 2>&1
    /usr/bin/grep -q "sbatch: cannot be started" "$log" || fail "without Slurm: $(/bin/cat "$log")"
}

# Nothing of the cluster is left once its input ends.
cluster_stops() {
    local settings=$SLURM_CONF
    exec 5>&-
    await stopped "$settings"
    pgrep -af -- "$(dirname "$settings")" && fail "processes of the cluster are left"
}

stopped() {
    [ ! -e "$(dirname "$1")" ]
}

# on_cluster NAME TEST...: the tests, on a cluster of their own.
on_cluster() {
    local name=$1 code
    scratch=$scratch/$name
    mkdir "$scratch"
    log=$scratch/log
    : >"$log"
    shift
    bring_up "$test_cluster" --gpus 2 --array 7
    code=$?
    [ "$code" -eq 0 ] || exit "$code"
    for name in "$@"; do
        echo "after $SECONDS s: $name"
        "$name"
    done
    exit $((failures > 0))
}

scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
# The second one starts when the ports of the first are taken.
(on_cluster a nothing_is_lost interrupt_and_resume refusals cluster_stops) >"$scratch/said_a" 2>&1 &
first=$!
sleep 5
(on_cluster b node_is_lost node_fails_every_task)
code=$?
wait "$first"
first=$?
cat "$scratch/said_a"
if [ "$first" -eq 77 ] || [ "$code" -eq 77 ]; then
    echo "skipped: the Slurm back end was not tried with Slurm"
    exit 0
fi
[ "$first" -eq 0 ] && [ "$code" -eq 0 ] && echo "after $SECONDS s: all passed"
exit $((first + code > 0))
