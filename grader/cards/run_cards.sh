#!/usr/bin/env bash
# Runs the labs' speedup programs on modelled GPUs, or some times on the GPU of this machine, and makes
# a table of what they recorded.
# usage: run_cards.sh TABLE_PROGRAM [--cards t4,l4 | --measured NAME [--runs 3]] [--labs 02,07]
#        [--subjects solution,middle,starter] [--jobs 2] [--keep FOLDER] [--records FILE.jsonl]
#        [--output FILE.md]
#        run_cards.sh TABLE_PROGRAM --measured NAME --from results/cases.jsonl --records FILE.jsonl
#
# The whole table takes an hour or more. With --keep each program's records stay in FOLDER, and what is
# there of the same programs, emulator and card does not run again: a table that was stopped goes on, and
# one can be made in parts.
#
# With --from nothing runs: FILE.jsonl gets the speedup tests that the bundle's ./grade recorded, as
# column NAME.
#
# --measured is for a build for GPUs: programs run one by one, and NAME heads the columns of the table.
# --records receives one JSON line for each lab, test, card and subject, without texts; without --output the
# table goes to the standard output. The programs lie beside this script, in a build for simt with
# --config=deep. A program that fails its tests is a result like any other; one that leaves no
# complete record is named at the end, and the exit status is then 1.
#
# A starter is the baseline itself, but for labs 03 and 13. Where the middling submission runs, too, its record
# has the starter's time, and the starter's own program does not run.
set -u

readonly ALL_CARDS=t4,l4,rtx3060,rtx3090,rtx4090,a100,h100,h200
readonly ALL_SUBJECTS=solution,middle,starter
readonly here=$PWD/grader/cards
readonly from=${BUILD_WORKING_DIRECTORY:-$PWD}

table=$1
shift
cards=$ALL_CARDS subjects=$ALL_SUBJECTS labs='' jobs=2 records='' output='' measured='' runs=1 bundle='' keep=''

die() {
    echo "cards: $*" >&2
    exit 2
}

