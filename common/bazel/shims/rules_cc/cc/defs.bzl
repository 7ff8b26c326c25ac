"""The load path of the public rules_cc, served by the C rules inside Bazel.

Bazel 4 to 7 carry these rules themselves; going through this path keeps every
BUILD file as newer Bazel wants it, without a download.
"""

cc_binary = native.cc_binary
cc_import = native.cc_import
cc_library = native.cc_library
cc_test = native.cc_test
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite
