"""Every kernel of every ladder under the two roofs of its device.

A point is a record: FLOPs over least bytes to the right, FLOP/s upwards. Roofs
are what the records of the same device show (a copy, a loop of multiply-adds, the
fastest library); where they show none, the fastest kernel that was seen, and the
figure says so.
"""

import math
import re
from dataclasses import dataclass

from . import look
from .records import Results, recorded_folders
from .show import Table, missing
from .stages import caption

# What their rows are: none of them is the last step.
_NO_LADDER = {"gemm16": "tile shape", "09_kv_cache": "call"}

BENCH = "bazel run //labs/04_sgemm:bench"


@dataclass(frozen=True)
class Modelled:
    """The GPUs that simt models: the table "The GPUs" of common/simt/MODEL.md."""

    multiprocessors: int
    ghz: float
    lanes: int
    tensor: int  # operations a clock of a multiprocessor
    gb_per_s: float

    @property
    def fp32(self):
        return 2e9 * self.multiprocessors * self.lanes * self.ghz

    @property
    def wide(self):
        return 1e9 * self.multiprocessors * self.tensor * self.ghz

    @property
    def bytes_per_s(self):
        return 0.887e9 * self.gb_per_s


SIMT = {
    "simt:t4": Modelled(40, 1.59, 64, 1024, 320),
    "simt:l4": Modelled(58, 2.04, 128, 1024, 300),
    "simt:rtx3060": Modelled(28, 1.78, 128, 512, 360),
    "simt:rtx3090": Modelled(82, 1.7, 128, 512, 936),
    "simt:rtx4090": Modelled(128, 2.52, 128, 512, 1008),
    "simt:rtx5090": Modelled(170, 2.41, 128, 512, 1792),
    "simt:a100": Modelled(108, 1.41, 64, 2048, 2039),
    "simt:h100": Modelled(132, 1.98, 128, 2560, 3352),
    "simt:h200": Modelled(132, 1.98, 128, 2560, 4800),
    "simt:b200": Modelled(148, 1.97, 128, 2560, 8000),
}

_LIBRARIES = "cuBLAS|OpenBLAS"

# Whole models are no kernels, and lab 07's projections no steps of its ladder.
_MODELS = ("bert", "llama2", "decode", "token", "copy", "qkv_projection")

_NAMES = {
    "01_cpu_matmul": "matmul on the CPU",
    "02_gpu_matmul": "matmul, few rows",
    "04_sgemm": "SGEMM",
    "05_layernorm_softmax": "norms and softmax of rows",
    "06_fused_epilogues": "matmuls with epilogues",
    "07_attention": "attention",
    "09_kv_cache": "products with a vector",
    "11_training": "backward passes and AdamW",
    "gemm16": "matmul of 16-bit numbers",
}


@dataclass(frozen=True)
class Roof:
    """One limit: FLOP/s (`per_byte` False) or bytes/s, and where the figure is from."""

    value: float
    per_byte: bool
    name: str

    @property
    def text(self):
        if self.per_byte:
            return f"{look.number(1e-9 * self.value, 4)} GB/s"
        unit, scale = ("TFLOP/s", 1e-12) if self.value >= 1e12 else ("GFLOP/s", 1e-9)
        return f"{look.number(scale * self.value)} {unit}"

    @property
    def wide(self):
        """Whether this is the roof of 16-bit matmuls."""
        return "16-bit" in self.name


# ---- Roofs ----


def _numbers(text, pattern):
    found = re.search(pattern, text)
    return [float(v) for v in found.groups()] if found else None


def _peak_noted(source):
    """fp32 FLOP/s of a loop of multiply-adds, from the notes beside recorded results."""
    for folder in recorded_folders():
        path = folder / "sgemm" / "gpu.txt"
        if path.is_file() and not source.yours and path.read_text().startswith(source.device + ","):
            peak = _numbers(path.read_text(), r"multiply-adds.*?([\d.]+) to ([\d.]+) TFLOP/s")
            return 1e12 * max(peak) if peak else None
    return None


def _copy_speed(records):
    """Bytes/s of the fastest copy within the device that stands beside a kernel."""
    beside = records.where(peer="device-to-device copy")
    times = [(r.bytes, r.peer_ms) for r in beside if r.bytes and r.peer_ms]
    times += [(r.bytes, r.ms) for r in records.where(op="copy") if r.bytes]
    return max((1e3 * size / ms for size, ms in times), default=None)


