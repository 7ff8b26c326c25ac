"""Starters that do more than their work: what harmless programs do, or try what they must not reach."""

load("@local_config_cuda//:config.bzl", "REQUIRES_NVCC")
load("@rules_cc//cc:defs.bzl", "cc_library", "cc_test")
load("//common/bazel:deep.bzl", "DEEP")
load("//grader/selftest:sabotage.bzl", "ON_SIMT")
load("//grader/selftest:selftest.bzl", "expect_verdict", "graded_case")

def _starter(name, lab, functions, ways):
    """A lab's starter whose functions are called by honest_NN.c, with the honest_around() of `ways`."""
    cc_library(
        name = name,
        testonly = True,
        srcs = ["honest_%s.c" % lab[:2]],
        linkopts = ["-Wl,--wrap=" + function for function in functions],
        target_compatible_with = REQUIRES_NVCC,
        deps = [
            ways,
            "//labs/%s:contract" % lab,
            "//labs/%s:starter" % lab,
        ],
    )

def honest_lab(lab, functions, parity, speedup = None):
    """A lab's starter with each way of honest_ways.cu, by honest_NN.c.

    Args:
      lab: NN_topic.
      functions: of the starter, each with a __wrap_NAME() in honest_NN.c.
      parity: cases that must pass in each way.
      speedup: the case that must be told its time and nothing else, in all ways at once; None: none.
    """
    name = "honest_" + lab[:2]
    _starter(name, lab, functions, ":honest_ways")
    tries = [
        (way, "parity", "parity." + parity, "pass", "PASSED")
        for way in ["host", "kernels", "memory", "order"]
    ]
    graded_case(name = name + "_parity", lab = lab, part = "parity", subject = ":" + name)
    if speedup:
        graded_case(name = name + "_speedup", lab = lab, part = "speedup", subject = ":" + name)
        too_slow = "%s %s is too slow: modelled .*x, required" % (lab, speedup)
        tries.append(("all", "speedup", "speedup." + speedup, "fail", too_slow))
    for way, part, cases, want, text in tries:
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

# What handed.c tries, and what must be said: "same" is the honest one's time and verdict.
HANDED_TRICKS = {
    "stops": "your code called kill, which is not allowed here",
    "ends": "your code called kill, which is not allowed here",
    "stops_group": "your code called kill, which is not allowed here",
    "stops_thread": "your code called tgkill, which is not allowed here",
    "queues": "your code called rt_sigqueueinfo, which is not allowed here",
    "traces": "your code called ptrace, which is not allowed here",
    "writes": "your code called process_vm_writev, which is not allowed here",
    "reads": "your code called process_vm_readv, which is not allowed here",
    "takes_descriptors": "your code called pidfd_open, which is not allowed here",
    "limits": "your code called prlimit64, which is not allowed here",
    "opens": "same",
    "processors": "same",
    "idles": "same",
    "priorities": "same",
    "pages": "same",
    "settings": "same",
    "channel": "your code wrote to the grader",
    "flood": "your code wrote to the grader",
    # Half of a packet may have gone out when the device takes no more: it hangs up.
    "questions": "your code used the GPU when it had answered|devices unavailable",
    "ends_connection": "devices unavailable",
}

def handed_lab(lab, functions, case, tricks, small = False):
    """A lab's starter that is handed everything, and tries what it can.

    Args:
      lab: NN_topic.
      functions: as for honest_lab().
      case: of the speedup test, which the starter misses.
      tricks: of HANDED_TRICKS.
      small: as for graded_case().
    """
    name = "handed_" + lab[:2]
    _starter(name, lab, functions, ":handed")
    graded_case(
        name = name + "_speedup",
        small = small,
        lab = lab,
        part = "speedup",
        subject = ":" + name,
    )
    cc_test(
        name = name + "_everything",
        size = "medium",
        srcs = [
            "hand_over.c",
            "handed.h",
        ],
        args = ["$(rootpath :%s_speedup)" % name, "speedup." + case] +
               ["'handed_%s=%s'" % (trick, end) for trick, end in tricks.items()],
        data = [":%s_speedup" % name],
        tags = DEEP,
        target_compatible_with = REQUIRES_NVCC + ON_SIMT,
        deps = ["//common/testing:children"],
    )
