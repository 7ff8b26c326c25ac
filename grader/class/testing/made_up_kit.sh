#!/usr/bin/env bash
# A kit whose compiler, linker and graded programs are shell scripts, for tests of the engine: it
# takes a second to build and nothing is measured.
#
#   made_up_kit.sh KIT_MANIFEST FOLDER    writes FOLDER/kit.manifest, for grade_class --kit
#
# A made-up submission's sgemm.cu is text; its words say what its graded programs do:
#   right, slow, wrong, crash, hang, loud (2 GB of output), nocompile, kill (kills its grader)
#   sleep=SECONDS, speedup=NUMBER, said=TEXT (up to the line's end)
set -euo pipefail
real=$1
folder=$2
mkdir -p "$folder"
folder=$(realpath "$folder")

program() {
    cat >"$folder/$1"
    chmod +x "$folder/$1"
}

program compile <<'END'
#!/bin/bash
for word in "$@"; do
    case $word in
    --output=*) object=${word#--output=} ;;
    esac
    source=$word
done
if grep -q nocompile "$source"; then
    echo "$source:1: error: $(cat "$source")" >&2
    exit 1
fi
cat "$source" >"$object"
END

program list_symbols <<'END'
#!/bin/bash
: >"$3"
END

program graded <<'END'
#!/bin/bash
folder=$(dirname "$0")
part=${0##*_}
worker=$folder/04_sgemm_worker
value() { sed -nE "s/.*$1=([0-9.]+).*/\1/p" "$worker" | head -n 1; }
does() { grep -qw "$1" "$worker"; }
line() {
    printf '{"schema":1,"lab":"04_sgemm","part":"%s","test":"%s","verdict":"%s","measure":%s,"speedup":%s,"required":1,"steps":%s,"device":{"name":"a made-up GPU","modelled":true},"message":%s,"seconds":0.1}\n' \
        "$part" "$@" >>"$WARPBOOK_GRADES"
}
ends() {
    printf '{"schema":1,"lab":"04_sgemm","part":"%s","test":null,"verdict":"end","tests":%d}\n' "$part" "$1" >>"$WARPBOOK_GRADES"
}
sleep "$(value sleep || true)" 2>/dev/null
said=$(sed -nE 's/.*said=(.*)/\1/p' "$worker" | head -n 1 | sed 's/\\/\\\\/g; s/"/\\"/g')
does kill && kill -KILL $PPID
does crash && kill -SEGV $$
does hang && exec sleep 1000
does loud && yes "a line that nobody reads" | head -c 2000000000
if [ "$part" = parity ]; then
    if does wrong; then
        line shapes fail null null null "\"${said:-shape 1x1 is wrong}\""
        ends 1
        exit 1
    fi
    line shapes pass null null null '""'
    ends 1
    exit 0
fi
speedup=$(value speedup)
if does slow; then
    line kernel slow '"kernel"' 1.5 '[20,28,36]' '"too slow"'
    line end_to_end slow '"end_to_end"' 1.1 '[3,0,0]' '"too slow"'
    ends 2
    exit 1
fi
line kernel pass '"kernel"' "${speedup:-40}" '[20,28,36]' '""'
line end_to_end pass '"end_to_end"' 5 '[3,0,0]' '""'
ends 2
END

printf 'bin/compile\n--output=object.o\n--read=sgemm.cu\nsgemm.cu\n' >"$folder/compile.0"
printf '/usr/bin/install\n-m\n755\nobject.o\nworker\n' >"$folder/link"
printf 'sgemm.cu\nobject.o\nworker\n' >"$folder/files"
printf 'own\t//labs/04_sgemm:sgemm\tobject.o\n' >"$folder/parts"
printf '// the starter\n' >"$folder/starter"
printf '/usr\n' >"$folder/toolkit.txt"
mkdir -p "$folder/bin"
printf '#!/bin/sh\n' >"$folder/bin/nvcc"
chmod +x "$folder/bin/nvcc"
printf '%s\n' "$folder" >"$folder/toolkit.txt"
printf 'simt\n' >"$folder/device"
{
    # The program that grades a submission, with its libraries, is the real one.
    grep -E '^run/(_solib|grader/class/)' "$real"
    printf '%s\t%s\tall\n' bin/compile "$folder/compile" bin/list_symbols "$folder/list_symbols" \
        toolkit.txt "$folder/toolkit.txt" device "$folder/device" exec/none "$folder/files" \
        04_sgemm/compile.0 "$folder/compile.0" 04_sgemm/link "$folder/link" \
        04_sgemm/files "$folder/files" 04_sgemm/parts "$folder/parts" \
        04_sgemm/starter "$folder/starter" \
        run/grader/04_sgemm_parity "$folder/graded" run/grader/04_sgemm_speedup "$folder/graded"
} >"$folder/kit.manifest"
