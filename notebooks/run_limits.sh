#!/bin/sh
# Runs limits_tool.py on the clone that `bazel run` was called in: it needs Python alone.
set -u
root=${BUILD_WORKSPACE_DIRECTORY:?start it with bazel run}
if ! command -v python3 >/dev/null; then
    echo "limits: python3 is not installed: sudo apt install python3" >&2
    exit 1
fi
PYTHONDONTWRITEBYTECODE=1 exec python3 "$root/notebooks/limits_tool.py" "$root/notebooks" "$@"
