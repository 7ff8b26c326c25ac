#!/bin/bash
# The page of limits is what the recorded launches say, and lists that are not a model's are refused.
# usage: limits_test.sh LIMITS_TOOL
set -u
tool=$PWD/$1
notebooks=$(dirname "$tool")
if ! command -v python3 >/dev/null; then
    echo "SKIP: python3 is not installed"
    exit 0
fi
work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/limits.XXXXXX")
export PYTHONDONTWRITEBYTECODE=1
failed=0
fail() {
    echo "FAIL: $1"
    failed=1
}
# refuses LINE: the page of $work
refuses() {
    python3 "$tool" "$work" >"$work/out" 2>"$work/err"
    local status=$?
    if [ "$status" != 1 ] || [ "$(cat "$work/err")" != "limits: $1" ] || [ -s "$work/out" ]; then
        fail "not '$1' but status $status: $(cat "$work/err")"
    fi
}

python3 "$tool" "$notebooks" --check || fail "the page is another"

launches=$work/results/h100/launches
mkdir -p "$launches"
real=$notebooks/results/h100/launches/bert_step_bf16_16x512.csv
list=$launches/bert_step_bf16_16x512.csv
cp -L "$real" "$list" && chmod u+w "$list"
python3 "$tool" "$work" --write || fail "a good list is refused"
grep -q '^| \*\*all\*\* |' "$work/LIMITS.md" || fail "no sum: $(cat "$work/LIMITS.md")"
# The sum is that of the list.
want=$(tail -n +2 "$real" | sed 's/.*,//' | awk '{ s += $1 } END { printf "%.3f", s }')
grep -qF "| **all** | | $(($(wc -l <"$real") - 1)) | $want |" "$work/LIMITS.md" || fail "the sum is not $want"
sed -i 's/^7,.*/7,another_kernel,0.001/' "$list"
python3 "$tool" "$work" --check 2>/dev/null && fail "a kernel that is no part of the model passes"
head -n 20 "$real" >"$list"
python3 "$tool" "$work" >/dev/null 2>"$work/err" && fail "half a list passes"
grep -q 'and is the end$' "$work/err" || fail "half a list: $(cat "$work/err")"
mv "$list" "$launches/another_model.csv"
refuses "another_model.csv: no model is known by that name"
exit $failed
