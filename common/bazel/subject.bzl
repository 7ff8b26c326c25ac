"""The flag that chooses the code to grade: the labs or the solutions."""

load("//common/bazel:choice_flag.bzl", "choice_flag")

def subject_flag(name, build_setting_default):
    choice_flag(
        name = name,
        build_setting_default = build_setting_default,
        values = ["labs", "solutions"],
    )
