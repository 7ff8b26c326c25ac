"""Finds the Python that runs the notebooks; offers it as @local_config_jupyter.

This is the Python in .venv-notebooks, into which ./setup.sh installs the packages of
notebooks/requirements.txt, or in the folder $WARPBOOK_JUPYTER. WARPBOOK_JUPYTER=off
ignores it: `bazel test --repo_env=WARPBOOK_JUPYTER=off //...` behaves as on a machine
without it.

Targets of the repository, whether it was found or not:

    :python     script that starts this Python
    config.bzl  REQUIRES_JUPYTER, for target_compatible_with
"""

_BUILD = """package(default_visibility = ["//visibility:public"])

exports_files(["python.sh"])

# No platform has this property: a target that wants it is skipped, and when it
# is asked for by name Bazel prints the name of the constraint.
constraint_setting(name = "jupyter_state")

constraint_value(
    name = "jupyter_is_missing_run_setup_sh",
    constraint_setting = ":jupyter_state",
)

sh_binary(
    name = "python",
    srcs = ["python.sh"],
)
"""

_SCRIPT = """#!/bin/sh
exec '%s' "$@"
"""

_MISSING = """#!/bin/sh
echo "Jupyter is missing: run ./setup.sh" >&2
exit 1
"""

_PACKAGES = ["ipykernel", "matplotlib", "nbclient", "nbconvert"]

def _is_complete(repository_ctx, folder):
    """Whether the folder is a virtual environment with all packages."""
    lib = repository_ctx.path(folder + "/lib")
    if not repository_ctx.path(folder + "/bin/python").exists or not lib.exists:
        return False
    for python in lib.readdir():
        packages = python.get_child("site-packages")
        if packages.exists and all([packages.get_child(name).exists for name in _PACKAGES]):
            return True
    return False

def _jupyter_configure_impl(repository_ctx):
    given = repository_ctx.os.environ.get("WARPBOOK_JUPYTER", "")
    root = str(repository_ctx.path(Label("//:WORKSPACE")).dirname)
    folder = given if given else root + "/.venv-notebooks"
    found = given != "off" and _is_complete(repository_ctx, folder)
    repository_ctx.file("BUILD", _BUILD)
    repository_ctx.file("python.sh", _SCRIPT % (folder + "/bin/python") if found else _MISSING, executable = True)
    repository_ctx.file("config.bzl", "REQUIRES_JUPYTER = %s\n" % (
        [] if found else ["@local_config_jupyter//:jupyter_is_missing_run_setup_sh"]
    ))

jupyter_configure = repository_rule(
    implementation = _jupyter_configure_impl,
    environ = ["WARPBOOK_JUPYTER"],
    local = True,
    configure = True,
)
