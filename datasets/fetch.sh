#!/bin/sh
# Downloads public data sets and checkpoints and checks them; a file gets its name only when it is
# complete. An interrupted download is continued. See --help.
set -u

program=fetch
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
table=$here/public.txt
[ -f "$table" ] || table=$here/$(basename -- "$0").runfiles/warpbook/datasets/public.txt
dir=${BUILD_WORKSPACE_DIRECTORY:+$BUILD_WORKSPACE_DIRECTORY/datasets}
dir=${dir:-$here}/fetched
mirror=
list=false
names=

fail() {
    printf '%s: %s\n' "$program" "$1" >&2
    exit 1
}

usage() {
    cat <<END
usage: datasets/fetch.sh [--dir DIR] [--mirror ADDRESS] [--table FILE] [--list] NAME...

Downloads public files. NAME is a set (imdb, agnews, stories260K, stories15M, stories42M,
stories110M, bert), a file of a set, or all.

  --dir DIR         folder to download to (default datasets/fetched)
  --mirror ADDRESS  download from ADDRESS/FILE: a server, or file:///FOLDER
  --table FILE      another list of files (default datasets/public.txt)
  --list            list all files, their sizes, and which are already in DIR
  --help            print this and exit

Needs curl or wget. The length and the sha256 of each file are checked before it gets its name.
Without a network: download the files on another machine, with this script or by hand (--list
prints the addresses), and copy them to DIR, where this script checks them; or name the folder
that they are in: --mirror file:///media/stick (which needs curl).
END
}

# ---- The command line ----

want_value() {
    [ "$2" -ge 2 ] || fail "$1 wants a value"
}

while [ $# -gt 0 ]; do
    case $1 in
    --dir | --mirror | --table)
        want_value "$1" $#
        case $1 in
        --dir) dir=$2 ;;
        --mirror) mirror=$2 ;;
        --table) table=$2 ;;
        esac
        shift
        ;;
    --list) list=true ;;
    -h | --help)
        usage
        exit 0
        ;;
    -*) fail "unknown flag '$1'; --help lists them" ;;
    *) names="$names $1" ;;
    esac
    shift
done
# `bazel run` starts programs in another folder; relative paths count from the user's folder.
cd -- "${BUILD_WORKING_DIRECTORY:-.}" || fail "cannot change to the folder $BUILD_WORKING_DIRECTORY"
[ -r "$table" ] || fail "$table: cannot read"

# ---- One file ----

size_of() {
    if [ -f "$1" ]; then
        size=$(wc -c <"$1") && echo $((size))
    else
        echo 0
    fi
}

sha256_of() {
    if command -v sha256sum >/dev/null; then
        sum=$(sha256sum <"$1")
    elif command -v shasum >/dev/null; then
        sum=$(shasum -a 256 <"$1")
    else
        fail "needs sha256sum or shasum to check the files"
    fi
    echo "${sum%% *}"
}

# Prints what is wrong with the content of a file; nothing if it is right.
complaint() { # PATH BYTES SHA256
    found=$(size_of "$1")
    if [ "$found" -ne "$2" ]; then
        echo "has $found bytes, not $2"
    elif [ "$3" != - ]; then
        found=$(sha256_of "$1") || exit 1
        [ "$found" = "$3" ] || echo "has the sha256 $found, not $3"
    fi
}

# Starts a download, or continues that of PART. The exit status is curl's or wget's.
download() { # ADDRESS PART
    if command -v curl >/dev/null; then
        loud=-s
        [ -t 2 ] && loud=--progress-bar
        curl -f -L $loud --connect-timeout 20 -C - -o "$2" -- "$1"
    elif command -v wget >/dev/null; then
        loud=-q
        [ -t 2 ] && loud='-q --show-progress'
        # shellcheck disable=SC2086
        wget $loud -c --timeout=20 --tries=1 -O "$2" -- "$1"
    else
        fail "needs curl or wget"
    fi
}

# Fails with the reason why a download did not give a complete file.
explain() { # STATUS FILE ADDRESS
    host=${3#*://}
    if command -v curl >/dev/null; then
        case $1 in
        5 | 6 | 7 | 28 | 35 | 60) why=network ;;
        22 | 37 | 78) why=refused ;;
        23) why=disk ;;
        *) why=other ;;
        esac
    else
        case $1 in
        4 | 5) why=network ;;
        8) why=refused ;;
        3) why=disk ;;
        *) why=other ;;
        esac
    fi
    case $why in
    network)
        fail "$2: cannot reach ${host%%/*}; without a network copy the file to $dir, or name a place that has it with --mirror"
        ;;
    refused) fail "$2: $3 was refused or does not exist" ;;
    disk) fail "$2: cannot write in $dir; is the disk full?" ;;
    *) fail "$2: the download failed with status $1" ;;
    esac
}

