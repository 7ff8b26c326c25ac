"""The programs of a lab that run on every stage of the course, twice: the learner's and the solution's
differ in the last stage."""

load("@rules_cc//cc:defs.bzl", "cc_library")
load("//common/bazel:program.bzl", "program")

def stages_and_programs(lab, programs, data, earlier, deps, device_deps = []):
    """Declares `:stages` and the programs in the calling package, from the lab's given/.

    The stages before this one are solved. Without nvcc the programs still run on the CPU: then the
    table of stages has the first one alone.

    Args:
      lab: NN_topic, the lab that gives the sources.
      programs: dict from a program's name, also that of its source, to the library it stands on.
      data: files that the programs find.
      earlier: the stages on the device before this one, as NN_topic.
      deps: of the stages, with nvcc and without.
      device_deps: further ones of the stages on the device.
    """
    given = "//labs/%s:given/" % lab
    contracts = ["//labs/%s:contract" % stage for stage in earlier + [lab]]
    engines = ["//solutions/%s:engine" % stage for stage in earlier]
    cc_library(
        name = "stages",
        srcs = [given + "stages.c"],
        hdrs = [given + "stages.h"],
        linkstatic = True,
        local_defines = select({
            "@local_config_cuda//:nvcc_found": [],
            "//conditions:default": ["WARPBOOK_NO_NVCC"],
        }),
        deps = deps + [
            "//common/base",
            "//labs/01_cpu_matmul:contract",
            "//solutions/01_cpu_matmul:engine",
        ] + select({
            "@local_config_cuda//:nvcc_found": device_deps + [
                ":engine",
                "//common/device",
                "//common/programs:program_device_open",
            ] + contracts + engines,
            "//conditions:default": [],
        }),
    )
    for name, library in programs.items():
        program(
            name = name,
            srcs = [given + name + ".c"],
            data = data,
            deps = [":stages", library],
        )
