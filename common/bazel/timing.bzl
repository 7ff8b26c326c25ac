"""Tags of tests that measure time: nothing else runs beside them."""

load("@local_config_cuda//:config.bzl", "DEFAULT_DEVICE")

MEASURES_CPU_TIME = ["exclusive"]

# simt's time is modelled, and the same on a busy machine. Tags cannot depend on --config, but on
# whether there is a GPU to measure.
MEASURES_GPU_TIME = [] if DEFAULT_DEVICE == "simt" else ["exclusive"]
