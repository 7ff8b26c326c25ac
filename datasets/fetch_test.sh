#!/bin/bash
# Runs fetch.sh with folders on this machine as servers; needs and uses no network.
# usage: fetch_test.sh PROGRAMS_SH FETCH PUBLIC_TXT
set -u
# shellcheck source=common/testing/programs.sh
. "$1"
fetch=$PWD/$2
public=$PWD/$3
cd "$TEST_TMPDIR" || exit 1
unset BUILD_WORKING_DIRECTORY BUILD_WORKSPACE_DIRECTORY
: >in
command -v sha256sum >/dev/null || fail "this test needs sha256sum"

# row SET FILE: the table's line for a file in the folder `server`.
row() {
    echo "$1 $2 $(wc -c <"server/$2") $(sha256sum <"server/$2" | cut -d' ' -f1) file://$PWD/server/$2"
}

mkdir -p server/sub
seq 1 500 >server/numbers.txt
seq 501 900 >server/sub/more.txt
printf 'a folder\n' >page.txt && tar cf server/pages.tar page.txt && gzip server/pages.tar
{
    echo "# a comment, and an empty line"
    echo
    row one numbers.txt
    row two sub/more.txt
    row two numbers.txt
    row three pages.tar.gz
} >table
local_fetch=("$fetch" --table table --dir got)
have() { cmp -s "server/$1" "got/$1" || fail "got/$1 is not the server's"; }
lacks() { [ ! -e "got/$1" ] || fail "got/$1 exists"; }

# Flags.
accepts "$fetch" --help
says "Without a network" out
refuses "name the files to download; --list lists them" "$fetch"
refuses "unknown flag '--fast'" "$fetch" --fast
refuses "--dir wants a value" "$fetch" --dir
refuses "'none' is not in table; --list lists the files" "${local_fetch[@]}" one none
lacks numbers.txt
refuses "absent: cannot read" "$fetch" --table absent one
accepts "$fetch" --list
for name in imdb agnews stories260K stories15M stories42M stories110M bert; do
    says "$name " out
done
accepts "$fetch" --list --mirror http://teacher/files/
says "    http://teacher/files/bert-base-uncased/model.safetensors" out

