"""The exercises of one folder, and the program that tries them."""

load("@rules_cc//cc:defs.bzl", "cc_binary")
load("@rules_cuda//cuda:defs.bzl", "cuda_library")

def warmups(name, check, srcs, subject):
    """Declares the library NAME with the exercises, a file each, and the program CHECK.

    A file that changes is compiled alone.

    Args:
      name: of the library.
      check: of the program.
      srcs: the exercises.
      subject: folder that the program names as the one to edit in: "labs" or "solutions".
    """
    cuda_library(
        name = name,
        srcs = srcs,
        visibility = ["//grader:__subpackages__"],
        deps = [
            "//common/cuda",
            "//labs/00_warmups:contract",
        ],
    )
    cc_binary(
        name = check,
        srcs = ["//labs/00_warmups:given/check.c"],
        local_defines = ["WARMUPS_SUBJECT=\\\"%s\\\"" % subject],
        visibility = ["//grader:__subpackages__"],
        deps = [
            "//common/base",
            "//labs/00_warmups:given",
            ":" + name,
        ],
    )
