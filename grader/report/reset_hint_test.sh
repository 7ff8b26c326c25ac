#!/bin/bash
# reset and hint in a small clone: reset_hint_test.sh RESET HINT HANDOUT STARTER HANDOUT STARTER, of
# lab 04 and of the warm-ups (w07).
set -u
reset=$PWD/$1
hint=$PWD/$2
handout=$PWD/$3
work=$TEST_TMPDIR/clone
export BUILD_WORKSPACE_DIRECTORY=$work
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

has() {
    grep -qF -- "$1" <<<"$output" || fail "'$1' is not in: $output"
}

# call STATUS PROGRAM FLAGS...
call() {
    local want=$1
    shift
    output=$("$@" 2>&1 </dev/null)
    local code=$?
    [ "$code" -eq "$want" ] || fail "$*: status $code, not $want: $output"
}

hints() {
    mkdir -p "$work/labs/04_sgemm"
    cp "$handout" "$work/labs/04_sgemm/README.md"
    call 0 "$hint" 04_sgemm
    has "Hint 1: "
    has "(1 of "
    has "bazel run //grader:hint -- 04_sgemm"
    call 0 "$hint" 4 --next
    has "Hint 2: "
    call 0 "$hint" 04 --number 1
    has "Hint 1: "
    call 0 "$hint" 04
    has "Hint 3: "
    if grep -q '<details>\|<summary>' <<<"$output"; then fail "tags are shown: $output"; fi
    call 0 "$hint" 04 --all
    has "Hint 1: "
    call 1 "$hint" 04
    has "--all shows them again"
    call 1 "$hint" 04 --number 99
    has "04_sgemm has hints 1 to "
    call 1 "$hint" 04 --number 1 --all
    has "at most one of"
    call 1 "$hint" 77
    has "no lab '77'"
    call 1 "$hint"
    call 1 "$hint" 05
    has "labs/05_layernorm_softmax/README.md"
    echo "broken" >"$work/results/hints.json"
    call 0 "$hint" 04
    has "Hint 1: "
    has "begun anew, the old file is $work/results/hints.json.broken"
    [ "$(grep -c "begun anew" <<<"$output")" -eq 1 ] || fail "said more than once: $output"
    [ "$(cat "$work/results/hints.json.broken")" = broken ] || fail "the damaged file is changed"
    call 0 "$hint" 04
    has "Hint 2: "
    if grep -q "begun anew" <<<"$output"; then fail "said again: $output"; fi
    rm "$work/results/hints.json"
    mkdir "$work/results/hints.json"
    call 0 "$hint" 04
    has "Hint 1: "
    has "not remembered"
    [ -d "$work/results/hints.json" ] || fail "the folder in the way is gone"
    rm -r "$work/results"
    echo "in the way" >"$work/results"
    call 0 "$hint" 04
    has "Hint 1: "
    has "not remembered"
}

resets() {
    local file=$work/labs/04_sgemm/sgemm.cu given=$work/labs/04_sgemm/given
    mkdir -p "$given"
    echo "// mine" >"$file"
    call 1 "$reset" 04 --yes
    has "labs/04_sgemm/given/starter.cu: No such file or directory"
    [ "$(cat "$file")" = "// mine" ] || fail "the file is changed without a starter"
    cp "$1" "$given/starter.cu"
    cp "$1" "$file"
    call 0 "$reset" 04
    has "is the starter already"
    echo "// mine" >"$file"
    call 1 "$reset" 04
    has "nobody to ask: --yes puts it back"
    [ "$(cat "$file")" = "// mine" ] || fail "the file is changed without a yes"
    call 0 "$reset" 04_sgemm --yes
    has "is the starter again; your file is "
    cmp -s "$1" "$file" || fail "that is not the starter"
    [ "$(cat "$file".*.bak)" = "// mine" ] || fail "there is no copy"
    call 0 "$reset" 04_sgemm --yes
    has "is the starter already"
    rm "$file"
    call 0 "$reset" 04_sgemm --yes
    cmp -s "$1" "$file" || fail "a file that is gone does not come back"
    call 1 "$reset"
    has "wants one lab"
    call 1 "$reset" nothing
    has "no lab 'nothing'"
}

# The hints of the warm-ups are numbered as the exercises, the faults behind the others.
warmups() {
    local folder=$work/labs/00_warmups file=$work/labs/00_warmups/w07_shared_tile.cu
    mkdir -p "$folder/given/starters"
    cp "$1" "$folder/README.md"
    cp "$2" "$folder/given/starters/"
    rm -f "$work/results"
    call 0 "$hint" 00 --all
    [ "$(grep -c '^Hint [0-9]*: ' <<<"$output")" -eq 36 ] || fail "not one hint an exercise: $output"
    call 0 "$hint" 00_warmups --number 7
    has "Hint 7: w07_shared_tile"
    call 0 "$hint" 0 --number 36
    has "Hint 36: f08_search"
    call 1 "$reset" 00_warmups --yes
    has "name one, as in"
    call 1 "$reset" w99 --yes
    has "no warm-up 'w99'"
    echo "// mine" >"$file"
    call 0 "$reset" w7 --yes
    cmp -s "$2" "$file" || fail "that is not the starter"
    [ "$(cat "$file".*.bak)" = "// mine" ] || fail "there is no copy"
    call 0 "$reset" w07_shared_tile
    has "is the starter already"
}

hints
resets "$PWD/$4"
warmups "$PWD/$5" "$PWD/$6"
[ "$failures" -eq 0 ]
