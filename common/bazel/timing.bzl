"""Tags of tests that measure time: no other test runs at the same time."""

load("@local_config_cuda//:config.bzl", "DEFAULT_DEVICE")

MEASURES_CPU_TIME = ["exclusive"]

# simt's time is modelled, so a busy machine does not change it. Tags cannot depend on --config, only
# on whether there is a GPU.
MEASURES_GPU_TIME = [] if DEFAULT_DEVICE == "simt" else ["exclusive"]
