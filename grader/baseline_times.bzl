"""Modelled times of a lab's baseline, recorded once and again when what they follow from changes."""

load("@local_config_cuda//:config.bzl", "REQUIRES_NVCC")
load("@rules_cc//cc:defs.bzl", "cc_binary")
load("//grader/isolation:remote.bzl", "CASE_SRCS", "REMOTE_LINKOPTS", "cases", "remote_defines", "subject_defines")

# A baseline that does not run here leaves an empty file: the graded test runs it, and says why not.
# Checks do not change its modelled time, and parity tests run the starters with all of them.
_RECORD = """
WARPBOOK_BASELINE_TIMES=$PWD/$2.part WARPBOOK_SEED=1 "$1" >"$2.log" 2>&1 && mv "$2.part" "$2" || : >"$2"
"""

def _baseline_times_impl(ctx):
    times = ctx.actions.declare_file(ctx.label.name)
    recorder = ctx.attr.recorder[DefaultInfo].files_to_run
    ctx.actions.run_shell(
        command = _RECORD,
        env = dict({"SIMT_GPU": ctx.attr.gpu} if ctx.attr.gpu else {}, SIMT_CHECK = "off"),
        arguments = [recorder.executable.path, times.path],
        tools = [recorder],
        outputs = [times],
        mnemonic = "BaselineTimes",
        progress_message = "Timing the baseline of %s" % ctx.attr.lab,
    )
    return [DefaultInfo(files = depset([times]), runfiles = ctx.runfiles(files = [times]))]

_baseline_times = rule(
    implementation = _baseline_times_impl,
    attrs = {
        "recorder": attr.label(doc = "The speedup test, with the baseline alone."),
        "lab": attr.string(doc = "NN_topic."),
        "gpu": attr.string(doc = "Key of the GPU that simt presents itself as; empty: of the build."),
    },
)

def recorded_times(name, lab, recorder, gpu = ""):
    """Runs a recorder of baseline_times() on one of simt's GPUs, and keeps what it says in NAME."""
    _baseline_times(
        name = name,
        testonly = True,
        gpu = gpu,
        lab = lab,
        recorder = recorder,
        tags = ["manual"],
        target_compatible_with = REQUIRES_NVCC,
    )

def baseline_times(name, lab, baseline):
    """Records what the lab's baseline takes on simt, for grader/harness/baseline_times.h.

    Args:
      name: of the file.
      lab: NN_topic.
      baseline: its worker, in the same folder.
    """
    cc_binary(
        name = lab + "_recorder",
        testonly = True,
        srcs = CASE_SRCS,
        data = [baseline],
        linkopts = REMOTE_LINKOPTS,
        linkstatic = True,
        local_defines = subject_defines("baseline", "1.0") + remote_defines(baseline, baseline),
        tags = ["manual"],
        target_compatible_with = REQUIRES_NVCC,
        deps = [cases(lab, "speedup")],
    )
    recorded_times(name, lab, lab + "_recorder")
