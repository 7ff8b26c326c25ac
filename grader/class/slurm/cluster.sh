# shellcheck shell=bash
# A test cluster (test_cluster.sh) for the script that sources this file; it ends with that script.

# bring_up TEST_CLUSTER FLAGS...: starts it and exports SLURM_CONF. @return 77, after a line, where there
# can be none
bring_up() {
    local folder code
    folder=$(mktemp -d) || return 1
    mkfifo "$folder/commands" "$folder/answers"
    "$@" <"$folder/commands" >"$folder/answers" 2>"$folder/said" &
    cluster_process=$!
    exec 5>"$folder/commands" 6<"$folder/answers"
    code=0
    if ! read -r SLURM_CONF <&6; then
        wait "$cluster_process"
        code=$?
        cat "$folder/said"
    fi
    export SLURM_CONF
    rm -rf -- "$folder"
    return "$code"
}

# ctl COMMAND: to the cluster; waits until it is done.
ctl() {
    local line
    echo "$*" >&5
    read -r line <&6
    [ "$line" = ok ] || fail "the cluster says '$line' to: $*"
}
