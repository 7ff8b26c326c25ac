"""Lab 15's programs, twice: the learner's and the solution's differ in the exchange."""

load("@local_config_cuda//:config.bzl", "REQUIRES_NVCC")
load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library")

_LAB = "//labs/15_many_gpus:"

def many_gpus_programs(exchange):
    """Declares `:train` and `:generate` in the calling package.

    Args:
      exchange: the library with many_all_reduce(), many_linear() and many_ladder().
    """
    if native.package_name().startswith("labs/"):
        native.exports_files(
            [
                "given/generate.c",
                "given/load.c",
                "given/load.h",
                "given/part_engine.c",
                "given/part_engine.h",
                "given/peers.c",
                "given/peers.h",
                "given/train.c",
            ],
            visibility = ["//solutions/15_many_gpus:__pkg__"],
        )
    cc_library(
        name = "peers",
        srcs = [_LAB + "given/peers.c"],
        hdrs = [_LAB + "given/peers.h"],
        linkstatic = True,
        target_compatible_with = REQUIRES_NVCC,
        deps = [
            exchange,
            _LAB + "contract",
            "//common/base",
            "//common/device",
            "//common/ranks:comm",
            "//common/train:train_engine",
            "@rules_cuda//cuda:runtime",
        ],
    )
    cc_binary(
        name = "train",
        srcs = [_LAB + "given/train.c"],
        target_compatible_with = REQUIRES_NVCC,
        visibility = ["//visibility:public"],
        deps = [
            ":peers",
            "//common/device",
            "//common/ranks:process_comm",
            "//common/train/program:train_program",
            "//solutions/11_training:engine",
        ],
    )
    cc_library(
        name = "part_engine",
        srcs = [
            _LAB + "given/load.c",
            _LAB + "given/part_engine.c",
        ],
        hdrs = [
            _LAB + "given/load.h",
            _LAB + "given/part_engine.h",
        ],
        linkstatic = True,
        target_compatible_with = REQUIRES_NVCC,
        deps = [
            exchange,
            _LAB + "check",
            _LAB + "contract",
            _LAB + "decoder",
            "//common/base",
            "//common/device",
            "//common/models:engine",
            "//common/nn",
            "//solutions/10_llama2_decoder:engine",
        ],
    )
    cc_binary(
        name = "generate",
        srcs = [_LAB + "given/generate.c"],
        data = ["//datasets:tiny_llama"],
        target_compatible_with = REQUIRES_NVCC,
        visibility = ["//visibility:public"],
        deps = [
            ":part_engine",
            "//common/device",
            "//common/programs:program_device_open",
            "//common/programs/decoder:generate",
            "//common/ranks:process_comm",
            "//solutions/10_llama2_decoder:engine",
        ],
    )
