#!/usr/bin/env bash
# All that the archive of every lab holds: its programs find their libraries in it, and each says how
# it is called from an empty folder with an empty environment.
# usage: programs_test.sh MANIFEST
set -u
manifest=$PWD/$1
tree=$PWD
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# place PATH: where the archive's file is among this test's.
place() {
    case $1 in
    external/*) echo "$tree/../${1#external/}" ;;
    *) echo "$tree/$1" ;;
    esac
}

mkdir "$TEST_TMPDIR/empty" && cd "$TEST_TMPDIR/empty" || exit 1

# Programs carry all but the C library and the driver, and what is shared is the archive's: it is
# found without LD_LIBRARY_PATH, and before what is installed here. Here each file is a link to it.
declare -A held
programs_are_whole() {
    local file line count=0
    while IFS= read -r -d '' file; do
        held[$(readlink -f "$file")]=1
    done < <(find -L "$tree" "$tree"/../*/ -type f -print0)
    for file in "${!held[@]}"; do
        [ "$(head -c 4 "$file" | tr -d '\177\0')" = ELF ] || continue
        count=$((count + 1))
        while read -r line; do
            case $line in
            linux-vdso.so.* | /lib*/ld-linux* | "statically linked") ;;
            libc.so.6\ * | libm.so.6\ * | libpthread.so.0\ * | libdl.so.2\ * | librt.so.1\ *) ;;
            libcuda.so.1\ *) ;;
            *" => /"*)
                line=${line#* => }
                [ -n "${held[$(readlink -f "${line% (*}")]-}" ] || fail "$file needs $line"
                ;;
            *) fail "$file needs $line" ;;
            esac
        done < <(env -i ldd "$file")
    done
    [ "$count" -ge 40 ] || fail "only $count programs"
    echo "$count programs and libraries looked at"
}

# On a machine without a GPU, too.
programs_say_how_they_are_called() {
    local path count=0
    while read -r path; do
        count=$((count + 1))
        env -i timeout 60 "$(place "$path")" --help >../out 2>../err </dev/null ||
            fail "$path --help: exit status $?: $(cat ../err)"
        grep -qi usage ../out || fail "$path --help prints no usage: $(cat ../out)"
    done < <(awk -F '\t' '$2 == "program" || $2 == "bench" { print $3 }' "$manifest")
    [ "$count" -ge 20 ] || fail "only $count programs answer --help"
    echo "$count programs answer --help"
}

# The learner's labs have no ladder_test; all else is there for both subjects.
programs_are_listed() {
    local program
    for program in 02_gpu_matmul/bench 03_resident_weights/bench 03_resident_weights/generate \
        03_resident_weights/operators_test 04_sgemm/bench 0{2,3,4}_*_parity 0{2,3,4}_*_speedup \
        common/device/{gpu_info,device_test,fault_test,cublas_gpu_test} common/bench/device/device_bench_test; do
        grep -qE "[/	]${program//\*/.*}\$" "$manifest" || fail "the manifest does not list $program"
    done
    while read -r program; do
        [ -x "$(place "$program")" ] || fail "$program is not there"
    done < <(awk -F '\t' 'NR > 1 { print $3 }' "$manifest")
}

programs_are_whole
programs_say_how_they_are_called
programs_are_listed

[ "$failures" -eq 0 ] && echo "all checks passed"
exit $((failures > 0))
