#!/usr/bin/env bash
# Runs lab 01's graded cases on one core, on two, on two of which another process keeps one busy,
# and on all CPUs; prints a table of the shares of the limit that they reached, and the verdicts.
# usage: bazel run //grader/cpus:table
#
# A solution must clear what is required by a quarter, here, too. As on a CPU without AVX-512:
#   bazel run --copt=-DWARPBOOK_VECTOR_FLOATS=8 --copt=-mavx2 --copt=-mfma //grader/cpus:table
set -u

readonly here=$PWD/grader/cpus
scratch=$(mktemp -d)
hog=''
trap 'stop_hog; rm -rf -- "$scratch"' EXIT

stop_hog() {
    [ -z "$hog" ] || kill "$hog" 2>/dev/null
    hog=''
}

# start_hog CPU: keeps the CPU busy until stop_hog.
start_hog() {
    (while :; do :; done) &
    hog=$!
    taskset -p -c "$1" "$hog" >/dev/null
}

# distinct_cores: the first CPU of each core that this process may use.
distinct_cores() {
    local cpu
    for cpu in $(taskset -p -c $$ | sed 's/.*: //' | tr ',' '\n' |
        sed -E 's/^([0-9]+)-([0-9]+)$/\1 \2/; s/^([0-9]+)$/\1 \1/' | xargs -n 2 seq); do
        echo "$(cat "/sys/devices/system/cpu/cpu$cpu/topology/thread_siblings_list") $cpu"
    done | sort -k 1,1 -u | sort -k 2,2 -n | cut -d ' ' -f 2
}

# field LINE NAME: a number or a word of a record; nothing for null.
field() {
    sed -nE "s/.*\"$2\":\"?([^\",}]*).*/\1/p" <<<"$1" | sed 's/^null$//'
}

# run_case TITLE CPUS SUBJECT: a row for each measure. A refusal is no verdict.
run_case() {
    local line share verdict log=$scratch/log records=$scratch/records.jsonl
    rm -f "$records"
    WARPBOOK_GRADES=$records taskset -c "$2" "$here/01_cpu_matmul_$3" >"$log" 2>&1
    while IFS= read -r line; do
        [ "$(field "$line" verdict)" != end ] || continue
        share=$(field "$line" share)
        verdict=$(field "$line" verdict)
        ! grep -q "$(field "$line" test) is not judged" "$log" || verdict='not judged'
        printf '| %s | %s | %s | %s | %s |\n' "$1" "$3" "$(field "$line" test)" \
            "${share:+$(awk "BEGIN { printf \"%.1f%%\", 100 * $share }")}" "$verdict"
    done <"$records"
}

run_subjects() {
    local subject
    for subject in starter middle solution; do
        run_case "$1" "$2" "$subject"
    done
}

mapfile -t cores < <(distinct_cores)
echo '| CPUs | submission | measure | share of the limit | verdict |'
echo '|---|---|---|---|---|'
run_subjects 'one core' "${cores[0]}"
if [ ${#cores[@]} -ge 2 ]; then
    run_subjects 'two cores' "${cores[0]},${cores[1]}"
    start_hog "${cores[1]}"
    run_subjects 'two cores, one busy' "${cores[0]},${cores[1]}"
    stop_hog
fi
[ ${#cores[@]} -le 2 ] || run_subjects "all ${#cores[@]} cores" "$(IFS=,; echo "${cores[*]}")"
