"""All repositories that the workspace uses."""

load("//common/bazel:cuda_configure.bzl", "cuda_configure")
load("//common/bazel:jupyter_configure.bzl", "jupyter_configure")
load("//common/bazel:system_library.bzl", "system_library")

def _bazel_repositories():
    """Parts that Bazel itself would download at the first build."""
    native.local_repository(name = "rules_cc", path = "common/bazel/shims/rules_cc")
    native.local_repository(name = "remote_coverage_tools", path = "common/bazel/shims/coverage")

    # Debian's Bazel has no version number, and its Java rules are in a package.
    if not native.bazel_version:
        native.local_repository(name = "rules_java", path = "/usr/share/bazel/rules/java")

def warpbook_repositories():
    """Declares all repositories: installed libraries, or else pinned archives."""
    _bazel_repositories()
    native.local_repository(name = "rules_cuda", path = "common/bazel/shims/rules_cuda")
    cuda_configure(name = "local_config_cuda")
    jupyter_configure(name = "local_config_jupyter")
    system_library(
        name = "googletest",
        library = "googletest",
        archives = ["gtest"],
        headers = ["gtest"],
        linkopts = ["-lpthread"],
        url = "https://github.com/google/googletest/archive/refs/tags/release-1.12.1.tar.gz",
        sha256 = "81964fe578e9bd7c94dfdb09c8e4d6e6759e19967e397dbea48d1c10e45d0df2",
        strip_prefix = "googletest-release-1.12.1",
        build_file = "//common/bazel/third_party:googletest.BUILD",
    )
    system_library(
        name = "cjson",
        library = "cjson",
        archives = ["cjson"],
        headers = ["cjson/cJSON.h"],
        url = "https://github.com/DaveGamble/cJSON/archive/v1.7.15.tar.gz",
        sha256 = "5308fd4bd90cef7aa060558514de6a1a4a0819974a26e6ed13973c5f624c24b2",
        strip_prefix = "cJSON-1.7.15",
        build_file = "//common/bazel/third_party:cjson.BUILD",
    )
    system_library(
        name = "utf8proc",
        library = "utf8proc",
        archives = ["utf8proc"],
        headers = ["utf8proc.h"],
        url = "https://github.com/JuliaStrings/utf8proc/archive/v2.7.0.tar.gz",
        sha256 = "4bb121e297293c0fd55f08f83afab6d35d48f0af4ecc07523ad8ec99aa2b12a1",
        strip_prefix = "utf8proc-2.7.0",
        build_file = "//common/bazel/third_party:utf8proc.BUILD",
    )

    # Byte-level tokenizers split texts by regular expressions. Without it their reader reports that
    # it is missing.
    system_library(
        name = "pcre2",
        library = "pcre2",
        archives = ["pcre2-8"],
        headers = ["pcre2.h"],
    )

    # The grader's sandbox filters system calls with it.
    system_library(
        name = "seccomp",
        library = "seccomp",
        archives = ["seccomp"],
        headers = ["seccomp.h", "seccomp-syscalls.h"],
    )

    # Submissions of a class may be zip files. Without it grade_class reports that it is missing.
    system_library(
        name = "minizip",
        library = "minizip",
        archives = ["minizip", "z"],
        headers = ["minizip", "zlib.h", "zconf.h"],
    )

    # Reads .tar.xz archives of IMDB for lab 08. Without it the reader reports that it is missing.
    system_library(
        name = "lzma",
        library = "lzma",
        archives = ["lzma"],
        headers = ["lzma.h", "lzma"],
        linkopts = ["-lpthread"],
    )

    # Lab 01 compares with it. Building it would take too long: if it is not
    # installed, the bench prints a dash.
    system_library(
        name = "openblas",
        library = "openblas",
        archives = ["openblas"],
        headers = ["cblas.h", "openblas_config.h"],
        linkopts = ["-lpthread", "-lm"],
    )
