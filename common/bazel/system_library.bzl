"""An installed C library, or else its pinned source archive.

The repository has one target, `:NAME`, in both cases. Static archives are
preferred, so that programs also run on machines without the package.
"""

_INSTALLED = """load("@rules_cc//cc:defs.bzl", "cc_import", "cc_library")

package(default_visibility = ["//visibility:public"])

{imports}
cc_library(
    name = "{name}",
    hdrs = glob(["include/**"]),
    includes = ["include"],
    linkopts = {linkopts},
    deps = {deps},
)
"""

_IMPORT = """cc_import(
    name = "{target}",
    {kind}_library = "lib/{file}",
)
"""

_MISSING = """load("@rules_cc//cc:defs.bzl", "cc_library")

package(default_visibility = ["//visibility:public"])

# {name} is not installed: run ./setup.sh. What uses it prints a dash instead.
cc_library(
    name = "{name}",
    defines = ["WARPBOOK_NO_{upper}"],
)
"""

def _first(repository_ctx, folders, names):
    for name in names:
        for folder in folders:
            path = repository_ctx.path(folder + "/" + name)
            if path.exists:
                return path
    return None

def _system_library_impl(repository_ctx):
    name = repository_ctx.attr.library
    multiarch = repository_ctx.os.environ.get("WARPBOOK_MULTIARCH", "")
    triplets = [multiarch] if multiarch else ["x86_64-linux-gnu", "aarch64-linux-gnu"]
    roots = ["/usr/local", "/usr"]
    libraries = ["/usr/local/lib"] + ["/usr/lib/" + t for t in triplets] + ["/usr/lib64", "/usr/lib"]
    includes = []
    for root in roots:
        includes += [root + "/include/" + t for t in triplets] + [root + "/include"]

    headers = [_first(repository_ctx, includes, [h]) for h in repository_ctx.attr.headers]
    archives = [
        _first(repository_ctx, libraries, ["lib" + stem + ".a", "lib" + stem + ".so"])
        for stem in repository_ctx.attr.archives
    ]
    if None not in headers and None not in archives:
        imports = []
        for index in range(len(archives)):
            path = archives[index]
            kind = "static" if path.basename.endswith(".a") else "shared"
            base = path.basename

            # At run time the loader looks for a shared library by its SONAME.
            if kind == "shared":
                found = repository_ctx.execute(["sh", "-c", "objdump -p '%s' | awk '/SONAME/ {print $2}'" % path])
                base = found.stdout.strip() or base
            repository_ctx.symlink(path.realpath if kind == "shared" else path, "lib/" + base)
            imports.append(_IMPORT.format(target = "import_%d" % index, kind = kind, file = base))
        for index in range(len(headers)):
            repository_ctx.symlink(headers[index], "include/" + repository_ctx.attr.headers[index])
        repository_ctx.file("BUILD", _INSTALLED.format(
            name = name,
            imports = "\n".join(imports),
            linkopts = repr(repository_ctx.attr.linkopts),
            deps = repr([":import_%d" % i for i in range(len(archives))]),
        ))
        return
    if repository_ctx.attr.url:
        repository_ctx.download_and_extract(
            url = repository_ctx.attr.url,
            sha256 = repository_ctx.attr.sha256,
            stripPrefix = repository_ctx.attr.strip_prefix,
        )
        repository_ctx.delete("BUILD.bazel")
        repository_ctx.symlink(repository_ctx.attr.build_file, "BUILD")
        return
    repository_ctx.file("BUILD", _MISSING.format(name = name, upper = name.upper()))

system_library = repository_rule(
    implementation = _system_library_impl,
    attrs = {
        "library": attr.string(mandatory = True, doc = "Name of the target the repository offers."),
        "headers": attr.string_list(mandatory = True, doc = "Header files or folders below include/."),
        "archives": attr.string_list(mandatory = True, doc = "Library names, as in -lNAME."),
        "linkopts": attr.string_list(),
        "url": attr.string(doc = "Source archive for when the library is not installed; none: optional library."),
        "sha256": attr.string(),
        "strip_prefix": attr.string(),
        "build_file": attr.label(allow_single_file = True),
    },
    environ = ["WARPBOOK_MULTIARCH"],
    local = True,
    configure = True,
)
