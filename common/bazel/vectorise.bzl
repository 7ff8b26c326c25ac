"""The option for code that the compiler is to vectorise."""

# Not under sanitizers: there it compiles ten times as long, and no faster code is asked for.
VECTORISE = select({
    "//common/bazel:sanitized": [],
    "//conditions:default": ["-O3"],
})
