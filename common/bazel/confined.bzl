"""Compiles a submission's file in the sandbox of //grader/sandbox/compile.

The compiler reads the action's inputs, its own headers and the system's, and nothing else; what it
may take of time, memory and output is limited. cuda_library(confined = True) is the same for .cu.
"""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "C_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

# What starts the compiler: a learner's file is compiled in the grader's sandbox, so that it cannot
# read what else is on the machine.
COMPILE = "//grader/sandbox/compile"

def confined_options(ctx, cc_toolchain, output, inputs):
    """What `compile` is told before the compiler's own words."""
    options = ctx.actions.args()
    options.use_param_file("@%s")
    options.set_param_file_format("multiline")
    options.add(output, format = "--output=%s")
    options.add(cc_toolchain.compiler_executable, format = "--host=%s")
    options.add_all(inputs, format_each = "--read=%s")
    return options

def _command(ctx, cc_toolchain, features, context, source):
    """The compiler's path and its arguments, but for the output."""
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = cc_toolchain,
        source_file = source.path,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.conlyopts + ctx.attr.copts,
        include_directories = context.includes,
        quote_include_directories = context.quote_includes,
        system_include_directories = context.system_includes,
        preprocessor_defines = depset(ctx.attr.local_defines, transitive = [context.defines]),
    )
    return [cc_common.get_tool_for_action(
        feature_configuration = features,
        action_name = C_COMPILE_ACTION_NAME,
    )] + cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = C_COMPILE_ACTION_NAME,
        variables = variables,
    )

def _compile(ctx, cc_toolchain, features, context, source):
    """Compiles one .c file; returns its object file."""
    output = ctx.actions.declare_file("_objs/%s/%s.o" % (ctx.label.name, source.basename[:-len(".c")]))
    inputs = depset(
        [source] + [f for f in ctx.files.srcs if f.extension == "h"],
        transitive = [context.headers],
    )
    ctx.actions.run(
        executable = ctx.executable.compile,
        arguments = [confined_options(ctx, cc_toolchain, output, inputs), "--"] +
                    _command(ctx, cc_toolchain, features, context, source),
        inputs = depset(transitive = [inputs, cc_toolchain.all_files]),
        outputs = [output],
        mnemonic = "ConfinedCompile",
        progress_message = "Compiling %s" % source.short_path,
        use_default_shell_env = True,
    )
    return output

def _confined_library_impl(ctx):
    cc_toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    own = CcInfo(compilation_context = cc_common.create_compilation_context(
        headers = depset(ctx.files.hdrs),
        quote_includes = depset([".", ctx.genfiles_dir.path, ctx.bin_dir.path]),
    ))
    deps = [dep[CcInfo] for dep in ctx.attr.deps]
    context = cc_common.merge_cc_infos(cc_infos = [own] + deps).compilation_context
    objects = depset([
        _compile(ctx, cc_toolchain, features, context, source)
        for source in ctx.files.srcs
        if source.extension == "c"
    ])
    linking, _ = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        name = ctx.label.name,
        feature_configuration = features,
        cc_toolchain = cc_toolchain,
        compilation_outputs = cc_common.create_compilation_outputs(objects = objects, pic_objects = objects),
        linking_contexts = [dep.linking_context for dep in deps],
        user_link_flags = ctx.attr.linkopts,
        disallow_dynamic_library = True,
    )
    return [
        DefaultInfo(files = objects),
        CcInfo(compilation_context = context, linking_context = linking),
    ]

confined_library = rule(
    doc = "A cc_library of C files that programs alone are linked with.",
    implementation = _confined_library_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".c", ".h"]),
        "hdrs": attr.label_list(allow_files = [".h"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "copts": attr.string_list(),
        "local_defines": attr.string_list(),
        "linkopts": attr.string_list(),
        "compile": attr.label(
            mandatory = True,
            executable = True,
            # Not "host": it is the sandbox that the grader has anyway, and the flags are the same.
            cfg = "target",
        ),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    fragments = ["cpp"],
)
