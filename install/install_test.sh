#!/bin/bash
# Installs the programs, uses them from there, and removes them.
# usage: install_test.sh PROGRAMS_SH INSTALL WARPBOOK
set -u
# shellcheck source=common/testing/programs.sh
. "$1"
install=("$PWD/$2" "$PWD/$3")
datasets=$PWD
prefix="$TEST_TMPDIR/my prefix"
readonly programs="classify evaluate generate perplexity profile train train_vocab"
: >"$TEST_TMPDIR/in"

# from_here COMMAND...: as run(), where the runfiles are.
from_here() {
    (cd "$datasets" && env -u BUILD_WORKING_DIRECTORY "$@") >"$TEST_TMPDIR/out" 2>"$TEST_TMPDIR/err"
    code=$?
    cd "$TEST_TMPDIR" || exit 1
}

# installed COMMAND...: a program as a user calls it, with none of Bazel's variables.
installed() {
    env -i PATH="$prefix/bin:/usr/bin:/bin" HOME="$TEST_TMPDIR" "$@" >out 2>err <in
    code=$?
}

from_here "${install[@]}"
[ "$code" -eq 1 ] || fail "no --prefix: exit status $code"
says "install: wants --prefix DIR; --help helps" err
from_here "${install[@]}" --prefix /proc/nowhere
[ "$code $(wc -l <err)" = "1 1" ] || fail "a folder that cannot be made: $code: $(cat err)"
says "install: '/proc/nowhere' cannot be made or written: No such file or directory" err

# Nothing of others is replaced.
mkdir -p "$prefix/bin" && echo mine >"$prefix/bin/train"
from_here "${install[@]}" --prefix "$prefix"
[ "$code" -eq 1 ] || fail "a stranger's file: exit status $code"
says "bin/train' is there already and is not ours" err
[ ! -e "$prefix/lib" ] || fail "something was written in spite of a stranger's file"
rm "$prefix/bin/train"

# Twice: the second time replaces the first.
for _ in 1 2; do
    from_here "${install[@]}" --prefix="$prefix"
    [ "$code" -eq 0 ] || fail "install: exit status $code: $(cat err)"
    says "installed in $prefix: $programs" out
done
[ -z "$(find "$prefix/lib" -name '*.part*')" ] || fail "a temporary folder was left"
[ "$(find "$prefix/lib/warpbook" -type f -name warpbook | wc -l)" -eq 1 ] || fail "not one program"

cd "$TEST_TMPDIR" || exit 1
for name in $programs; do
    installed "$name" --version
    [ "$(cat out)" = "$name (Warpbook $(sed 's/.* //; s/)//' out))" ] || fail "--version: $(cat out err)"
    installed "$name" --completion zsh
    cmp -s out "$prefix/share/zsh/site-functions/_$name" || fail "zsh: $name"
    ! command -v zsh >/dev/null || zsh -n "$prefix/share/zsh/site-functions/_$name" ||
        fail "zsh refuses _$name"
    # Every flag of --help is completed.
    installed "$name" --help
    grep -o -E '^  (-[A-Za-z], |    )--[a-z0-9-]+' out | grep -o -E -- '--[a-z0-9-]+' | sort -u >want
    # shellcheck disable=SC1090
    (. "$prefix/share/bash-completion/completions/$name" &&
        COMP_WORDS=("$name" --) COMP_CWORD=1 && "_warpbook_$name" &&
        printf '%s\n' "${COMPREPLY[@]}" | sort -u) >got
    [ -s want ] || fail "$name --help lists no flags"
    cmp -s want got || fail "$name: completed flags differ: $(diff want got)"
done
installed warpbook nonsense
says "warpbook: no program 'nonsense'; --help lists them" err
[ "$code" -eq 1 ] || fail "no such program: exit status $code"

# The checkpoints that come with the course are found, in the program and by its name.
installed classify --device cpu --threads 1 -- "a dull, lifeless film"
says "neg 0." out
installed warpbook generate --stage 1 --threads 1 -n 8 -t 0 -i "This film"
grep -q "^This film" out || fail "generate: $(cat out err)"

from_here "${install[@]}" --prefix "$prefix" --uninstall
[ "$code" -eq 0 ] || fail "uninstall: exit status $code: $(cat err)"
[ -z "$(find "$prefix" -type f -o -type l)" ] || fail "left behind: $(find "$prefix" -type f -o -type l)"
from_here "${install[@]}" --prefix "$prefix" --uninstall
says "nothing is installed in '$prefix'" err
[ "$failures" -eq 0 ]
