"""Tests in C, and the same tests under AddressSanitizer and UBSan."""

load("@rules_cc//cc:defs.bzl", "cc_test")
load("//common/bazel:deep.bzl", "DEEP", "tags_of_package")

_SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]

def _sanitize_impl(settings, attr):
    return {
        "//command_line_option:copt": settings["//command_line_option:copt"] + _SANITIZE + ["-O1", "-g1"],
        "//command_line_option:linkopt": settings["//command_line_option:linkopt"] + _SANITIZE,
    }

_sanitize = transition(
    implementation = _sanitize_impl,
    inputs = ["//command_line_option:copt", "//command_line_option:linkopt"],
    outputs = ["//command_line_option:copt", "//command_line_option:linkopt"],
)

def _sanitized_test_impl(ctx):
    test = ctx.attr.test[0]
    program = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = program, target_file = test[DefaultInfo].files_to_run.executable, is_executable = True)
    runfiles = test[DefaultInfo].default_runfiles
    return [
        DefaultInfo(executable = program, runfiles = runfiles.merge(ctx.runfiles(files = ctx.files.test))),
        testing.TestEnvironment(ctx.attr.env),
    ]

sanitized_test = rule(
    implementation = _sanitized_test_impl,
    attrs = {
        "test": attr.label(cfg = _sanitize, executable = True, mandatory = True),
        "env": attr.string_dict(doc = "The environment of the test."),
        "_whitelist_function_transition": attr.label(
            default = "@bazel_tools//tools/whitelists/function_transition_whitelist",
        ),
    },
    test = True,
)

def c_test(name, srcs, deps = [], data = [], size = "small", env = {}, tags = [], sanitize = False, **kwargs):
    """A test of C_TEST cases; with sanitize also NAME_sanitized, under ASan and UBSan, in --config=deep."""
    cc_test(
        name = name,
        size = size,
        srcs = srcs,
        data = data,
        env = env,
        tags = tags_of_package(tags),
        linkstatic = True,
        deps = deps + ["//common/testing"],
        **kwargs
    )
    if sanitize:
        sanitized_test(
            name = name + "_sanitized",
            size = "medium",
            env = env,
            tags = DEEP,
            test = ":" + name,
        )
