"""Lab 11's programs, twice: the learner's and the solution's differ in the engine's three functions."""

load("@local_config_cuda//:config.bzl", "REQUIRES_NVCC")
load("@rules_cc//cc:defs.bzl", "cc_binary")
load("//common/bazel:program.bzl", "program")

_LAB = "//labs/11_training:"

def training_programs():
    """Declares `:train` and `:losses` in the calling package.

    Without nvcc `:train` still runs on the CPU reference.
    """
    if native.package_name().startswith("labs/"):
        native.exports_files(
            ["given/losses.c", "given/train.c"],
            visibility = ["//solutions/11_training:__pkg__"],
        )
    program(
        name = "train",
        srcs = [_LAB + "given/train.c"],
        local_defines = select({
            "@local_config_cuda//:nvcc_found": [],
            "//conditions:default": ["WARPBOOK_NO_NVCC"],
        }),
        deps = ["//common/train/program:train_program"] + select({
            "@local_config_cuda//:nvcc_found": [
                ":engine",
                "//common/device",
                "//labs/11_training:contract",
            ],
            "//conditions:default": [],
        }),
    )
    cc_binary(
        name = "losses",
        srcs = [_LAB + "given/losses.c"],
        target_compatible_with = REQUIRES_NVCC,
        deps = [
            ":engine",
            "//common/base",
            "//common/programs:dtype_flag",
            "//common/train/models:train_model",
            "//common/train/program:schedule",
            "//labs/11_training:contract",
        ],
    )
