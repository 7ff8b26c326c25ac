"""Lab 10's programs, twice: the learner's and the solution's differ in the last stage's decoder."""

load("@local_config_cuda//:config.bzl", "REQUIRES_NVCC")
load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library")
load("//common/bazel:sanitized_test.bzl", "c_test")
load("//common/programs/decoder:generate_test.bzl", "generate_test")

_LAB = "//labs/10_llama2_decoder:"

_SOURCES = ["given/generate.c", "given/perplexity.c", "given/stages.c", "given/stages.h"]

_LIBRARIES = {
    "generate": "//common/programs/decoder:generate",
    "perplexity": "//common/programs/decoder:perplexity",
}

def llama2_programs():
    """Declares `:stages`, `:generate` and `:perplexity` in the calling package."""
    if native.package_name().startswith("labs/"):
        native.exports_files(
            _SOURCES + ["tests/engine_test.c", "tests/shipped_test.sh", "tests/stages_test.sh"],
            visibility = ["//solutions/10_llama2_decoder:__pkg__"],
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
            "//common/programs/decoder:llama2_stages",
            "//labs/01_cpu_matmul:contract",
            "//solutions/01_cpu_matmul:engine",
        ] + select({
            "@local_config_cuda//:nvcc_found": [
                ":engine",
                "//common/device",
                "//common/programs:program_device_open",
                "//labs/02_gpu_matmul:contract",
                "//labs/03_resident_weights:contract",
                "//labs/04_sgemm:contract",
                "//labs/05_layernorm_softmax:contract",
                "//labs/06_fused_epilogues:contract",
                "//labs/07_attention:contract",
                "//labs/09_kv_cache:contract",
                "//labs/10_llama2_decoder:contract",
                "//solutions/02_gpu_matmul:engine",
                "//solutions/03_resident_weights:engine",
                "//solutions/04_sgemm:engine",
                "//solutions/05_layernorm_softmax:engine",
                "//solutions/06_fused_epilogues:engine",
                "//solutions/07_attention:engine",
                "//solutions/09_kv_cache:engine",
            ],
            "//conditions:default": [],
        }),
    )
    for name, library in _LIBRARIES.items():
        cc_binary(
            name = name,
            srcs = [_LAB + "given/" + name + ".c"],
            data = ["//datasets:tiny_llama"],
            deps = [":stages", library],
        )

def llama2_program_tests():
    """Tests of the engine and of the programs of the calling package."""
    c_test(
        name = "engine_test",
        size = "medium",
        srcs = [_LAB + "tests/engine_test.c"],
        target_compatible_with = REQUIRES_NVCC,
        deps = [
            ":decoder",
            ":engine",
            "//common/base",
            "//common/device",
            "//labs/10_llama2_decoder:problem",
            "//labs/10_llama2_decoder:contract",
        ],
    )
    generate_test(
        name = "generate_test",
        program = ":generate",
        tokens = 200,
        # Flags, files and texts are the program's; what the other stages write is what this one
        # writes, says stages_test.
        stage = "01_cpu_matmul",
    )
    native.sh_test(
        name = "stages_test",
        size = "medium",
        srcs = [_LAB + "tests/stages_test.sh"],
        args = [
            "$(location //common/testing:programs.sh)",
            "$(location :generate)",
            "$(location :perplexity)",
            "$(location //common/programs/decoder:make_test_checkpoint)",
            # Stages between the first and the last are the same code in both packages.
            "ends" if native.package_name().startswith("labs/") else "all",
        ] + select({
            # Of the real checkpoint's text: simt takes minutes for more.
            "//common/bazel:simt": ["40"],
            "//conditions:default": ["200"],
        }),
        data = [
            ":generate",
            ":perplexity",
            "//common/programs/decoder:make_test_checkpoint",
            "//common/testing:programs.sh",
        ],
    )

    # The checkpoint that comes with the project.
    native.sh_test(
        name = "shipped_test",
        size = "medium",
        srcs = [_LAB + "tests/shipped_test.sh"],
        args = [
            "$(location //common/testing:programs.sh)",
            "$(location :generate)",
            "$(location :perplexity)",
            "$(location //datasets:review_text.txt)",
        ],
        data = [
            ":generate",
            ":perplexity",
            "//common/testing:programs.sh",
            "//datasets:review_text.txt",
        ],
    )
