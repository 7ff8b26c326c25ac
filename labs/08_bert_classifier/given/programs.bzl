"""Lab 08's programs, twice: the learner's and the solution's differ in the last stage's encoder."""

load("@local_config_cuda//:config.bzl", "REQUIRES_NVCC")
load("@rules_cc//cc:defs.bzl", "cc_library")
load("//common/bazel:stages.bzl", "stages_and_programs")

_LAB = "//labs/08_bert_classifier:"

_SOURCES = ["given/classify.c", "given/engine16.c", "given/engine16.h", "given/evaluate.c", "given/profile.c", "given/stages.c", "given/stages.h"]

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
    stages_and_programs(
        lab = "08_bert_classifier",
        data = ["//datasets:reviews_bert", "//datasets:reviews_sample.tsv"],
        deps = ["//common/programs/classifier:classifier_session"],
        device_deps = [
            ":engine16",
            "//common/bench/device:kernel_times",
            "//common/models:engine",
        ],
        earlier = [
            "02_gpu_matmul",
            "03_resident_weights",
            "04_sgemm",
            "05_layernorm_softmax",
            "06_fused_epilogues",
            "07_attention",
        ],
        programs = {
            "classify": "//common/programs/classifier:classifier_programs",
            "evaluate": "//common/programs/classifier:classifier_programs",
            "profile": "//common/programs/classifier:classifier_profile",
        },
    )
