"""Two graded tests a lab: parity and speedup."""

load("//common/bazel:sanitized_test.bzl", "c_test")

def grade_lab(lab, deps):
    """Makes LAB_parity and LAB_speedup from cases/LAB_parity.c and cases/LAB_speedup.c.

    Both link the subject's engine: the learner's under labs/, or with
    --config=solutions the solved one, which must also clear each threshold by
    a quarter.
    """
    subject = select({
        "//grader:solutions": ["//solutions/%s:engine" % lab],
        "//conditions:default": ["//labs/%s:engine" % lab],
    })
    margin = select({
        "//grader:solutions": ["GRADER_SUBJECT=\\\"solutions\\\"", "GRADER_MARGIN=1.25"],
        "//conditions:default": ["GRADER_SUBJECT=\\\"labs\\\"", "GRADER_MARGIN=1.0"],
    })
    grading = ["//grader:grading", "//common/nn", "//common/testing:compare"]
    c_test(
        name = lab + "_parity",
        size = "medium",
        srcs = ["cases/%s_parity.c" % lab, "recorded.c"],
        local_defines = margin + ["GRADER_LAB=\\\"%s\\\"" % lab, "GRADER_PART=\\\"parity\\\""],
        deps = deps + grading + subject,
    )
    c_test(
        name = lab + "_speedup",
        size = "medium",
        srcs = ["cases/%s_speedup.c" % lab, "recorded.c"],
        local_defines = margin + ["GRADER_LAB=\\\"%s\\\"" % lab, "GRADER_PART=\\\"speedup\\\""],
        # Nothing else runs beside a test that measures time.
        tags = ["exclusive"],
        deps = deps + grading + subject,
    )

def graders():
    """The graded tests of all labs that the same BUILD file grades above."""
    return [
        rule
        for rule in native.existing_rules()
        if rule.endswith("_parity") or rule.endswith("_speedup")
    ]
