"""The test of a program from outside, by a script."""

def program_test(name, script, tools, args = [], helpers = "//common/testing:programs.sh", size = "medium", **kwargs):
    """Runs SCRIPT HELPERS TOOLS ARGS.

    Args:
      name: of the test.
      script: the shell script.
      tools: programs and files, whose paths the script receives in this order.
      args: further arguments.
      helpers: shell functions that the script reads.
      size: of the test.
      **kwargs: as for sh_test.
    """
    native.sh_test(
        name = name,
        size = size,
        srcs = [script],
        args = ["$(location %s)" % tool for tool in [helpers] + tools] + args,
        data = [helpers] + tools,
        **kwargs
    )
