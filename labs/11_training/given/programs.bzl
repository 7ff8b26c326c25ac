"""Lab 11's program, twice: the learner's and the solution's differ in the engine's three functions."""

load("//common/bazel:program.bzl", "program")

_LAB = "//labs/11_training:"

def training_programs():
    """Declares `:train` in the calling package. Without nvcc it still runs on the CPU reference."""
    if native.package_name().startswith("labs/"):
        native.exports_files(["given/train.c"], visibility = ["//solutions/11_training:__pkg__"])
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
