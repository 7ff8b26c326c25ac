"""The test of a bench from outside."""

load("@local_config_cuda//:config.bzl", "REQUIRES_NVCC")

def bench_program_test(name, program):
    """Runs bench_program_test.sh on a bench with the flags --shape, --checkpoint, --threads, --steps."""
    native.sh_test(
        name = name,
        size = "medium",
        srcs = ["//common/bench:bench_program_test.sh"],
        args = [
            "$(location %s)" % program,
            "$(location //common/model:make_test_checkpoint)",
            "$(location //common/bench:check_records)",
        ],
        data = [
            program,
            "//common/bench:check_records",
            "//common/model:make_test_checkpoint",
        ],
    )

def gpu_bench_test(name, program, stages, ladder = False):
    """Runs gpu_bench_test.sh on a bench that stands on decode_bench, with so many stages.

    Args:
      name: of the test.
      program: the bench.
      stages: engines that it compares.
      ladder: whether it also has a table of kernels, v1 and on.
    """
    native.sh_test(
        name = name,
        size = "medium",
        srcs = ["//common/bench:gpu_bench_test.sh"],
        args = [
            "$(location %s)" % program,
            "$(location //common/model:make_test_checkpoint)",
            "$(location //common/bench:check_records)",
            str(stages),
            "ladder" if ladder else "decode",
        ],
        data = [
            program,
            "//common/bench:check_records",
            "//common/model:make_test_checkpoint",
        ],
        target_compatible_with = REQUIRES_NVCC,
    )
