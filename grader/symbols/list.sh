#!/bin/bash
# Lists the symbols of a submission. usage: list.sh NM PARTS OUTPUT
#
# PARTS has a line a file: its role, its library and its path, with tabs between. Roles: own (the
# submission), given (a library that its BUILD names), other (anything else in the same program).
# OUTPUT has a line a symbol, sorted:
#
#     needs NAME          it refers to NAME and does not define it
#     needs NAME LIBRARY  the same, and a given library defines it
#     defines NAME        it defines NAME for the whole program
#     defines NAME LIBRARY  the same, and so does a given or another library
#     strange NAME        a name of the submission has white space or other characters that names in
#                         C do not have, each a ? here: nm's lines could be misread
set -euo pipefail
export LC_ALL=C
readonly nm=$1 parts=$2 output=$3

# readelf writes a character that cannot be printed as ^X or in another form that is no name's, too.
awk -F '\t' '$1 == "own" { print $3 }' "$parts" | xargs -r "${nm%nm}readelf" -W -p .strtab |
    sed -nE 's/^ *\[ *[0-9a-f]+\]  ?//p' | { grep '[^A-Za-z0-9_.$@/+~,=-]' || true; } |
    sed 's/[^A-Za-z0-9_.$@/+~,=-]/?/g; s/^/strange /' | cut -c 1-200 | sort -u >"$output.strange"

# What other files can see: a line a symbol, "PATH: NAME KIND" and more; an archive's path ends with
# the member in brackets.
cut -f 3 "$parts" | sort -u >"$output.paths"
{
    sed -E '/\.so(\.|$)/d' "$output.paths" | xargs -r "$nm" -A -g -P
    sed -E '/\.so(\.|$)/!d' "$output.paths" | xargs -r "$nm" -A -g -P -D
} >"$output.all"

# Whether a file refers to exit() only in such functions: they register a kernel's code, jump nowhere,
# return nowhere and refer to nothing else. `.cold` is part of the function that jumps there.
only_stubs_exit() {
    local references stubs
    references=$("${nm%nm}objdump" -r "$1" | grep -cE '\bexit([-+]0x[0-9a-f]+)?$') || true
    stubs=$("${nm%nm}objdump" -dr --no-show-raw-insn "$1" | awk '
        function judge() { stubs += exits == 1 && others == 0 && !moves && !(function_name ~ /\.cold/) }
        /^[0-9a-f]+ <.*>:$/ { judge(); exits = others = moves = 0; function_name = $2; next }
        $2 ~ /^R_/ && $3 ~ /^exit([-+]0x[0-9a-f]+)?$/ { exits++; next }
        $2 ~ /^R_/ { others++; next }
        $2 ~ /^(j|ret|b\.|cb|tb|loop)/ { moves = 1 }
        END { judge(); print stubs + 0 }')
    [ "$references" -eq "$stubs" ] && "$nm" -u "$1" | grep -q '__cudaRegisterFatBinary$'
}

: >"$output.stubs"
awk -F '\t' '$1 == "own" { print $3 }' "$parts" | while IFS= read -r path; do
    if "$nm" -u "$path" | grep -qE '^ *U exit$' && only_stubs_exit "$path"; then
        echo "$path" >>"$output.stubs"
    fi
done

# Weak copies of C++ inline functions and templates are in every file that uses them, as is what
# points to the handler of exceptions: they take no name from anybody. `operator new` and its like
# do, weak or not.
awk '
    FILENAME == ARGV[1] { stubs[$0] = 1; next }
    FILENAME == ARGV[2] { roles[$3] = $1; libraries[$3] = $2; next }
    NF < 3 || $2 ~ /^DW\.ref\./ { next }
    {
        path = $1
        sub(/(\[.*\])?:$/, "", path)
        role = roles[path]; library = libraries[path]; name = $2; kind = $3
        sub(/@.*/, "", name) # one version of a name is that name
        undefined = kind ~ /[Uwv]/
    }
    role == "own" && name == "exit" && path in stubs { next }
    role == "own" && undefined { needs[name] = 1 }
    role == "own" && !undefined { defined[name] = 1 }
    role == "own" && !undefined && !(kind ~ /[WVu]/ && name ~ /^_Z/ && name !~ /^_Z[nd][wal]/) {
        defines[name] = 1
    }
    role == "given" && !undefined { given[name] = library }
    role != "own" && !undefined { taken[name] = library }
    END {
        for (name in needs) {
            if (!(name in defined)) {
                print "needs", name (name in given ? " " given[name] : "")
            }
        }
        for (name in defines) {
            print "defines", name (name in taken ? " " taken[name] : "")
        }
    }' "$output.stubs" "$parts" "$output.all" | sort - "$output.strange" >"$output"
rm "$output.paths" "$output.all" "$output.strange" "$output.stubs"
