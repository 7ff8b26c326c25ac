"""Submissions that are refused for the names that they refer to or define."""

load("@local_config_cuda//:config.bzl", "REQUIRES_NVCC")
load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library")
load("//grader/isolation:remote.bzl", "worker_deps")
load("//grader/selftest:selftest.bzl", "expect_verdict")
load("//grader/symbols:symbols.bzl", "SYMBOLS_DEPS", "SYMBOLS_SRCS", "symbols", "symbols_defines")

_LAB = "04_sgemm"

def wrong_symbols(verdicts):
    """A test for each: {macro of wrong_symbols.c: text that must come}; "" must pass.

    Their objects are looked at, and not even linked: the program is the one test alone.

    Args:
      verdicts: the macros.
    """
    for macro, text in verdicts.items():
        name = "symbols_" + (macro.lower() or "right")
        cc_library(
            name = name + "_sgemm",
            testonly = True,
            srcs = ["wrong_symbols.c"],
            local_defines = [macro] if macro else [],
            target_compatible_with = REQUIRES_NVCC,
            deps = [
                "//common/device",
                "//common/nn",
                "//labs/%s:contract" % _LAB,
            ],
        )
        symbols(
            name = name + "_symbols",
            beside = worker_deps(_LAB) + ["//labs/%s:engine_deps" % _LAB],
            subject = ":" + name + "_sgemm",
            target_compatible_with = REQUIRES_NVCC,
        )
        cc_binary(
            name = name + "_parity",
            testonly = True,
            srcs = SYMBOLS_SRCS,
            data = [name + "_symbols"],
            linkstatic = True,
            local_defines = symbols_defines(name + "_symbols", _LAB),
            deps = SYMBOLS_DEPS + ["//common/testing"],
        )
        expect_verdict(
            name = name,
            size = "small",
            test = ":" + name + "_parity",
            want = "fail" if macro else "pass",
            text = text,
            target_compatible_with = REQUIRES_NVCC,
        )
