#!/bin/bash
# The losses program: the same lines each time, nearly the same in bf16, and what it exports.
# usage: losses_test.sh PROGRAMS_SH LOSSES
set -u
# shellcheck source=common/testing/programs.sh
. "$1"
losses=$PWD/$2
cd "$TEST_TMPDIR" || exit 1
unset BUILD_WORKING_DIRECTORY
: >in
tiny=("$losses" --tiny --steps 3 --batch-size 4 --max-length 16)
refuses "--steps, --batch-size, --max-length and --layers are 1 or more" "$losses" --steps 0
refuses "--export: cannot write nowhere/ids.i32" "${tiny[@]}" --export nowhere

mkdir exported
accepts "${tiny[@]}" --export exported
mv out first
accepts "${tiny[@]}"
cmp first out || fail "other losses the second time"
[ "$(awk '{ print $1 }' first | tr '\n' ' ')" = "1 2 3 " ] || fail "steps: $(cat first)"
accepts "${tiny[@]}" --dtype bf16
# Two labels: the first loss is about log 2; types differ by less than 2%.
paste first out | awk '{ d = $2 - $5; if (d * d > 0.0004 * $2 * $2 || $2 < 0.5 || $2 > 0.9) bad++ }
    END { exit bad > 0 }' || fail "fp32 and bf16: $(paste first out)"

# 3 steps of 4 texts of 16 words; as many values as the list of tensors says.
[ "$(stat -c %s exported/ids.i32) $(stat -c %s exported/labels.i32)" = "768 48" ] ||
    fail "sizes: $(ls -l exported)"
named=$(awk '{ n += $2 * ($3 > 0 ? $3 : 1) } END { print 4 * n }' exported/weights.txt)
[ "$(stat -c %s exported/weights.f32)" = "$named" ] || fail "$named bytes named: $(ls -l exported)"
finish
