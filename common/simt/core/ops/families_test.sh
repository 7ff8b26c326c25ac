#!/bin/bash
# Each family of Hopper's instructions (families.tsv) is in the kernels of the tests that the table
# names, whose results are compared with values computed on the host; and each opcode and modifier that
# the decoder names is in an instruction of one of these families.
# usage: families_test.sh TABLE WGMMA_TEST TEST=KERNELS... -- DECODER...
set -u
table=$1
declare -A kernels
kernels[wgmma_test]=$2
shift 2
while [ "$1" != -- ]; do
    kernels[${1%%=*}]=${1#*=}
    shift
done
shift
failures=0
fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

found=$TEST_TMPDIR/found
: >"$found"
families=0
while IFS=$'\t' read -r family pattern tests; do
    families=$((families + 1))
    for test in $tests; do
        file=${kernels[$test]:-}
        [ -s "$file" ] || fail "$family: no kernels of $test"
        grep -E -- "$pattern" "$file" >>"$found" || fail "$family: $test has none ($pattern)"
    done
done <"$table"

# Words of the decoders that are no part of an instruction, or of one that is refused.
others=' cuTensorMapEncodeTiled from none s to sp '
words=0
while read -r word; do
    [[ $others != *" $word "* ]] || continue
    words=$((words + 1))
    grep -qE "(^|[^A-Za-z0-9_])$word([^A-Za-z0-9_]|$)" "$found" || fail "'$word' of the decoder is in no family"
done < <(grep -hv '^#include' "$@" | grep -oE '"[A-Za-z0-9_]+(::[A-Za-z0-9_]+)*"' | tr -d '"' | sort -u)
echo "$families families, $words words of the decoder"
[ $families -ge 50 ] || fail "only $families families"
[ $words -ge 50 ] || fail "only $words words of the decoder"
[ $failures -eq 0 ]