# in_callers_folder FILE: `bazel run` starts programs elsewhere.
in_callers_folder() {
    case $1 in
    /*) echo "$1" ;;
    *) echo "$from/$1" ;;
    esac
}

while [ $# -gt 0 ]; do
    [[ $1 == --*=* ]] && set -- "${1%%=*}" "${1#*=}" "${@:2}"
    [ $# -ge 2 ] || die "$1 needs a value"
    case $1 in
    --cards) cards=$2 ;;
    --measured) measured=$2 ;;
    --keep) keep=$(in_callers_folder "$2") ;;
    --from) bundle=$(in_callers_folder "$2") ;;
    --runs) runs=$2 ;;
    --labs) labs=$2 ;;
    --subjects) subjects=$2 ;;
    --jobs) jobs=$2 ;;
    --records) records=$(in_callers_folder "$2") ;;
    --output) output=$(in_callers_folder "$2") ;;
    *) die "unknown option $1; there are --cards, --measured, --from, --runs, --labs, --subjects, --jobs, --keep, --records and --output" ;;
    esac
    shift 2
done

[[ $runs =~ ^[1-9][0-9]*$ ]] || die "--runs $runs is no number of runs"
[ -z "$measured" ] || {
    jobs=1
    cards=$(seq -s , -f "$measured-%g" "$runs")
}

[ -z "$keep" ] || [ -z "$measured" ] || die "--keep is for modelled times: measured ones differ from run to run"
[ -z "$keep" ] || mkdir -p "$keep" || die "cannot write to $keep"

scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT

# chosen_labs: the programs' labs that --labs names, by number or by name.
chosen_labs() {
    local program lab
    for program in "$here"/*_solution; do
        lab=$(basename "$program" _solution)
        [ -z "$labs" ] || [[ ,$labs, == *,"${lab%%_*}",* ]] || [[ ,$labs, == *,"$lab",* ]] || continue
        echo "$lab"
    done
}

# stamp LAB SUBJECT: says which programs and which emulator it is.
stamp() {
    {
        cat "$here/$1_$2" "$here/$1_$2_worker" "$here/../$1_baseline"
        cat "$here/$1_times" 2>/dev/null # of some labs
        find -L "$PWD" -name 'libcudart.so*' -type f -print0 | sort -z | xargs -0 cat
    } | sha256sum
}

# kept NAME STAMP: takes the records of an earlier run, if they are of the same programs.
kept() {
    [ -n "$keep" ] && [ "$(cat "$keep/$1.stamp" 2>/dev/null)" = "$2" ] &&
        cp "$keep/$1.jsonl" "$scratch/$1.jsonl" 2>/dev/null
}

# run_one CARD LAB SUBJECT: leaves SCRATCH/CARD.LAB.SUBJECT.jsonl, each line with the card's name.
run_one() {
    local name=$1.$2.$3 start=$SECONDS stamp=
    local -a settings=("WARPBOOK_GRADES=$scratch/$name.part")
    [ -z "$keep" ] || stamp=$(stamp "$2" "$3")
    ! kept "$name" "$stamp" || return 0
    [ -n "$measured" ] || settings+=("SIMT_GPU=$1" WARPBOOK_SEED=1)
    env "${settings[@]}" "$here/$2_$3" >"$scratch/$name.log" 2>&1
    if grep -q '"verdict":"end"' "$scratch/$name.part" 2>/dev/null; then
        sed -n "/\"verdict\":\"end\"/!s/^{/{\"card\":\"$1\",/p" "$scratch/$name.part" >"$scratch/$name.jsonl"
        [ -z "$keep" ] || { cp "$scratch/$name.jsonl" "$keep" && echo "$stamp" >"$keep/$name.stamp"; }
    else
        tail -n 1 "$scratch/$name.log" >"$scratch/$name.broken"
    fi
    echo $((SECONDS - start)) >"$scratch/$name.seconds"
}

# starter_from_middle CARD LAB: the starter's record, made of the baseline's times.
starter_from_middle() {
    sed -nE '/"measure":"/{s/"message":"([^"\\]|\\.)*"/"message":null/;s/,"count":[0-9]+,"most":[0-9]+//;p}' "$scratch/$1.$2.middle.jsonl" |
        awk '
        function value(name) {
            match($0, "\"" name "\":[-+.eE0-9]+")
            return RSTART > 0 ? substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3) : 0
        }
        function set(name, to) {
            sub("\"" name "\":(\"[a-z]*\"|[-+.eE0-9]+)", "\"" name "\":" to)
        }
        {
            taken = value("baseline_ms")
            set("share", value("ideal_ms") / (taken - value("fixed_ms")))
            set("subject_ms", taken)
            set("speedup", 1)
            set("subject", "\"starter\"")
            set("verdict", value("required") > 1 ? "\"slow\"" : "\"pass\"")
            print
        }' >"$scratch/$1.$2.starter.jsonl"
}

# has_own_starter LAB: whether the baseline is not the starter, or nobody asks for the middle.
has_own_starter() {
    [[ $1 == 03_* || $1 == 13_* ]] || [[ ,$subjects, != *,middle,* ]]
}

progress() {
    local text
    text=$(printf '%d of %d: %s' "$1" "$2" "$3")
    if [ -t 2 ]; then
        printf '\r%-70s' "$text" >&2
    else
        echo "$text" >&2
    fi
}

run_all() {
    local -a lab_list=() work=()
    local card lab subject count=0
    readarray -t lab_list < <(chosen_labs)
    [ ${#lab_list[@]} -gt 0 ] || die "--labs $labs: no such lab on the GPU"
    for lab in "${lab_list[@]}"; do
        for card in ${cards//,/ }; do
            for subject in ${subjects//,/ }; do
                [ "$subject" != starter ] || has_own_starter "$lab" || continue
                [ -x "$here/${lab}_$subject" ] || die "--subjects $subject: choose from $ALL_SUBJECTS"
                work+=("$card $lab $subject")
            done
        done
    done
    for item in "${work[@]}"; do
        [ "$(jobs -rp | wc -l)" -lt "$jobs" ] || wait -n
        count=$((count + 1))
        progress "$count" "${#work[@]}" "$item"
        # shellcheck disable=SC2086 # three words
        run_one $item &
    done
    wait
    [ ! -t 2 ] || echo >&2
}

# without_texts: of records, what the table and grader/THRESHOLDS.md need. A modelled GPU's limits are
# those of simt's table.
without_texts() {
    local limits='s/^$//'
    [ -n "$measured" ] || limits='s/,"limits":\{[^}]*\}//'
    sed -E 's/"(time|commit|why|message|steps)":("([^"\\]|\\.)*"|\[[^]]*\]|null),//g; s/,"seconds":[-+.eE0-9]+//; '"$limits"
}

# The records, in the order of the labs, cards and subjects.
collect() {
    local lab card subject
    for lab in $(chosen_labs); do
        for card in ${cards//,/ }; do
            for subject in ${subjects//,/ }; do
                [ "$subject" != starter ] || has_own_starter "$lab" || starter_from_middle "$card" "$lab"
                cat "$scratch/$card.$lab.$subject.jsonl" 2>/dev/null
            done
        done
    done
}

# add_from_bundle: the lines of a bundle's cases.jsonl that compare or count.
add_from_bundle() {
    if [ -z "$measured" ] || [ -z "$records" ]; then
        die "--from needs --measured NAME and --records FILE"
    fi
    [ -r "$bundle" ] || die "cannot read $bundle"
    sed -n '/"verdict":"end"/!{/"part":"speedup"/{/"lab":"01_/!s/^{/{"card":"'"$measured"'",/p}}' "$bundle" |
        without_texts >"$scratch/all"
    [ -s "$scratch/all" ] || die "$bundle has no speedup tests"
    cat "$scratch/all" >>"$records"
}

if [ -n "$bundle" ]; then
    add_from_bundle
    exit
fi
run_all
collect | without_texts >"$scratch/all"
[ -z "$records" ] || cp "$scratch/all" "$records"
if [ -n "$output" ]; then
    "$table" "$scratch/all" >"$output"
else
    "$table" "$scratch/all"
fi
cat "$scratch"/*.seconds 2>/dev/null |
    awk '{ sum += $1 } END { printf "cards: %d programs ran, %d s in all\n", NR, sum }' >&2
status=0
for broken in "$scratch"/*.broken; do
    [ -e "$broken" ] || continue
    echo "$(basename "$broken" .broken): no complete record: $(cat "$broken")" >&2
    status=1
done
exit $status
