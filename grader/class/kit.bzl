"""The kit of //grader/class: what a machine without Bazel needs to build and grade submissions.

It keeps the build's own commands: the words by which the learner's file was compiled and its worker
linked are read from Bazel's actions, so that a submission is built as `bazel test` would build it.
The manifest has a line a file, "PLACE<tab>RUNFILE<tab>LABS", with commas between labs that need it,
or "all": `exec/` mirrors the folder that Bazel's actions
run in, `run/` that of the graded programs, `LAB/` has a lab's commands.
"""

load("//grader:labs.bzl", "LABS")

_CompileInfo = provider(doc = "How a library's one file is compiled.", fields = ["inputs", "words", "output", "source"])
_LinkInfo = provider(doc = "How a program is linked.", fields = ["inputs", "words", "output"])

_COMPILERS = ["CudaCompile", "ConfinedCompile"]

def _compile_impl(target, ctx):
    # The first of them: files in steps/ are a learner's own.
    for action in target.actions:
        if action.mnemonic in _COMPILERS:
            return [_CompileInfo(
                inputs = action.inputs,
                words = action.args,
                output = action.outputs.to_list()[0],
                source = ctx.rule.files.srcs[0],
            )]
    return []

_compile = aspect(implementation = _compile_impl)

def _link_impl(target, _ctx):
    for action in target.actions:
        if action.mnemonic == "CppLink":
            return [_LinkInfo(inputs = action.inputs, words = action.argv, output = action.outputs.to_list()[0])]
    return []

_link = aspect(implementation = _link_impl)

def _runfile(file):
    return file.short_path[3:] if file.short_path.startswith("../") else "warpbook/" + file.short_path

def _is_carried(file):
    """Compilers and their own headers are those of the machine that builds."""
    return "/_middlemen/" not in file.path and not file.path.startswith("external/local_config_cc/")

def _place(file):
    return "external/" + file.short_path[3:] if file.short_path.startswith("../") else file.short_path

def _program(target):
    """A program with all that it reads, as the bundle places them."""
    return [
        ("run/" + _place(file), file)
        for file in target[DefaultInfo].default_runfiles.files.to_list() + target[DefaultInfo].files.to_list()
    ]

def _lab(ctx, lab, subject, worker):
    """A lab's files: (place, file) for each."""
    compiled = subject[_CompileInfo]
    linked = worker[_LinkInfo]
    files = []
    for index, words in enumerate(compiled.words):
        out = ctx.actions.declare_file("%s/%s/compile.%d" % (ctx.label.name, lab, index))
        ctx.actions.write(out, words)
        files.append(("%s/compile.%d" % (lab, index), out))
    out = ctx.actions.declare_file("%s/%s/link" % (ctx.label.name, lab))
    ctx.actions.write(out, "".join([
        word + "\n"
        for word in linked.words
        if not (word.startswith("@") and word.endswith(".params"))  # they say the same again
    ]))
    files.append((lab + "/link", out))
    out = ctx.actions.declare_file("%s/%s/files" % (ctx.label.name, lab))
    ctx.actions.write(out, "%s\n%s\n%s\n" % (compiled.source.path, compiled.output.path, linked.output.path))
    files.append((lab + "/files", out))
    for file in compiled.inputs.to_list() + linked.inputs.to_list():
        if _is_carried(file):
            files.append(("exec/" + file.path, file))
    return files

def _kit_impl(ctx):
    files = []  # (place, file, lab)
    device = ctx.actions.declare_file(ctx.label.name + "/device")
    ctx.actions.write(device, ctx.attr.device + "\n")
    files.append(("device", device, "all"))
    for target, place in ctx.attr.tools.items():
        files.append((place, target[DefaultInfo].files.to_list()[0], "all"))
    for target, lab in ctx.attr.programs.items():
        files += [(place, file, lab) for place, file in _program(target)]
    for target, lab in ctx.attr.symbols.items():
        files.append((lab + "/parts", target[OutputGroupInfo].parts.to_list()[0], lab))
        files += [("exec/" + file.path, file, lab) for file in target[OutputGroupInfo].listed.to_list()]
    for target, lab in ctx.attr.starters.items():
        files.append((lab + "/starter", target[DefaultInfo].files.to_list()[0], lab))
    for target, lab in ctx.attr.subjects.items():
        worker = [w for w, l in ctx.attr.workers.items() if l == lab][0]
        files += [(place, file, lab) for place, file in _lab(ctx, lab, target, worker)]
    file_of = {}
    needed_by = {}
    for place, file, lab in files:
        file_of[place] = file
        needed_by.setdefault(place, {})[lab] = True
    manifest = ctx.actions.declare_file(ctx.label.name + ".manifest")
    ctx.actions.write(manifest, "".join([
        "%s\t%s\t%s\n" % (place, _runfile(file_of[place]), ",".join(needed_by[place].keys()))
        for place in sorted(file_of)
    ]))
    return [DefaultInfo(
        files = depset([manifest]),
        runfiles = ctx.runfiles([manifest] + file_of.values()),
    )]

_kit = rule(
    implementation = _kit_impl,
    attrs = {
        "subjects": attr.label_keyed_string_dict(aspects = [_compile]),
        "programs": attr.label_keyed_string_dict(doc = "The graded programs, each with its lab or \"all\"."),
        "symbols": attr.label_keyed_string_dict(doc = "Lists of what a submission refers to."),
        "starters": attr.label_keyed_string_dict(allow_files = True),
        "device": attr.string(doc = "simt or gpu."),
        "tools": attr.label_keyed_string_dict(allow_files = True, doc = "Programs of the kit, with their places."),
        "workers": attr.label_keyed_string_dict(aspects = [_link]),
    },
)

def kit(name, labs = LABS.keys()):
    """Declares a kit.

    Args:
      name: of the target; the manifest is NAME.manifest.
      labs: that it can grade.
    """
    _kit(
        name = name,
        testonly = True,
        subjects = select({
            "//grader:solutions": {"//solutions/%s:subject" % lab: lab for lab in labs},
            "//conditions:default": {"//labs/%s:subject" % lab: lab for lab in labs},
        }),
        programs = dict(
            [("//grader:%s_%s" % (lab, part), lab) for lab in labs for part in ["parity", "speedup"]],
            **{"//grader/class:grade_submission": "all"}
        ),
        symbols = {"//grader:%s_symbols" % lab: lab for lab in labs},
        starters = {"//labs/%s:given/starter.%s" % (lab, "c" if lab == "01_cpu_matmul" else "cu"): lab for lab in labs},
        device = select({
            "//common/bazel:simt": "simt",
            "//conditions:default": "gpu",
        }),
        tools = {
            "//grader/sandbox/compile": "bin/compile",
            "//grader/symbols:list.sh": "bin/list_symbols",
            "@local_config_cuda//:toolkit.txt": "toolkit.txt",
        },
        workers = {"//grader:%s_worker" % lab: lab for lab in labs},
    )
