#!/usr/bin/env bash
# sandbox_test's cases as on kernels without Landlock, without seccomp's notifications, without
# seccomp, and in a container that makes no namespaces: what still holds must hold, and what does not
# must be said.
#   older_kernels_test.sh WITHOUT SANDBOX_TEST
set -u
failed=0
cases=tells_what_holds:finds_what_holds_here:gives_the_exit_status:stops_a_loop_at_the_wall_limit
cases+=:refuses_processes:reads_no_other_files:writes_no_other_files:keeps_its_memory_to_itself
cases+=:lets_no_memory_become_code:lets_no_file_of_its_own_become_code:lets_honest_code_be
cases+=:stops_what_touches_too_much_memory

# lacks KERNEL WORDS: the words are what the sandbox must say it lacks.
lacks() {
    local said
    said=$(GTEST_FILTER=sandbox.${cases//:/:sandbox.} "$PWD/$without" "$1" "$PWD/$test" 2>&1) || {
        echo "FAILED without $1:"
        echo "$said"
        failed=1
    }
    grep "^this kernel lacks: " <<<"$said" | grep -qF "$2" || {
        echo "FAILED without $1: it does not say that it lacks $2:"
        grep "this kernel lacks" <<<"$said"
        failed=1
    }
}

without=$1 test=$2
lacks landlock "files outside its folder not readable (Landlock)"
lacks notifications "refused system calls named (seccomp notifications)"
lacks seccomp "system calls filtered (seccomp)"
lacks namespaces "" # it needs none
exit "$failed"
