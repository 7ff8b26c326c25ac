#!/bin/bash
# Once, when Gradescope builds the image: unpacks the course, installs what it needs and builds the
# graders of the starters, so that a submission compiles one file.
set -euo pipefail
: "${AUTOGRADER:=/autograder}"
cd "$AUTOGRADER/source"
tar xf warpbook.tar
cd warpbook
./setup.sh --no-notebooks
bazel build --config=simt //grader:graders //grader/report:report_alone
bazel shutdown
