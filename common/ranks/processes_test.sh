#!/bin/bash
# Ranks as processes: they find each other, gather, and end together, whoever starts them.
# usage: processes_test.sh PROGRAMS_SH CASE
set -u
# shellcheck source=common/testing/programs.sh
. "$1"
case=$PWD/$2
cd "$TEST_TMPDIR" || exit 1
: >in
unset SLURM_STEP_ID OMPI_COMM_WORLD_RANK PMI_RANK WARPBOOK_RENDEZVOUS

# left: processes of this test that still run.
left() {
    pgrep -f "^$case "
}

# one_line TEXT: all that was said.
one_line() {
    [ "$(wc -l <err)" -eq 1 ] || fail "not one line: $(cat err)"
    says "$1" err
}

# ---- Forked ----

for n in 1 2 4 8; do
    accepts "$case" --gpus $n
    says "$n ranks, the largest is $((7 * (n - 1)))" out
done
for n in 0 9 -1; do
    refuses "case: --gpus $n: from 1 to 8" "$case" --gpus "$n"
done
for who in 0 1 3; do
    name="case: "
    [ $who -eq 0 ] || name="case: rank $who of 4: "
    refuses "${name}no good" "$case" --gpus 4 --case fail --who $who
    refuses "case: rank $who of 4 has ended with exit status 0, before the others" \
        "$case" --gpus 4 --case leave --who $who
done
for _ in 1 2 3 4 5; do
    refuses "no good" "$case" --gpus 4 --case all
done
refuses "the file must be the same on all ranks: rank 0 has pears, rank 2 has apples" \
    "$case" --gpus 4 --case differ --who 2
refuses "all ranks must make the same calls" "$case" --gpus 4 --case calls --who 3

# A rank is killed while the others wait for it, or write: they end, those that hold when they have
# written.
for what in wait hold; do
    for who in 0 1 3; do
        rm -f pid held.*
        start "$case" --gpus 4 --case $what --who $who
        await [ -s pid ]
        kill -9 "$(cat pid)"
        begun=$SECONDS
        ends 1
        [ $((SECONDS - begun)) -le 10 ] || fail "$what: the others took $((SECONDS - begun)) s"
        one_line "case: rank $who of 4 was killed by signal 9 (Killed) while working: the other ranks end, too"
        written=$(find . -name 'held.*' | wc -l)
        [ "$what$written" = wait0 ] || [ "$what$written" = hold3 ] || fail "$what: $written have written"
    done
done

# A signal for the launcher or for one rank stops all at the same step.
for who in launcher pid other; do
    for signal in INT TERM; do
        rm -f pid other
        start "$case" --gpus 2 --case signal
        await [ -s pid ] && await [ -s other ]
        target=$pid
        [ $who = launcher ] || target=$(cat $who)
        kill -$signal "$target"
        ends $((128 + $(kill -l $signal)))
        one_line "case: interrupted"
    done
done

# A launcher that is killed leaves no rank.
rm -f pid other
start "$case" --gpus 2 --case signal
await [ -s pid ] && await [ -s other ]
kill -9 "$pid"
wait "$pid" 2>/dev/null
gone() {
    local rank
    for rank in $(cat pid other); do
        [ ! -d "/proc/$rank" ] || grep -q '^State:.Z' "/proc/$rank/status" || return 1
    done
}
await gone

# ---- Started by somebody else ----

# as RANK COUNT HOW FLAGS: a rank as mpirun or srun would start it.
as() {
    local rank=$1 count=$2 how=$3
    shift 3
    case $how in
    openmpi) set -- OMPI_COMM_WORLD_RANK="$rank" OMPI_COMM_WORLD_SIZE="$count" \
        OMPI_COMM_WORLD_LOCAL_RANK="$rank" PMIX_NAMESPACE="test-$$" "$case" "$@" ;;
    mpich) set -- PMI_RANK="$rank" PMI_SIZE="$count" MPI_LOCALRANKID="$rank" "$case" "$@" ;;
    srun) set -- SLURM_PROCID="$rank" SLURM_STEP_NUM_TASKS="$count" SLURM_LOCALID="$rank" \
        SLURM_STEP_ID=0 SLURM_JOB_ID="$$" "$case" "$@" ;;
    tcp) set -- PMI_RANK="$rank" PMI_SIZE="$count" WARPBOOK_RENDEZVOUS="127.0.0.1:$port" "$case" "$@" ;;
    path) set -- PMI_RANK="$rank" PMI_SIZE="$count" WARPBOOK_RENDEZVOUS=/proc/self/cwd/socket "$case" "$@" ;;
    esac
    exec env "$@"
}

# all COUNT HOW FLAGS: all ranks; out, err and codes have what came of them.
all() {
    local count=$1 how=$2 rank pids=()
    shift 2
    : >err
    for ((rank = 0; rank < count; rank++)); do
        (as $rank "$count" "$how" --gpus "$count" "$@") >out.$rank 2>>err <in &
        pids+=($!)
    done
    if [ "${1:-}${2:-}" = --casewait ]; then
        await [ -s pid ]
        kill -9 "$(cat pid)"
    fi
    codes=
    for rank in "${pids[@]}"; do
        wait "$rank"
        codes+=" $?"
    done 2>/dev/null
}

port=$((20000 + $$ % 20000))
for how in openmpi mpich srun tcp path; do
    all 3 $how
    [ "$codes" = " 0 0 0" ] && [ ! -s err ] || fail "$how: $codes: $(cat err)"
    says "3 ranks, the largest is 14" out.0
    [ ! -s out.1 ] || fail "$how: rank 1 prints: $(cat out.1)"
    all 2 $how --case fail --who 1
    [ "$codes" = " 1 1" ] || fail "$how: a rank that fails:$codes"
    one_line "case: rank 1 of 2: no good"
done
for who in 0 1; do
    rm -f pid
    all 2 srun --case wait --who $who
    one_line "case: rank $who of 2 has ended without a message while working: the other ranks end, too"
done

# What does not fit.
for rank in 0 1; do
    (WARPBOOK_RENDEZVOUS_SECONDS=1 as $rank 2 mpich --gpus 2) >out 2>err
    code=$?
    [ $code -eq 1 ] || fail "a rank that is alone ends with $code"
    one_line "did not come within 1 s"
done
(as 0 2 srun --gpus 3) 2>err
one_line "case: --gpus 3: srun has started 2 processes; start one for each GPU: srun -n 3"
(as 2 2 srun --gpus 2) 2>err
one_line "case: SLURM_PROCID is '2' in the environment: a number from 0 to 1 is needed"
(WARPBOOK_RENDEZVOUS=nowhere as 0 2 srun --gpus 2) 2>err
one_line "WARPBOOK_RENDEZVOUS is 'nowhere': HOST:PORT or the path of a socket is needed"
(WARPBOOK_RENDEZVOUS_SECONDS=soon as 0 2 srun --gpus 2) 2>err
one_line "WARPBOOK_RENDEZVOUS_SECONDS is 'soon': seconds above 0 are needed"
[ -z "$(find . -name socket)" ] || fail "a socket is left"
# A single task, and a batch script, which is no step: the program forks its ranks itself.
(SLURM_PROCID=0 SLURM_NTASKS=2 exec "$case" --gpus 2) >out
says "2 ranks" out
(as 0 1 srun --gpus 2) >out
says "2 ranks" out
(as 1 2 srun) >out 2>err # not asked for several: each is alone
says "1 ranks" out

await test -z "$(left)" || fail "processes are left: $(left)"
finish
