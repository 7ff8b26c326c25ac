"""relocatable_program, cuda_program: programs that nvcc alone compiles and links, as users do."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@local_config_cuda//:config.bzl", "REQUIRES_NVCC")

# What common/simt/README.md tells users.
_OPTIONS = [
    "-rdc=true",
    "-cudart",
    "shared",
    "--compress-mode=none",
    "-lineinfo",
    "-gencode",
    "arch=compute_75,code=compute_75",
]

def _cuda_program_impl(ctx):
    cc_toolchain = find_cpp_toolchain(ctx)
    output = ctx.actions.declare_file(ctx.label.name)
    args = ctx.actions.args()
    args.add_all(ctx.attr.options)
    args.add("-ccbin", cc_toolchain.compiler_executable)
    args.add("-I.")
    args.add("-o", output)
    args.add_all([source for source in ctx.files.srcs if source.extension == "cu"])
    ctx.actions.run(
        executable = ctx.executable._nvcc,
        arguments = [args],
        inputs = depset(
            ctx.files.srcs + ctx.files._nvcc_version,
            transitive = [cc_toolchain.all_files],
        ),
        outputs = [output],
        mnemonic = "CudaProgram",
        progress_message = "Compiling and linking %s with nvcc" % ctx.label.name,
        use_default_shell_env = True,
    )
    return [DefaultInfo(executable = output, files = depset([output]))]

_cuda_program = rule(
    implementation = _cuda_program_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu", ".h"], mandatory = True),
        "options": attr.string_list(doc = "For nvcc."),
        "_nvcc": attr.label(
            default = "@local_config_cuda//:nvcc",
            executable = True,
            cfg = "host",
        ),
        "_nvcc_version": attr.label(default = "@local_config_cuda//:nvcc_version"),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    executable = True,
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    fragments = ["cpp"],
)

def cuda_program(name, srcs, options):
    """A program for simt's tests; skipped where nvcc is missing.

    Args:
      name: of the target and of the program.
      srcs: .cu files, and headers.
      options: for nvcc.
    """
    _cuda_program(
        name = name,
        srcs = srcs,
        options = options,
        testonly = True,
        target_compatible_with = REQUIRES_NVCC,
    )

def relocatable_program(name, srcs):
    """A program of several files whose device code is linked; see cuda_program()."""
    cuda_program(name, srcs, _OPTIONS)
