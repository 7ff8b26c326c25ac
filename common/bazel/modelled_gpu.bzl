"""--gpu: the GPU that simt presents itself as, in programs and tests of a build for simt."""

load("//common/bazel:choice_flag.bzl", "choice_flag")

# Keys of common/simt/runtime/gpu/gpu.c with the compute capability that code is made for.
MODELLED_GPUS = {
    "t4": 75,
    "a100": 80,
    "rtx3060": 86,
    "rtx3090": 86,
    "l4": 89,
    "rtx4090": 89,
    "h100": 90,
    "h200": 90,
    "b200": 100,
    "rtx5090": 120,
}

DEFAULT_GPU = "h200"

def modelled_gpu_flag(name):
    """The flag, and a config_setting //common/bazel:on_KEY for each of its values but the default."""
    choice_flag(
        name = name,
        build_setting_default = DEFAULT_GPU,
        values = MODELLED_GPUS.keys(),
    )
    for key in MODELLED_GPUS:
        if key != DEFAULT_GPU:
            native.config_setting(
                name = "on_" + key,
                flag_values = {
                    ":device": "simt",
                    ":" + name: key,
                },
            )

def by_modelled_gpu(function, others):
    """A select() with function(KEY) for the GPU of --gpu, and `others` where it has its default."""
    conditions = dict(others)
    for key in MODELLED_GPUS:
        if key != DEFAULT_GPU:
            conditions["@warpbook//common/bazel:on_" + key] = function(key)
    return select(conditions)

def ptx_for(key):
    """Code for --@rules_cuda//cuda:archs: PTX for this GPU alone."""
    virtual = "compute_%d" % MODELLED_GPUS[key]
    return virtual + ":" + virtual

def named(key):
    """The GPU's key as a definition for C."""
    return ["SIMT_DEFAULT_GPU=\\\"%s\\\"" % key]
