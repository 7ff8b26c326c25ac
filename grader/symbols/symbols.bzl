"""What a submission's own object files refer to and define, as a text file for its parity test."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

_DirectInfo = provider(doc = "What a library names in its deps.", fields = ["labels"])

def _direct_impl(_target, ctx):
    # Where nvcc is missing it is asked about the alias itself, which has none.
    return [_DirectInfo(labels = [dep.label for dep in getattr(ctx.rule.attr, "deps", [])])]

_direct = aspect(implementation = _direct_impl)

def _files(library):
    """The files of one library, or its archive."""
    objects = library.objects or library.pic_objects
    archive = library.static_library or library.pic_static_library
    shared = library.resolved_symlink_dynamic_library or library.dynamic_library
    return objects or [file for file in [archive or shared] if file]

def _inputs(linking_contexts):
    """Each library of these: its label, and its files."""
    inputs = depset(transitive = [context.linker_inputs for context in linking_contexts])
    return [
        (linker_input.owner, [file for library in linker_input.libraries for file in _files(library)])
        for linker_input in inputs.to_list()
    ]

def _symbols_impl(ctx):
    subject = ctx.attr.subject
    named = subject[_DirectInfo].labels
    direct = named + [label.relative(":ladder") for label in named]  # a solution brings its steps
    own = [subject.label, subject.label.relative(":ladder")]
    lines = []
    files = []
    for label, objects in _inputs([dep[CcInfo].linking_context for dep in [subject] + ctx.attr.beside]):
        role = "own" if label in own else "given" if label in direct else "other"
        files += objects
        lines += ["%s\t%s\t%s" % (role, label, file.path) for file in objects]
    parts = ctx.actions.declare_file(ctx.label.name + ".parts")
    output = ctx.actions.declare_file(ctx.label.name + ".txt")
    ctx.actions.write(parts, "".join([line + "\n" for line in lines]))
    cc_toolchain = find_cpp_toolchain(ctx)
    ctx.actions.run(
        executable = ctx.executable._list,
        arguments = [cc_toolchain.nm_executable or "nm", parts.path, output.path],
        inputs = depset([parts] + files, transitive = [cc_toolchain.all_files]),
        outputs = [output],
        mnemonic = "Symbols",
        progress_message = "Listing symbols of %s" % subject.label,
        use_default_shell_env = True,
    )
    return [
        DefaultInfo(files = depset([output]), runfiles = ctx.runfiles(files = [output])),
        OutputGroupInfo(parts = depset([parts]), listed = depset(files)),
    ]

_symbols = rule(
    implementation = _symbols_impl,
    attrs = {
        "subject": attr.label(mandatory = True, providers = [CcInfo], aspects = [_direct]),
        "beside": attr.label_list(providers = [CcInfo]),
        "_list": attr.label(
            default = "//grader/symbols:list",
            executable = True,
            cfg = "host",
        ),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def symbols(name, subject, beside, **kwargs):
    """Writes NAME.txt; list.sh says what stands there.

    Args:
      name: of the target.
      subject: the library with a learner's code: its own object files are listed, not those of
        what it depends on.
      beside: what else is linked into the program that runs it.
      **kwargs: attributes common to all rules.
    """
    _symbols(name = name, testonly = True, subject = subject, beside = beside, **kwargs)

# The test itself, among the sources of a parity test.
SYMBOLS_SRCS = ["//grader/symbols:allowed_symbols.c"]

SYMBOLS_DEPS = ["//grader/symbols"]

def symbols_defines(name, lab):
    """What allowed_symbols.c is told: the file in the test's own folder, and whose rules hold."""
    return ["GRADER_SYMBOLS=\\\"%s.txt\\\"" % name, "GRADER_SYMBOLS_LAB=\\\"%s\\\"" % lab]