# Starts again if the server cannot continue a download; if that fails, keeps the old part.
start_again() { # ADDRESS PART
    mv -f "$2" "$2.before"
    download "$1" "$2"
    status=$?
    if [ $status -eq 0 ]; then
        rm -f "$2.before"
    else
        mv -f "$2.before" "$2"
    fi
    return $status
}

# Downloads the rest of PART, or fails with the reason.
finish_part() { # FILE BYTES ADDRESS PART
    before=$(size_of "$4")
    if [ "$before" -gt "$2" ]; then
        rm -f "$4"
        before=0
    fi
    [ "$before" -eq "$2" ] && [ -f "$4" ] && return
    download "$3" "$4"
    status=$?
    case $status in
    8 | 22 | 33 | 36)
        if [ "$before" -gt 0 ]; then
            start_again "$3" "$4"
            status=$?
        fi
        ;;
    esac
    got=$(size_of "$4")
    [ "$got" -gt 0 ] || [ "$2" -eq 0 ] || rm -f "$4"
    if [ "$got" -gt "$before" ] && [ "$got" -lt "$2" ]; then
        fail "$1: the download stopped at $got of $2 bytes; run this again to continue it"
    fi
    [ $status -eq 0 ] || [ "$got" -eq "$2" ] || explain $status "$1" "$3"
}

# Unpacks a .tar.gz, which IMDB is, to a .tar, which the programs read.
unpack() { # FILE
    case $1 in
    *.tar.gz) tar=${1%.gz} ;;
    *) return ;;
    esac
    [ -f "$dir/$tar" ] && return
    if gzip -dc "$dir/$1" >"$dir/$tar.part" 2>/dev/null && mv -f "$dir/$tar.part" "$dir/$tar"; then
        echo "$tar: unpacked"
    else
        rm -f "$dir/$tar.part"
        fail "$1: cannot unpack it to $dir/$tar; is the disk full?"
    fi
}

get() { # FILE BYTES SHA256 ADDRESS
    path=$dir/$1
    if [ -f "$path" ]; then
        wrong=$(complaint "$path" "$2" "$3") || exit 1
        [ -z "$wrong" ] || fail "$path $wrong; remove it and run this again"
        echo "$1: already here"
        unpack "$1"
        return
    fi
    mkdir -p -- "$(dirname -- "$path")" 2>/dev/null || fail "$dir: cannot make the folder"
    finish_part "$1" "$2" "$4" "$path.part"
    wrong=$(complaint "$path.part" "$2" "$3") || exit 1
    if [ -n "$wrong" ]; then
        rm -f "$path.part"
        fail "$1: the download $wrong; it was removed"
    fi
    mv -f "$path.part" "$path" || fail "$path.part: cannot be renamed to $path"
    if [ "$3" = - ]; then
        echo "$1: $2 bytes; its sha256 is not known, so only its length was checked"
    else
        echo "$1: $2 bytes, sha256 as expected"
    fi
    unpack "$1"
}

# ---- All files ----

# Calls $1 SET FILE BYTES SHA256 ADDRESS for each line of the table.
each_row() {
    number=0
    while read -r set file bytes sum url rest; do
        number=$((number + 1))
        case $set in
        '' | '#'*) continue ;;
        esac
        case $bytes in
        '' | *[!0-9]*) fail "$table: line $number: the length is not a number" ;;
        esac
        if [ -z "$url" ] || [ -n "$rest" ]; then
            fail "$table: line $number: must have set, file, bytes, sha256 and address"
        fi
        case /$file/ in
        */../* | //*) fail "$table: line $number: '$file' is not inside the folder" ;;
        esac
        "$1" "$set" "$file" "$bytes" "$sum" "${mirror:+${mirror%/}/$file}" "$url" </dev/null
    done <"$table"
}

print_row() { # SET FILE BYTES SHA256 MIRRORED ADDRESS
    there=
    [ -f "$dir/$2" ] && there=', here'
    printf '%-12s %-36s %6d KiB%s\n    %s\n' "$1" "$2" $((($3 + 1023) / 1024)) "$there" "${5:-$6}"
}

get_row() { # SET FILE BYTES SHA256 MIRRORED ADDRESS
    case " $names " in
    *" all "* | *" $1 "* | *" $2 "*) ;;
    *) return ;;
    esac
    case $fetched in
    *" $2 "*) return ;; # done as part of another set
    esac
    fetched="$fetched$2 "
    get "$2" "$3" "$4" "${5:-$6}"
}

known=' all '
add_names() {
    known="$known$1 $2 "
}

if $list; then
    each_row print_row
    exit 0
fi
[ -n "$names" ] || fail "name the files to download; --list lists them"
each_row add_names
for name in $names; do
    case $known in
    *" $name "*) ;;
    *) fail "'$name' is not in $table; --list lists the files" ;;
    esac
done
fetched=' '
each_row get_row
