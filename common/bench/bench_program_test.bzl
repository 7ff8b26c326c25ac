"""The test of a bench from outside."""

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
