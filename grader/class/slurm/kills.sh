#!/usr/bin/env bash
# By hand: kills.sh GRADE_CLASS KIT_MANIFEST KILLS TASKS: grade_class grades TASKS made-up submissions on
# a test cluster, while slurmctld, a slurmd, a node or grade_class itself is killed KILLS times at random
# moments; then every one must have its verdict, and none may have been begun again after its result was
# there. Takes some four seconds a kill. $LOG receives what grade_class said.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=$(realpath "$1")
manifest=$(realpath "$2")
kills=$3
tasks=$4
scratch=$(mktemp -d)
log=$scratch/log
cd "$scratch" || exit 1
export XDG_STATE_HOME=$scratch/state
"$here/../testing/made_up_kit.sh" "$manifest" kit || exit 1
for ((i = 1; i <= tasks; i++)); do
    mkdir -p "handed_in/student $i"
    echo "right sleep=3 speedup=$((20 + i % 30))" >"handed_in/student $i/sgemm.cu"
done
# shellcheck source=/dev/null
. "$here/cluster.sh"
bring_up "$here/test_cluster.sh" --gpus 2 || exit 1

fail() {
    echo "FAILED: $*"
}

# do_it COMMAND: to the cluster.
do_it() {
    ctl "$@"
    echo "-- $*" >>"$log"
}

collect() {
    "$program" handed_in --output graded --labs 04 --kit kit/kit.manifest --resume --backend slurm \
        --backend-options "--gres=gpu:1" >>"$log" 2>&1 5>&- 6<&- &
    collector=$!
}

# What an administrator does when slurmctld forgot its last jobs and took the nodes out of service.
resume_nodes() {
    timeout 10 scontrol update nodename=n1,n2 state=resume 2>/dev/null
}

pause() {
    sleep "$((RANDOM % ${1:-3})).$((RANDOM % 10))"
}

# A result is older than no begin of its task: seconds of the last begin, and of the result.
begun_after_result() {
    local task begun
    for task in graded/tasks/*; do
        begun=$(tail -n 1 "$task/attempts" | cut -d ' ' -f 1)
        [ "${begun:-0}" -le "$(stat -c %Y "$task/result.json" 2>/dev/null || echo 0)" ] || echo "$task"
    done
}

declare -A killed=([slurmctld]=0 [slurmd]=0 [node]=0 [grade_class]=0)
collect
for ((i = 1; i <= kills; i++)); do
    pause
    # Once all is graded there is nothing left to lose.
    kill -0 "$collector" 2>/dev/null || break
    case $((RANDOM % 4)) in
    0) what=slurmctld && do_it kill slurmctld && pause && do_it start slurmctld ;;
    1) what=slurmd node=n$((1 + RANDOM % 2)) && do_it kill "$node" && pause && do_it start "$node" ;;
    2) what=node node=n$((1 + RANDOM % 2)) && do_it fail "$node" && pause 20 && do_it start "$node" ;;
    3) what=grade_class && kill -KILL "$collector" && echo "-- grade_class killed" >>"$log" && pause && collect ;;
    esac
    killed[$what]=$((killed[$what] + 1))
    did=$i
    resume_nodes
done
while kill -0 "$collector" 2>/dev/null; do
    resume_nodes
    sleep 5
done
collect # what was given up is tried again; a run that is whole ends at once
while kill -0 "$collector" 2>/dev/null; do
    resume_nodes
    sleep 1
done
results=0
for ((i = 1; i <= tasks; i++)); do # each has its own speedup
    results=$((results + $(grep -cE "\"student $i\",graded,[0-9]+,100,[a-z]+,[0-9]+,$((20 + i % 30))," graded/results.csv)))
done
twice=$(begun_after_result | wc -l)
echo "$did kills (${killed[slurmctld]} slurmctld, ${killed[slurmd]} slurmd, ${killed[node]} nodes," \
    "${killed[grade_class]} grade_class): $results of $tasks verdicts, $twice begun again after the result," \
    "$(grep -c '; not graded' "$log") times given up"
cp "$log" "${LOG:-/dev/null}"
cd / && rm -rf -- "$scratch"
[ "$results" -eq "$tasks" ] && [ "$twice" -eq 0 ]
