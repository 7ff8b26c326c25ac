"""The exercises of one folder, and the program that tries them."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library")
load("@rules_cuda//cuda:defs.bzl", "cuda_library")
load("//common/bazel:confined.bzl", "COMPILE")

# One file that includes the others; names that several define have the file's name before them. Starting
# nvcc takes longer than what it compiles of an exercise.
_TOGETHER = """
for source in $(SRCS); do
    base=$${source##*/}
    for name in ROWS THREADS TILE; do echo "#define $$name $${base%.cu}_$$name"; done
    echo "#include \\"$$source\\""
    for name in ROWS THREADS TILE; do echo "#undef $$name"; done
done >$@
"""

def _compile_together(name, srcs):
    """The library NAME of exercises that nobody edits."""
    native.genrule(
        name = name + "_file",
        srcs = srcs,
        outs = [name + ".cu"],
        cmd = _TOGETHER,
    )
    cuda_library(
        name = name,
        srcs = [name + ".cu"],
        hdrs = srcs,
        newest_simt_gpu = True,
        deps = [
            "//common/cuda",
            "//labs/00_warmups:contract",
        ],
    )

def warmups(name, check, srcs, subject, together = []):
    """Declares the library NAME with the exercises, a file each, and the program CHECK.

    Each exercise is a library of its own: only the file that changes is compiled again. It is
    compiled in the grader's sandbox, as a lab's file is.

    Args:
      name: of the library.
      check: of the program.
      srcs: the exercises.
      subject: folder that the program names as the one to edit in: "labs" or "solutions".
      together: more exercises, which nobody edits: the library NAME_together.
    """
    libraries = [":" + name + "_together"] if together else []
    if together:
        _compile_together(name + "_together", together)
    for source in srcs:
        library = name + "_" + source.split("/")[-1][:-len(".cu")]
        libraries.append(":" + library)
        cuda_library(
            name = library,
            srcs = [source],
            compile = COMPILE,
            compute_90a = "wgmma" in source,
            newest_simt_gpu = True,
            deps = [
                "//common/cuda",
                "//labs/00_warmups:contract",
            ],
        )
    cc_library(
        name = name,
        visibility = ["//grader:__subpackages__"],
        deps = libraries,
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
