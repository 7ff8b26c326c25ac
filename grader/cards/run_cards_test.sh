#!/bin/bash
# run_cards.sh over programs that are shell scripts: what is kept, what runs again, and what a bundle's
# records become. usage: run_cards_test.sh RUN_CARDS CARDS_TABLE
set -u
script=$PWD/$1
table=$PWD/$2
place=$TEST_TMPDIR/place
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# program SUBJECT SHARE: of lab 04, which notes that it ran and leaves a record.
program() {
    cat >"$place/grader/cards/04_sgemm_$1" <<END
#!/bin/bash
echo "\$SIMT_GPU $1" >>"$TEST_TMPDIR/runs"
printf '%s\n' '{"schema":1,"lab":"04_sgemm","subject":"$1","part":"speedup","test":"kernel","verdict":"pass","measure":"kernel","baseline_ms":10,"subject_ms":1,"speedup":10,"fixed_ms":0,"ideal_ms":$2,"share":$2,"device":{"name":"made up","modelled":true}}' '{"schema":1,"verdict":"end"}' >"\$WARPBOOK_GRADES"
END
    chmod +x "$place/grader/cards/04_sgemm_$1"
    echo "worker" >"$place/grader/cards/04_sgemm_$1_worker"
}

# call ARGS: from the place where the programs lie; leaves output and code.
call() {
    : >"$TEST_TMPDIR/runs"
    output=$(cd "$place" && BUILD_WORKING_DIRECTORY=$TEST_TMPDIR "$script" "$table" "$@" 2>&1)
    code=$?
}

# ran TEXT: these programs ran, in any order.
ran() {
    local got
    got=$(sort "$TEST_TMPDIR/runs" | paste -sd ,)
    [ "$got" = "$1" ] || fail "ran '$got', not '$1': $output"
}

mkdir -p "$place/grader/cards"
echo starter >"$place/grader/04_sgemm_baseline"
echo simt >"$place/libcudart.so.13"
program solution 0.5

call --cards t4,a100 --subjects solution --keep parts --records one.jsonl
[ "$code" -eq 0 ] || fail "status $code: $output"
ran "a100 solution,t4 solution"
[ "$(grep -c '^{"card":"\(t4\|a100\)",' "$TEST_TMPDIR/one.jsonl")" -eq 2 ] || fail "records: $(cat "$TEST_TMPDIR/one.jsonl")"
call --cards t4,l4,a100 --subjects solution --keep parts --records two.jsonl
ran "l4 solution"
[ "$(wc -l <"$TEST_TMPDIR/two.jsonl")" -eq 3 ] || fail "what was kept is not in the records"
echo "another" >"$place/libcudart.so.13"
call --cards t4 --subjects solution --keep parts
ran "t4 solution"
program solution 0.4
call --cards t4 --subjects solution --keep parts
ran "t4 solution"
call --cards t4 --subjects solution
ran "t4 solution"

# A column of what a bundle's ./grade recorded.
cat >"$TEST_TMPDIR/cases.jsonl" <<'END'
{"schema":1,"time":"2026","commit":"a","lab":"01_cpu_matmul","subject":"starter","part":"speedup","test":"kernel","verdict":"slow"}
{"schema":1,"time":"2026","commit":"a","lab":"11_training","subject":"starter","part":"parity","test":"adamw","verdict":"pass"}
{"schema":1,"time":"2026","commit":"a","lab":"11_training","subject":"starter","part":"speedup","test":"adamw","verdict":"fail","measure":"adamw","baseline_ms":1,"subject_ms":1,"speedup":1,"required":2,"fixed_ms":0.1,"ideal_ms":0.2,"share":0.3,"limit":"x","steps":[1,2,3],"why":"a \"b\"","count":5,"most":1,"device":{"name":"made up","modelled":false},"limits":{"read":1},"message":"two \"words\"","seconds":3.2}
{"schema":1,"time":"2026","commit":"a","lab":"11_training","subject":"starter","part":"speedup","test":null,"verdict":"end"}
END
call --measured h100-7 --from cases.jsonl --records two.jsonl
[ "$code" -eq 0 ] || fail "status $code: $output"
ran ""
[ "$(wc -l <"$TEST_TMPDIR/two.jsonl")" -eq 4 ] || fail "records: $(cat "$TEST_TMPDIR/two.jsonl")"
[ "$(tail -n 1 "$TEST_TMPDIR/two.jsonl")" = '{"card":"h100-7","schema":1,"lab":"11_training","subject":"starter","part":"speedup","test":"adamw","verdict":"fail","measure":"adamw","baseline_ms":1,"subject_ms":1,"speedup":1,"required":2,"fixed_ms":0.1,"ideal_ms":0.2,"share":0.3,"limit":"x","count":5,"most":1,"device":{"name":"made up","modelled":false},"limits":{"read":1}}' ] ||
    fail "the column is $(tail -n 1 "$TEST_TMPDIR/two.jsonl")"

# refuses TEXT ARGS
refuses() {
    local text=$1
    shift
    call "$@"
    [ "$code" -eq 2 ] || fail "status $code: $*"
    grep -qF -- "$text" <<<"$output" || fail "'$text' is not in: $output"
    ran ""
}
refuses "--from needs --measured NAME and --records FILE" --from cases.jsonl --measured a
refuses "cannot read" --from nowhere.jsonl --measured a --records two.jsonl
refuses "--keep is for modelled times" --keep parts --measured a

[ "$failures" -eq 0 ] && echo "all checks passed"
exit $((failures > 0))
