# Helpers for tests that run programs; such a test sources this file and works in its temporary
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

# refuses TEXT PROGRAM ARGS: expects exit status 1, no output, and one line with TEXT on stderr.
refuses() {
    local text=$1
    shift
    run "$@"
    [ "$code" -eq 1 ] || fail "exit status $code, want 1: $*"
    [ -s out ] && fail "printed text: $*"
    [ "$(wc -l <err)" -eq 1 ] || fail "not one line: $* -> $(cat err)"
    grep -qF -- "$text" err || fail "want '$text': $* -> $(cat err)"
}

# accepts PROGRAM ARGS: expects exit status 0.
accepts() {
    run "$@"
    [ "$code" -eq 0 ] || fail "exit status $code: $* -> $(cat err)"
}

# says TEXT FILE: expects the text in the file.
says() {
    grep -qF -- "$1" "$2" || fail "want '$1' in $2: $(cat "$2")"
}

# bare PROGRAM: sets the array `bare` to a command that starts a copy of it without runfiles, in a
# folder that looks like the course's but has no datasets/. A copy finds its shared libraries no more
# by itself, hence LD_LIBRARY_PATH.
bare() {
    LD_LIBRARY_PATH=$(ldd "$1" | awk '$3 ~ /_solib/ { sub("/[^/]*$", "", $3); print $3 }' | paste -sd :)
    export LD_LIBRARY_PATH
    mkdir -p bare && : >bare/WORKSPACE && cp "$1" bare/ || exit 1
    # shellcheck disable=SC2034 # used by the tests that source this file
    bare=(env -u RUNFILES_DIR -u BUILD_WORKSPACE_DIRECTORY -C "$PWD/bare" "./$(basename "$1")")
}

# start PROGRAM ARGS: runs it in the background, where Ctrl-C is not ignored; leaves out, err, pid.
start() {
    : >out
    env --default-signal=HUP,INT,TERM,PIPE "$@" >out 2>err <in &
    pid=$!
}

# await COMMAND: repeats it until it succeeds; fails after two minutes, as a machine may be busy.
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

# watching SIGNAL_BIT: whether the started program has a handler for the signal: 1 is SIGHUP, 2
# SIGINT, 4000 SIGTERM.
watching() {
    local caught
    caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$pid/status")
    [ -n "$caught" ] && [ $((0x$caught & 0x$1)) -ne 0 ]
}

# heard SIGNAL_BIT: whether the started program has received that signal and still runs. A second
# signal before that would merge with the first.
heard() {
    [ -r "/proc/$pid/status" ] && ! watching "$1"
}

# waiting: whether the started program sleeps, for example because it waits for input.
waiting() {
    grep -q '^State:[[:space:]]*S' "/proc/$pid/status"
}

# ends CODE: waits for the started program and expects this exit status.
ends() {
    wait "$pid"
    code=$?
    [ "$code" -eq "$1" ] || fail "exit status $code, want $1: $(cat err)"
}

# writes_well PROGRAM ARGS... FLAG: a program that writes the file of its last flag. A file that
# cannot be written is refused before the work; what is no regular file is written into, not
# replaced; a full disk at the end does not cost what the program prints.
writes_well() {
    rm -rf written && mkdir written
    refuses "absent/file: cannot write: No such file or directory" "$@" absent/file
    refuses "written: cannot write: Is a directory" "$@" written
    (umask 027 && run "$@" written/plain)
    [ "$(stat -c %a written/plain)" = 640 ] || fail "the umask is not heeded: $*"
    ln -s plain written/link && : >written/plain
    accepts "$@" written/link
    { [ -L written/link ] && [ -s written/plain ]; } || fail "a link was replaced: $*"
    mkfifo written/pipe
    cat written/pipe >written/through &
    local reader=$!
    accepts "$@" written/pipe
    [ -p written/pipe ] || { fail "a pipe was replaced: $*" && kill "$reader"; }
    wait "$reader"
    [ -s written/through ] || fail "nothing came through the pipe: $*"
    : >written/third
    accepts "$@" /dev/fd/3 3>written/third
    [ -s written/third ] || fail "nothing in /dev/fd/3: $*"
    accepts "$@" /dev/null
    [ -c /dev/null ] || fail "/dev/null was replaced: $*"
    run "$@" /dev/full
    { [ "$code" -eq 1 ] && [ -s out ]; } || fail "a full disk: status $code, printed '$(cat out)': $*"
    says "/dev/full: cannot write: No space left on device" err
}

finish() {
    [ "$failures" -eq 0 ] && echo "all checks passed"
    exit $((failures > 0))
}
