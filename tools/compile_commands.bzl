"""compile_commands.json for clangd: how each source file is compiled, in flags that clang knows.

Bazel's own command lines are of no use to clangd: nvcc's flags are not clang's, and gcc's are not all.
So an aspect asks each target for its folders of headers and its definitions.
"""

_EntriesInfo = provider(fields = ["entries"])

# The places that only the reader's machine knows; compile_commands.sh fills them in.
_WORKSPACE = "@WORKSPACE@"
_OUTPUT_BASE = "@OUTPUT_BASE@"
_TOOLKIT = _OUTPUT_BASE + "/external/local_config_cuda/toolkit/include"

_C = ["clang", "-std=c17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-mavx2", "-mfma", "-fopenmp"]

# clang's own headers for CUDA do not know a toolkit as new as ours: see clangd_cuda.h.
_CUDA = [
    "clang++",
    "-xcuda",
    "-std=c++17",
    "-Wall",
    "-Wextra",
    "-Wno-unknown-cuda-version",
    "--cuda-host-only",
    "--cuda-gpu-arch=sm_80",
    "-nocudainc",
    "-nocudalib",
    "-Xclang",
    "-fcuda-allow-variadic-functions",
    "-Xclang",
    "-fno-cuda-host-device-constexpr",
    "-isystem",
    _TOOLKIT,
    "-isystem",
    _TOOLKIT + "/cccl",
    "-include",
    _WORKSPACE + "/tools/clangd_cuda.h",
]
_CXX = ["clang++", "-std=c++17", "-D_GNU_SOURCE", "-Wall", "-Wextra"]

_LANGUAGES = {
    "c": _C,
    "cc": _CXX,
    "cu": _CUDA,
    "cuh": _CUDA,
    "h": _C,
}

def _on_disk(folder):
    """Where a folder of the build lies when no sandbox does."""
    if folder.startswith("external/"):
        return _OUTPUT_BASE + "/" + folder
    return _WORKSPACE if folder == "." else _WORKSPACE + "/" + folder

def _flags(context, local_defines):
    flags = []
    for folder in context.quote_includes.to_list():
        flags += ["-iquote", _on_disk(folder)]
    for folder in context.includes.to_list():
        flags += ["-I", _on_disk(folder)]
    for folder in context.system_includes.to_list():
        flags += ["-isystem", _on_disk(folder)]
    return flags + ["-D" + define for define in context.defines.to_list() + local_defines]

def _context(target, ctx):
    """A program has no context of its own to show, but has those of what it stands on."""
    if CcInfo in target:
        return target[CcInfo].compilation_context
    deps = [dep[CcInfo] for dep in getattr(ctx.rule.attr, "deps", []) if CcInfo in dep]
    return cc_common.merge_cc_infos(cc_infos = deps).compilation_context

def _files(ctx):
    files = []
    for name in ["srcs", "hdrs"]:
        files += getattr(ctx.rule.files, name, [])
    return [
        f
        for f in files
        if f.is_source and f.extension in _LANGUAGES and not f.path.startswith("external/")
    ]

def _entry(file, flags):
    language = ["-xc-header"] if file.extension == "h" else []
    return json.encode({
        "directory": _WORKSPACE,
        "file": _WORKSPACE + "/" + file.path,
        "arguments": _LANGUAGES[file.extension] + language + flags + ["-c", _WORKSPACE + "/" + file.path],
    })

def _entries_aspect_impl(target, ctx):
    below = []
    for name in ["deps", "srcs", "data", "actual"]:
        attribute = getattr(ctx.rule.attr, name, None)
        for dep in attribute if type(attribute) == "list" else [attribute]:
            if type(dep) == "Target" and _EntriesInfo in dep:
                below.append(dep[_EntriesInfo].entries)
    own = []
    if ctx.rule.kind in ["cc_library", "cc_binary", "cc_test", "_cuda_library", "confined_library"]:
        local = [d.replace("\\\"", "\"") for d in getattr(ctx.rule.attr, "local_defines", [])]
        flags = _flags(_context(target, ctx), local)
        own = [_entry(file, flags) for file in _files(ctx)]
    return [_EntriesInfo(entries = depset(own, transitive = below))]

_entries_aspect = aspect(
    implementation = _entries_aspect_impl,
    attr_aspects = ["deps", "srcs", "data", "actual"],
)

def _compile_commands_impl(ctx):
    entries = depset(transitive = [dep[_EntriesInfo].entries for dep in ctx.attr.deps]).to_list()
    seen = {}
    for entry in entries:
        seen.setdefault(json.decode(entry)["file"], entry)
    output = ctx.actions.declare_file(ctx.label.name + ".json")
    lines = [seen[name] for name in sorted(seen)]
    ctx.actions.write(output, "[\n" + ",\n".join(lines) + "\n]\n")
    return [DefaultInfo(files = depset([output]), runfiles = ctx.runfiles(files = [output]))]

compile_commands = rule(
    doc = "NAME.json: how the sources of `deps`, and of all that they stand on, are compiled.",
    implementation = _compile_commands_impl,
    attrs = {"deps": attr.label_list(aspects = [_entries_aspect])},
)
