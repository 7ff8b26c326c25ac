#!/bin/bash
# Puts compile_commands.json into the workspace, for clangd. See --help.
# usage, by BUILD: compile_commands.sh TEMPLATE [--output FILE]
set -eu

usage() {
    cat <<'END'
usage: bazel run //tools:compile_commands [-- --output FILE]

Writes compile_commands.json, by which clangd knows how each file of the labs is
compiled, CUDA included. Run it once, and again after a file was added.

  --output FILE  write to FILE instead of compile_commands.json in the workspace
  --help         print this and exit
END
}

fail() {
    echo "compile_commands: $*" >&2
    exit 1
}

template=$1
shift
output=""
while [ $# -gt 0 ]; do
    case "$1" in
    --output)
        [ $# -gt 1 ] || fail "--output needs a file"
        output=$2
        shift
        ;;
    --output=*) output=${1#--output=} ;;
    --help | -h)
        usage
        exit 0
        ;;
    *) fail "unknown argument '$1'; --help lists them" ;;
    esac
    shift
done

workspace=${BUILD_WORKSPACE_DIRECTORY:-}
[ -n "$workspace" ] || fail "start it with: bazel run //tools:compile_commands"
case "$output" in
'') output=$workspace/compile_commands.json ;;
/*) ;;
*) output=${BUILD_WORKING_DIRECTORY:-$workspace}/$output ;;
esac

# Outside of sandboxes the file lies in OUTPUT_BASE/execroot/warpbook/bazel-out/...
base=$(readlink -f "$template")
base=${base%%/execroot/*}

mkdir -p "$(dirname "$output")" || fail "cannot make the folder of '$output'"
text=$(<"$template")
text=${text//@WORKSPACE@/"$workspace"}
text=${text//@OUTPUT_BASE@/"$base"}
if ! printf '%s\n' "$text" >"$output.part" || ! mv "$output.part" "$output"; then
    fail "cannot write '$output'"
fi
echo "$output: $(grep -c '"file":' "$output") files"
if ! command -v clangd >/dev/null; then
    echo "clangd itself is not installed here: ./setup.sh --dev installs it, and editors' extensions bring their own"
fi
