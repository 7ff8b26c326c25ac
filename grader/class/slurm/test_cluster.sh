#!/usr/bin/env bash
# A Slurm cluster of loopback daemons for tests. See --help.
set -u

usage() {
    cat <<'EOF'
usage: test_cluster.sh [--nodes N] [--gpus N] [--cpus N] [--array N]

Starts munged, slurmctld and a slurmd for each of N nodes (n1, n2, ...: 2) on this machine, all on
127.0.0.1 and free ports, with all state in a new temporary folder. /etc/slurm and a real cluster's
daemons are not touched. Each node has --gpus made-up GPUs (1) and --cpus processors (4); --array is
MaxArraySize (1001).

When all nodes are idle it prints one line, the path of slurm.conf: clients need it in $SLURM_CONF.
Then it reads commands from standard input, and prints "ok" after each:

  kill NAME      SIGKILL to slurmctld, or to the slurmd of a node: its jobs go on
  fail NODE      as if the node lost power: slurmd, its steps and their jobs get SIGKILL
  start NAME     starts slurmctld or the slurmd of a node again
  pids NAME      prints the process, as it is numbered in here, before "ok"

At the end of standard input, however the caller ended, every process of the cluster and of its
jobs is killed: they live in a PID namespace of their own. Exit status 77: Slurm is not installed, or
this user may make no such namespace; a line on standard error says which.
EOF
}

nodes=2
gpus=1
cpus=4
array=1001
inside=false

fail() {
    echo "test_cluster.sh: $1" >&2
    exit "${2:-1}"
}

parse_flags() {
    while [ $# -gt 0 ]; do
        case "$1" in
        --inside)
            inside=true
            shift
            continue
            ;;
        --help | -h)
            usage
            exit 0
            ;;
        --nodes | --gpus | --cpus | --array)
            [[ "${2:-}" =~ ^[0-9]{1,5}$ ]] || fail "$1 ${2:-}: a number is wanted" 2
            ;;&
        --nodes) nodes=$2 ;;
        --gpus) gpus=$2 ;;
        --cpus) cpus=$2 ;;
        --array) array=$2 ;;
        *) fail "unknown flag '$1'; --help lists them" 2 ;;
        esac
        shift 2
    done
}

# enter FLAGS: goes on as the first process of a PID namespace; with it, all others end.
enter() {
    local program way
    for program in munged mungekey slurmctld slurmd sbatch sinfo unshare setpriv; do
        command -v "$program" >/dev/null || fail "$program is not installed (./setup.sh --cluster)" 77
    done
    for way in "" "--user --map-current-user"; do
        # shellcheck disable=SC2086 # none, or two words
        if unshare $way --pid --fork --kill-child --mount-proc true 2>/dev/null; then
            # The folder is removed out here: the first process inside may be killed.
            folder=$(mktemp -d "${TMPDIR:-/tmp}/slurm.XXXXXX") || exit 1
            trap 'rm -rf -- "$folder"' EXIT
            trap 'kill "$child" 2>/dev/null' INT TERM HUP
            # shellcheck disable=SC2086
            WARPBOOK_CLUSTER_FOLDER=$folder setpriv --pdeathsig KILL \
                unshare $way --pid --fork --kill-child --mount-proc "$BASH" "$0" --inside "$@" <&0 &
            child=$!
            wait "$child"
            code=$?
            kill -KILL "$child" 2>/dev/null
            wait "$child" 2>/dev/null
            exit "$code"
        fi
    done
    fail "this user may make no PID namespace" 77
}

port_is_free() {
    ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# Sets first_port: slurmctld's; those of the nodes follow.
choose_ports() {
    local port taken
    for _ in {1..100}; do
        first_port=$((20000 + (RANDOM * 32768 + RANDOM) % 10000))
        taken=false
        for ((port = first_port; port <= first_port + nodes; port++)); do
            port_is_free "$port" || taken=true
        done
        $taken || return 0
    done
    return 1
}

write_settings() {
    local node
    cat <<EOF
ClusterName=warpbook_test
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$first_port
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool_%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd_%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd_%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2
SlurmctldTimeout=10
SlurmdTimeout=10
MessageTimeout=5
KillWait=2
MinJobAge=10
MaxArraySize=$array
ReturnToService=2
SlurmdParameters=config_overrides
GresTypes=gpu
EOF
    for ((node = 1; node <= nodes; node++)); do
        echo "NodeName=n$node NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=$((first_port + node))" \
            "CPUs=$cpus RealMemory=1000 Gres=gpu:$gpus State=UNKNOWN"
    done
    echo "PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP"
}

# pid NAME COMMAND...: starts a daemon that stays in the foreground.
declare -A pids=()
begin() {
    local name=$1
    shift
    "$@" >>"$folder/$name.out" 2>&1 </dev/null &
    pids[$name]=$!
}

start() {
    case "$1" in
    slurmctld) begin slurmctld slurmctld -D ;;
    n[1-9]*) begin "$1" slurmd -D -N "$1" ;;
    *) return 1 ;;
    esac
}

