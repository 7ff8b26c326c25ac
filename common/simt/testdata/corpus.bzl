"""The kernels that the parser and the decoder are tried on."""

CORPUS = [
    "async",
    "atomics",
    "calls",
    "control",
    "data",
    "half",
    "math",
    "reduce",
    "sgemm",
    "tensor",
    "warp",
]

ARCHITECTURES = [
    "75",
    "80",
    "86",
    "89",
    "90",
]
