#!/bin/sh
# Tells Bazel the commit that it builds, for the bundle: its hash, with "-dirty" if there are
# uncommitted changes. Prints nothing outside a git clone.
commit=$(git rev-parse HEAD 2>/dev/null) || exit 0
git diff --quiet HEAD 2>/dev/null || commit=$commit-dirty
echo "STABLE_COMMIT $commit"
