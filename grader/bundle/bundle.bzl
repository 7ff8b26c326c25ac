"""One archive that grades and measures on a GPU host without Bazel."""

# Programs keep their paths below the archive's folder, so that they find their shared libraries
# and data as they do in a runfiles tree. Most of an archive is kernels, already compressed, and
# each program has its own copy of those it needs. xz stores a copy once if the one before it lies
# within the window: so the programs of a lab stand side by side, before those of the next lab,
# which have most of these kernels, too. For all GPUs a program has up to 60 MiB, and the window
# holds several. Unpacking takes as much memory as the window has. A higher preset takes three
# times as long for 4% less.
_PACK = """
set -euo pipefail
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir "$root/$5"
while IFS='\t' read -r place file; do
    mkdir -p "$root/$5/$(dirname "$place")"
    ln -s "$PWD/$file" "$root/$5/$place"
    echo "$5/$place"
done <"$1" >"$root/order"
cp "$2" "$root/$5/manifest.tsv"
printf '%s\n' "$5/commit" "$5/manifest.tsv" >>"$root/order"
sed -n 's/^STABLE_COMMIT //p' "$3" >"$root/$5/commit"
tar --create --dereference --mode=u+w,a+rX --mtime=@0 --owner=0 --group=0 --numeric-owner --directory="$root" \
    --verbatim-files-from --files-from="$root/order" | xz --lzma2=preset=1,dict=256MiB >"$4"
"""

def _place(file):
    """Where a file lies in the archive."""
    path = file.short_path
    return "external/" + path[3:] if path.startswith("../") else path

def _kind(place):
    """What ./grade does with a program."""
    name = place.split("/")[-1]
    for ending in ["parity", "speedup", "bench", "test"]:
        if name == ending or name.endswith("_" + ending):
            return ending
    return "program"

def _programs(target):
    executable = target[DefaultInfo].files_to_run.executable
    return [executable] if executable else target[DefaultInfo].files.to_list()

# What bundle() says of both rules.
_PROGRAMS = {
    "programs": attr.label_keyed_string_dict(
        doc = "Each program, test or group of them, with the lab that it belongs to.",
    ),
    "subject": attr.string(doc = "Whose code it is: labs or solutions."),
}

def _collect(ctx):
    """The manifest's lines, each place's file, and the lab that it belongs to."""
    manifest = ["subject\t%s\t-" % ctx.attr.subject]
    files = {}
    lab_of = {}
    for target, lab in ctx.attr.programs.items():
        for program in _programs(target):
            manifest.append("%s\t%s\t%s" % (lab, _kind(_place(program)), _place(program)))
            files[_place(program)] = program
            lab_of[_place(program)] = lab
        for file in target[DefaultInfo].default_runfiles.files.to_list():
            files[_place(file)] = file
            lab_of.setdefault(_place(file), lab)
    return "".join([line + "\n" for line in manifest]), files, lab_of

def _bundle_impl(ctx):
    manifest, files, lab_of = _collect(ctx)
    for target, place in ctx.attr.files.items():
        files[place] = target[DefaultInfo].files.to_list()[0]
    layout = ctx.actions.declare_file(ctx.label.name + ".layout")
    listing = ctx.actions.declare_file(ctx.label.name + ".manifest")
    archive = ctx.actions.declare_file(ctx.attr.folder + ".tar.xz")
    places = sorted([(lab_of.get(place, ""), place) for place in files])
    ctx.actions.write(layout, "".join(["%s\t%s\n" % (place, files[place].path) for _, place in places]))
    ctx.actions.write(listing, manifest)
    ctx.actions.run_shell(
        command = _PACK,
        arguments = [layout.path, listing.path, ctx.info_file.path, archive.path, ctx.attr.folder],
        inputs = depset([layout, listing, ctx.info_file], transitive = [depset(files.values())]),
        outputs = [archive],
        mnemonic = "Bundle",
        progress_message = "Packing %s" % archive.short_path,
    )
    return [DefaultInfo(files = depset([archive]), runfiles = ctx.runfiles(files = [archive]))]

_bundle = rule(
    implementation = _bundle_impl,
    attrs = dict(
        _PROGRAMS,
        files = attr.label_keyed_string_dict(
            allow_files = True,
            doc = "Files for the top of the archive, with their names there.",
        ),
        folder = attr.string(doc = "The one folder in the archive, and the archive's name."),
    ),
)

def _bundled_impl(ctx):
    manifest, files, _ = _collect(ctx)
    listing = ctx.actions.declare_file(ctx.label.name + ".manifest")
    ctx.actions.write(listing, manifest)
    return [DefaultInfo(files = depset([listing]), runfiles = ctx.runfiles(files = [listing] + files.values()))]

_bundled = rule(
    doc = "The manifest, and all that the archive would hold as runfiles.",
    implementation = _bundled_impl,
    attrs = _PROGRAMS,
)

def _lab_programs(subject, labs):
    programs = {}
    for lab in labs:
        programs["//grader:%s_parity" % lab] = lab
        programs["//grader:%s_speedup" % lab] = lab
        programs["//%s/%s:programs" % (subject, lab)] = lab
    return programs

def _by_subject(programs, labs):
    return select({
        "//grader:solutions": dict(programs, **_lab_programs("solutions", labs)),
        "//conditions:default": dict(programs, **_lab_programs("labs", labs)),
    })

def bundle(name, folder, programs = {}, files = {}, labs = None, tags = []):
    """The archive of every lab that the same BUILD file grades above, and NAME_programs for tests.

    Args:
      name: of the target.
      folder: what the archive unpacks to; it is called FOLDER.tar.xz.
      programs: more of them, with the group they are listed under.
      files: for the top of the archive, with their names there.
      labs: those of the archive, if not all.
      tags: of the archive.
    """
    graded = sorted([
        rule[:-len("_parity")]
        for rule in native.existing_rules()
        if rule.endswith("_parity")
    ])
    arguments = dict(
        testonly = True,
        programs = _by_subject(programs, labs or graded),
        subject = select({
            "//grader:solutions": "solutions",
            "//conditions:default": "labs",
        }),
    )
    _bundle(name = name, files = files, folder = folder, tags = tags, **arguments)
    _bundled(name = name + "_programs", **arguments)
