#!/usr/bin/env bash
# grade_class over made-up graders: what is taken in, verdicts, pages, names, kills, a full disk.
#   class_test.sh GRADE_CLASS KIT_MANIFEST MADE_UP_KIT
set -u
program=$PWD/$1
manifest=$PWD/$2
made_up_kit=$PWD/$3
export XDG_STATE_HOME=$TEST_TMPDIR/state
cd "$TEST_TMPDIR" || exit 1
failures=0
as=() # what the program runs under

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# grade OUTPUT [FLAG...]: leaves out, err and code.
grade() {
    local output=$1
    shift
    "${as[@]}" "$program" handed_in --output "$output" --labs 04 --kit kit/kit.manifest --timeout 3 --jobs 4 "$@" >out 2>err
    code=$?
}

# row NAME WORDS: the submission's line of the table holds them.
row() {
    grep -F -- "\"$1\"" "$output/results.csv" | head -n 1 | grep -qF -- "$2" ||
        fail "$1 is not '$2' in: $(grep -F -- "\"$1\"" "$output/results.csv")"
}

# said WORDS: exactly one line on standard error.
said() {
    [ "$(grep -cF -- "$1" err)" -eq 1 ] || fail "not one line '$1' in: $(cat err)"
}

# hand_in ENTRY WORDS: a folder with a made-up file.
hand_in() {
    mkdir -p "handed_in/$1"
    printf '%s\n' "$2" >"handed_in/$1/sgemm.cu"
}

hand_in_all() {
    rm -rf handed_in
    hand_in "anna" "right speedup=44"
    hand_in "Zoë B" "slow"
    hand_in "<img src=x onerror=alert(1)>" "wrong said=<script>alert(2)</script>"
    hand_in "=1+1" "right"
    echo "nocompile </pre><script>alert(3)</script>" >handed_in/carl_sgemm.cu
    echo "crash" >handed_in/dora.cu
    hand_in "eve" "hang"
    hand_in "loud" "loud"
    hand_in "kill" "kill"
    hand_in "twin" "right"
    echo "right" >handed_in/TWIN.cu
    mkdir handed_in/link handed_in/fifo handed_in/large handed_in/empty
    ln -s /etc/passwd handed_in/link/sgemm.cu
    ln -s /etc handed_in/outside
    mkfifo handed_in/fifo/sgemm.cu
    head -c 2000000 /dev/zero >handed_in/large/sgemm.cu
    echo "no zip" >handed_in/junk.zip
    : >handed_in/$'escape\x1b]0;title\a.cu'
    mknod handed_in/device.cu c 1 3 2>/dev/null # only root may
    mkdir "handed_in/"$'\xff'
    git init -q handed_in/gitta
    mkdir -p handed_in/gitta/labs/04_sgemm handed_in/gitta/solutions/04_sgemm
    echo "right speedup=33" >handed_in/gitta/labs/04_sgemm/sgemm.cu
    echo "wrong" >handed_in/gitta/solutions/04_sgemm/sgemm.cu
    git -C handed_in/gitta add -A
    git -C handed_in/gitta -c user.name=g -c user.email=g@example.org commit -qm "lab 04"
    echo "wrong" >handed_in/gitta/labs/04_sgemm/sgemm.cu # not committed
    git clone -q --bare handed_in/gitta handed_in/bare.git
    printf '[core]\n\tfsmonitor = touch %s/ran\n' "$PWD" >>handed_in/bare.git/config
    git clone -q handed_in/gitta handed_in/borrows
    echo "$PWD/handed_in/gitta/.git/objects" >handed_in/borrows/.git/objects/info/alternates
}

