"""The version in the package's name: that of common/base/version.h, as package_test checks."""

VERSION = "1.0"
