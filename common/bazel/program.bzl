"""A program that can also be a part of `warpbook`, which //install makes of all of them."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library")

def program(name, srcs, deps, data = [], local_defines = [], visibility = ["//visibility:public"]):
    """Declares the program, and `:NAME_command`: the same with NAME_command() for main()."""
    cc_binary(
        name = name,
        srcs = srcs,
        data = data,
        local_defines = local_defines,
        visibility = visibility,
        deps = deps,
    )
    cc_library(
        name = name + "_command",
        srcs = srcs,
        linkstatic = True,
        local_defines = local_defines + ["main=%s_command" % name],
        visibility = ["//install:__pkg__"],
        deps = deps,
    )
