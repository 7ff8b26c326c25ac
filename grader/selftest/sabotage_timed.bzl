"""Starters that leave out what is timed or counted, where they believe that nobody looks."""

load("@local_config_cuda//:config.bzl", "REQUIRES_NVCC")
load("@rules_cc//cc:defs.bzl", "cc_library")
load("//grader/selftest:sabotage.bzl", "ON_SIMT")
load("//grader/selftest:selftest.bzl", "expect_verdict", "graded_case")

def sabotage_timed(lab, functions, verdicts, small = False, beside = []):
    """The speedup test of a lab on such submissions, a test each.

    Args:
      lab: NN_topic.
      functions: of the starter, each with a __wrap_NAME() in sabotage_timed_NN.c.
      verdicts: {(trick, case of the speedup test): text that must come}.
      small: as for graded_case().
      beside: libraries with other tricks.
    """
    name = "timed_" + lab[:2]
    cc_library(
        name = name + "_subject",
        testonly = True,
        srcs = ["sabotage_timed_%s.c" % lab[:2]],
        hdrs = [
            "mistakes.h",
            "sabotage_channel.h",
            "sabotage_timed.h",
        ],
        linkopts = ["-Wl,--wrap=" + function for function in functions],
        target_compatible_with = REQUIRES_NVCC,
        deps = [
            ":channels",
            ":decoy_work",
            ":lesser",
            "//labs/%s:contract" % lab,
            "//labs/%s:starter" % lab,
            "@rules_cuda//cuda:runtime",
        ] + beside,
    )
    graded_case(
        name = name + "_speedup",
        small = small,
        lab = lab,
        part = "speedup",
        subject = ":%s_subject" % name,
    )
    for (trick, case), text in verdicts.items():
        expect_verdict(
            name = "%s_%s_%s" % (name, case, trick),
            size = "small",
            test = ":%s_speedup" % name,
            text = text,
            variables = [
                "WRONG_TIMED=" + trick,
                "GTEST_FILTER=speedup." + case,
            ],
            want = "fail",
            target_compatible_with = REQUIRES_NVCC + ON_SIMT,
        )
