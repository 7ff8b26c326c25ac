#!/bin/sh
# Tells Bazel which commit it builds, for what carries it along (the bundle): hash, and "-dirty"
# with changes that are not committed. Nothing where this is no clone.
commit=$(git rev-parse HEAD 2>/dev/null) || exit 0
git diff --quiet HEAD 2>/dev/null || commit=$commit-dirty
echo "STABLE_COMMIT $commit"
