#!/bin/bash
# debug.sh explains itself; without gdb it says what to install, and runs the program with its flags
# and with full checks; without cuda-gdb it is an error on a GPU.
# usage: debug_test.sh DEBUG
set -u
failures=0
fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

program=$TEST_TMPDIR/program
cat >"$program" <<'END'
#!/bin/bash
echo "ran with $* checks $SIMT_CHECK"
END
chmod +x "$program"
mkdir "$TEST_TMPDIR/bin"
for tool in bash cat echo ls; do
    ln -s "$(command -v $tool)" "$TEST_TMPDIR/bin/"
done

"$1" simt labs/04_sgemm/bench --help | grep -q 'bazel run //labs/04_sgemm:debug' || fail "no help"
said=$(PATH=$TEST_TMPDIR/bin "$1" simt "$program" --shape 1,2,3 2>"$TEST_TMPDIR/error")
[ "$said" = "ran with --shape 1,2,3 checks full" ] || fail "without gdb: $said"
grep -q 'gdb is not installed (Debian: apt-get install gdb)' "$TEST_TMPDIR/error" || fail "no advice"
PATH=$TEST_TMPDIR/bin CUDA_HOME=$TEST_TMPDIR "$1" gpu "$program" 2>"$TEST_TMPDIR/error" &&
    fail "without cuda-gdb it must fail"
grep -q 'cuda-gdb is not installed' "$TEST_TMPDIR/error" || fail "no advice for a GPU"
[ "$failures" -eq 0 ]
