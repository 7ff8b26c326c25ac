"""cuda_library: compiles .cu files with nvcc, for C and C++ targets to depend on.

Load it from @rules_cuda//cuda:defs.bzl, the name of the public rules. It has the
same attributes, so the public rules can replace it, but for `compile`, for a lab's files,
and those that say for which GPUs simt needs PTX.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@local_config_cuda//:config.bzl", "REQUIRES_NVCC")
load("//common/bazel:confined.bzl", "confined_options")
load("//common/bazel:cuda_archs.bzl", "ArchsInfo", "CoptsInfo", "code_options")

# Options for every .cu file. With the line table simt and profilers can name source lines. The C++ library's
# special functions (Bessel's, Riemann's) cost a third of a small file's time, and no kernel can call them:
# their header counts as included.
CUDA_OPTIONS = ["-x", "cu", "-std=c++17", "-O3", "-lineinfo", "-D_GLIBCXX_BITS_SPECFUN_H"]

# What nvcc makes of a file: an object, or the GPUs' code alone. That takes half as long, since nothing
# is compiled for the host.
_OBJECT = struct(option = "-c", ending = "o", mnemonic = "CudaCompile", confined = [], whole = False)
_DEVICE_CODE = struct(
    option = "-fatbin",
    ending = "fatbin",
    mnemonic = "CudaDeviceCode",
    confined = ["--unlinked"],  # nor looked at as an object that will be
    whole = False,
)

# With the PTX that simt_code leaves out.
_WHOLE_CODE = struct(
    option = "-fatbin",
    ending = "whole.fatbin",
    mnemonic = "CudaWholeCode",
    confined = ["--unlinked"],
    whole = True,
)

def _simt_code(ctx, source):
    """The compute capabilities that simt gets PTX of a file for; nothing for all."""
    name = source.short_path[len(ctx.label.package) + 1:]
    for capabilities, sources in ctx.attr.simt_code.items():
        if name in sources:
            return capabilities
    return "90" if ctx.attr.newest_simt_gpu else ""

def _arguments(ctx, cc_toolchain, context, source, kind):
    """The command line of one compilation, after the name of nvcc, but for the files."""
    args = ctx.actions.args()
    args.add(kind.option)
    args.add_all(CUDA_OPTIONS)
    simt_code = "" if kind.whole else _simt_code(ctx, source)
    args.add_all(code_options(ctx.attr.archs[ArchsInfo], ctx.attr.compute_90a, simt_code))
    args.add("--compress-mode=none" if kind.option == "-fatbin" else ctx.attr.archs[ArchsInfo].compression)
    args.add("-ccbin", cc_toolchain.compiler_executable)
    args.add("-Xcompiler", "-fPIC")
    if "-Werror" in ctx.fragments.cpp.copts:
        args.add("-Werror", "all-warnings")
    args.add_all(context.quote_includes, before_each = "-I")
    args.add_all(context.includes, before_each = "-I")
    args.add_all(context.system_includes, before_each = "-isystem")
    args.add_all(context.defines, before_each = "-D")
    args.add_all(context.local_defines, before_each = "-D")
    args.add_all(ctx.attr.local_defines, before_each = "-D")
    args.add_all(ctx.attr.copts)
    args.add_all(ctx.attr._copts[CoptsInfo].options)
    return args

def _compile(ctx, cc_toolchain, context, source, kind):
    """Compiles one .cu file; returns what comes of it."""
    name = "_objs/%s/%s.%s" % (ctx.label.name, source.basename[:-len(".cu")], kind.ending)
    output = ctx.actions.declare_file(name)
    headers = depset(
        [source] + [f for f in ctx.files.srcs if f.extension != "cu"],
        transitive = [context.headers],
    )
    words = [_arguments(ctx, cc_toolchain, context, source, kind), "-o", output.path, source.path]
    tools = ctx.files._nvcc_version
    if ctx.attr.compile:
        options = confined_options(ctx, cc_toolchain, output, headers)
        options.add(ctx.file._toolkit, format = "--toolkit=%s")
        options.add_all(kind.confined)
        words = [options, "--", "nvcc", words[0], source.path]
        tools = tools + [ctx.file._toolkit]
    ctx.actions.run(
        executable = ctx.executable.compile if ctx.attr.compile else ctx.executable._nvcc,
        arguments = words,
        inputs = depset(tools, transitive = [headers, cc_toolchain.all_files]),
        outputs = [output],
        mnemonic = kind.mnemonic,
        progress_message = "Compiling %s with nvcc" % source.short_path,
        use_default_shell_env = True,
    )
    return output

def _check_left_out(ctx, cc_toolchain, context, source):
    """Fails where simt_code leaves out PTX that a GPU needs; returns an empty file."""
    code = _compile(ctx, cc_toolchain, context, source, _WHOLE_CODE)
    stamp = ctx.actions.declare_file(code.basename + ".left_out", sibling = code)
    ctx.actions.run(
        executable = ctx.executable._left_out,
        arguments = [source.short_path, _simt_code(ctx, source), code.path, stamp.path],
        inputs = [code],
        outputs = [stamp],
        mnemonic = "CudaLeftOut",
        progress_message = "Comparing PTX of %s" % source.short_path,
    )
    return stamp

def _leaves_out(ctx, source):
    """Whether simt_code leaves out PTX for a GPU newer than another one that there is PTX for."""
    archs = ctx.attr.archs[ArchsInfo]
    return archs.ptx_only and len(archs.pairs) > 1 and _simt_code(ctx, source) not in ["", "90"]

def _own_context(ctx):
    """This target's own headers, defines and include folders."""
    package = ctx.label.workspace_root + "/" + ctx.label.package if ctx.label.workspace_root else ctx.label.package
    folders = []
    for folder in ctx.attr.includes:
        path = package if folder == "." else package + "/" + folder
        folders += [path, ctx.bin_dir.path + "/" + path]
    return cc_common.create_compilation_context(
        headers = depset(ctx.files.hdrs),
        includes = depset(folders),
        quote_includes = depset([".", ctx.genfiles_dir.path, ctx.bin_dir.path]),
        defines = depset(ctx.attr.defines),
    )