def _library_speed(records, dtypes):
    """FLOP/s of the fastest library product beside a kernel of these types, and its name."""
    libraries = [r for r in records.where(dtype=dtypes) if re.match(_LIBRARIES, r.peer or "")]
    return max(((1e3 * r.flops / r.peer_ms, r.peer) for r in libraries if r.flops), default=None)


def _most_bytes(records):
    """Bytes/s of the fastest kernel whose data exceeds every CPU cache."""
    large = [r for r in kernels(records) if least_bytes(r) > 3e7]
    return max((1e3 * least_bytes(r) / r.ms for r in large), default=None)


def _modelled_roofs(gpu):
    return [
        Roof(gpu.fp32, False, "fp32, modelled"),
        Roof(gpu.wide, False, "16-bit mma, modelled"),
        Roof(gpu.bytes_per_s, True, "memory, modelled"),
    ]


def _fp32_roof(records, source):
    peak = _peak_noted(source)
    if peak:
        return Roof(peak, False, "fp32 multiply-adds, measured")
    library = _library_speed(records, ("fp32",))
    return Roof(library[0], False, f"fastest fp32 seen: {library[1]}") if library else None


def _memory_roof(records):
    copy = _copy_speed(records)
    if copy:
        return Roof(copy, True, "fastest copy, measured")
    most = _most_bytes(records)
    return Roof(most, True, "most bytes/s seen") if most else None


def roofs(results, source):
    """The roofs of a source for which there are measured or documented figures."""
    if source.modelled:
        return _modelled_roofs(SIMT[source.device]) if source.device in SIMT else []
    mine = results.of(source)
    found = [_fp32_roof(mine, source), _memory_roof(mine)]
    library = _library_speed(mine, ("bf16", "fp16"))
    if library:
        found.append(Roof(library[0], False, f"fastest 16-bit seen: {library[1]}"))
    return [roof for roof in found if roof]


# ---- Points ----


def _epilogue_bytes(record):
    """Least bytes of lab 06's calls, which records lack: each operand once, in fp32."""
    M, N, K = (float(v) for v in record.shape.split("x"))
    numbers = M * K + N * K + N + M * N
    if "add" in record.op:
        numbers += M * N
    if "norm" in record.op:
        numbers += 2 * N
    return 4 * numbers


def least_bytes(record):
    if record.bytes:
        return record.bytes
    if record.lab == "06_fused_epilogues" and record.flops and record.shape.count("x") == 2:
        return _epilogue_bytes(record)
    return None


def kernels(results):
    """Records of single kernels with FLOPs and bytes, without duplicates."""
    found = []
    for r in results.where(subject=("labs", "solutions")).latest():
        if re.match(_LIBRARIES, r.stage):
            continue  # lab 01's rows of OpenBLAS itself
        if not r.op.startswith(_MODELS) and r.flops and least_bytes(r) and r.lab in _NAMES:
            found.append(r)
    return Results(found)


def _intensity(record):
    return record.flops / least_bytes(record)


def _rate(record):
    return 1e3 * record.flops / record.ms


# ---- Pictures ----


def flops_text(value):
    """'1 TFLOP/s' of 1e12."""
    for unit, size in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if value >= size:
            return f"{value / size:g} {unit}FLOP/s"
    return f"{value:g} FLOP/s"


def _limits_of(points, limits):
    """16-bit roofs only where a point is of 16 bits, and fp32 ones likewise."""
    types = {r.dtype for r in points}
    return [
        roof
        for roof in limits
        if roof.per_byte or (types & {"bf16", "fp16"} if roof.wide else "fp32" in types)
    ]


def _memory(limits):
    return next((roof.value for roof in limits if roof.per_byte), None)


def _peaks(limits):
    return [roof.value for roof in limits if not roof.per_byte]


def _frame(axes, points, limits):
    """Axes around points and roofs, the ridge between the roofs among them."""
    xs = [_intensity(r) for r in points]
    ridges = [peak / _memory(limits) for peak in _peaks(limits)] if _memory(limits) else []
    left = min([*xs, *ridges]) / 4
    right = max([*xs, *ridges]) * 16
    rates = [_rate(r) for r in points]
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(min(rates) / 2.5, 10 * max(rates + _peaks(limits)))
    look.plain_log(axes.xaxis)
    axes.yaxis.set_major_formatter(lambda value, _: flops_text(value))
    axes.yaxis.set_minor_formatter(lambda value, _: "")
    axes.set_xlabel("FLOP a byte that must move, log scale")
    axes.set_ylabel("FLOP/s, log scale")
    return left, right


