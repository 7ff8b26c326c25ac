"""Tests of the grader: submissions whose verdict is known."""

load("@local_config_cuda//:config.bzl", "REQUIRES_NVCC")
load("@rules_cc//cc:defs.bzl", "cc_binary")
load("@rules_cuda//cuda:defs.bzl", "cuda_library")
load("//common/bazel:timing.bzl", "MEASURES_GPU_TIME")
load("//common/bazel:deep.bzl", "tags_of_package")
load("//grader/isolation:remote.bzl", "CASE_SRCS", "REMOTE_LINKOPTS", "cases", "lab_worker", "remote_defines", "subject_defines", "worker_deps")
load("//grader/symbols:symbols.bzl", "SYMBOLS_DEPS", "SYMBOLS_SRCS", "symbols", "symbols_defines")
load("//grader:labs.bzl", "LABS")

def expect_verdict(name, test, want, text, size = "medium", tags = [], variables = [], data = [], **kwargs):
    """Runs a graded test program; its verdict must be `want` ("pass", "fail") and match `text`."""
    native.sh_test(
        name = name,
        size = size,
        srcs = ["expect_verdict.sh"],
        args = [want, "'%s'" % text, "$(location %s)" % test] + variables,
        data = [test] + data,
        tags = tags_of_package(tags),
        **kwargs
    )

def graded_case(name, lab, part, subject, margin = "1.0", small = False, recorded = False, with_symbols = False):
    """One graded test as a program, with a worker on a library that brings the lab's functions.

    Args:
      name: of the program; its worker is NAME_worker.
      lab: NN_topic, one of //grader:labs.bzl.
      part: "parity" or "speedup".
      subject: library that brings the learner's functions.
      margin: factor on thresholds.
      small: the speedup test is not about how fast the submission is: its shapes are smaller.
      recorded: it leaves records, as a learner's graded test does.
      with_symbols: the parity test looks at what the submission refers to, too. Without, a wrong one
        may refer to anything, and must be caught by what it does.
    """
    own_symbols = name + "_symbols"
    device = LABS[lab].get("device", True)
    timed = part == "speedup" and LABS[lab].get("baseline_times") and not small
    times = lab + "_baseline_times" if timed else None
    times_data = select({
        "//common/bazel:simt": ["//grader:" + times],
        "//conditions:default": [],
    }) if timed else []
    lab_worker(name + "_worker", lab, [subject], whole = False)
    if with_symbols:
        symbols(
            name = own_symbols,
            beside = worker_deps(lab) + ["//labs/%s:engine_deps" % lab],
            subject = subject,
            target_compatible_with = REQUIRES_NVCC if device else [],
        )
    cc_binary(
        name = name,
        testonly = True,
        srcs = CASE_SRCS + (["//grader/harness:record_enable.c"] if recorded else []) +
               (SYMBOLS_SRCS if with_symbols else []),
        data = [name + "_worker", "//grader:%s_baseline" % lab] + times_data + ([own_symbols] if with_symbols else []),
        linkopts = REMOTE_LINKOPTS,
        linkstatic = True,
        local_defines = subject_defines("selftest", margin) +
                        (["GRADER_LAB=\\\"%s\\\"" % lab, "GRADER_PART=\\\"%s\\\"" % part] if recorded else []) +
                        remote_defines(name + "_worker", "../%s_baseline" % lab, device, "../" + times if timed else None) +
                        (symbols_defines(own_symbols, lab) if with_symbols else []),
        target_compatible_with = REQUIRES_NVCC if device else [],
        deps = [cases(lab, part, small)] + (SYMBOLS_DEPS if with_symbols else []),
    )

def _only(case):
    """The variable that leaves one case of a parity test; nothing for all of them."""
    return ["GTEST_FILTER=parity." + case] if case else []

def too_slow(name, test, text, variables = [], target_compatible_with = REQUIRES_NVCC):
    """A right submission that is not fast enough: its speedup test fails with `text`."""
    expect_verdict(
        name = name,
        tags = MEASURES_GPU_TIME,
        target_compatible_with = target_compatible_with,
        test = test,
        text = text,
        variables = variables,
        want = "fail",
    )

