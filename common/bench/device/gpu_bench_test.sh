#!/bin/bash
# A GPU lab's bench from outside, on simt or a GPU: one clear line for each bad command line, whole
# records of a good run.
# usage: gpu_bench_test.sh BENCH_TESTING_SH BENCH CHECK_RECORDS MAKE_TEST_CHECKPOINT STAGES ladder|decode
set -u
# shellcheck source=common/bench/bench_testing.sh
. "$1"
stages=$5
parts=$6
"$PWD/$4" "$TEST_TMPDIR" || exit 1
enter "$2" "$3"

helps shape
refuses_strangers
for shape in "" 15 15M 7b 512,512,512 -1; do
    refuses "--shape is 15m, 110m or 1.1b, not '$shape'" --shape="$shape"
done
refuses "--threads 0: from 1 to 1024" --threads 0
refuses "--steps -1: at least 1, or 0" --steps=-1
refuses "--steps wants a whole number, not 'two'" --steps two
refuses "absent.bin: cannot open" --checkpoint absent.bin
: >empty.bin
refuses "empty.bin" --checkpoint empty.bin
head -c 1000 tiny.bin >short.bin
refuses "short.bin" --checkpoint short.bin

accepts --checkpoint tiny.bin --steps 3 --threads 1
grep -q '^Llama2 decode, tiny.bin, 3 tokens' out || fail "nothing is decoded: $(cat out)"
count=$(recorded '"figure":"tokens_per_second"')
[ "$count" -eq "$stages" ] || fail "$count records of tokens per second, want $stages"
grep -qF '"figure":"bus_bytes_per_token"' "$WARPBOOK_RESULTS" || fail "no bytes are recorded"
xray=()
if grep -q 'modelled for' out; then
    xray=(--xray page.html)
    grep -q 'modelled, GPU work only' out || fail "modelled times are not marked: $(cat out)"
    grep '"name":"simt:' "$WARPBOOK_RESULTS" | grep -qv '"modelled":true' && fail "a modelled record is not marked"
fi

# Less of everything; each step of a ladder is recorded, and drawn where simt runs it.
rm -f "$WARPBOOK_RESULTS"
run --quick --steps 1 --threads 1 "${xray[@]}"
[ "$code" -eq 0 ] || fail "--quick: exit status $code: $(cat err)"
[ "$(grep -c '^Llama2 decode, 15M shape' out)" -eq 1 ] || fail "--quick decodes more than 15M or nothing: $(cat out)"
rows=$(step_rows)
[ "$([ "$rows" -gt 0 ] && echo ladder || echo decode)" = "$parts" ] || fail "a table of $rows steps: $(cat out)"
[ "$(recorded '"op":"matmul"')" -eq "$rows" ] || fail "not every step is recorded"
[ "${#xray[@]}" -eq 0 ] || grep -q '"kernel":"' page.html || fail "the x-ray page has no kernel"
finish
