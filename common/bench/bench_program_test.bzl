"""The test of a bench from outside."""

load("@local_config_cuda//:config.bzl", "REQUIRES_NVCC")
load("//common/bazel:deep.bzl", "DEEP")
load("//common/testing:program_test.bzl", "program_test")

_CHECK_RECORDS = "//common/bench:check_records"
_MAKE_CHECKPOINT = "//common/programs/decoder:make_test_checkpoint"

def _tags_of_labs():
    """The bench under labs/ is deep: the one under solutions/ is the same program with more steps."""
    return DEEP if native.package_name().startswith("labs/") else []

def _bench_test(name, **kwargs):
    program_test(name = name, helpers = "//common/bench:bench_testing.sh", **kwargs)

def bench_program_test(name, program):
    """Runs bench_program_test.sh on a bench with the flags --shape, --checkpoint, --threads, --steps."""
    _bench_test(
        name = name,
        script = "//common/bench:bench_program_test.sh",
        tools = [program, _CHECK_RECORDS, _MAKE_CHECKPOINT],
        tags = _tags_of_labs(),
    )

def gpu_bench_test(name, program, stages, ladder = False):
    """Runs gpu_bench_test.sh on a bench that stands on decode_bench, with so many stages.

    Args:
      name: of the test.
      program: the bench.
      stages: engines that it compares.
      ladder: whether it also has a table of kernels, v1 and on.
    """
    _bench_test(
        name = name,
        script = "//common/bench/device:gpu_bench_test.sh",
        tools = [program, _CHECK_RECORDS, _MAKE_CHECKPOINT],
        args = [str(stages), "ladder" if ladder else "decode"],
        tags = _tags_of_labs(),
        target_compatible_with = REQUIRES_NVCC,
    )

def ladder_bench_test(name, program, script, tags = []):
    """Runs a lab's own script on its bench of a ladder of kernels.

    Args:
      name: of the test.
      program: the bench.
      script: the lab's bench_test.sh, called with bench_testing.sh, the bench and check_records.
      tags: of the test.
    """
    _bench_test(
        name = name,
        script = script,
        tools = [program, _CHECK_RECORDS],
        tags = tags + _tags_of_labs(),
        target_compatible_with = REQUIRES_NVCC,
    )
