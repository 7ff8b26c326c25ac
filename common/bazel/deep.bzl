"""Tests that only --config=deep runs: those that validate the project's own tools.

They are the emulator's tests against recorded kernels, tests built again with sanitizers, replays
of fuzz seeds, hundreds of wrong submissions, and the bundle. Without them `bazel test //...` tells
a user that everything works on their machine; .bazelrc leaves out the tag, CI runs them all.
"""

DEEP = ["deep"]

_DEEP_PACKAGES = ["common/simt", "grader/selftest"]

def tags_of_package(tags):
    """`tags`, and DEEP where all tests of the calling package are deep."""
    package = native.package_name()
    deep = [p for p in _DEEP_PACKAGES if package == p or package.startswith(p + "/")]
    return tags + (DEEP if deep else [])
