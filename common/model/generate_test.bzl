"""The test of a generate program from outside."""

def generate_test(name, program, size = "medium"):
    """Runs generate_test.sh on a program made of //common/model:generate and any engine."""
    native.sh_test(
        name = name,
        size = size,
        srcs = ["//common/model:generate_test.sh"],
        args = [
            "$(location //common/testing:programs.sh)",
            "$(location %s)" % program,
            "$(location //common/model:make_test_checkpoint)",
        ],
        data = [
            program,
            "//common/model:make_test_checkpoint",
            "//common/testing:programs.sh",
        ],
    )
