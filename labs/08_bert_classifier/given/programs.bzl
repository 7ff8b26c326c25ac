"""Lab 08's programs, twice: the learner's and the solution's differ in the last stage's encoder."""

load("@local_config_cuda//:config.bzl", "REQUIRES_NVCC")
load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library")

_LAB = "//labs/08_bert_classifier:"

_SOURCES = ["given/classify.c", "given/engine16.c", "given/engine16.h", "given/evaluate.c", "given/profile.c", "given/stages.c", "given/stages.h"]

_LIBRARIES = {
    "classify": "//common/programs/classifier:classifier_programs",
    "evaluate": "//common/programs/classifier:classifier_programs",
    "profile": "//common/programs/classifier:classifier_profile",
}

def classifier_programs():
    """Declares `:stages`, `:engine16`, `:classify`, `:evaluate` and `:profile` in the calling package."""
    if native.package_name().startswith("labs/"):
        native.exports_files(_SOURCES, visibility = ["//solutions/08_bert_classifier:__pkg__"])

    # The stage in fp16 and bf16: given, on the engine of the package.
    cc_library(
        name = "engine16",
        srcs = [_LAB + "given/engine16.c"],
        hdrs = [_LAB + "given/engine16.h"],
        linkstatic = True,
        target_compatible_with = REQUIRES_NVCC,
        deps = [
            ":engine",
            "//common/base",
            "//common/models:engine",
            "//common/nn",
            "//labs/08_bert_classifier:contract",
            "//labs/08_bert_classifier:encoder16",
        ],
    )

    # The stages before this one are solved. Without nvcc the programs still run on the CPU.
    cc_library(
        name = "stages",
        srcs = [_LAB + "given/stages.c"],
        hdrs = [_LAB + "given/stages.h"],
        linkstatic = True,
        local_defines = select({
            "@local_config_cuda//:nvcc_found": [],
            "//conditions:default": ["WARPBOOK_NO_NVCC"],
        }),
        deps = [
            "//common/base",
            "//common/programs/classifier:classifier_session",
            "//labs/01_cpu_matmul:contract",
            "//solutions/01_cpu_matmul:engine",
        ] + select({
            "@local_config_cuda//:nvcc_found": [
                ":engine",
                ":engine16",
                "//common/bench/device:kernel_times",
                "//common/device",
                "//common/models:engine",
                "//common/programs:program_device_open",
                "//labs/02_gpu_matmul:contract",
                "//labs/03_resident_weights:contract",
                "//labs/04_sgemm:contract",
                "//labs/05_layernorm_softmax:contract",
                "//labs/06_fused_epilogues:contract",
                "//labs/07_attention:contract",
                "//labs/08_bert_classifier:contract",
                "//solutions/02_gpu_matmul:engine",
                "//solutions/03_resident_weights:engine",
                "//solutions/04_sgemm:engine",
                "//solutions/05_layernorm_softmax:engine",
                "//solutions/06_fused_epilogues:engine",
                "//solutions/07_attention:engine",
            ],
            "//conditions:default": [],
        }),
    )
    for name, library in _LIBRARIES.items():
        cc_binary(
            name = name,
            srcs = [_LAB + "given/" + name + ".c"],
            data = ["//datasets:reviews_bert", "//datasets:reviews_sample.tsv"],
            deps = [":stages", library],
        )
