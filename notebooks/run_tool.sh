#!/bin/sh
# Runs notebook_tool.py on the clone that `bazel run` was called in.
# usage: run_tool.sh PYTHON html|refresh
set -u
python=$PWD/$1
root=${BUILD_WORKSPACE_DIRECTORY:?start it with bazel run}
notebooks=$root/notebooks
case "$2" in
html) exec "$python" "$notebooks/notebook_tool.py" html "$notebooks" "$root/results/notebooks" ;;
*) exec "$python" "$notebooks/notebook_tool.py" refresh "$notebooks" ;;
esac
