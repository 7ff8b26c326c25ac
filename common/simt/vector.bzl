"""How the parts of the emulator that work on 32 lanes at a time are compiled."""

load("//common/bazel:vectorise.bzl", "VECTORISE")

# Vector code for x86-64-v3; the runtime checks the CPU before it uses any.
VECTOR_COPTS = VECTORISE + [
    "-march=x86-64-v3",
    "-ffp-contract=off",
    "-fno-math-errno",
]
