#!/bin/bash
# The bench from outside: one clear line for each bad command line, whole records of good runs.
# usage: bench_test.sh BENCH_TESTING_SH BENCH CHECK_RECORDS
set -u
# shellcheck source=common/bench/bench_testing.sh
. "$1"
enter "$2" "$3"

helps shape dtype plot quick
refuses_strangers
for shape in "" 8b 110 "110m " 1,2; do
    refuses "'$shape'" --shape="$shape"
done
for dtype in "" int8 fp; do
    refuses "'$dtype'" --dtype="$dtype"
done

# A GPU takes --shape 260k; simt says why not, and has a small shape.
shape=
"$bench" --quick >first 2>/dev/null </dev/null
if grep -q 'measured on' first; then
    shape='--shape=260k'
else
    rm -f "$WARPBOOK_RESULTS"
    refuses_like "--shape: [0-9]+ MB of weights take simt hours" --shape 15m
fi
rm -f "$WARPBOOK_RESULTS"

# shellcheck disable=SC2086 # no shape is no argument
for dtype in fp32 bf16; do
    accepts --quick --dtype "$dtype" --plot positions.svg $shape
    grep -qE '^(labs|solutions): (modelled for|measured on) ' out || fail "nobody says whose time: $(cat out)"
    for words in 'text anew' 'keys anew' 'growth' 'gate and up' 'classifier' '03_resident_weights' '09_kv_cache'; do
        grep -q "$words" out || fail "no '$words' with $dtype: $(cat out)"
    done
    grep -q '</svg>' positions.svg || fail "no picture"
    rm positions.svg
done
rows=$(grep -cE '^  [0-9]+ +[0-9.]+ +[0-9.]+ +[0-9.]+$' out)
[ "$rows" -ge 4 ] || fail "$rows positions in the table: $(cat out)"
for op in token_text_anew token_keys_anew token; do
    count=$(recorded "\"op\":\"$op\"")
    [ "$count" = $((2 * rows)) ] || fail "$count records of $op, want two of $rows"
done
[ "$(recorded '"op":"kv_linear"')" = 8 ] || fail "not two records of four products"
[ "$(recorded '"op":"kv_attention"')" = 4 ] || fail "not two records of two positions"
[ "$(recorded '"op":"decode"')" = 6 ] || fail "not two records of three stages"

# shellcheck disable=SC2086
fails_cleanly --quick $shape
# shellcheck disable=SC2086
fails_in_one_line "unwritable picture" --quick --plot file/x.svg $shape
finish