def _roof_words(axes, x, y, text):
    box = {"facecolor": look.LIGHT["back"], "edgecolor": "none", "pad": 1}
    at = {"xytext": (0, 4), "textcoords": "offset points", "ha": "right", "bbox": box}
    look.guide_text(axes, x, y, text, color=look.LIGHT["red"], zorder=2, **at)


def _draw_roofs(axes, limits, left, right):
    line = {"color": look.LIGHT["red"], "lw": 1.8, "label": look.GUIDE, "zorder": 2.1}
    memory = _memory(limits)
    for roof in limits:
        if roof.per_byte:
            end = min(right, max(_peaks(limits), default=right * memory) / memory)
            axes.plot([left, end], [left * memory, end * memory], **line)
            words = f"slope: {roof.name}: {roof.text}"
            corner = {"xycoords": "axes fraction", "va": "top", "color": look.LIGHT["red"]}
            look.guide_text(axes, 0.015, 0.985, words, **corner)
        else:
            start = max(left, roof.value / memory) if memory else left
            axes.plot([start, right], [roof.value] * 2, **line)
            words = f"{roof.name}: {roof.text}"
            _roof_words(axes, right, roof.value, words)


def _steps(points):
    """Steps of a ladder in order; v10 comes after v9."""

    def words(stage):
        return [int(w) if w.isdigit() else w for w in re.split(r"(\d+)", stage)]

    return sorted({r.stage for r in points}, key=words)


def share(record, limits):
    """Share of its roof that a kernel reaches; None without both roofs."""
    wide = record.dtype in ("bf16", "fp16")
    peaks = [roof.value for roof in limits if not roof.per_byte and roof.wide == wide]
    if not peaks or not _memory(limits):
        return None
    return _rate(record) / min(peaks[0], _intensity(record) * _memory(limits))


def _draw_steps(axes, side, points, limits, source):
    """Points under the roofs, and beside them the share of the roof that each step reaches."""
    steps = _steps(points)
    types = sorted(points.values("dtype"), key=["fp32", "bf16", "fp16"].index)
    for i, step in enumerate(steps):
        ordered = points[0].lab not in _NO_LADDER
        colour = look.ladder(i, len(steps) if ordered else len(steps) + 1)
        style = look.point_style(colour, source.modelled)
        for dtype in types:
            mine = points.where(stage=step, dtype=dtype)
            marker = look.MARKERS[types.index(dtype)]
            xs, ys = [_intensity(r) for r in mine], [_rate(r) for r in mine]
            axes.scatter(xs, ys, s=30, marker=marker, zorder=3 + 0.1 * i, **style)
            shares = [100 * share(r, limits) for r in mine if share(r, limits)]
            places = [i + 0.22 * (types.index(dtype) - (len(types) - 1) / 2)] * len(shares)
            side.scatter(shares, places, s=30, marker=marker, zorder=3, **style)
    for dtype, marker in zip(types, look.MARKERS):
        axes.plot([], [], marker, color=look.LIGHT["grey"], label=dtype)
    side.set_yticks(range(len(steps)), [step.replace("_", " ") for step in steps])
    side.set_ylim(len(steps) - 0.4, -0.6)
    side.set_xlim(0, None)
    side.set_xlabel("% of the roof above it, a dot for each shape")
    axes.legend(loc="lower right")


def _lab_figure(lab, points, limits, source):
    limits = _limits_of(points, limits)
    which = "lab " + lab[:2] if lab[:2].isdigit() else lab
    title = f"{which[0].upper()}{which[1:]}, {_NAMES[lab]}: every {_NO_LADDER.get(lab, 'step')} under the roofs"
    widths = {"width_ratios": [1.45, 1]}
    figure, (axes, side) = look.new(title, 1, 2, height=5.4, gridspec_kw=widths)
    _draw_roofs(axes, limits, *_frame(axes, points, limits))
    _draw_steps(axes, side, points, limits, source)
    return caption(figure, source, points)


def _subjects(points, source):
    """The solutions' ladder, and of your results your own; a recorded starter is the first step."""
    subjects = points.of(source).values("subject")
    return [s for s in subjects if s == "solutions" or source.yours]


def ladders(results):
    """A figure for each lab and source: all shapes and steps of its ladder."""
    things = []
    points = kernels(results)
    for source in points.sources():
        limits = roofs(results, source)
        for lab in sorted(points.of(source).values("lab")):
            for subject in _subjects(points, source):
                mine = points.of(source).where(lab=lab, subject=subject)
                if mine:
                    things.append(_lab_figure(lab, mine, limits, source))
    return things or [missing("kernels with FLOPs and bytes", BENCH)]


