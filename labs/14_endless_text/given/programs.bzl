"""Lab 14's programs, twice: the learner's and the solution's differ in the last stage."""

load("//common/bazel:stages.bzl", "stages_and_programs")
load("//common/testing:program_test.bzl", "program_test")

_LAB = "//labs/14_endless_text:"

def endless_programs():
    """Declares `:stages`, `:generate` and `:perplexity`, for the solution also their test."""
    if native.package_name().startswith("labs/"):
        native.exports_files(
            ["given/generate.c", "given/perplexity.c", "given/stages.c", "given/stages.h", "tests/endless_test.sh"],
            visibility = ["//solutions/14_endless_text:__pkg__"],
        )
    stages_and_programs(
        lab = "14_endless_text",
        data = ["//datasets:tiny_llama", "//datasets:tiny_neox"],
        deps = ["//common/programs/decoder:decoder_stages"],
        earlier = [],
        programs = {
            "generate": "//common/programs/decoder:generate",
            "perplexity": "//common/programs/decoder:perplexity",
        },
    )
        # The starter is right, says the parity test; what is tested here are the programs.
    if not native.package_name().startswith("labs/"):
        program_test(
            name = "endless_test",
            script = _LAB + "tests/endless_test.sh",
            tools = [":generate", ":perplexity", "//common/programs/decoder:make_test_checkpoint", "//datasets:review_text.txt"],
        )
