#!/usr/bin/env bash
# Installs Warpbook's programs into a folder: bazel run //:install -- --prefix DIR
# The first argument, which the build gives, is the program that contains all of them.
set -u
warpbook=$1
shift
readonly programs=(classify evaluate generate perplexity profile train train_vocab)

usage() {
    cat <<'END'
usage: bazel run [--config=solutions] //:install -- --prefix DIR [--uninstall]

Installs classify, evaluate, generate, perplexity, profile, train and train_vocab with the
checkpoints that come with the course: yours, or the solved ones with --config=solutions. They need
nothing else of this folder.

  --prefix DIR   where: links in DIR/bin, all files in DIR/lib/warpbook, what bash and zsh need to
                 complete the flags in DIR/share
  --uninstall    remove what was installed there
  --help         print this and exit
END
}

fail() {
    echo "install: $*" >&2
    exit 1
}

prefix=
uninstall=false
while [ $# -gt 0 ]; do
    case $1 in
    --prefix)
        [ $# -ge 2 ] || fail "--prefix wants a folder"
        prefix=$2
        shift
        ;;
    --prefix=*) prefix=${1#*=} ;;
    --uninstall) uninstall=true ;;
    --help | -h)
        usage
        exit 0
        ;;
    *) fail "unknown argument '$1'; --help helps" ;;
    esac
    shift
done
[ -n "$prefix" ] || fail "wants --prefix DIR; --help helps"
case $prefix in
/*) ;;
*) prefix=${BUILD_WORKING_DIRECTORY:-$PWD}/$prefix ;;
esac
readonly home=$prefix/lib/warpbook

# The links to the program, one a line.
links() {
    local name
    for name in warpbook "${programs[@]}"; do
        echo "$prefix/bin/$name"
    done
}

# mine FILE: whether it may be replaced or removed: it is not there, or a link to our program.
mine() {
    [ ! -e "$1" ] && [ ! -L "$1" ] && return 0
    [ -L "$1" ] && [ "$(readlink -- "$1")" = ../lib/warpbook/warpbook ]
}

remove() {
    local file name
    [ -e "$home/manifest.tsv" ] || fail "nothing is installed in '$prefix'"
    while read -r file; do
        mine "$file" && rm -f -- "$file"
    done < <(links)
    for name in "${programs[@]}"; do
        rm -f -- "$prefix/share/bash-completion/completions/$name" \
            "$prefix/share/zsh/site-functions/_$name"
    done
    rm -rf -- "$home" || fail "'$home' could not be removed"
    echo "removed from $prefix"
}

# Before anything is written: a program of another origin is never replaced.
check() {
    local file
    while read -r file; do
        mine "$file" || fail "'$file' is there already and is not ours; choose another --prefix"
    done < <(links)
    [ ! -e "$home" ] || [ -e "$home/manifest.tsv" ] || fail "'$home' is there already and is not ours"
}

# All files, in a folder beside the final one, which it replaces at the end.
fill() {
    local library
    mkdir -p -- "$part/datasets" && cp -L -- "$warpbook" "$part/warpbook" &&
        chmod 755 "$part/warpbook" || return 1
    ! command -v strip >/dev/null || strip -- "$part/warpbook" || return 1
    # Libraries that a bare system lacks, and the emulator where the programs were built for it.
    while read -r library; do
        cp -L -- "$library" "$part/" && chmod 644 "$part/${library##*/}" || return 1
        ! command -v strip >/dev/null || strip --strip-unneeded -- "$part/${library##*/}" || return 1
    done < <(ldd "$warpbook" | awk '$3 ~ /_solib/ { print $3 }')
    cp -rL -- datasets/reviews_bert datasets/tiny_llama datasets/reviews_sample.tsv \
        datasets/review_text.txt "$part/datasets/" && chmod -R u+w -- "$part" || return 1
    (cd "$part" && find . -type f -printf '%P\t%s\n' | sort) >"$part.list" &&
        mv -- "$part.list" "$part/manifest.tsv"
}

completions() {
    local name
    mkdir -p -- "$prefix/share/bash-completion/completions" "$prefix/share/zsh/site-functions" ||
        return 1
    for name in "${programs[@]}"; do
        "$home/warpbook" "$name" --completion bash \
            >"$prefix/share/bash-completion/completions/$name" &&
            "$home/warpbook" "$name" --completion zsh \
                >"$prefix/share/zsh/site-functions/_$name" || return 1
    done
}

readonly part=$home.part.$$

put() {
    local file said
    said=$(mkdir -p -- "$prefix/bin" "$prefix/lib" 2>&1) ||
        fail "'$prefix' cannot be made or written: ${said##*: }"
    trap 'rm -rf -- "$part" "$part.list"' EXIT
    fill || fail "'$home' could not be written; nothing was changed"
    rm -rf -- "$home"
    mv -- "$part" "$home" || fail "'$home' could not be written"
    while read -r file; do
        ln -sfn ../lib/warpbook/warpbook "$file" || fail "'$file' could not be written"
    done < <(links)
    completions || fail "'$prefix/share' could not be written; the programs are installed"
    echo "installed in $prefix: ${programs[*]} ($(du -sh -- "$home" | cut -f 1))"
    case :$PATH: in
    *:"$prefix/bin":*) ;;
    *) echo "put $prefix/bin into PATH to call them by name" ;;
    esac
}

if $uninstall; then
    remove
else
    check
    put
fi