# ---- All ladders in one picture ----

# Of each lab, what stands for it.
_MAIN = {
    "01_cpu_matmul": ("matmul",),
    "02_gpu_matmul": ("matmul",),
    "04_sgemm": ("sgemm_transposed",),
    "05_layernorm_softmax": ("layernorm", "softmax"),
    "06_fused_epilogues": ("linear_activation", "linear_add_norm"),
    "07_attention": ("attention",),
    "11_training": ("layernorm_backward", "attention_backward", "adamw"),
    "gemm16": ("gemm16_plain",),
}


def _ends(points):
    """Of each main operation and type: first and last step, at the shape with most steps and FLOPs."""
    pairs = []
    for lab in sorted(points.values("lab")):
        for op in _MAIN.get(lab, ()):
            for dtype in points.where(lab=lab, op=op).values("dtype"):
                rows = points.where(lab=lab, op=op, dtype=dtype)
                best = max(rows, key=lambda r: (len(rows.where(shape=r.shape)), r.flops))
                rows = rows.where(shape=best.shape)
                steps = _steps(rows)
                if len(steps) > 1:
                    pairs.append((rows.where(stage=steps[0])[0], rows.where(stage=steps[-1])[0]))
    return pairs


def _pair_name(place, record):
    lab = record.lab if record.lab == "gemm16" else f"lab {record.lab[:2]}"
    return f"{place}  {lab}: {record.op.replace('_', ' ')}, {record.dtype}\n     {record.shape}"


def _free_place(x, y, taken):
    """Chooses label positions that do not overlap; offsets in points, a decade is about 100."""
    for offset in ((12, -4), (-12, -4), (0, 9), (16, 7), (-16, 7), (0, -16)):
        place = 100 * math.log10(x) + offset[0], 70 * math.log10(y) + offset[1] + 3
        if all(math.dist(place, other) > 11 for other in taken):
            taken.append(place)
            return offset
    return 12, -4


def _draw_pairs(axes, pairs, source):
    taken = [(100 * math.log10(_intensity(r)), 70 * math.log10(_rate(r))) for p in pairs for r in p]
    for i, (first, last) in enumerate(pairs):
        xs, ys = zip(*((_intensity(r), _rate(r)) for r in (first, last)))
        axes.plot(xs, ys, color=look.LIGHT["pale"], lw=1.5, zorder=2, label=look.GUIDE)
        offset = _free_place(xs[1], ys[1], taken)
        at = {"xytext": offset, "textcoords": "offset points", "zorder": 5, "ha": "center"}
        look.guide_text(axes, xs[1], ys[1], str(i + 1), **at)
    for end, (label, colour) in enumerate((("first step", "grey"), ("last step", "blue"))):
        style = look.point_style(look.LIGHT[colour], source.modelled)
        xs = [_intensity(pair[end]) for pair in pairs]
        ys = [_rate(pair[end]) for pair in pairs]
        axes.scatter(xs, ys, s=46, marker=look.MARKERS[end], zorder=3, label=label, **style)


def _overview_figure(pairs, limits, source):
    points = Results(r for pair in pairs for r in pair)
    limits = _limits_of(points, limits)
    height = max(6.4, 0.95 + 0.36 * len(pairs))  # the legend has two lines for each
    figure, (axes,) = look.new("All ladders: their first step, and their last", height=height)
    _draw_roofs(axes, limits, *_frame(axes, points, limits))
    _draw_pairs(axes, pairs, source)
    handles, labels = axes.get_legend_handles_labels()
    handles += [look.plt.Line2D([], [], linestyle="none")] * len(pairs)
    labels += [_pair_name(i + 1, first) for i, (first, _) in enumerate(pairs)]
    figure.legend(handles, labels, loc="outside right upper", fontsize=8.5, handlelength=1.2)
    return caption(figure, source, points)


def overview(results):
    """A figure for each source: first and last step of each ladder at one shape."""
    points = kernels(results)
    figures = []
    for source in points.sources():
        for subject in _subjects(points, source):
            pairs = _ends(points.of(source).where(subject=subject))
            if pairs:
                figures.append(_overview_figure(pairs, roofs(results, source), source))
    return figures or [missing("kernels with FLOPs and bytes", BENCH)]


def roof_table(results):
    """The roofs of each source, in numbers."""
    rows = []
    for source in kernels(results).sources():
        for roof in roofs(results, source):
            rows.append([source.label, roof.name, roof.text])
    return Table(["whose", "roof", "value"], rows)
