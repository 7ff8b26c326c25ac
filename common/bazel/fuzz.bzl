"""Fuzz targets: --config=deep replays their seeds under sanitizers; --config=fuzz uses libFuzzer."""

load("@rules_cc//cc:defs.bzl", "cc_binary")
load("//common/bazel:deep.bzl", "DEEP")
load("//common/bazel:sanitized_test.bzl", "sanitized_test")

def fuzz_target(name, srcs, deps = []):
    """NAME is the program; NAME_test replays seeds and changes of them (see common/testing/fuzz.h)
    in --config=deep."""
    cc_binary(
        name = name,
        testonly = True,
        srcs = srcs,
        linkopts = select({
            "//common/bazel:libfuzzer": ["-fsanitize=fuzzer"],
            "//conditions:default": [],
        }),
        linkstatic = True,
        deps = deps + ["//common/testing:fuzz"],
    )
    sanitized_test(
        name = name + "_test",
        size = "medium",
        tags = DEEP,
        test = ":" + name,
    )