def _cuda_library_impl(ctx):
    cc_toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    deps = [dep[CcInfo] for dep in ctx.attr.deps + [ctx.attr.runtime]]
    own = CcInfo(compilation_context = _own_context(ctx))
    context = cc_common.merge_cc_infos(cc_infos = [own] + deps).compilation_context
    sources = [source for source in ctx.files.srcs if source.extension == "cu"]
    objects = [_compile(ctx, cc_toolchain, context, source, _OBJECT) for source in sources]
    device_code = [_compile(ctx, cc_toolchain, context, source, _DEVICE_CODE) for source in sources]
    left_out = [_check_left_out(ctx, cc_toolchain, context, s) for s in sources if _leaves_out(ctx, s)]
    linking, _ = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        name = ctx.label.name,
        feature_configuration = features,
        cc_toolchain = cc_toolchain,
        compilation_outputs = cc_common.create_compilation_outputs(
            objects = depset(objects),
            pic_objects = depset(objects),
        ),
        linking_contexts = [dep.linking_context for dep in deps],
        # nvcc's host code is C++ even if the kernels' interface is C.
        user_link_flags = ctx.attr.linkopts + ["-l:libstdc++.a"],
        alwayslink = ctx.attr.alwayslink,
        disallow_dynamic_library = True,
    )
    return [
        DefaultInfo(files = depset(objects)),
        OutputGroupInfo(device_code = depset(device_code), left_out = depset(left_out)),
        CcInfo(compilation_context = context, linking_context = linking),
    ]

_cuda_library = rule(
    implementation = _cuda_library_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu", ".cuh", ".h"]),
        "hdrs": attr.label_list(allow_files = [".cu", ".cuh", ".h"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "copts": attr.string_list(),
        "defines": attr.string_list(),
        "local_defines": attr.string_list(),
        "includes": attr.string_list(),
        "linkopts": attr.string_list(),
        "alwayslink": attr.bool(),
        "archs": attr.label(default = "@rules_cuda//cuda:archs", providers = [ArchsInfo]),
        "runtime": attr.label(default = "@rules_cuda//cuda:runtime", providers = [CcInfo]),
        "_copts": attr.label(default = "@rules_cuda//cuda:copts", providers = [CoptsInfo]),
        "_nvcc": attr.label(
            default = "@local_config_cuda//:nvcc",
            executable = True,
            cfg = "host",
        ),
        "compile": attr.label(executable = True, cfg = "target"),
        "compute_90a": attr.bool(
            doc = "Whether the files use instructions of compute_90a (wgmma): simt gets PTX for it.",
        ),
        "newest_simt_gpu": attr.bool(
            doc = "Whether the files are for the newest of the GPUs that simt gets PTX for: no test of " +
                  "--config=deep runs them on an older one.",
        ),
        "simt_code": attr.string_list_dict(
            doc = "Some of srcs by the compute capabilities that simt gets their PTX for with --config=deep, where " +
                  "fewer than three do. 75, 75 80, 75 90: PTX for a newer one is that for an older one, word " +
                  "for word, and the host does not ask which one runs (gpu_code()). 90: no test of " +
                  "--config=deep runs the file on an older GPU.",
        ),
        "_left_out": attr.label(
            default = "//common/bazel/left_out",
            executable = True,
            cfg = "target",
        ),
        "_toolkit": attr.label(
            default = "@local_config_cuda//:toolkit.txt",
            allow_single_file = True,
        ),
        "_nvcc_version": attr.label(default = "@local_config_cuda//:nvcc_version"),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    fragments = ["cpp"],
)

def cuda_library(target_compatible_with = [], **kwargs):
    """Compiles .cu files with nvcc; if nvcc is missing, the target is skipped.

    Args:
      target_compatible_with: as everywhere in Bazel.
      **kwargs: srcs (.cu, private .cuh and .h), hdrs, deps (any CcInfo), copts,
        defines (also for targets that depend on it), local_defines, includes, linkopts,
        alwayslink, compile (a program that starts the compiler: see confined.bzl), compute_90a
        (whether the files use its instructions), newest_simt_gpu (whether --config=deep needs no PTX for
        older GPUs), simt_code (for which it needs PTX, file by file), and the attributes common to all
        rules.
    """
    _cuda_library(target_compatible_with = target_compatible_with + REQUIRES_NVCC, **kwargs)

def ptx_cuda_library(name, **kwargs):
    """As cuda_library, but the same in every configuration: only PTX, and NVIDIA's shared runtime.

    For tests of simt as a drop-in library, with programs that were not built for it.

    Args:
      name: of the target.
      **kwargs: as for cuda_library.
    """
    cuda_library(
        name = name,
        archs = "//common/bazel:ptx_archs",
        runtime = "@local_config_cuda//:cudart",
        **kwargs
    )
