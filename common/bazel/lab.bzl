"""The targets of a lab, which are the same in the learner's package and in the solution."""

load("@local_config_cuda//:config.bzl", "REQUIRES_NVCC")
load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library")
load("@rules_cuda//cuda:defs.bzl", "cuda_library")
load("//common/bazel:confined.bzl", "COMPILE", "confined_library")
load("//common/bazel:sanitized_test.bzl", "c_test")
load("//common/bazel:vectorise.bzl", "VECTORISE")
load("//common/programs/decoder:generate_test.bzl", "generate_test")
load("//tools:debug.bzl", "debug")

_LIBRARY = {"c": confined_library, "cu": cuda_library}

_FLAGS = {
    # All optimisation flags of a lab are in this one place.
    "c": dict(
        copts = VECTORISE + ["-ffp-contract=fast", "-fopenmp", "-Wno-psabi"],
        # The static OpenMP runtime: programs also run where libgomp is not installed.
        linkopts = ["-l:libgomp.a", "-lpthread", "-ldl", "-lm"],
    ),
    # cuda_library sets -O3, and nvcc contracts a * b + c by default. The
    # configuration, not the lab, chooses the GPUs.
    # CUB tells profilers what it does by NVTX, which loads a library: a submission may load none.
    "cu": dict(copts = ["-DCCCL_DISABLE_NVTX"]),
}

# Dependencies of every lab, by language.
_DEPS = {
    "c": ["//common/base"],
    "cu": ["//common/base", "//common/cuda", "//common/device"],
}

# Dependencies of `generate` besides the engine: a program on the device prints which GPU it uses.
_GENERATE_DEPS = {
    "c": ["//common/programs/decoder:generate"],
    "cu": ["//common/programs/decoder:generate", "//common/programs:program_device_open"],
}

# Number of tokens in its test: few on simt; lab 10's solution generates more.
_GENERATE_TOKENS = {"c": 512, "cu": 40}

_VISIBILITY = ["//grader:__subpackages__", "//labs:__subpackages__", "//solutions:__subpackages__"]

def lab_library(name, language = "c", **kwargs):
    """A library of a learner's code, compiled with the flags that the handouts name.

    Args:
      name: name of the target.
      language: "c", or "cu" for CUDA, which is compiled by nvcc and skipped if nvcc is missing.
      **kwargs: as for cc_library or cuda_library.
    """
    _LIBRARY[language](name = name, compile = COMPILE, **dict(_FLAGS[language], **kwargs))

def _is_header(source):
    return source.endswith(".h") or source.endswith(".cuh")

def _cuda(language, srcs, compute_90a, simt_code):
    """Attributes of a CUDA library alone; those of simt_code for these srcs."""
    own = {capabilities: [f for f in files if f in srcs] for capabilities, files in simt_code.items()}
    return dict(compute_90a = compute_90a, simt_code = own) if language == "cu" else {}

def _ladder(language, contract, srcs, deps, more):
    """The library of a solution's steps, for its last step and for a middle one."""
    lab_library(
        name = "ladder",
        language = language,
        visibility = _VISIBILITY,
        srcs = [source for source in srcs if not _is_header(source)],
        hdrs = [source for source in srcs if _is_header(source)],
        deps = [contract] + _DEPS[language] + deps,
        **more
    )

