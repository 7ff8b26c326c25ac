"""Lab 10's programs, twice: the learner's and the solution's differ in the last stage's decoder."""

load("@local_config_cuda//:config.bzl", "REQUIRES_NVCC")
load("//common/bazel:sanitized_test.bzl", "c_test")
load("//common/bazel:stages.bzl", "stages_and_programs")
load("//common/programs/decoder:generate_test.bzl", "generate_test")
load("//common/testing:program_test.bzl", "program_test")

_LAB = "//labs/10_llama2_decoder:"

_SOURCES = ["given/generate.c", "given/perplexity.c", "given/stages.c", "given/stages.h"]

def llama2_programs():
    """Declares `:stages`, `:generate` and `:perplexity` in the calling package."""
    if native.package_name().startswith("labs/"):
        native.exports_files(
            _SOURCES + ["tests/engine_test.c", "tests/relatives_test.c", "tests/shipped_test.sh", "tests/stages_test.sh"],
            visibility = ["//solutions/10_llama2_decoder:__pkg__"],
        )
    stages_and_programs(
        lab = "10_llama2_decoder",
        data = ["//datasets:tiny_llama"],
        deps = ["//common/programs/decoder:decoder_stages"],
        earlier = [
            "02_gpu_matmul",
            "03_resident_weights",
            "04_sgemm",
            "05_layernorm_softmax",
            "06_fused_epilogues",
            "07_attention",
            "09_kv_cache",
        ],
        programs = {
            "generate": "//common/programs/decoder:generate",
            "perplexity": "//common/programs/decoder:perplexity",
        },
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
    if not native.package_name().startswith("labs/"):
        # Relatives of Llama2 run operator by operator: not on the last stage's decoder.
        c_test(
            name = "relatives_test",
            size = "medium",
            srcs = [_LAB + "tests/relatives_test.c"],
            deps = [
                ":stages",
                "//common/checkpoints/gpt_neox:recorded_gpt_neox",
                "//common/checkpoints/llama2:recorded_llama2",
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
    program_test(
        name = "stages_test",
        script = _LAB + "tests/stages_test.sh",
        tools = [":generate", ":perplexity", "//common/programs/decoder:make_test_checkpoint"],
        # Stages between the first and the last are the same code in both packages.
        args = ["ends" if native.package_name().startswith("labs/") else "all"] + select({
            # Of the real checkpoint's text: simt takes minutes for more.
            "//common/bazel:simt": ["40"],
            "//conditions:default": ["200"],
        }),
    )

    # The checkpoint that comes with the project.
    program_test(
        name = "shipped_test",
        script = _LAB + "tests/shipped_test.sh",
        tools = [":generate", ":perplexity", "//datasets:review_text.txt"],
    )
