"""ptx_text: the PTX that nvcc makes of a .cu file, as a file for tests."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@local_config_cuda//:config.bzl", "REQUIRES_NVCC")
load("//common/bazel:cuda_library.bzl", "CUDA_OPTIONS")

# PTX does not depend on how host code is compiled, so it is made once for a
# test and for the same test under sanitizers. The values mean nothing here; they
# differ from those of every caller, for otherwise Bazel names two folders.
def _plain_impl(_settings, _attr):
    return {
        "//command_line_option:copt": ["-w"],
        "//command_line_option:linkopt": ["-s"],
    }

_plain = transition(
    implementation = _plain_impl,
    inputs = [],
    outputs = ["//command_line_option:copt", "//command_line_option:linkopt"],
)

def _ptx_text_impl(ctx):
    cc_toolchain = find_cpp_toolchain(ctx)
    output = ctx.actions.declare_file(ctx.label.name + ".ptx")
    args = ctx.actions.args()
    args.add("-ptx")
    args.add_all(CUDA_OPTIONS)
    args.add_all(ctx.attr.options)
    args.add("-arch=compute_" + ctx.attr.arch)
    args.add("-ccbin", cc_toolchain.compiler_executable)
    args.add("-o", output)
    args.add(ctx.file.src)
    ctx.actions.run(
        executable = ctx.executable._nvcc,
        arguments = [args],
        inputs = depset(
            [ctx.file.src] + ctx.files._nvcc_version,
            transitive = [cc_toolchain.all_files],
        ),
        outputs = [output],
        mnemonic = "CudaPtx",
        progress_message = "Compiling %s to PTX" % ctx.file.src.short_path,
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([output]), runfiles = ctx.runfiles([output]))]

_ptx_text = rule(
    implementation = _ptx_text_impl,
    attrs = {
        "src": attr.label(allow_single_file = [".cu"], mandatory = True),
        "arch": attr.string(mandatory = True),
        "options": attr.string_list(),
        "_nvcc": attr.label(
            default = "@local_config_cuda//:nvcc",
            executable = True,
            cfg = "host",
        ),
        "_nvcc_version": attr.label(default = "@local_config_cuda//:nvcc_version"),
        "_whitelist_function_transition": attr.label(
            default = "@bazel_tools//tools/whitelists/function_transition_whitelist",
        ),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    fragments = ["cpp"],
    cfg = _plain,
)

def ptx_text(name, src, arch, options = [], tags = []):
    """NAME.ptx; skipped where nvcc is missing.

    Args:
      name: of the target and, with .ptx, of the file.
      src: one .cu file that includes nothing but the toolkit's headers.
      arch: "75" for compute_75.
      options: more options for nvcc.
      tags: of the target.
    """
    _ptx_text(
        name = name,
        src = src,
        arch = arch,
        options = options,
        tags = tags,
        testonly = True,
        target_compatible_with = REQUIRES_NVCC,
    )
