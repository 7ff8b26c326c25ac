"""One lab, twice: the learner's package and its solution offer the same targets."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library")
load("@rules_cuda//cuda:defs.bzl", "cuda_library")
load("//common/programs/decoder:generate_test.bzl", "generate_test")

_LIBRARY = {"c": cc_library, "cu": cuda_library}

_FLAGS = {
    # Speed is asked for by name, so that a lab's flags can be read in one place.
    "c": dict(
        copts = ["-O3", "-ffp-contract=fast", "-fopenmp", "-Wno-psabi"],
        # The static runtime: programs also run where libgomp is not installed.
        # It cannot become part of a shared library, hence linkstatic.
        linkopts = ["-l:libgomp.a", "-lpthread", "-ldl", "-lm"],
        linkstatic = True,
    ),
    # cuda_library brings -O3; nvcc contracts a * b + c by itself. For which GPUs
    # is the configuration's choice, not the lab's.
    "cu": dict(),
}

# What every lab of a language stands on.
_DEPS = {
    "c": ["//common/base"],
    "cu": ["//common/base", "//common/device"],
}

# What `generate` stands on beside the engine: a program on the device says which it is.
_GENERATE_DEPS = {
    "c": ["//common/programs/decoder:generate"],
    "cu": ["//common/programs/decoder:generate", "//common/programs:program_device_open"],
}

# How much text its test wants: on simt little; lab 10's solution writes more.
_GENERATE_TOKENS = {"c": 512, "cu": 40}

_VISIBILITY = ["//grader:__subpackages__", "//labs:__subpackages__", "//solutions:__subpackages__"]

def lab_library(name, language = "c", **kwargs):
    """A library of a learner's code, compiled with the flags that the handouts name.

    Args:
      name: of the target.
      language: "c", or "cu" for CUDA, compiled by nvcc and skipped where it is missing.
      **kwargs: as for cc_library or cuda_library.
    """
    _LIBRARY[language](name = name, **dict(_FLAGS[language], **kwargs))

def _kept_steps(subject):
    """A learner's own steps/, where they have made one: only the file that changes is compiled again."""
    return native.glob(["steps/*.c", "steps/*.cu", "steps/*.cuh", "steps/*.h"]) if subject == "labs" else []

def lab(
        name,
        topic,
        language = "c",
        contract_hdrs = [],
        contract_deps = ["//common/models:engine"],
        step_srcs = [],
        step_deps = [],
        engine_deps = ["//common/models:engine"],
        bench_deps = [],
        own_bench_deps = [],
        generate = False,
        programs = [],
        tests = []):
    """Declares the targets of labs/NAME or solutions/NAME, whichever package calls it.

    `:TOPIC`     the subject's code, behind the contract; also called `:subject`, in every lab
    `:engine`    the engine of this stage; its source is shared, under labs/
    `:bench`     the bench, from bench/*.c under labs/, shared too
    `:generate`  writes text with this stage's engine (if asked for), and `:generate_test`
    `:programs`  all that runs, for the bundle
    `:contract`  the headers, in labs/ only, as are the parts of the bench
    `:starter`   the learner's file as the course hands it out, in labs/ only: the grader's baseline

    Args:
      name: NN_topic, the name of the package's folder.
      topic: what the learner's file and the contract's header are called.
      language: what the subject's code is written in, "c" or "cu"; TOPIC.c and TOPIC.cu below.
      contract_hdrs: headers of the contract beside TOPIC.h and engine.h; said once, in labs/.
      contract_deps: what they stand on beside common/base and, in CUDA, common/device; likewise.
      step_srcs: the subject's sources and private headers beside TOPIC.c.
      step_deps: what they stand on beside common/base and, in CUDA, common/device.
      engine_deps: what engine.c stands on beside the subject; said once, in labs/.
      bench_deps: what the bench stands on; said once, in labs/.
      own_bench_deps: what it stands on in the package itself.
      generate: whether the lab has a program that writes text.
      programs: more of the package's programs, for the bundle.
      tests: tests of the package that the bundle takes along, to run on a GPU host.
    """
    subject = native.package_name().split("/")[0]
    lab = "//labs/" + name
    shared = ["given/engine.c"] + (["given/generate.c"] if generate else [])
    starter = "given/starter." + language
    contract = lab + ":contract"

    if subject == "labs":
        native.exports_files([starter], visibility = ["//grader/report:__pkg__"])
        native.exports_files(shared, visibility = [
            "//grader:__subpackages__",
            "//solutions/%s:__pkg__" % name,
        ])
        native.filegroup(
            name = "handout",
            srcs = ["README.md"],
            visibility = [
                "//grader/report:__pkg__",
                "//notebooks:__pkg__",
            ],
        )
        native.filegroup(
            name = "bench_srcs",
            srcs = native.glob(["bench/*.c", "bench/*.h"]),
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
            hdrs = [topic + ".h", "given/engine.h"] + contract_hdrs,
            visibility = _VISIBILITY,
            deps = contract_deps + _DEPS[language],
        )
        cc_library(
            name = "engine_deps",
            visibility = [
                "//grader:__subpackages__",
                "//solutions/%s:__pkg__" % name,
            ],
            deps = engine_deps + [contract],
        )
        lab_library(
            name = "starter",
            language = language,
            srcs = [starter],
            visibility = ["//grader:__subpackages__"],
            deps = [contract] + _DEPS[language] + step_deps,
        )
    lab_library(
        name = topic,
        language = language,
        srcs = ["%s.%s" % (topic, language)] + step_srcs + _kept_steps(subject),
        visibility = _VISIBILITY,
        deps = [contract] + _DEPS[language] + step_deps,
    )
    native.alias(
        name = "subject",
        actual = ":" + topic,
        visibility = ["//grader:__subpackages__"],
    )
    cc_library(
        name = "engine",
        srcs = [lab + ":given/engine.c"],
        linkstatic = True,
        visibility = _VISIBILITY,
        deps = [":" + topic, lab + ":engine_deps"],
    )
    cc_binary(
        name = "bench",
        testonly = True,
        srcs = [lab + ":bench_srcs"],
        local_defines = ["WARPBOOK_SUBJECT=\\\"%s\\\"" % subject],
        deps = [":engine", contract, lab + ":bench_deps"] + own_bench_deps,
    )
    if generate:
        cc_binary(
            name = "generate",
            srcs = [lab + ":given/generate.c"],
            deps = [":engine"] + _GENERATE_DEPS[language],
        )
        generate_test(
            name = "generate_test",
            program = ":generate",
            tokens = _GENERATE_TOKENS[language],
        )
    native.filegroup(
        name = "programs",
        testonly = True,
        srcs = [":bench"] + ([":generate"] if generate else []) + programs + tests,
        visibility = ["//grader:__pkg__"],
    )
