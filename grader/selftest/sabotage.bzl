"""Submissions that want a verdict without having earned it; README.md has the table."""

load("@local_config_cuda//:config.bzl", "REQUIRES_NVCC")
load("@rules_cc//cc:defs.bzl", "cc_library")
load("@rules_cuda//cuda:defs.bzl", "cuda_library")
load("//grader/selftest:selftest.bzl", "expect_verdict", "graded_case")

# A GPU does not notice what simt stops at, and some tricks are for simt.
ON_SIMT = select({
    "//common/bazel:simt": [],
    "//conditions:default": ["//common/bazel:needs_config_simt"],
})

def sabotage_programs():
    """Lab 04's graded tests on the submissions of sabotage_*.c; $WRONG_SABOTAGE chooses."""
    cc_library(
        name = "sabotage_tricks",
        testonly = True,
        srcs = native.glob(
            ["sabotage_*.c"],
            exclude = [
                "sabotage_code.c",
                "sabotage_timed_*.c",
            ],
        ),
        hdrs = [
            "sabotage.h",
        ],
        deps = [
            "//common/base",
            "//common/device",
            "//common/simt",
            "//common/simt/runtime:packets",
            "//grader/isolation:message",
            "//labs/04_sgemm:contract",
            "@rules_cuda//cuda:runtime",
        ],
    )
    cuda_library(
        name = "sabotage_sgemm",
        newest_simt_gpu = True,
        testonly = True,
        srcs = ["sabotage_sgemm.cu"],
        hdrs = ["sabotage.h"],
        deps = [
            ":sabotage_tricks",
            "//common/device",
            "//labs/04_sgemm:contract",
        ],
    )
    graded_case(
        name = "sabotage_parity",
        lab = "04_sgemm",
        margin = "1.0",
        part = "parity",
        recorded = True,
        subject = ":sabotage_sgemm",
    )
    graded_case(
        name = "sabotage_speedup",
        small = True,
        lab = "04_sgemm",
        margin = "1.0",
        part = "speedup",
        recorded = True,
        subject = ":sabotage_sgemm",
    )

def sabotage(part, cases, verdicts, patience = 10):
    """A test for each submission, called sabotage_NAME_CASE with the last of its cases.

    Args:
      part: "parity" or "speedup".
      cases: tests of that part that are run.
      verdicts: {name of the submission: text that must come}; "PASSED" where it must pass.
      patience: seconds until code is taken for endless.
    """
    for trick, text in verdicts.items():
        expect_verdict(
            name = "sabotage_%s_%s" % (trick, cases[-1]),
            size = "small",
            test = ":sabotage_" + part,
            want = "pass" if text == "PASSED" else "fail",
            text = text,
            variables = [
                "WRONG_SABOTAGE=" + trick,
                "GTEST_FILTER=" + ":".join(["%s.%s" % (part, case) for case in cases]),
                "WARPBOOK_PATIENCE=%d" % patience,
                # Nobody's machine is filled.
                "WARPBOOK_WORKER_MIB=512",
                # What must not get as far as a submission.
                "WARPBOOK_SEED=7",
                "WARPBOOK_GRADES=/dev/null",
            ],
            target_compatible_with = REQUIRES_NVCC + ON_SIMT,
        )
