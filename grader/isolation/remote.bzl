"""A graded test in two programs: the grader's, and a worker with the learner's code."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library")
load("//grader:labs.bzl", "LABS")

# Calls to these go to remote_device.c and remote.c, whoever makes them: the test has no GPU of its
# own, its workers have.
_ELSEWHERE = [
    "device_open",
    "device_properties",
    "device_alloc",
    "device_free",
    "device_alloc_host",
    "device_free_host",
    "device_write",
    "device_read",
    "device_copy",
    "device_set",
    "device_stream_create",
    "device_stream_destroy",
    "device_synchronize",
    "device_launched",
    "device_event_create",
    "device_event_destroy",
    "device_event_record",
    "device_event_elapsed",
    "device_traffic",
    "device_trace",
    "device_now",
]

REMOTE_LINKOPTS = ["-Wl,--wrap=" + name for name in _ELSEWHERE]

def _quoted(name):
    return "\\\"%s\\\"" % name

def remote_defines(worker, baseline, device = True, baseline_times = None, starter = None):
    """What program.c is told: the workers' files in the test's own folder, and recorded times.

    Args:
      worker: the subject's.
      baseline: the baseline's.
      device: whether they use a GPU.
      baseline_times: file of recorded times.
      starter: the starter's worker, where it is not the baseline.
    """
    return [
        "GRADER_STARTER_WORKER=" + _quoted(starter or baseline),
        "GRADER_BASELINE_TIMES=" + (_quoted(baseline_times) if baseline_times else "NULL"),
        "GRADER_WORKER=" + _quoted(worker),
        "GRADER_BASELINE_WORKER=" + _quoted(baseline),
        "GRADER_DEVICE=" + ("1" if device else "0"),
    ]

def subject_defines(subject, margin):
    """What program.c is told of whom the test grades.

    Args:
      subject: "labs", "solutions" or another name, for records.
      margin: factor on thresholds.
    """
    return ["GRADER_SUBJECT=" + _quoted(subject), "GRADER_MARGIN=" + margin]

# Sources of one graded test, beside record_enable.c.
CASE_SRCS = ["//grader/isolation:program.c"]

def cases(lab, part, small = False):
    """One graded test's cases, with what they stand on.

    Args:
      lab: NN_topic.
      part: "parity" or "speedup".
      small: whether shapes are for tests that are not about how fast a submission is.
    """
    return "//grader:%s_%s%s_cases" % (lab, "small_" if small else "", part)

def worker_deps(lab):
    """What a lab's worker stands on beside the subject."""
    parts = LABS[lab]
    device = parts.get("device", True)
    return parts["worker_deps"] + ["//grader/isolation:worker_gpu" if device else "//grader/isolation:worker"]

def _whole_library(name, lab, source, deps, local_defines = []):
    """A lab's source as a library, all of which is linked."""
    cc_library(
        name = name,
        testonly = True,
        srcs = [source, "//grader/%s:headers" % lab],
        linkstatic = True,
        local_defines = local_defines,
        tags = ["manual"],
        visibility = ["//grader:__subpackages__"],
        alwayslink = True,
        deps = deps,
    )

def compiled_once(lab):
    """What the programs of a lab's graded tests share, whoever is graded: cases, workers' tables, the engine."""
    parts = LABS[lab]
    remote = "//grader/isolation:remote_gpu" if parts.get("device", True) else "//grader/isolation:remote"
    deps = parts["deps"] + ["//common/nn", "//common/testing", "//common/testing:compare", "//grader/harness:grading", remote]
    for part in ["parity", "speedup"]:
        _whole_library("%s_%s_cases" % (lab, part), lab, "//grader/%s:%s.c" % (lab, part), deps)
    _whole_library(lab + "_small_speedup_cases", lab, "//grader/%s:speedup.c" % lab, deps, ["GRADER_SMALL"])
    table = "//grader/%s:worker.c" % lab
    _whole_library(lab + "_worker_table", lab, table, worker_deps(lab))
    _whole_library(lab + "_baseline_table", lab, table, worker_deps(lab), ["GRADER_BASELINE"])
    _whole_library(lab + "_engine", lab, "//labs/%s:given/engine.c" % lab, worker_deps(lab) + ["//labs/%s:engine_deps" % lab])

def lab_worker(name, lab, subject, baseline = False, whole = True):
    """The program that runs somebody's code for a lab.

    Args:
      name: of the program.
      lab: NN_topic.
      subject: libraries that bring the lab's functions.
      baseline: they are the baseline's: worker.c is compiled with GRADER_BASELINE.
      whole: `subject` brings the lab's engine, too; else it is linked here, on those functions.
    """
    cc_binary(
        name = name,
        testonly = True,
        # A name that both a submission and the workspace define is what its parity test says, and no
        # error of the linker, which would keep all of a report from being built.
        linkopts = [] if baseline else ["-Wl,--allow-multiple-definition"],
        linkstatic = True,
        # What is linked whole stands before the subject, which it calls.
        deps = ["//grader:%s_%s_table" % (lab, "baseline" if baseline else "worker")] +
               ([] if whole else ["//grader:%s_engine" % lab]) + subject + worker_deps(lab),
    )
