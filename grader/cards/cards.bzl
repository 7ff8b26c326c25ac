"""Speedup programs of every lab for fixed subjects, to run on any GPU that simt models."""

load("@local_config_cuda//:config.bzl", "REQUIRES_NVCC")
load("@rules_cc//cc:defs.bzl", "cc_binary")
load("//grader:labs.bzl", "LABS")
load("//grader/isolation:remote.bzl", "REMOTE_LINKOPTS", "case_deps", "case_srcs", "lab_worker", "remote_defines")

GPU_LABS = [lab for lab in LABS if LABS[lab].get("device", True)]

# For each subject: the name in the records, by how much it must clear what is required, the
# library of a lab, and whether that brings the lab's engine.
_SUBJECTS = {
    "solution": ("solutions", 1.25, "//solutions/%s:engine", True),
    "middle": ("middle", 1.0, "//solutions/%s:middle_engine", True),
    "starter": ("starter", 1.0, "//labs/%s:starter", False),
}

def _program(lab, subject):
    name, margin, library, whole = _SUBJECTS[subject]
    worker = "%s_%s_worker" % (lab, subject)
    lab_worker(worker, lab, [library % lab], whole = whole)
    cc_binary(
        name = "%s_%s" % (lab, subject),
        testonly = True,
        srcs = ["//grader/harness:record_enable.c"] + case_srcs(lab, "speedup"),
        data = [worker, "//grader:%s_baseline" % lab],
        linkopts = REMOTE_LINKOPTS,
        linkstatic = True,
        local_defines = [
            "GRADER_SUBJECT=\\\"%s\\\"" % name,
            "GRADER_MARGIN=%s" % margin,
            "GRADER_LAB=\\\"%s\\\"" % lab,
            "GRADER_PART=\\\"speedup\\\"",
        ] + remote_defines(worker, "../%s_baseline" % lab),
        tags = ["manual"],
        target_compatible_with = REQUIRES_NVCC,
        deps = case_deps(lab) + ["//common/testing"],
    )

def speedup_programs():
    """Makes LAB_solution, LAB_middle and LAB_starter for each lab on the GPU.

    Each is the lab's graded speedup test of this subject, whatever --//grader:subject says.
    """
    for lab in GPU_LABS:
        for subject in _SUBJECTS:
            _program(lab, subject)
    native.filegroup(
        name = "programs",
        testonly = True,
        srcs = [":%s_%s" % (lab, subject) for lab in GPU_LABS for subject in _SUBJECTS],
        tags = ["manual"],
    )
