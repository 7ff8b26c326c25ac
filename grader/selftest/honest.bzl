"""Right submissions that use what harmless programs use: none may be refused."""

load("@local_config_cuda//:config.bzl", "REQUIRES_NVCC")
load("@rules_cc//cc:defs.bzl", "cc_library")
load("//grader/selftest:sabotage.bzl", "ON_SIMT")
load("//grader/selftest:selftest.bzl", "expect_verdict", "graded_case")

def honest_lab(lab, functions, parity, speedup, defines = []):
    """A lab's starter with each way of honest_ways.cu, by honest_NN.c.

    Args:
      lab: NN_topic.
      functions: of the starter, each with a __wrap_NAME() in honest_NN.c.
      parity: cases that must pass in each way.
      speedup: the case that must be told its time and nothing else, in all ways at once.
      defines: what else the tests are compiled with.
    """
    name = "honest_" + lab[:2]
    cc_library(
        name = name,
        testonly = True,
        srcs = [name + ".c"],
        linkopts = ["-Wl,--wrap=" + function for function in functions],
        target_compatible_with = REQUIRES_NVCC,
        deps = [
            ":honest_ways",
            "//labs/%s:contract" % lab,
            "//labs/%s:starter" % lab,
        ],
    )
    for part in ["parity", "speedup"]:
        graded_case(
            name = "%s_%s" % (name, part),
            defines = defines,
            lab = lab,
            part = part,
            subject = ":" + name,
        )
    for way, part, cases, want, text in [
        (way, "parity", "parity." + parity, "pass", "PASSED")
        for way in ["host", "kernels", "memory", "order"]
    ] + [("all", "speedup", "speedup." + speedup, "fail", "%s %s is too slow: modelled .*x, required" % (lab, speedup))]:
        expect_verdict(
            name = "%s_%s_%s" % (name, way, part),
            size = "small",
            target_compatible_with = REQUIRES_NVCC + ON_SIMT,
            test = ":%s_%s" % (name, part),
            text = text,
            variables = [
                "WRONG_HONEST_WAY=" + way,
                "GTEST_FILTER=" + cases,
            ],
            want = want,
        )
