# Helpers of tests that run programs from outside, read by them: run from the test's temporary
# folder.
# shellcheck shell=bash
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# run PROGRAM ARGS: leaves out, err and code. Standard input is the file `in`.
run() {
    "$@" >out 2>err <in
    code=$?
}

# refuses TEXT PROGRAM ARGS: exits with 1, prints nothing, says TEXT in one line.
refuses() {
    local text=$1
    shift
    run "$@"
    [ "$code" -eq 1 ] || fail "exit status $code, want 1: $*"
    [ -s out ] && fail "printed text: $*"
    [ "$(wc -l <err)" -eq 1 ] || fail "not one line: $* -> $(cat err)"
    grep -qF -- "$text" err || fail "want '$text': $* -> $(cat err)"
}

# accepts PROGRAM ARGS: exits with 0.
accepts() {
    run "$@"
    [ "$code" -eq 0 ] || fail "exit status $code: $* -> $(cat err)"
}

# says TEXT FILE: the file has the text.
says() {
    grep -qF -- "$1" "$2" || fail "want '$1' in $2: $(cat "$2")"
}

# bare PROGRAM: leaves in the array `bare` how to start a copy of it that has no runfiles, in a folder
# that looks like the course, but for datasets/.
bare() {
    mkdir -p bare && : >bare/WORKSPACE && cp "$1" bare/ || exit 1
    # shellcheck disable=SC2034 # read by those that read this file
    bare=(env -u RUNFILES_DIR -u BUILD_WORKSPACE_DIRECTORY -C "$PWD/bare" "./$(basename "$1")")
}

# start PROGRAM ARGS: runs it in the background, with a Ctrl-C that is heard; leaves out, err, pid.
start() {
    : >out
    env --default-signal=INT,TERM,PIPE "$@" >out 2>err <in &
    pid=$!
}

# await COMMAND: until it succeeds; gives up after two minutes: a machine may be busy.
await() {
    local begun=$SECONDS
    until "$@" 2>/dev/null; do
        if [ $((SECONDS - begun)) -gt 120 ]; then
            fail "waited for: $*"
            return 1
        fi
        sleep 0.05
    done
}

# watching SIGNAL_BIT: whether the started program has a handler: 2 is SIGINT's, 4000 is SIGTERM's.
watching() {
    local caught
    caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$pid/status")
    [ -n "$caught" ] && [ $((0x$caught & 0x$1)) -ne 0 ]
}

# heard SIGNAL_BIT: whether that signal has come to the started program, which is still there: a
# second one is another one only then.
heard() {
    [ -r "/proc/$pid/status" ] && ! watching "$1"
}

# waiting: whether the started program sleeps, as one does that reads what is not there yet.
waiting() {
    grep -q '^State:[[:space:]]*S' "/proc/$pid/status"
}

# ends CODE: waits for the started program and compares its exit status.
ends() {
    wait "$pid"
    code=$?
    [ "$code" -eq "$1" ] || fail "exit status $code, want $1: $(cat err)"
}

finish() {
    [ "$failures" -eq 0 ] && echo "all checks passed"
    exit $((failures > 0))
}
