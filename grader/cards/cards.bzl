"""Graded tests on the GPUs that simt models beside the default one."""

load("@local_config_cuda//:config.bzl", "REQUIRES_NVCC")
load("@rules_cc//cc:defs.bzl", "cc_binary")
load("//common/bazel:deep.bzl", "DEEP")
load("//common/bazel:sanitized_test.bzl", "c_test")
load("//grader:baseline_times.bzl", "recorded_times")
load("//grader:labs.bzl", "LABS")
load("//grader/isolation:remote.bzl", "CASE_SRCS", "REMOTE_LINKOPTS", "cases", "lab_worker", "remote_defines", "subject_defines")

GPU_LABS = [lab for lab in LABS if LABS[lab].get("device", True)]

# For each subject: the name in the records, by how much it must clear what is required, the
# library of a lab, and whether that brings the lab's engine.
SUBJECTS = {
    "solution": ("solutions", 1.25, "//solutions/%s:engine", True),
    "middle": ("middle", 1.0, "//solutions/%s:middle_engine", True),
    "starter": ("starter", 1.0, "//labs/%s:starter", False),
}

# Speedup tests run on these.
_SPEEDUP_CARDS = ["t4", "rtx4090", "a100"]

def _speedup_cards(lab):
    """The cards of _SPEEDUP_CARDS that can run the lab: bf16 products of labs 12 and 13 need an Ampere GPU."""
    return [card for card in _SPEEDUP_CARDS if card != "t4" or lab not in ["12_tensor_cores", "13_low_bit"]]

# Parity tests of submissions with paths by architecture: one GPU for each PTX of a deep build
# below the default GPU's.
_PARITY_CARDS = ["t4", "a100"]

# The PTX of a deep build that each GPU runs.
_CODE = {
    "t4": 75,
    "l4": 80,
    "rtx3060": 80,
    "rtx3090": 80,
    "rtx4090": 80,
    "a100": 80,
    "h100": 90,
    "h200": 90,
}

# Only a deep build for simt's default GPU has PTX for all of them.
_ON_DEEP_SIMT = REQUIRES_NVCC + select({
    "//common/bazel:simt_deep": [],
    "//conditions:default": ["//common/bazel:needs_config_simt"],
})

def _card_times(lab):
    """Modelled times of the baseline on the speedup tests' GPUs, in one file; see baseline_times()."""
    records = ["//grader:%s_baseline_times" % lab]
    for card in _speedup_cards(lab):
        recorded_times("%s_times_%s" % (lab, card), lab, "//grader:%s_recorder" % lab, gpu = card)
        records.append(":%s_times_%s" % (lab, card))
    native.genrule(
        name = lab + "_times_file",
        testonly = True,
        srcs = records,
        outs = [lab + "_times"],
        cmd = "cat $(SRCS) >$@",
        tags = ["manual"],
    )
    return lab + "_times"

def speedup_program(lab, subject, times = None, target_compatible_with = REQUIRES_NVCC):
    """Makes LAB_SUBJECT: the lab's graded speedup test of a solution, a middle or a starter.

    Args:
      lab: NN_topic.
      subject: "solution", "middle" or "starter".
      times: file with the baseline's modelled times, if they are recorded.
      target_compatible_with: of the program.
    """
    name, margin, library, whole = SUBJECTS[subject]
    worker = "%s_%s_worker" % (lab, subject)
    lab_worker(worker, lab, [library % lab], whole = whole)
    cc_binary(
        name = "%s_%s" % (lab, subject),
        testonly = True,
        srcs = ["//grader/harness:record_enable.c"] + CASE_SRCS,
        data = [worker, "//grader:%s_baseline" % lab] + ([times] if times else []),
        linkopts = REMOTE_LINKOPTS,
        linkstatic = True,
        local_defines = subject_defines(name, str(margin)) + [
            "GRADER_LAB=\\\"%s\\\"" % lab,
            "GRADER_PART=\\\"speedup\\\"",
        ] + remote_defines(worker, "../%s_baseline" % lab, LABS[lab].get("device", True), times),
        tags = ["manual"],
        target_compatible_with = target_compatible_with,
        deps = [cases(lab, "speedup")],
    )

def speedup_programs():
    """Makes LAB_solution, LAB_middle and LAB_starter for each lab on the GPU.

    Each is the lab's graded speedup test of this subject, whatever --//grader:subject says.
    """
    for lab in GPU_LABS:
        times = _card_times(lab) if LABS[lab].get("baseline_times") else None
        for subject in SUBJECTS:
            speedup_program(lab, subject, times)
    native.filegroup(
        name = "programs",
        testonly = True,
        # As data they bring their workers, too.
        data = [":%s_%s" % (lab, subject) for lab in GPU_LABS for subject in SUBJECTS],
        tags = ["manual"],
    )

# The cases that run on cards other than the T4, where all would take a minute. Lab 08's encoder is 97% of
# its end_to_end, and clears or misses its threshold by as much.
_CASES = {"08_bert_classifier": "speedup.end_to_end"}

def _cases(lab, card):
    return {"GTEST_FILTER": _CASES[lab]} if card != "t4" and lab in _CASES else {}

def _script_test(name, script, card, programs, args = [], data = [], env = {}):
    native.sh_test(
        name = name,
        size = "medium",
        srcs = [script],
        args = ["$(location %s)" % program for program in programs] + args,
        data = programs + data,
        env = dict(env, SIMT_GPU = card),
        tags = DEEP,
        target_compatible_with = _ON_DEEP_SIMT,
    )

def speedup_tests():
    """Makes LAB_speedup_CARD: the solution is fast enough there, the starter is not by half.

    Where the starter is the baseline, the solution's record has the time of both.
    """
    for lab in GPU_LABS:
        subjects = ["solution", "starter"] if LABS[lab].get("baseline") else ["solution"]
        for card in _speedup_cards(lab):
            programs = [":%s_%s" % (lab, subject) for subject in subjects]
            _script_test("%s_speedup_%s" % (lab[:2], card), "speedup_test.sh", card, programs, env = _cases(lab, card))

def parity_tests():
    """Makes LAB_parity_CARD: a submission with paths by architecture is right on older GPUs, too."""
    for lab in GPU_LABS:
        sources = select({
            "//grader:solutions": ["//solutions/%s:sources" % lab],
            "//conditions:default": ["//labs/%s:sources" % lab],
        })
        for card in _PARITY_CARDS:
            _script_test(
                "%s_parity_%s" % (lab[:2], card),
                "parity_test.sh",
                card,
                ["//grader:%s_parity" % lab],
                args = select({
                    "//grader:solutions": ["$(locations //solutions/%s:sources)" % lab],
                    "//conditions:default": ["$(locations //labs/%s:sources)" % lab],
                }),
                data = sources,
            )

def code_tests():
    """Makes code_CARD: the GPU runs the best PTX that a deep build has for it, and programs know."""
    for card in _CODE:
        c_test(
            name = "code_" + card,
            srcs = ["code_test.c"],
            env = {"SIMT_GPU": card},
            local_defines = ["BEST_CODE=%d" % _CODE[card]],
            tags = DEEP,
            target_compatible_with = _ON_DEEP_SIMT,
            deps = [
                "//common/base",
                "//common/device",
            ],
        )
