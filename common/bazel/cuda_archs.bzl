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
    doc = "GPUs to generate code for; code_options() makes nvcc's options of it.",
    fields = {
        "pairs": "A virtual architecture and the list of its codes, for each.",
        "ptx_only": "Whether the code is for simt.",
        "options": "More options for nvcc.",
        "compression": "The option that says how programs carry the code.",
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

def _narrowed(pairs, capabilities):
    """The pairs for these compute capabilities ("75 90"); the newest one, if there is none for them."""
    virtuals = ["compute_" + capability for capability in capabilities.split(" ")]
    return [pair for pair in pairs if pair[0] in virtuals] or pairs[-1:]

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

def code_options(archs, compute_90a, simt_code):
    """Options for nvcc: the GPUs that it generates code for.

    Args:
      archs: an ArchsInfo.
      compute_90a: whether simt gets PTX for compute_90a in place of compute_90.
      simt_code: the compute capabilities that simt gets PTX for, if not for all: "75 90".
    """
    pairs = archs.pairs
    if archs.ptx_only and simt_code:
        pairs = _narrowed(pairs, simt_code)
    if archs.ptx_only and compute_90a:
        pairs = _specific(pairs)
    return _gencode(pairs) + archs.options

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

    # simt reads the PTX text from the program, so it is not compressed. Otherwise compression makes
    # programs small, and line tables a tenth as large; every driver for CUDA 13 unpacks them.
    compression = "--compress-mode=" + ("none" if ctx.attr.ptx_only else "size")
    return [ArchsInfo(
        pairs = pairs,
        ptx_only = ctx.attr.ptx_only,
        options = options,
        compression = compression,
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
