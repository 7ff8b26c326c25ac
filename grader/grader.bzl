"""Two graded tests a lab: parity and speedup."""

load("//common/bazel:sanitized_test.bzl", "c_test")
load("//common/bazel:timing.bzl", "MEASURES_CPU_TIME", "MEASURES_GPU_TIME")
load("//grader:baseline_times.bzl", "baseline_times")
load("//grader:labs.bzl", "LABS")
load("//grader/isolation:remote.bzl", "CASE_SRCS", "REMOTE_LINKOPTS", "cases", "compiled_once", "lab_worker", "remote_defines", "subject_defines", "worker_deps")
load("//grader/symbols:symbols.bzl", "SYMBOLS_DEPS", "SYMBOLS_SRCS", "symbols", "symbols_defines")

def _subject_symbols(lab, beside):
    """Lists what the subject's own files refer to and define, for the parity test."""
    symbols(
        name = lab + "_symbols",
        subject = select({
            "//grader:solutions": "//solutions/%s:subject" % lab,
            "//conditions:default": "//labs/%s:subject" % lab,
        }),
        beside = beside,
    )

def grade_lab(lab):
    """Makes LAB_parity and LAB_speedup, and the workers with the code that they grade.

    That is the learner's under labs/, or with --config=solutions the solved one, which must also
    clear each threshold by a quarter. The tests link none of the subject's code: LAB/worker.c, linked with the subject's engine
    in LAB_worker, runs in the sandbox, and again, with the lab's starter as the baseline, in
    LAB_baseline. What they stand on is in labs.bzl.
    """
    parts = LABS[lab]
    device = parts.get("device", True)
    baseline = parts.get("baseline")  # an engine; else the starter's functions
    subject = select({
        "//grader:solutions": ["//solutions/%s:engine" % lab],
        "//conditions:default": ["//labs/%s:engine" % lab],
    })
    margin = select({
        "//grader:solutions": subject_defines("solutions", "1.25"),
        "//conditions:default": subject_defines("labs", "1.0"),
    })
    compiled_once(lab)
    lab_worker(lab + "_worker", lab, subject)
    _subject_symbols(lab, subject + worker_deps(lab))
    lab_worker(
        lab + "_baseline",
        lab,
        [baseline or "//labs/%s:starter" % lab],
        baseline = True,
        whole = baseline != None,
    )
    starter = None
    if baseline: # the starter is no baseline: it has a worker for itself
        starter = lab + "_starter"
        lab_worker(starter, lab, ["//labs/%s:starter" % lab], whole = False)
    times = None
    if parts.get("baseline_times"):
        times = lab + "_baseline_times"
        baseline_times(times, lab, lab + "_baseline")
    for part in ["parity", "speedup"]:
        parity = part == "parity"
        times_data = [] if parity or not times else select({
            "//common/bazel:simt": [times],
            "//conditions:default": [],
        })
        c_test(
            name = "%s_%s" % (lab, part),
            size = "medium",
            srcs = ["//grader/harness:record_enable.c"] + CASE_SRCS + (SYMBOLS_SRCS if parity else []),
            data = [lab + "_worker", lab + "_baseline"] + times_data + ([] if parity or not starter else [starter]) + ([lab + "_symbols"] if parity else []),
            linkopts = REMOTE_LINKOPTS,
            local_defines = margin + ["GRADER_LAB=\\\"%s\\\"" % lab, "GRADER_PART=\\\"%s\\\"" % part] +
                            remote_defines(lab + "_worker", lab + "_baseline", device, times, starter) +
                            (symbols_defines(lab + "_symbols", lab) if parity else []),
            tags = [] if parity else MEASURES_GPU_TIME if device else MEASURES_CPU_TIME,
            deps = [cases(lab, part)] + (SYMBOLS_DEPS if parity else []),
        )

def graders():
    """The graded tests of all labs that the same BUILD file grades above."""
    return [
        rule
        for rule in native.existing_rules()
        if rule.endswith("_parity") or rule.endswith("_speedup")
    ]