# The project's own list: five fields, with plausible lengths and sums.
grep -v '^#' "$public" >rows
while read -r set file bytes sum url rest; do
    [[ $bytes =~ ^[0-9]+$ && $sum =~ ^[0-9a-f]{64}$ && $url =~ ^https://[^\ ]+$ && -z $rest ]] ||
        fail "public.txt: $set $file"
done <rows
[ "$(wc -l <rows)" -ge 10 ] || fail "public.txt has few rows"

# Without a network: one line that says what to do.
port="http://127.0.0.1:1" # where no server listens
refuses "stories260K.bin: cannot reach 127.0.0.1:1; without a network copy the file to got" \
    "$fetch" --dir got --mirror $port stories260K
says "name a place that has it with --mirror" err
if command -v wget >/dev/null; then
    mkdir -p bin
    for tool in sh dash dirname basename wc cat mkdir mv rm sha256sum wget; do
        path=$(command -v $tool) && ln -sf "$path" bin/$tool
    done
    refuses "stories260K.bin: cannot reach 127.0.0.1:1" \
        env PATH="$PWD/bin" "$fetch" --dir got --mirror $port stories260K
    rm bin/wget
    refuses "needs curl or wget" env PATH="$PWD/bin" "$fetch" --dir got --mirror $port stories260K
fi

# Files that were copied here are checked as downloads are.
mkdir -p got && cp server/numbers.txt got/
accepts "${local_fetch[@]}" numbers.txt
says "numbers.txt: already here" out
echo more >>got/numbers.txt
refuses "got/numbers.txt has 1897 bytes, not 1892; remove it" "${local_fetch[@]}" one
[ "$(wc -c <got/numbers.txt)" -eq 1897 ] || fail "an existing file was changed"
tr 5 6 <server/numbers.txt >got/numbers.txt
refuses "got/numbers.txt has the sha256 " "${local_fetch[@]}" one
rm got/numbers.txt

if ! command -v curl >/dev/null; then
    echo "skipped: downloads, which need curl here: it reads file:// addresses"
    finish
fi

# Good downloads: a set, a file by its name, all, and files that already exist.
accepts "${local_fetch[@]}" two
have sub/more.txt && have numbers.txt
[ "$(grep -c 'sha256 as expected' out)" -eq 2 ] || fail "not two files: $(cat out)"
[ -z "$(find got -name '*.part*')" ] || fail "parts are left"
accepts "${local_fetch[@]}" one
says "numbers.txt: already here" out
rm -r got
accepts "${local_fetch[@]}" sub/more.txt
have sub/more.txt && lacks numbers.txt
accepts "${local_fetch[@]}" all
have numbers.txt && have pages.tar.gz
[ "$(tar xOf got/pages.tar)" = "a folder" ] || fail "pages.tar.gz was not unpacked"
accepts "${local_fetch[@]}" --list
says ", here" out
accepts "$fetch" --table table --dir other --mirror "file://$PWD/server/" two
cmp -s server/sub/more.txt other/sub/more.txt || fail "--mirror got something else"

# An interrupted download is kept and continued.
rm -r got && mv server/numbers.txt whole && head -c 700 whole >server/numbers.txt
refuses "numbers.txt: the download stopped at 700 of 1892 bytes; run this again" "${local_fetch[@]}" one
lacks numbers.txt
mv whole server/numbers.txt
accepts "${local_fetch[@]}" one
have numbers.txt
rm got/numbers.txt
head -c 700 server/numbers.txt | tr 5 6 >got/numbers.txt.part # is continued, so the sum is wrong
refuses "numbers.txt: the download has the sha256 " "${local_fetch[@]}" one
lacks numbers.txt && lacks numbers.txt.part
cp server/numbers.txt got/numbers.txt.part # complete, but not renamed yet
accepts "${local_fetch[@]}" one
have numbers.txt

# Downloads with the wrong content.
rm -r got && tr 1 2 <server/numbers.txt >changed && mv server/numbers.txt whole && mv changed server/numbers.txt
refuses "numbers.txt: the download has the sha256 " "${local_fetch[@]}" one
says "it was removed" err
lacks numbers.txt && lacks numbers.txt.part
(cat whole; echo more) >server/numbers.txt
refuses "numbers.txt: the download has 1897 bytes, not 1892; it was removed" "${local_fetch[@]}" one
lacks numbers.txt && lacks numbers.txt.part
rm server/numbers.txt
refuses "server/numbers.txt was refused or does not exist" "${local_fetch[@]}" one
head -c 700 whole >got/numbers.txt.part
refuses "was refused or does not exist" "${local_fetch[@]}" one
[ "$(wc -c <got/numbers.txt.part)" -eq 700 ] || fail "a failed download changed the old part"
mv whole server/numbers.txt
accepts "${local_fetch[@]}" one
have numbers.txt

# An unknown sum is reported.
sed 's/ [0-9a-f]\{64\} / - /' table >unknown
accepts "$fetch" --table unknown --dir third one
says "numbers.txt: 1892 bytes; its sha256 is not known, so only its length was checked" out

# Invalid tables and folders.
echo "one file.txt many - file:///x" >bad
refuses "bad: line 1: the length is not a number" "$fetch" --table bad one
echo "one file.txt 5 -" >bad
refuses "bad: line 1: must have set, file, bytes, sha256 and address" "$fetch" --table bad one
echo "one ../file.txt 5 - file:///x" >bad
refuses "bad: line 1: '../file.txt' is not inside the folder" "$fetch" --table bad one
refuses "in/got: cannot make the folder" "$fetch" --table table --dir in/got one

# Relative paths count from the folder that bazel run was called in.
mkdir -p call
accepts env BUILD_WORKING_DIRECTORY="$PWD/call" "$fetch" --table "$PWD/table" --dir here one
[ -f call/here/numbers.txt ] || fail "BUILD_WORKING_DIRECTORY is not used"
accepts env BUILD_WORKSPACE_DIRECTORY="$PWD/course" "$fetch" --table table one
[ -f course/datasets/fetched/numbers.txt ] || fail "the default folder is not the workspace's"

finish
