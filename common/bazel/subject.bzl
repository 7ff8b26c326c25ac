"""The flag that says whose code the grader grades."""

load("//common/bazel:choice_flag.bzl", "choice_flag")

def subject_flag(name, build_setting_default):
    choice_flag(
        name = name,
        build_setting_default = build_setting_default,
        values = ["labs", "solutions"],
    )
