"""Finds nvcc and the CUDA runtime; offers them as @local_config_cuda.

Looked for in this order: $CUDA_HOME, nvcc on $PATH, /usr/local/cuda, and the
folder .venv-cuda that ./setup.sh fills with NVIDIA's wheels. WARPBOOK_CUDA=off
hides all of them: `bazel test --repo_env=WARPBOOK_CUDA=off //...` shows what a
machine without nvcc does.

What the repository offers, found or not:

    :nvcc           script that starts nvcc, for rules
    :nvcc_version   file that changes with the toolkit, an input of every compilation
    :nvcc_found     config_setting, for select()
    :cuda_headers   the runtime's C headers alone
    :cudart         the runtime as a shared library, with its C headers
    :cudart_static  the same, linked in
    config.bzl      REQUIRES_NVCC, for target_compatible_with
"""

_HEAD = """load("@rules_cc//cc:defs.bzl", "cc_import", "cc_library")
load(":config.bzl", "found_flag")

package(default_visibility = ["//visibility:public"])

# No platform has this property: a target that wants it is skipped, and when it
# is asked for by name Bazel prints the name of the constraint.
constraint_setting(name = "nvcc_state")

constraint_value(
    name = "nvcc_is_missing_run_setup_sh",
    constraint_setting = ":nvcc_state",
)

found_flag(
    name = "found",
    build_setting_default = {found},
)

config_setting(
    name = "nvcc_found",
    flag_values = {{":found": "True"}},
)

sh_binary(
    name = "nvcc",
    srcs = ["nvcc.sh"],
)

filegroup(
    name = "nvcc_version",
    srcs = ["version.txt"],
)
"""

_FOUND = """
_HEADERS = glob(["toolkit/include/*.h", "toolkit/include/crt/**"])

cc_import(
    name = "shared",
    shared_library = "lib/{shared}",
)

cc_import(
    name = "static",
    static_library = "lib/libcudart_static.a",
)

cc_library(
    name = "cuda_headers",
    hdrs = _HEADERS,
    includes = ["toolkit/include"],
)

# For tests that compare with what is installed.
filegroup(
    name = "shared_file",
    srcs = ["lib/{shared}"],
)

filegroup(
    name = "driver_types",
    srcs = ["toolkit/include/driver_types.h"],
)

cc_library(
    name = "cudart",
    deps = [
        ":cuda_headers",
        ":shared",
    ],
)

cc_library(
    name = "cudart_static",
    linkopts = ["-ldl", "-lpthread", "-lrt"],
    deps = [
        ":cuda_headers",
        ":static",
    ],
)
"""

_MISSING = """
cc_library(
    name = "cuda_headers",
    target_compatible_with = [":nvcc_is_missing_run_setup_sh"],
)

# Tests that read these files are skipped; a label must still have one.
filegroup(
    name = "shared_file",
    srcs = ["version.txt"],
)

filegroup(
    name = "driver_types",
    srcs = ["version.txt"],
)

cc_library(
    name = "cudart",
    target_compatible_with = [":nvcc_is_missing_run_setup_sh"],
)

cc_library(
    name = "cudart_static",
    target_compatible_with = [":nvcc_is_missing_run_setup_sh"],
)
"""

_CONFIG = """REQUIRES_NVCC = {requires}

def _found_flag_impl(_ctx):
    return []

found_flag = rule(implementation = _found_flag_impl, build_setting = config.bool())
"""

def _candidates(repository_ctx):
    """Folders that may hold bin/nvcc, best first."""
    folders = []
    home = repository_ctx.os.environ.get("CUDA_HOME", "")
    if home:
        folders.append(home)
    on_path = repository_ctx.which("nvcc")
    if on_path:
        folders.append(str(on_path.realpath.dirname.dirname))
    folders.append("/usr/local/cuda")

    # The wheels lie below lib/python3.N, whichever N made the folder.
    venv = str(repository_ctx.path(Label("//:WORKSPACE")).dirname) + "/.venv-cuda"
    lib = repository_ctx.path(venv + "/lib")
    if lib.exists:
        folders += [str(python) + "/site-packages/nvidia/cu13" for python in lib.readdir()]
    return folders

def _first_library(repository_ctx, toolkit, names):
    for folder in ["lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"]:
        for name in names:
            path = repository_ctx.path("%s/%s/%s" % (toolkit, folder, name))
            if path.exists:
                return path
    return None

def _find_toolkit(repository_ctx):
    """The first folder with all that is needed; None when there is none."""
    if repository_ctx.os.environ.get("WARPBOOK_CUDA", "") == "off":
        return None
    for folder in _candidates(repository_ctx):
        shared = _first_library(repository_ctx, folder, ["libcudart.so.13"])
        static = _first_library(repository_ctx, folder, ["libcudart_static.a"])
        nvcc = repository_ctx.path(folder + "/bin/nvcc")
        header = repository_ctx.path(folder + "/include/cuda_runtime_api.h")
        if not (nvcc.exists and header.exists and shared and static):
            continue
        version = repository_ctx.execute([nvcc, "--version"])
        if version.return_code == 0:
            return struct(
                folder = folder,
                nvcc = nvcc,
                shared = shared,
                static = static,
                version = version.stdout,
            )
    return None

def _write_missing(repository_ctx):
    script = "#!/bin/sh\necho 'nvcc is missing: run ./setup.sh' >&2\nexit 1\n"
    repository_ctx.file("BUILD", _HEAD.format(found = False) + _MISSING)
    repository_ctx.file("config.bzl", _CONFIG.format(
        requires = ["@local_config_cuda//:nvcc_is_missing_run_setup_sh"],
    ))
    repository_ctx.file("nvcc.sh", script, executable = True)
    repository_ctx.file("version.txt", "missing\n")

def _write_found(repository_ctx, toolkit):
    script = "#!/bin/sh\nexec '%s' \"$@\"\n" % toolkit.nvcc
    repository_ctx.symlink(toolkit.folder + "/include", "toolkit/include")
    repository_ctx.symlink(toolkit.shared.realpath, "lib/" + toolkit.shared.basename)
    repository_ctx.symlink(toolkit.static, "lib/libcudart_static.a")
    repository_ctx.file(
        "BUILD",
        _HEAD.format(found = True) + _FOUND.format(shared = toolkit.shared.basename),
    )
    repository_ctx.file("config.bzl", _CONFIG.format(requires = []))
    repository_ctx.file("nvcc.sh", script, executable = True)
    repository_ctx.file("version.txt", toolkit.version)

def _cuda_configure_impl(repository_ctx):
    toolkit = _find_toolkit(repository_ctx)
    if toolkit:
        _write_found(repository_ctx, toolkit)
    else:
        _write_missing(repository_ctx)

cuda_configure = repository_rule(
    implementation = _cuda_configure_impl,
    environ = ["CUDA_HOME", "PATH", "WARPBOOK_CUDA"],
    local = True,
    configure = True,
)