# A GPU does not notice what simt stops at.
_ON_SIMT = select({
    "//common/bazel:simt": [],
    "//conditions:default": ["//common/bazel:needs_config_simt"],
})

# What is said of the mistakes that many labs' submissions make, under the names that they have there.
_USUAL = {
    "aligned": "misaligned: thread .* reads 16 bytes",
    "behind": "out of bounds: thread .* writes 4 bytes .* just past the end of .*cudaMalloc",
    "not_refused": "must be refused with STATUS_INVALID_ARGUMENT",
    "status": "nothing works today .STATUS_DEVICE.",
}

def wrong_cpu(program, variable, verdicts, cases = {}, usual = [], settings = [], **kwargs):
    """A parity test for each wrong submission, and for "right", the control, which must pass.

    Args:
      program: the graded_case().
      variable: that chooses the submission.
      verdicts: {name: text that must come}; "PASSED": a right one that looks wrong.
      cases: {name: the one test case that must say it}, where others in front of it would take long,
        or fail as well and say something else.
      usual: names of others, of which what is usual must be said.
      settings: NAME=VALUE, more variables.
      **kwargs: as for expect_verdict.
    """
    all = dict({mistake: _USUAL[mistake] for mistake in usual}, right = "PASSED")
    all.update(verdicts)
    for mistake, text in all.items():
        expect_verdict(
            name = "%s_%s" % (program, mistake),
            test = ":" + program,
            want = "pass" if text == "PASSED" else "fail",
            text = text,
            variables = ["%s=%s" % (variable, mistake)] + settings + _only(cases.get(mistake)),
            **kwargs
        )

def wrong_lab(name, lab, subject, variable, verdicts, cases = {}, usual = [], settings = [], deps = [], linkopts = [], margin = "1.0", recorded = False, compute_90a = False):
    """A lab's wrong submissions: SUBJECT.cu, the programs NAME_parity and NAME_speedup, the verdicts on simt.

    Args:
      name: begins the names of the programs.
      lab: NN_topic.
      subject: the library of SUBJECT.cu, of whose submissions the variable chooses one.
      variable: see wrong_cpu(), as verdicts, cases and usual.
      verdicts: of the parity test.
      cases: of the parity test.
      usual: of the parity test.
      settings: of the parity test.
      deps: what SUBJECT.cu needs beside the lab's contract.
      linkopts: of SUBJECT.cu.
      margin: factor on the speedup test's thresholds.
      recorded: the parity test leaves records.
      compute_90a: SUBJECT.cu has Hopper's own instructions.
    """
    cuda_library(
        name = subject,
        compute_90a = compute_90a,
        newest_simt_gpu = True,
        testonly = True,
        srcs = [subject + ".cu"],
        hdrs = [
            "elements.cuh",
            "mistakes.h",
        ],
        linkopts = linkopts,
        deps = ["//common/cuda", "//common/device", "//labs/%s:contract" % lab] + deps,
    )
    graded_case(name = name + "_parity", lab = lab, part = "parity", recorded = recorded, subject = ":" + subject)
    graded_case(name = name + "_speedup", lab = lab, margin = margin, part = "speedup", subject = ":" + subject)
    wrong_cpu(
        name + "_parity",
        variable,
        verdicts,
        cases,
        usual,
        settings,
        target_compatible_with = REQUIRES_NVCC + _ON_SIMT,
    )

def wrong_gpu_loads(program, variable):
    """A submission that loads a library by its path: the sandbox does not let it read that file."""
    expect_verdict(
        name = program + "_library",
        data = [":libcublas_of_somebody.so"],
        target_compatible_with = REQUIRES_NVCC,
        test = ":" + program,
        text = "libcublas_of_somebody.so: cannot open shared object file",
        variables = [
            variable + "=library",
            "WRONG_LIBRARY=$(location :libcublas_of_somebody.so)",
        ],
        want = "fail",
    )
