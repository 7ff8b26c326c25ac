#!/usr/bin/env bash
# The leaderboard and a submission's page in headless Chromium, by keys alone: 300 rows, hostile names.
#   leaderboard_test.sh BROWSER_SH KEYS_SH GRADE_CLASS KIT_MANIFEST MADE_UP_KIT
# $PICTURES names a folder for pictures in light, dark and narrow, for somebody to look at.
set -u
# shellcheck source=/dev/null
. "$1"
# shellcheck source=/dev/null
. "$2"
program=$PWD/$3
manifest=$PWD/$4
made_up_kit=$PWD/$5
export XDG_STATE_HOME=$TEST_TMPDIR/state
cd "$TEST_TMPDIR" || exit 1
rows=300

# grade FLAG...
grade() {
    "$program" handed_in --output graded --labs 04 --kit kit/kit.manifest --timeout 5 --jobs 4 "$@" >out 2>err
}

hand_in() {
    mkdir -p "handed_in/$1"
    printf '%s\n' "$2" >"handed_in/$1/sgemm.cu"
}

# Six are graded, the other rows have copies of their results under other names.
make_pages() {
    local id from
    hand_in "aaron" "right speedup=44.4"
    hand_in "Zoë <b>B</b>" "right speedup=28"
    hand_in "slow" "slow"
    hand_in "<img src=x onerror=alert(1)>" "wrong said=<script>alert(2)</script>"
    hand_in "carl" "nocompile </pre><script>alert(3)</script>"
    hand_in "a name that is as long as a name may be, and goes on without end: Wolfeschlegelsteinhausenbergerdorff" "right speedup=21"
    mkdir handed_in/nobody
    grade
    from=$(find graded/tasks -name result.json | wc -l)
    [ "$from" -eq 6 ] || fail "six were to be graded, not $from: $(cat err)"
    for ((id = 8; id <= rows; id++)); do
        from=$(printf %06d $((id % 6 + 2)))
        [ -e "graded/tasks/$from/result.json" ] || from=000002
        cp -r "graded/tasks/$from" "graded/tasks/$(printf %06d "$id")"
        sed -i "s/\"name\":.*/\"name\": \"student $id\",/" "graded/tasks/$(printf %06d "$id")/task.json"
    done
    grade --resume
}

first_name="document.querySelector('tbody tr').cells[1].textContent"
names="[...document.querySelectorAll('tbody tr')].map(r => r.cells[1].textContent)"
focus="document.activeElement.textContent || document.activeElement.id || document.activeElement.tagName"
sorted="[...document.querySelectorAll('th[aria-sort]')].map(h => h.textContent + ' ' + h.ariaSort).join()"

# focused TEXT: tabs until the element with this text has the focus.
focused() {
    local tries
    for ((tries = 0; tries < 20; tries++)); do
        press Tab
        [ "$(value "$focus")" = "$1" ] && return
    done
    fail "Tab does not reach '$1'"
}

sort_by_keys() {
    has "document.querySelectorAll('tbody tr').length" $rows
    has "$sorted" "points of 100 descending"
    focused find
    focused submission
    has "getComputedStyle(document.activeElement).outlineStyle" solid
    press Enter
    has "$sorted" "submission ascending"
    has "JSON.stringify($names) === JSON.stringify($names.sort((a, b) => a.localeCompare(b)))" true
    press Enter
    has "$sorted" "submission descending"
    focused "04 speedup"
    press Enter
    has "$sorted" "04 speedup descending"
    has "document.querySelector('tbody tr').cells[4].textContent" "44.4x"
    has "document.activeElement.textContent" "04 speedup" # the focus stays
}

find_by_keys() {
    local back
    for ((back = 0; back < 20; back++)); do
        press Shift+Tab
        [ "$(value "$focus")" != find ] || break
    done
    press a a r
    has "document.getElementById('shown').textContent" "1 shown"
    has "[...document.querySelectorAll('tbody tr')].filter(r => r.checkVisibility()).length" 1
    press Tab ArrowDown # the GPU
    has "document.getElementById('gpu').value" "a made-up GPU, modelled"
    has "document.getElementById('shown').textContent" "1 shown"
}

open_by_keys() {
    go_to "file://$PWD/graded/leaderboard.html"
    focused "GPU"
    press Tab
    local name
    name=$(value "$focus")
    [ "$name" = "$(value "$first_name")" ] || fail "after the heads the focus is at '$name'"
    press Enter
    has "document.querySelector('h1')?.textContent" "$name"
    press Tab
    has "$focus" "All submissions"
    press Enter
    has "document.querySelector('h1')?.textContent" "Leaderboard"
}

# Text of submissions is text.
is_escaped() {
    local page
    for page in graded/leaderboard.html graded/submissions/00000[15].html; do # hostile text in both
        go_to "file://$PWD/$page"
        has "document.querySelectorAll('img,iframe,object,pre *,h1 *,td script').length" 0
        has "performance.getEntriesByType('resource').length" 0
        has "document.documentElement.scrollWidth <= innerWidth" true
        window 360 700 dark
        has "document.documentElement.scrollWidth <= innerWidth" true
        has "[...document.querySelectorAll('svg')].every(s => s.getBoundingClientRect().width >= 800)" true
        window 1200 800 light
    done
    grep -E 'javascriptDialogOpening|exceptionThrown' events && fail "a script of a submission ran, or one of ours failed"
}

names_are_hidden() {
    grade --resume --hide-names
    go_to "file://$PWD/graded/leaderboard.html"
    has "document.querySelectorAll('tbody tr').length" $rows
    has "[...document.querySelectorAll('tbody tr')].every(r => /^submission [0-9]+\$/.test(r.cells[1].textContent))" true
    has "/aaron|student|carl|Wolfe/.test(document.documentElement.outerHTML)" false
}

take_pictures() {
    mkdir -p "$PICTURES"
    local page
    for page in leaderboard submissions/000001 submissions/000005; do
        go_to "file://$PWD/graded/$page.html"
        window 1200 800 light && picture "$PICTURES/$(basename $page)_light.png"
        window 1200 800 dark && picture "$PICTURES/$(basename $page)_dark.png"
        window 360 700 light && picture "$PICTURES/$(basename $page)_narrow.png"
    done
}

"$made_up_kit" "$manifest" kit || exit 1
make_pages
browse "file://$PWD/graded/leaderboard.html"
window 1200 800 light
sort_by_keys
find_by_keys
open_by_keys
is_escaped
[ -z "${PICTURES:-}" ] || take_pictures
names_are_hidden
close_browser
# shellcheck disable=SC2154 # of browser.sh
[ "$failures" -eq 0 ] && echo "all checks passed"
exit $((failures > 0))
