"""Shell test of a generate program."""

def generate_test(name, program, size = "medium", tokens = 512, stage = "-"):
    """Runs generate_test.sh on a program made of //common/programs/decoder:generate and any engine.

    Args:
      name: of the target.
      program: label of the program.
      size: of the test.
      tokens: tokens to write with a real checkpoint: 200 or 512, or 40 on simt, where prompts, JSON and chat are left to other tests.
      stage: value of --stage; "-": no --stage.
    """
    native.sh_test(
        name = name,
        size = size,
        srcs = ["//common/programs/decoder:generate_test.sh"],
        args = [
            "$(location //common/testing:programs.sh)",
            "$(location %s)" % program,
            "$(location //common/programs/decoder:make_test_checkpoint)",
            str(tokens),
            stage,
        ],
        data = [
            program,
            "//common/programs/decoder:make_test_checkpoint",
            "//common/testing:programs.sh",
        ],
    )
