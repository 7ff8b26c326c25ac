#!/usr/bin/env bash
# By hand: kills.sh DRIVE KILLS TASKS: kills slurmctld, a slurmd, a node or the collector KILLS times at
# random moments while TASKS made-up submissions are graded on a test cluster; then every one must
# have its result, and each was graded to its end once. Takes some three seconds a kill.
set -u
drive=$(realpath "$1")
kills=$2
tasks=$3
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
output=$scratch/output
log=$scratch/log
"$here/made_up_output.sh" "$output" "$tasks" 1
mkfifo "$scratch/commands" "$scratch/answers"
"$here/test_cluster.sh" --gpus 2 <"$scratch/commands" >"$scratch/answers" 2>"$scratch/cluster" &
exec 5>"$scratch/commands" 6<"$scratch/answers"
read -r SLURM_CONF <&6 || exit 1
export SLURM_CONF

ctl() {
    echo "$*" >&5
    read -r _ <&6
}

collect() {
    "$drive" "$output" "$tasks" >>"$log" 2>&1 5>&- 6<&- &
    collector=$!
}

# What an administrator does when slurmctld forgot its last jobs and took the nodes out of service.
resume_nodes() {
    timeout 10 scontrol update nodename=n1,n2 state=resume 2>/dev/null
}

pause() {
    sleep "$((RANDOM % ${1:-3})).$((RANDOM % 10))"
}

collect
for ((i = 1; i <= kills; i++)); do
    pause
    case $((RANDOM % 4)) in
    0) ctl kill slurmctld && pause && ctl start slurmctld ;;
    1) node=n$((1 + RANDOM % 2)) && ctl kill "$node" && pause && ctl start "$node" ;;
    2) node=n$((1 + RANDOM % 2)) && ctl fail "$node" && pause 20 && ctl start "$node" ;;
    3) kill -KILL "$collector" && echo "-- collector killed" >>"$log" && pause && collect ;;
    esac
    resume_nodes
done
while kill -0 "$collector" 2>/dev/null; do
    resume_nodes
    sleep 5
done
results=$(find "$output/tasks" -name result.json | wc -l)
twice=$(find "$output/tasks" -name graded -size +7c | wc -l)
echo "$kills kills: $results of $tasks results, $twice graded twice, $(grep -c '^given up' "$log") given up"
cp "$log" "${LOG:-/dev/null}"
rm -rf -- "$scratch"
[ "$results" -eq "$tasks" ] && [ "$twice" -eq 0 ]
