#!/bin/bash
# The classifier that comes with the project, on the CPU: it answers as it did on an H200.
# usage: shipped_test.sh PROGRAMS_SH CLASSIFY EVALUATE RECORDED: the GPU's answers to IMDB's test
# half in fp32, a letter a review
set -u
# shellcheck source=common/testing/programs.sh
. "$1"
classify=("$PWD/$2" --device cpu)
evaluate=("$PWD/$3" --device cpu)
recorded=$PWD/$4
cd "$TEST_TMPDIR" || exit 1
unset BUILD_WORKING_DIRECTORY
: >in

# The project's own sentences are harder than reviews: short, and most are not on films. 107 of 160
# were right on the day of the training; three may fall to another order of sums.
accepts "${evaluate[@]}" --dataset sample --predictions sample
right=$(awk '$1 == $2' sample | wc -l)
[ "$(wc -l <sample)" -eq 160 ] || fail "not an answer a sentence: $(wc -l <sample)"
[ "$right" -ge 104 ] || fail "$right of 160 sentences are right, want 104"
echo "$right of 160 sentences"

# Answers that are far from the border.
while IFS=$'\t' read -r label least text; do
    accepts "${classify[@]}" -- "$text"
    awk -v label="$label" -v least="$least" -F '\t' '
        { split($0, part, /[\t ]/); for (i = 2; i < NF * 2; i += 2) if (part[i] == label) p = part[i + 1] }
        END { exit !($1 == label && p >= least) }' out || fail "want $label from $least: $text -> $(cat out)"
done <<'END'
neg	0.99	a dull, lifeless film
pos	0.99	I laughed, I cried, and I would see it again tomorrow.
pos	0.9	A wonderful film with a great cast and a moving story.
neg	0.9	The plot makes no sense, the acting is awful, and it is far too long.
pos	0.9	One of the best performances I have ever seen.
neg	0.9	What a waste of time and money.
END

data=${WARPBOOK_DATA:-}
some=24
if [ -r "$data/aclImdb_labelled.tar.xz" ]; then
    accepts "${evaluate[@]}" --dataset imdb --data "$data/aclImdb_labelled.tar.xz" --limit "$some" --predictions answers
    want=$(tr -d '\n' <"$recorded" | head -c "$some")
    got=$(sed 's/.*\t\(.\).*/\1/' answers | tr -d '\n')
    [ ${#want} -eq "$some" ] && [ "$got" = "$want" ] || fail "the first $some reviews: $got, on the H200 $want"
else
    echo "skipped: IMDB's reviews; set WARPBOOK_DATA to a folder with aclImdb_labelled.tar.xz"
fi
finish