def _middle(lab, language, contract, srcs, renamed, deps, more):
    """A learner's middling submission: the engine with the contract by a step from the ladder's middle."""
    lab_library(
        name = "middle",
        testonly = True,
        language = language,
        srcs = srcs,
        local_defines = renamed,
        deps = [contract] + _DEPS[language] + deps,
        **more
    )
    cc_library(
        name = "middle_engine",
        testonly = True,
        srcs = [lab + ":given/engine.c"],
        linkstatic = True,
        visibility = ["//grader:__subpackages__"],
        deps = [":middle", lab + ":engine_deps", "//common/simt"],
    )

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
        middle = {},
        middle_srcs = [],
        engine_deps = ["//common/models:engine"],
        bench_deps = [],
        own_bench_deps = [],
        generate = False,
        programs = [],
        starter_functions = [],
        tests = [],
        compute_90a = False,
        simt_code = {}):
    """Declares the targets of labs/NAME or solutions/NAME, depending on the calling package.

    `:TOPIC`     the subject's code, which implements the contract; every lab also has the alias
                 `:subject`
    `:engine`    the engine of this stage; labs/ and solutions/ share its source, in labs/
    `:bench`     the bench, from bench/*.c in labs/, also shared
    `:sources`   all files of the subject, for a test that reads them
    `:ladder`    the steps, in a library of their own; if `step_srcs`
    `:middle_engine`  as `:engine`, with a step from the ladder's middle: a learner's middling
                 submission; if `middle`
    `:generate`  generates text with this stage's engine, with `:generate_test`; if `generate`
    `:programs`  all programs, for the bundle and for //tools:compile_commands
    `:debug`     the bench under a debugger; if the language is CUDA
    `:contract`  the headers; only in labs/, as the parts of the bench
    `:starter`   the learner's file as the course hands it out; only in labs/: the grader's baseline
    `:renamed_starter`  the same with other names, to run beside a solution; if `starter_functions`

    Args:
      name: NN_topic, the name of the package's folder.
      topic: name of the learner's file and of the contract's header, without extension.
      language: language of the subject's code, "c" or "cu"; with "cu" TOPIC.c below is TOPIC.cu.
      contract_hdrs: headers of the contract besides TOPIC.h and engine.h; only given in labs/.
      contract_deps: dependencies of the contract besides common/base and, for CUDA, common/device;
        only given in labs/.
      step_srcs: the subject's sources and private headers besides TOPIC.c.
      step_deps: dependencies of the subject's code besides common/base and, for CUDA,
        common/device.
      middle: functions of the ladder that TOPIC.c calls, with those that the middling submission calls
        in their place: that is TOPIC.c with other names.
      middle_srcs: steps that belong to the middling submission alone, or that it has with other
        names, too.
      engine_deps: dependencies of engine.c besides the subject; only given in labs/.
      bench_deps: dependencies of the bench; only given in labs/.
      own_bench_deps: dependencies of the bench in the package itself.
      generate: whether the lab has a program that generates text.
      programs: more programs of the package, for the bundle.
      starter_functions: functions that the starter defines; the renamed one's have starter_ before
        their names. Only given in labs/. given/renamed_starter.h, if there is one, declares them.
      tests: tests of the package that the bundle includes, to run on a GPU host.
      compute_90a: whether the subject's code may use Hopper's own instructions (wgmma), for which simt
        needs PTX of its own.
      simt_code: files that simt needs less PTX of, with --config=deep (see cuda_library). Never the one that
        a learner edits.
    """
    subject = native.package_name().split("/")[0]
    lab = "//labs/" + name
    shared = ["given/engine.c"] + (["given/generate.c"] if generate else [])
    starter = "given/starter." + language
    contract = lab + ":contract"

    if subject == "labs":
        native.exports_files([starter], visibility = [
            "//grader/class:__pkg__",
            "//grader/report:__pkg__",
        ])
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
            **_cuda(language, [starter], False, simt_code)
        )
        if starter_functions:
            lab_library(
                name = "renamed_starter",
                language = language,
                srcs = [starter],
                hdrs = native.glob(["given/renamed_starter.h"]),
                local_defines = [function + "=starter_" + function for function in starter_functions],
                visibility = [
                    "//grader/selftest:__pkg__",
                    "//solutions/%s:__pkg__" % name,
                ],
                deps = [contract] + _DEPS[language] + step_deps,
                **_cuda(language, [starter], False, simt_code)
            )
    topic_src = "%s.%s" % (topic, language)
    topic_deps = step_deps + ([":ladder"] if step_srcs else [])
    if step_srcs:
        _ladder(language, contract, step_srcs, step_deps, _cuda(language, step_srcs, compute_90a, simt_code))
    if middle:
        renamed = ["%s=%s" % names for names in middle.items()]
        middle_srcs = [topic_src] + middle_srcs
        more = _cuda(language, middle_srcs, compute_90a, simt_code)
        _middle(lab, language, contract, middle_srcs, renamed, topic_deps, more)
    lab_library(
        name = topic,
        language = language,
        srcs = [topic_src] + _kept_steps(subject),
        visibility = _VISIBILITY,
        deps = [contract] + _DEPS[language] + topic_deps,
        **_cuda(language, [topic_src], compute_90a, simt_code)
    )
    native.filegroup(
        name = "sources",
        srcs = native.glob(["*.c", "*.cu", "steps/*.c", "steps/*.cu", "steps/*.cuh", "steps/*.h"]),
        visibility = ["//grader/cards:__pkg__"],
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
        deps = [":" + topic, lab + ":engine_deps", "//common/simt"],
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
        visibility = [
            "//grader:__pkg__",
            "//tools:__pkg__",
        ],
    )
    if language == "cu":
        debug(name = "debug", program = ":bench")

def ladder_test(name, steps, deps = []):
    """Runs steps/ladder_test.c of a solution on a GPU, or on simt.

    Args:
      name: of the test.
      steps: the library with the steps.
      deps: dependencies besides the steps, the lab's contract and problem, and how to open a GPU.
    """
    lab = "//labs/" + native.package_name().split("/")[1]
    c_test(
        name = name,
        size = "medium",
        srcs = native.glob(["steps/ladder.h"]) + ["steps/ladder_test.c"],
        target_compatible_with = REQUIRES_NVCC,
        deps = [steps, lab + ":contract", lab + ":problem", "//common/base", "//solutions:ladder_gpu"] + deps,
    )
