"""One lab, twice: the learner's package and its solution offer the same targets."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library")
load("//common/model:generate_test.bzl", "generate_test")

_FLAGS = {
    # Speed is asked for by name, so that a lab's flags can be read in one place.
    "c": dict(
        copts = ["-O3", "-ffp-contract=fast", "-fopenmp", "-Wno-psabi"],
        # The static runtime: programs also run where libgomp is not installed.
        # It cannot become part of a shared library, hence linkstatic.
        linkopts = ["-l:libgomp.a", "-lpthread", "-ldl", "-lm"],
        linkstatic = True,
    ),
}

_VISIBILITY = ["//grader:__subpackages__", "//labs:__subpackages__", "//solutions:__subpackages__"]

def lab_library(name, language = "c", library = cc_library, **kwargs):
    """A library of a learner's code, compiled with the flags that the handouts name."""
    library(name = name, **dict(_FLAGS[language], **kwargs))

def lab(
        name,
        topic,
        language = "c",
        library = cc_library,
        step_srcs = [],
        step_deps = [],
        engine_deps = ["//common/model:engine"],
        bench_deps = [],
        generate = False):
    """Declares the targets of labs/NAME or solutions/NAME, whichever package calls it.

    `:TOPIC`     the subject's code, behind the contract
    `:engine`    the engine of this stage; its source is shared, under labs/
    `:bench`     the bench, from bench*.c under labs/, shared too
    `:generate`  writes text with this stage's engine (if asked for), and `:generate_test`
    `:contract`  the headers, in labs/ only, as are the parts of the bench

    Args:
      name: NN_topic, the name of the package's folder.
      topic: what the learner's file and the contract's header are called.
      language: which flags compile the subject's code.
      library: the rule that compiles it: cc_library, or one that knows CUDA.
      step_srcs: the subject's sources and private headers beside TOPIC.c.
      step_deps: what they stand on beside common/base.
      engine_deps: what engine.c stands on.
      bench_deps: what the bench stands on; said once, in labs/.
      generate: whether the lab has a program that writes text.
    """
    subject = native.package_name().split("/")[0]
    lab = "//labs/" + name
    shared = ["engine.c"] + (["generate.c"] if generate else [])
    contract = lab + ":contract"

    if subject == "labs":
        native.exports_files(shared, visibility = [
            "//grader/selftest:__pkg__",
            "//solutions/%s:__pkg__" % name,
        ])
        native.filegroup(
            name = "bench_srcs",
            srcs = native.glob(["bench*.c", "bench*.h"]),
            visibility = ["//solutions/%s:__pkg__" % name],
        )
        cc_library(
            name = "bench_deps",
            testonly = True,
            visibility = ["//solutions/%s:__pkg__" % name],
            deps = bench_deps,
        )
        cc_library(
            name = "contract",
            hdrs = [topic + ".h", "engine.h"],
            visibility = _VISIBILITY,
            deps = ["//common/base", "//common/model:engine"],
        )
    lab_library(
        name = topic,
        language = language,
        library = library,
        srcs = ["%s.%s" % (topic, language)] + step_srcs,
        visibility = _VISIBILITY,
        deps = [contract, "//common/base"] + step_deps,
    )
    cc_library(
        name = "engine",
        srcs = [lab + ":engine.c"],
        linkstatic = True,
        visibility = _VISIBILITY,
        deps = [":" + topic, contract] + engine_deps,
    )
    cc_binary(
        name = "bench",
        testonly = True,
        srcs = [lab + ":bench_srcs"],
        local_defines = ["WARPBOOK_SUBJECT=\\\"%s\\\"" % subject],
        deps = [":engine", contract, lab + ":bench_deps"],
    )
    if generate:
        cc_binary(
            name = "generate",
            srcs = [lab + ":generate.c"],
            deps = [":engine", "//common/model:generate"],
        )
        generate_test(
            name = "generate_test",
            program = ":generate",
        )
