#!/bin/bash
# The list of a submission's symbols must be as it is known. usage: list_test.sh GOT WANT LIST
set -u
got=$1 want=$2 list=$3
failed=0

# What compilers add of themselves depends on them.
if ! diff <(grep -vE ' (_GLOBAL_OFFSET_TABLE_|__gxx_personality_v0)$' "$got") "$want"; then
    echo "the list is not $want"
    failed=1
fi

# A file that cannot be read is no empty list.
printf 'own\t//a:b\t%s\n' "$TEST_TMPDIR/missing.o" >"$TEST_TMPDIR/parts"
if "$list" nm "$TEST_TMPDIR/parts" "$TEST_TMPDIR/list" 2>/dev/null; then
    echo "a missing object file is listed"
    failed=1
fi
exit "$failed"