verdicts() {
    output=all
    hand_in_all
    grade all
    [ "$code" -eq 3 ] || fail "exit status $code with submissions that cannot be graded: $(cat err)"
    row anna "gold,100,44"
    row "Zoë B" "slow,30"
    row "<img src=x onerror=alert(1)>" "wrong,0"
    row "'=1+1" "graded,100"
    row carl "not built,0"
    row dora "broken,0"
    row eve "broken,0"
    row loud "broken,0"
    row gitta "passed,88,33"
    row bare "passed,88,33"
    row kill "not graded"
    said "twin: two submissions of one student"
    said "TWIN: two submissions of one student"
    said "link: sgemm.cu is a link"
    said "outside: it is a link or a device"
    said "fifo: sgemm.cu is no plain file"
    said "large: sgemm.cu has 2000000 bytes"
    said "empty: no file of a lab is in it"
    said "junk: the zip file cannot be read"
    said "its name is not UTF-8"
    said "its name has control characters"
    grep -q $'\x1b' err out all/*.csv all/*.json all/*.html all/submissions/* && fail "an escape sequence is printed"
    [ ! -e handed_in/device.cu ] || said "device: it is a link or a device"
    said "borrows: the git repository has parts elsewhere"
    said "kill: its program was killed by signal 9; not graded"
    [ -e ran ] && fail "the configuration of a repository was obeyed"
    grep -l 'onerror=alert(1)>\|<script>alert' all/leaderboard.html all/submissions/*.html &&
        fail "text of a submission is not escaped"
    grep -qF '&lt;script&gt;alert(3)' all/submissions/*.html || fail "what the compiler said is missing"
    grep -L 'Content-Security-Policy' all/leaderboard.html all/submissions/*.html | grep . && fail "a page has no policy"
    [ "$(find all/tasks -name work | wc -l)" -le 1 ] || fail "scratch folders are left beside that of the killed one"
}

names_are_hidden() {
    output=all
    grade all --resume --hide-names
    grep -E 'anna|Zoë|gitta|twin|TWIN|borrows' all/leaderboard.html all/submissions/*.html && fail "a hidden name is on a page"
    printf 'anna,the <fast> one\n' >aliases
    grade all --resume --aliases aliases
    grep -qF 'the &lt;fast&gt; one' all/leaderboard.html || fail "no alias on the leaderboard"
    grep -qE 'Zoë|gitta' all/leaderboard.html && fail "a name without an alias is on the leaderboard"
    [ "$(cat all/tasks/*/attempts | wc -l)" -le 24 ] || fail "--resume graded again: $(cat all/tasks/*/attempts | wc -l)"
}

# What was refused is looked at again, and nothing else is.
mended() {
    local before
    before=$(find all/tasks -name result.json | wc -l)
    rm handed_in/TWIN.cu handed_in/link/sgemm.cu
    echo right >handed_in/link/sgemm.cu
    grade all --resume
    row twin "graded,100"
    row link "graded,100"
    said "TWIN: it is not in the folder any more"
    [ "$(find all/tasks -name result.json | wc -l)" -eq $((before + 2)) ] || fail "more than two were graded"
}

# Root reads everything; without its capabilities it is as anybody.
unreadable() {
    [ "$(id -u)" -ne 0 ] || as=(setpriv --bounding-set=-all --inh-caps=-all)
    rm -rf handed_in
    hand_in anna "right"
    hand_in "closed folder" "right"
    hand_in "closed file" "right"
    hand_in "closed within/labs/04_sgemm" "right"
    echo right >handed_in/closed.cu
    echo none >"handed_in/closed zip.zip"
    git init -q "handed_in/closed git"
    chmod 000 "handed_in/closed file/sgemm.cu" "handed_in/closed within/labs" "handed_in/closed folder" \
        handed_in/closed.cu "handed_in/closed zip.zip" "handed_in/closed git/.git/objects"
    if "${as[@]}" cat handed_in/closed.cu >out 2>&1 || ! "${as[@]}" true; then
        echo "skipped: unreadable files, as this user can read them"
    else
        grade closed
        row anna "graded,100"
        said "closed folder: the folder: cannot read: Permission denied"
        said "closed file: sgemm.cu: cannot read: Permission denied"
        said "closed within: labs: cannot read: Permission denied"
        said "closed: cannot read: Permission denied"
        said "closed zip: cannot read: Permission denied"
        said "closed git: objects of the git repository has a link, or what cannot be read"
        [ "$code" -eq 3 ] || fail "exit status $code with unreadable submissions"
        [ "$(grep -c ',refused,' closed/results.csv)" -eq 6 ] || fail "not six refused: $(cat closed/results.csv)"
    fi
    chmod -R u+rwX handed_in
    as=()
}

refusals() {
    grade all
    said "has a run already: --resume goes on with it"
    "$program" handed_in --output handed_in/out --labs 04 --kit kit/kit.manifest >out 2>err
    said "--output lies in the folder of submissions"
    rmdir handed_in/out
    "$program" nowhere --output new --labs 04 --kit kit/kit.manifest >out 2>err
    said "nowhere: no such folder"
    grade new --backend none
    said "--backend none: choose local or slurm"
    grade new --labs 05
    said "05_layernorm_softmax cannot be graded with what was built here"
}

# The collector is killed at moments of chance: nothing is lost, nothing graded twice.
kills() {
    local i round=0 count=16
    rm -rf handed_in
    for ((i = 0; i < count; i++)); do
        hand_in "student $i" "right sleep=0.1 speedup=$((20 + i))"
    done
    until [ $round -ge 6 ]; do
        "$program" handed_in --output killed --labs 04 --kit kit/kit.manifest --jobs 4 --resume >out 2>err &
        sleep "0.$((RANDOM % 8 + 1))"
        kill -KILL $! 2>/dev/null
        wait $! 2>/dev/null
        round=$((round + 1))
    done
    grade killed --resume
    [ "$code" -eq 0 ] || fail "exit status $code after kills: $(cat err)"
    [ "$(grep -c ',graded,' killed/results.csv)" -eq $count ] || fail "lost: $(cat killed/results.csv)"
    for ((i = 0; i < count; i++)); do
        grep -qF "\"student $i\",\"student $i\",graded," killed/results.csv || fail "student $i has no verdict"
    done
    [ "$(find killed/tasks -name result.json | wc -l)" -eq $count ] || fail "results are missing"
}

"$made_up_kit" "$manifest" kit || exit 1
verdicts
names_are_hidden
mended
unreadable
refusals
kills
[ "$failures" -eq 0 ] && echo "all checks passed"
exit $((failures > 0))
