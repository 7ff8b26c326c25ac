#!/bin/bash
# OpenMP's threads spin briefly before they sleep, as OpenMP itself reports it.
# usage: spinning_test.sh PROGRAM...
set -u
unset GOMP_SPINCOUNT OMP_WAIT_POLICY
failed=0

# spins PROGRAM: the value that libgomp read from the environment
spins() {
    OMP_DISPLAY_ENV=verbose "$1" --help 2>&1 </dev/null | sed -n "s/.*GOMP_SPINCOUNT = '\([0-9]*\)'.*/\1/p"
}

# expect WANT PROGRAM
expect() {
    local got
    got=$(spins "$2")
    if [ "$got" != "$1" ]; then
        echo "$2: GOMP_SPINCOUNT is '$got', not $1"
        failed=1
    fi
}

for program in "$@"; do
    expect 10000 "$program"
    GOMP_SPINCOUNT=77 expect 77 "$program"
    OMP_WAIT_POLICY=passive expect 0 "$program"
done
exit $failed
