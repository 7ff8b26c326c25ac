#!/bin/bash
# The package: unpacked where a path has blanks, read-only, run with an empty environment.
# usage: package_test.sh HELPERS TAR SCHEMA_CHECK REPORT_SCHEMA SARIF_SCHEMA CASE
# shellcheck source=common/testing/programs.sh
source "$1"
tar=$PWD/$2
schema_check=$PWD/$3
report_schema=$PWD/$4
sarif_schema=$PWD/$5
case=$PWD/$6
cd "$TEST_TMPDIR" || exit 1
: >in
mkdir "a folder" && tar xf "$tar" -C "a folder" || exit 1
name=$(basename "$tar" -linux-x86_64.tar.gz)
root="$TEST_TMPDIR/a folder/$name"
[ "$(ls "a folder")" = "$name" ] || fail "not one top folder: $(ls "a folder")"
cp "$case" "a folder/my case"
program="$TEST_TMPDIR/a folder/my case"
chmod -R a-w "$root"

# simt ARGS: with an empty environment, by a path with blanks.
simt() {
    run env -i "$root/bin/simt" "$@"
}

# ends_with CODE ARGS
ends_with() {
    local want=$1
    shift
    simt "$@"
    [ "$code" -eq "$want" ] || fail "exit status $code, want $want: $* -> $(cat out err)"
}

# What is in it, and nothing of this machine.
for file in README.md LICENSE bin/simt lib/libcudart.so.13 lib/libnccl.so.2 lib/libcuda.so.1 include/nccl.h share/man/man1/simt.1 share/doc/simt/limits.md \
    share/doc/simt/MODEL.md share/doc/simt/report.schema.json share/doc/simt/github-actions.yml; do
    [ -s "$root/$file" ] || fail "no $file"
done
[ "$(find "$root" -type f | wc -l)" -eq 12 ] || fail "other files: $(find "$root" -type f)"
ends_with 0 --version
[ "$(cat out)" = "simt ${name#simt-}" ] || fail "the tar is $name, the program $(cat out)"
newest=$(grep -aoh 'GLIBC_2\.[0-9]*' "$root/bin/simt" "$root"/lib/* | sort -Vu | tail -1)
[ "$(printf '%s\nGLIBC_2.36\n' "$newest" | sort -V | tail -1)" = GLIBC_2.36 ] || fail "needs $newest"
grep -aq 'libstdc++\.so' "$root/bin/simt" "$root"/lib/* && fail "needs libstdc++.so"

# Its pages say what the programs and README's tables say.
ends_with 0 --help
for command in run report doctor gpus xray; do
    says "simt $command" out
done
for command in run report doctor gpus xray; do
    ends_with 0 "$command" --help
    grep -o -- '--[a-z-]*' out | sort -u >flags
    [ -s flags ] || fail "$command --help lists no flag"
    while read -r flag; do
        case $flag in
        --compress-mode | --import | --page | --csv | --print-units | --print-source | --section) continue ;;
        esac
        sed "s/[\\]//g" <"$root/share/man/man1/simt.1" | grep -q -- "$flag" || fail "the man page lacks $flag of $command"
    done <flags
done
for text in "| out of bounds | bounds |" "| tensor cores |" "dynamic parallelism: refused by name"; do
    says "$text" "$root/share/doc/simt/limits.md"
done
grep -q '](' "$root/share/doc/simt/limits.md" && fail "limits.md has links, which lead nowhere"

# Programs: their own status, that of a finding, that of a wrong call.
ends_with 0 run "$program" nothing
ends_with 99 run "$program" out_of_bounds
says "out of bounds" err
says "kernels.cu:" err
ends_with 7 run --error-exitcode 7 "$program" out_of_bounds
ends_with 3 run --error-exitcode=0 "$program" out_of_bounds
ends_with 99 run "$program" leak
ends_with 0 run --check=full,-leaks "$program" leak
ends_with 99 run "$program" dereference
ends_with 3 run "$program" unsupported
ends_with 2 run "$program" no_such_case
ends_with 99 run "$program" overrun
run env -i SIMT_DEVICE=process "$root/bin/simt" run "$program" out_of_bounds
[ "$code" -eq 99 ] || fail "device in a process: exit status $code: $(cat err)"
run env -i SIMT_DEVICE=process "$root/bin/simt" run "$program" dereference
[ "$code" -eq 99 ] || fail "device in a process: exit status $code: $(cat err)"
for wrong in "run" "run missing" "run --nonsense x" "run --error-exitcode=256 $case" "run --gpu=voodoo $case" \
    "run --output=x $case" "report --report=xml $case"; do
    read -ra words <<<"$wrong"
    ends_with 125 "${words[@]}"
    [ "$(wc -l <err)" -eq 1 ] || fail "not one line: $wrong -> $(cat err)"
done
ends_with 2 voodoo
ends_with 2
ends_with 0 gpus
[ "$(wc -l <out)" -eq 11 ] || fail "gpus: $(cat out)"
says "NVIDIA H200" out
ends_with 2 gpus x
run env -i PATH="$TEST_TMPDIR/a folder" "$root/bin/simt" run "my case" nothing
[ "$code" -eq 0 ] || fail "not found in PATH: $(cat err)"
ends_with 1 doctor "$program"
ends_with 1 xray
says "--from" err

# Reports, as their schemas say.
# follows SCHEMA FILE
follows() {
    run "$schema_check" "$1" "$2"
    [ "$code" -eq 0 ] || fail "$(cat err): $(head -c 300 "$2")"
}
for kind in leak out_of_bounds nothing print; do
    simt report --report=json --output="a report" "$program" $kind
    follows "$report_schema" "a report"
    simt report --report=sarif --output="a report" "$program" $kind
    follows "$sarif_schema" "a report"
done
simt report "$program" leak
says "modelled, not measured" err
run env -i SIMT_DEVICE=process "$root/bin/simt" report --report=json "$program" leak
grep '^{' err >"a report"
follows "$report_schema" "a report"
run env -i SIMT_DEVICE=process "$root/bin/simt" report --output=x "$program" nothing
[ "$code" -eq 1 ] || fail "a device process was to write a file: $code"
says "SIMT_REPORT_FILE needs the device in the program's process" err
ends_with 125 report --output=no/such/file "$program" nothing

# The schemas refuse what they should.
sed 's/"schema":1/"schema":2/' "a report" >changed
refuses "const" "$schema_check" "$report_schema" changed
sed 's/"launches":[0-9]*/"launches":-1/' "a report" >changed
refuses "minimum" "$schema_check" "$report_schema" changed
sed 's/"launches":[0-9]*,//' "a report" >changed
refuses "lacks launches" "$schema_check" "$report_schema" changed
sed 's/"launches":/"starts":1,"launches":/' "a report" >changed
refuses "starts" "$schema_check" "$report_schema" changed
chmod -R u+w "$root"
finish
