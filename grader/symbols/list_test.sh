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

# Names that would be read as something else.
as -o "$TEST_TMPDIR/strange.o" - <<'END' 2>/dev/null
.globl usual
usual:
.weak "_ZN4now W"
.set "_ZN4now W", 1
.globl "two
lines"
"two
lines":
"caf\303\251":
END
printf 'own\t//a:b\t%s\n' "$TEST_TMPDIR/strange.o" >"$TEST_TMPDIR/parts"
"$list" nm "$TEST_TMPDIR/parts" "$TEST_TMPDIR/list"
if [ "$(grep -c '^strange ' "$TEST_TMPDIR/list")" != 3 ] || ! grep -qx 'defines usual' "$TEST_TMPDIR/list"; then
    echo "strange names:"
    cat "$TEST_TMPDIR/list"
    failed=1
fi

# exit() of what nvcc writes for a __device__ function is none of the learner's.
compile() { # NAME MORE: object files of a submission with a kernel and such a function, and MORE
    cat <<END | "${CC:-cc}" -O2 -x c -c -o "$TEST_TMPDIR/$1.o" -
#include <stdlib.h>
void __cudaRegisterFatBinary(void);
void kernel(void) { __cudaRegisterFatBinary(); }
void helper(void) { int volatile one = 1; exit(one); }
$2
END
    printf 'own\t//a:b\t%s\n' "$TEST_TMPDIR/$1.o" >"$TEST_TMPDIR/parts"
    "$list" nm "$TEST_TMPDIR/parts" "$TEST_TMPDIR/list"
    grep -x 'needs exit' "$TEST_TMPDIR/list"
}
if [ -n "$(compile stub '')" ]; then
    echo "exit() of a __device__ function is listed"
    failed=1
fi
for own in 'void own(int x) { if (x) { exit(1); } }' \
    'int own(int x) { if (__builtin_expect(x, 0)) { exit(2); } return x; }' \
    'int puts(const char *); void own(void) { puts("bad"); exit(0); }' \
    'void (*own)(int) = exit;' 'void *own(void) { return (void *)exit; }'; do
    if [ "$(compile own "$own")" != 'needs exit' ]; then
        echo "exit() is not listed of: $own"
        failed=1
    fi
done
exit "$failed"