# members NODE: its slurmd; its jobs, by their environment; the slurmstepd above each; what they started.
members() {
    local -A known=()
    local process parent grown=true
    known[${pids[$1]}]=1
    while read -r process; do
        process=${process#/proc/}
        process=${process%/environ}
        parent=$(ps -o ppid= -p "$process")
        known[$process]=1
        [ "${parent:-1}" -eq 1 ] || known[${parent// /}]=1
    done < <(grep -lz "^SLURMD_NODENAME=$1\$" /proc/[0-9]*/environ 2>/dev/null)
    while $grown; do
        grown=false
        while read -r process parent; do
            if [ -n "${known[$parent]:-}" ] && [ -z "${known[$process]:-}" ]; then
                known[$process]=1
                grown=true
            fi
        done < <(ps -eo pid=,ppid=)
    done
    echo "${!known[@]}"
}

# stop NAME PROCESSES...
stop() {
    local name=$1
    shift
    kill -STOP "$@" 2>/dev/null # so that none sees the end of another
    kill -KILL "$@" 2>/dev/null
    wait "${pids[$name]}" 2>/dev/null
}

# A step that slurmd was just starting is found when its job has begun.
lose() {
    for _ in {1..5}; do
        # shellcheck disable=SC2046 # numbers
        stop "$1" $(members "$1")
        sleep 0.1
    done
}

all_idle() {
    [ "$(sinfo --noheader --Node --format '%T' 2>/dev/null | grep -c '^idle$')" = "$nodes" ]
}

# until_ready COMMAND: a minute at most; a busy machine is slow.
until_ready() {
    local begun=$SECONDS
    until "$@"; do
        [ $((SECONDS - begun)) -lt 60 ] || return 1
        sleep 0.1
    done
}

bring_up() {
    local node gpu
    mkdir "$folder/state" && chmod 755 "$folder" || return 1
    mungekey -c -k "$folder/munge.key" || return 1
    begin munged munged -F --force -S "$folder/munge.socket" --key-file "$folder/munge.key" \
        --pid-file "$folder/munge.pid" --log-file "$folder/munged.log" --seed-file "$folder/munge.seed"
    choose_ports || return 1
    write_settings >"$folder/slurm.conf" || return 1
    for ((node = 1; node <= nodes; node++)); do
        # slurmd counts only GPUs that have a file; any file will do.
        for ((gpu = 0; gpu < gpus; gpu++)); do
            : >"$folder/n${node}_gpu$gpu"
            echo "NodeName=n$node Name=gpu File=$folder/n${node}_gpu$gpu"
        done
        mkdir "$folder/spool_n$node" || return 1
    done >"$folder/gres.conf"
    export SLURM_CONF=$folder/slurm.conf
    until_ready test -S "$folder/munge.socket" || return 1
    start slurmctld
    for ((node = 1; node <= nodes; node++)); do
        start "n$node"
    done
    until_ready all_idle
}

obey() {
    local word name
    while read -r word name; do
        if [ -z "${pids[${name:-none}]:-}" ]; then
            echo "unknown: $word $name"
            continue
        fi
        case "$word" in
        kill) stop "$name" "${pids[$name]}" ;;
        fail) lose "$name" ;;
        start) start "$name" ;;
        pids) echo "${pids[$name]}" ;;
        *) echo "unknown: $word" && continue ;;
        esac
        echo ok
    done
}

PATH=$PATH:/usr/sbin:/usr/local/sbin
arguments=("$@")
parse_flags "$@"
$inside || enter ${arguments[@]+"${arguments[@]}"}
folder=$WARPBOOK_CLUSTER_FOLDER
if ! bring_up; then
    tail -n 5 "$folder"/*.log "$folder"/*.out >&2
    fail "the cluster did not come up"
fi
echo "$SLURM_CONF"
obey
