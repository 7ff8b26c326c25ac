#!/bin/sh
# Runs a Python program with the notebooks' packages, which keep their files in the test's folder.
# usage: in_jupyter.sh PYTHON PROGRAM ARGUMENTS...
set -u
folder=${TEST_TMPDIR:-$(mktemp -d)}
export HOME="$folder" MPLCONFIGDIR="$folder/matplotlib" IPYTHONDIR="$folder/ipython"
export JUPYTER_CONFIG_DIR="$folder/jupyter" JUPYTER_DATA_DIR="$folder/jupyter_data"
export JUPYTER_PLATFORM_DIRS=1 PYTHONDONTWRITEBYTECODE=1
unset WARPBOOK_RESULTS WARPBOOK_WORKSPACE
exec "$@"
