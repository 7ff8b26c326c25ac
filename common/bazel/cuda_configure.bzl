"""Finds nvcc and the CUDA runtime; offers them as @local_config_cuda.

Looks in this order: $CUDA_HOME, nvcc on $PATH, /usr/local/cuda, and the folder
.venv-cuda, which ./setup.sh fills with NVIDIA's wheels. WARPBOOK_CUDA=off ignores
all of them: `bazel test --repo_env=WARPBOOK_CUDA=off //...` behaves as on a machine
without nvcc.

Also looks for a GPU, and so chooses the device to build for if neither --config=gpu
nor --config=simt is given. find_gpu.c asks the driver, as the programs will, whether
there is a GPU that runs CUDA 13's code (it checks the driver's library, its version,
and the GPU's age). If there is, the default is --//common/bazel:device=native, else
simt. WARPBOOK_GPU=off ignores the GPU, WARPBOOK_GPU=on assumes that there is one:
`bazel build --repo_env=WARPBOOK_GPU=on //...`.

Targets of the repository, whether CUDA was found or not:

    :nvcc           script that starts nvcc, for rules
    :toolkit.txt    the toolkit's folder; the folder of a substitute for ptxas, where that is missing
    :nvcc_version   file that changes with the toolkit, an input of every compilation
    :nvcc_found     config_setting, for select()
    :cuda_headers   the runtime's C headers alone
    :cudart         the runtime as a shared library, with its C headers
    :cudart_static  the same, linked in
    config.bzl      REQUIRES_NVCC, for target_compatible_with; DEFAULT_DEVICE; NATIVE_ARCHS
"""

# GPUs with instructions that need code for exactly that GPU (sm_90a).
_OWN_INSTRUCTIONS = ["90"]

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

exports_files(["toolkit.txt"])
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

# Which of //common/bazel:device's values an empty command line means.
DEFAULT_DEVICE = "{device}"

# Code for the GPUs found here, empty without any.
NATIVE_ARCHS = "{archs}"

def _found_flag_impl(_ctx):
    return []

found_flag = rule(implementation = _found_flag_impl, build_setting = config.bool())
"""

# nvcc lets ptxas check PTX for compute_90 and above, without any output: that can be left out.
_NO_PTXAS = """#!/bin/sh
for argument; do
    if [ "$argument" = -o ]; then
        echo "this CUDA toolkit has no ptxas: it builds for --config=simt, not for a GPU" >&2
        exit 1
    fi
done
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

    # The wheels are below lib/python3.N, with the N of the Python that created the folder.
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
    """The first folder with a complete toolkit; None if there is none."""
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

def _capabilities(repository_ctx):
    """Compute capabilities, like "90", of this machine's usable GPUs; empty without a GPU."""
    compiler = repository_ctx.which("gcc") or repository_ctx.which("cc") or repository_ctx.which("clang")
    if not compiler:
        return []
    source = repository_ctx.path(Label("//common/bazel:find_gpu.c"))
    if repository_ctx.execute([compiler, "-o", "find_gpu", source, "-ldl"]).return_code != 0:
        return []
    found = repository_ctx.execute(["./find_gpu"], timeout = 60)
    if found.return_code != 0:
        return []
    capabilities = {line.split(" ")[0]: True for line in found.stdout.strip().split("\n")}
    return sorted(capabilities.keys())

def _native_archs(repository_ctx, toolkit, capabilities):
    """Machine code for these GPUs, and PTX; empty if nvcc does not know one of them."""
    known = repository_ctx.execute([toolkit.nvcc, "--list-gpu-code"]).stdout.split("\n")
    archs = ["compute_75:compute_75"]
    for capability in capabilities:
        if "sm_" + capability not in known:
            return ""
        name = capability + ("a" if capability in _OWN_INSTRUCTIONS else "")
        archs.append("compute_%s:sm_%s" % (name, name))
    return ";".join(archs)

def _choose_device(repository_ctx, toolkit):
    """The device to build for if the command line does not choose one."""
    wish = repository_ctx.os.environ.get("WARPBOOK_GPU", "")
    if wish not in ["", "on", "off"]:
        fail("WARPBOOK_GPU is 'on' or 'off', not '%s'" % wish)
    capabilities = _capabilities(repository_ctx) if wish != "off" else []
    if not capabilities:
        return struct(device = "gpu" if wish == "on" else "simt", archs = "")

    # A GPU newer than nvcc runs the PTX that device=gpu contains.
    archs = _native_archs(repository_ctx, toolkit, capabilities)
    return struct(device = "native" if archs else "gpu", archs = archs)

def _write_missing(repository_ctx):
    script = "#!/bin/sh\necho 'nvcc is missing: run ./setup.sh' >&2\nexit 1\n"
    repository_ctx.file("BUILD", _HEAD.format(found = False) + _MISSING)
    repository_ctx.file("config.bzl", _CONFIG.format(
        requires = ["@local_config_cuda//:nvcc_is_missing_run_setup_sh"],
        device = "simt",
        archs = "",
    ))
    repository_ctx.file("nvcc.sh", script, executable = True)
    repository_ctx.file("version.txt", "missing\n")
    repository_ctx.file("toolkit.txt", "")

def _nvcc_script(repository_ctx, toolkit):
    """A script that starts nvcc, with a substitute for ptxas if the toolkit has none.

    nvcc names its temporary files after its process id. Sandboxes that share /tmp may have the
    same process ids, so each run gets its own folder.
    """
    path = ""
    if not repository_ctx.path(toolkit.folder + "/bin/ptxas").exists:
        path = "PATH='%s':\"$PATH\" " % repository_ctx.path("without_ptxas")
    return """#!/bin/sh
TMPDIR=$(mktemp -d) || exit 1
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
%s'%s' "$@"
""" % (path, toolkit.nvcc)

def _write_found(repository_ctx, toolkit):
    repository_ctx.symlink(toolkit.folder + "/include", "toolkit/include")
    repository_ctx.symlink(toolkit.shared.realpath, "lib/" + toolkit.shared.basename)
    repository_ctx.symlink(toolkit.static, "lib/libcudart_static.a")
    repository_ctx.file(
        "BUILD",
        _HEAD.format(found = True) + _FOUND.format(shared = toolkit.shared.basename),
    )
    choice = _choose_device(repository_ctx, toolkit)
    repository_ctx.file("config.bzl", _CONFIG.format(
        requires = [],
        device = choice.device,
        archs = choice.archs,
    ))
    repository_ctx.file("nvcc.sh", _nvcc_script(repository_ctx, toolkit), executable = True)
    repository_ctx.file("version.txt", toolkit.version)
    lines = [str(repository_ctx.path(toolkit.folder).realpath)]
    if not repository_ctx.path(toolkit.folder + "/bin/ptxas").exists:
        repository_ctx.file("without_ptxas/ptxas", _NO_PTXAS, executable = True)
        lines.append(str(repository_ctx.path("without_ptxas")))
    repository_ctx.file("toolkit.txt", "".join([line + "\n" for line in lines]))

def _cuda_configure_impl(repository_ctx):
    toolkit = _find_toolkit(repository_ctx)
    if toolkit:
        _write_found(repository_ctx, toolkit)
    else:
        _write_missing(repository_ctx)

cuda_configure = repository_rule(
    implementation = _cuda_configure_impl,
    environ = ["CUDA_HOME", "PATH", "WARPBOOK_CUDA", "WARPBOOK_GPU"],
    local = True,
    configure = True,
)
