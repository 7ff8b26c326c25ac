"""Tests that launch kernels of common/simt/testdata."""

load("//common/bazel:sanitized_test.bzl", "c_test")

def ptx_test(name, kernels, deps = [], **kwargs):
    """NAME.c as a sanitized c_test that knows the PTX file of testdata's KERNELS_kernels as KERNELS_PTX."""
    c_test(
        name = name,
        srcs = [name + ".c"],
        data = ["//common/simt/testdata:%s_kernels" % kernels],
        local_defines = ["%s_PTX=\\\"common/simt/testdata/%s_kernels.ptx\\\"" % (kernels.upper(), kernels)],
        sanitize = True,
        deps = deps + ["//common/simt/core/launch:launch_testing"],
        **kwargs
    )
