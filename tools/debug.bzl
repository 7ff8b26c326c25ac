"""debug(): a program under cuda-gdb on a GPU, and stopped at the first fault that simt finds elsewhere."""

load("@local_config_cuda//:config.bzl", "REQUIRES_NVCC")

def debug(name, program):
    """Declares `bazel run //PACKAGE:NAME`.

    Args:
      name: of the target.
      program: the program to run; flags are passed to it.
    """
    native.sh_binary(
        name = name,
        testonly = True,
        srcs = ["//tools:debug.sh"],
        args = select({
            "//common/bazel:simt": ["simt"],
            "//conditions:default": ["gpu"],
        }) + ["$(rootpath %s)" % program],
        data = [program],
        target_compatible_with = REQUIRES_NVCC,
    )
