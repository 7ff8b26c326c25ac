"""The GPUs that .cu files are compiled for."""

# simt needs only PTX, so ptxas is not needed. Its default GPU is an H200; tests on other GPUs run only
# with --config=deep: a T4 has code for 7.5, one of 8.x for 8.0. //grader/cards:code_* check that.
SIMT_ARCHS = "compute_90:compute_90"
SIMT_DEEP_ARCHS = "compute_75:compute_75;compute_80:compute_80;compute_90:compute_90"

# Machine code for every GPU since Turing, so that nothing is compiled when a
# program starts. There is none for 8.9, which saves an eighth of every program:
# code for 8.6 runs there, and ptxas makes nearly the same code for both (461 of
# 479 kernels are identical, the others differ by at most 128 bytes). PTX is
# small: the newest is for future GPUs, the oldest for any other.
GPU_ARCHS = ";".join([
    "compute_75:sm_75,compute_75",
    "compute_80:sm_80",
    "compute_86:sm_86",
    "compute_90a:sm_90a",
    "compute_100:sm_100",
    "compute_120:sm_120,compute_120",
])

# nvcc compiles a file for several GPUs in parallel.
_MOST_THREADS = 4

ArchsInfo = provider(
    doc = "GPUs to generate code for.",
    fields = {
        "options": "Options for nvcc.",
        "compression": "The option that says how programs carry the code.",
        "specific_options": "The same for files with instructions of compute_90a.",
        "same_since_80_options": "As options, where simt gets no PTX for newer GPUs than 8.0 beside that for 8.0.",
        "newest_options": "As options, where simt gets PTX for the newest of these GPUs alone.",
        "newest_specific_options": "As specific_options, likewise.",
    },
)

# PTX for compute_90 knows no wgmma. Code for compute_90a runs on GPUs of compute capability 9.0
# alone, so that a B200 takes what is for an older GPU.
_SPECIFIC = {"compute_90": "compute_90a"}
_BELOW = "compute_80"

def _specific(pairs):
    """The pairs for files with instructions of compute_90a, where simt gets PTX."""
    changed = [(_SPECIFIC.get(virtual, virtual), [_SPECIFIC.get(code, code) for code in codes]) for virtual, codes in pairs]
    below = [] if len(pairs) > 1 or changed == pairs else [(_BELOW, [_BELOW])]
    return below + changed

def _until_80(pairs):
    """The pairs up to the one for 8.0; all, if there is none for it."""
    virtuals = [virtual for virtual, _ in pairs]
    return pairs[:virtuals.index(_BELOW) + 1] if _BELOW in virtuals else pairs

def _gencode(pairs):
    options = ["-gencode=arch=%s,code=%s" % (virtual, code) for virtual, codes in pairs for code in codes]
    if len(pairs) > 1:
        options.append("--threads=%d" % min(len(pairs), _MOST_THREADS))
    return options

def _split(label, value):
    """Splits the flag into pairs of a virtual architecture and the list of its codes."""
    pairs = []
    for spec in value.split(";"):
        virtual, colon, codes = spec.partition(":")
        if not colon or not virtual.startswith("compute_"):
            fail("--%s: '%s' is not like 'compute_75:sm_75,compute_75'" % (label, spec))
        pairs.append((virtual, codes.split(",")))
    return pairs

def _own(ctx, pairs):
    return _specific(pairs) if ctx.attr.ptx_only else pairs

def _archs_impl(ctx):
    pairs = _split(ctx.label, ctx.build_setting_value or ctx.attr.usual)
    if ctx.attr.ptx_only:
        for virtual, codes in pairs:
            if codes != [virtual]:
                fail("--%s: simt runs only PTX, like '%s:%s', not '%s'" %
                     (ctx.label, virtual, virtual, ",".join(codes)))
    options = []

    # The line table of machine code contains the whole PTX: more than half of the compressed size.
    if not ctx.attr.lines and not ctx.build_setting_value:
        options.append("-Xptxas=--suppress-debug-info")
    newest = pairs[-1:] if ctx.attr.ptx_only else pairs

    # simt reads the PTX text from the program, so it is not compressed. Otherwise compression makes
    # programs small, and line tables a tenth as large; every driver for CUDA 13 unpacks them.
    compression = "--compress-mode=" + ("none" if ctx.attr.ptx_only else "size")
    return [ArchsInfo(
        compression = compression,
        options = _gencode(pairs) + options,
        specific_options = _gencode(_own(ctx, pairs)) + options,
        same_since_80_options = _gencode(_until_80(pairs) if ctx.attr.ptx_only else pairs) + options,
        newest_options = _gencode(newest) + options,
        newest_specific_options = _gencode(_own(ctx, newest)) + options,
    )]

cuda_archs = rule(
    implementation = _archs_impl,
    build_setting = config.string(flag = True),
    attrs = {
        "usual": attr.string(mandatory = True, doc = "Value used if the flag is empty."),
        "ptx_only": attr.bool(doc = "For simt: no machine code, uncompressed."),
        "lines": attr.bool(
            default = True,
            doc = "Whether machine code for the usual GPUs has a line table, for profilers and " +
                  "compute-sanitizer; if the flag names GPUs, their code always has one.",
        ),
    },
    doc = "Flag with the code to generate: 'compute_80:compute_80,sm_80;compute_90:sm_90'.",
)

CoptsInfo = provider(doc = "Options for nvcc.", fields = ["options"])

def _copts_impl(ctx):
    return [CoptsInfo(options = ctx.build_setting_value)]

cuda_copts = rule(
    implementation = _copts_impl,
    build_setting = config.string_list(flag = True),
    doc = "Flag with more options for nvcc, after those of the rules, separated by commas.",
)
