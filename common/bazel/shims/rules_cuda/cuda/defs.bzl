"""cuda_library under the address of the public rules_cuda."""

load("@warpbook//common/bazel:cuda_library.bzl", _cuda_library = "cuda_library")

cuda_library = _cuda_library
