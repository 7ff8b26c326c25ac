#!/usr/bin/env bash
# Runs speedup tests on a GPU while other programs disturb them, and prints a table of the verdicts: none
# may be a wrong red.
# usage: run_conditions.sh [--conditions idle,busy_host,...] [--labs 02,05] [--output FILE.md]
#        [--subject solution|middle|starter]
#
#   busy_host          two busy processes for each CPU of the host
#   shared_memory      another program copies on the same GPU all the time
#   shared_arithmetic  another one multiplies and adds there
#   capped             another one multiplies matrices on tensor cores there: with its load the GPU draws
#                      what power it may, and its clock falls. No setting of the GPU is touched
#   gone               the load of shared_memory, which ends in the middle of the tests
#
# A test that misses must say that it is not judged. One that misses without saying so, or fails in
# another way, is a wrong red: the exit status is then 1. A starter is too slow by itself, so its miss may
# be judged; what is wrong there is a pass. The programs lie beside this script.
set -u

readonly here=$PWD/grader/cards
readonly from=${BUILD_WORKING_DIRECTORY:-$PWD}
readonly seconds=300 # a load runs at most

conditions=idle,busy_host,shared_memory,shared_arithmetic,capped,gone labs=02,05 output='' subject=solution

die() {
    echo "conditions: $*" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    [[ $1 == --*=* ]] && set -- "${1%%=*}" "${1#*=}" "${@:2}"
    [ $# -ge 2 ] || die "$1 needs a value"
    case $1 in
    --conditions) conditions=$2 ;;
    --labs) labs=$2 ;;
    --subject) subject=$2 ;;
    --output) [[ $2 == /* ]] && output=$2 || output=$from/$2 ;;
    *) die "unknown option $1; there are --conditions, --labs, --subject and --output" ;;
    esac
    shift 2
done
[[ $subject =~ ^(solution|middle|starter)$ ]] ||
    die "--subject $subject: there are solution, middle and starter"

scratch=$(mktemp -d)
loads=()
trap 'stop_loads; rm -rf -- "$scratch"' EXIT

stop_loads() {
    [ ${#loads[@]} -eq 0 ] || kill "${loads[@]}" 2>/dev/null
    [ ${#loads[@]} -eq 0 ] || wait "${loads[@]}" 2>/dev/null
    loads=()
}

# on_gpu KIND SECONDS: returns when the load has begun.
on_gpu() {
    local i
    rm -f "$scratch/load"
    "$here/gpu_load" "$1" "$2" >"$scratch/load" 2>&1 &
    loads+=($!)
    for ((i = 0; i < 100; i++)); do
        ! grep -q '^loading' "$scratch/load" || return 0
        kill -0 "${loads[-1]}" 2>/dev/null || die "no load: $(cat "$scratch/load")"
        sleep 0.1
    done
    die "no load within 10 s: $(cat "$scratch/load")"
}

start_loads() {
    local i
    case $1 in
    idle) ;;
    busy_host)
        for ((i = 0; i < 2 * $(nproc); i++)); do
            (while :; do :; done) &
            loads+=($!)
        done
        ;;
    shared_memory) on_gpu memory "$seconds" ;;
    shared_arithmetic) on_gpu arithmetic "$seconds" ;;
    capped) on_gpu tensor "$seconds" ;;
    gone) on_gpu memory 6 ;;
    *) die "--conditions $1: there are idle, busy_host, shared_memory, shared_arithmetic, capped and gone" ;;
    esac
    [ "$1" = idle ] || sleep 2
}

# field LINE NAME: a number or a word of a record; nothing for null.
field() {
    sed -nE "s/.*\"$2\":\"?([^\",}]*).*/\1/p" <<<"$1" | sed 's/^null$//'
}

percent() {
    [ -z "$1" ] || awk "BEGIN { printf \"%.0f%%\", 100 * $1 }"
}

# is_wrong VERDICT MEASURE: of a judged test. A test without a measure counts, and a starter may pass that.
is_wrong() {
    case $subject.$1 in
    starter.slow | *.skip) false ;;
    starter.pass) [ -n "$2" ] ;;
    *.pass) false ;;
    *) true ;;
    esac
}

# judge CONDITION LAB LINE LOG: a row of the table; a wrong red is noted in $scratch/wrong.
judge() {
    local test verdict
    test=$(field "$3" test)
    verdict=$(field "$3" verdict)
    if grep -q '"message":"[^"]* is not judged' <<<"$3"; then
        verdict='not judged'
    elif is_wrong "$verdict" "$(field "$3" measure)"; then
        echo "$1, $2 $test: $verdict: $(field "$3" message)" >>"$scratch/wrong"
        verdict="$verdict, wrong"
    fi
    printf '| %s | %s | %s | %s | %s | %s |\n' "$1" "$2" "$test" "$verdict" \
        "$(percent "$(field "$3" share)")" "$(sed -n 's/^note: //p' "$4" | sort -u | paste -sd ' ')"
}

# run_lab CONDITION LAB: rows of all its timed tests.
run_lab() {
    local line records=$scratch/records.jsonl log=$scratch/log
    rm -f "$records"
    WARPBOOK_GRADES=$records "$here/$2_$subject" >"$log" 2>&1
    grep -q '"verdict":"end"' "$records" 2>/dev/null ||
        echo "$1, $2: no complete record: $(tail -n 1 "$log")" >>"$scratch/wrong"
    while IFS= read -r line; do
        [ "$(field "$line" verdict)" = end ] || judge "$1" "$2" "$line" "$log"
    done <"$records"
}

run_all() {
    local condition program lab
    echo '| beside it | lab | test | verdict | share of the limit | notes |'
    echo '|---|---|---|---|---|---|'
    for condition in ${conditions//,/ }; do
        start_loads "$condition"
        for program in "$here"/*_solution; do
            lab=$(basename "$program" _solution)
            [[ ,$labs, != *,"${lab%%_*}",* ]] || run_lab "$condition" "$lab"
        done
        stop_loads
    done
}

if [ -n "$output" ]; then run_all >"$output"; else run_all; fi
[ ! -e "$scratch/wrong" ] || {
    sed 's/^/wrong: /' "$scratch/wrong" >&2
    exit 1
}
