"""The time of each kernel of a model beside the time that its bytes and FLOPs need.

Sources are lists of launches in their order, each launch timed by itself, as `bench --launches` of
lab 11 and `profile` of lab 08 record them. A model is described as the operations that it consists
of, in order, each with the bytes that it cannot do without and its FLOPs; every launch of a list
belongs to one operation, and a list that does not fit is an error.
"""

import csv
import json
import re
from dataclasses import dataclass, field

BF16, F32 = 2, 4
PRODUCT = r"gemm16_(?!reduce)"
REDUCED = r"gemm16_reduce"
OTHER = r"(?!gemm16|sum_columns|encoder16|tile_kernel)"  # kernels whose names differ by GPU and size


class Misfit(Exception):
    """A list of launches that is not the model's, in one line."""


@dataclass(frozen=True)
class Device:
    """What a GPU can do at best, by its clocks and widths."""

    name: str
    bytes_a_second: float
    bf16_flops: float
    fp32_flops: float


DEVICES = {
    "h100": Device("NVIDIA H100 80GB HBM3", 3.35e12, 989.4e12, 66.9e12),
    "h200": Device("NVIDIA H200", 4.81e12, 989.4e12, 66.9e12),
}


@dataclass(frozen=True)
class Operation:
    """A first launch whose name fits `first`, and those behind it that fit `more`.

    bytes: what is read and written where nothing is kept in a cache. flops: of tensor cores in 16
    bits, or of FMAs in fp32.
    """

    label: str
    first: str
    more: str = "$^"
    bytes: float = 0.0
    flops: float = 0.0
    fp32: bool = False


@dataclass
class Row:
    """All launches of one label."""

    label: str
    launches: int = 0
    ms: float = 0.0
    bytes: float = 0.0
    flops: float = 0.0
    fp32: bool = False
    kernels: list = field(default_factory=list)

    def flops_seconds(self, device):
        return self.flops / (device.fp32_flops if self.fp32 else device.bf16_flops)

    def needed_ms(self, device):
        """The longer of both times: bytes and FLOPs can overlap."""
        return 1e3 * max(self.bytes / device.bytes_a_second, self.flops_seconds(device))


# ---- Lists of launches ----


def read_csv(path):
    """Launches of `bench --launches`: [(name, ms), ...]."""
    with open(path, newline="", encoding="utf-8") as file:
        return [(row["kernel"], float(row["ms"])) for row in csv.DictReader(file)]


def read_trace(path):
    """The kernels of the encoder of the first batch of a trace.json of `profile`."""
    with open(path, encoding="utf-8") as file:
        events = [e for e in json.load(file)["traceEvents"] if e["ph"] == "X"]
    encoder = [e for e in events if e["cat"] == "operators" and e["name"] == "encoder"]
    if not encoder:
        raise Misfit(f"{path}: no encoder in it")
    begin, end = encoder[0]["ts"], encoder[0]["ts"] + encoder[0]["dur"]
    kernels = [e for e in events if e["cat"] == "kernels" and begin <= e["ts"] <= end]
    return [(e["name"], 1e-3 * e["dur"]) for e in sorted(kernels, key=lambda e: e["ts"])]


def short_name(name):
    """A kernel's name without its namespace and the arguments of its template."""
    return re.sub(r"<.*", "", name.replace("(anonymous namespace)::", "")).split("::")[-1]


def assign(launches, operations, source):
    """Rows by label, in order of their first launch; each launch belongs to one operation."""
    names = [short_name(name) for name, _ in launches]
    rows, at = {}, 0
    for operation in operations:
        row = rows.setdefault(operation.label, Row(operation.label, fp32=operation.fp32))
        if at >= len(launches) or not re.match(operation.first, names[at]):
            found = names[at] if at < len(launches) else "the end"
            raise Misfit(f"{source}: launch {at + 1} should be {operation.label}, and is {found}")
        begin = at
        at += 1
        while at < len(launches) and re.match(operation.more, names[at]):
            at += 1
        row.ms += sum(ms for _, ms in launches[begin:at])
        row.launches += at - begin
        row.kernels += [name for name in dict.fromkeys(names[begin:at]) if name not in row.kernels]
        row.bytes += operation.bytes
        row.flops += operation.flops
    if at < len(launches):
        raise Misfit(f"{source}: launch {at + 1}, {names[at]}, is of no operation")
    return list(rows.values())


# ---- The models: BERT-base, texts of one length ----

C, HIDDEN, LAYERS, WORDS, PARAMETERS = 768, 3072, 12, 30522, 109_483_778


def product(label, M, N, K, out=BF16, residual=0, more=REDUCED):
    """out (M, N) = in (M, K) * weight (N, K)^T + residual."""
    return Operation(
        label,
        PRODUCT,
        more,
        BF16 * (M * K + N * K) + (out + residual) * M * N,
        2.0 * M * N * K,
    )


def attention(B, T):
    """q, k and v once, the result once; two products of T x T a head."""
    return Operation("attention", OTHER, OTHER, BF16 * 4 * B * T * C, 4.0 * B * T * T * C)


def bert_forward(B, T):
    """The 16-bit encoder of lab 08, without the last layer's rows that nobody reads."""
    rows = B * T
    norm = Operation("LayerNorm", "encoder16_norm", bytes=2 * BF16 * rows * C)
    operations = [
        Operation("embedding", "encoder16_norm", bytes=(3 * F32 + BF16) * rows * C),
    ]
    for layer in range(LAYERS):
        last = layer == LAYERS - 1
        kept = B if last else rows
        operations += [product("q, k, v", rows, 3 * C, C), attention(B, T)]
        if last and B > 1:
            operations += [Operation("first rows", "encoder16_gather", bytes=4 * BF16 * B * C)]
        operations += [
            product("attention's output", kept, C, C, BF16, BF16),
            norm if not last else Operation("LayerNorm", "encoder16_norm",
                                            bytes=2 * BF16 * B * C),
            product("up", kept, HIDDEN, C),
            product("down", kept, C, HIDDEN, BF16, BF16),
            norm if not last else Operation("LayerNorm", "encoder16_norm",
                                            bytes=(BF16 + F32) * B * C),
        ]
    operations += [Operation("the head", "few_rows", "few_rows")]
    return operations


@dataclass(frozen=True)
class Products:
    """The products and elements of a training step, in one type."""

    element: int  # bytes

    def product(self, label, M, N, K, out=None, residual=0):
        if self.element == BF16:
            return product(label, M, N, K, out or BF16, residual)
        return Operation(label, "tile_kernel", "add_splits|reduce_splits",
                         F32 * (M * K + N * K) + (F32 + residual) * M * N, 2.0 * M * N * K, True)

    def both_gradients(self, label, M, N, K, add=0):
        """dweight (N, K), fp32, is read and written; din (M, K), with what is added."""
        return [
            self.product(f"{label}: dW", N, K, M, F32, F32),
            self.product(f"{label}: din", M, K, N, residual=add),
        ]

    def attention(self, label, B, T, tensors, products):
        """Tensors of an element a channel, once each; products of T x T a head."""
        return Operation(label, OTHER, OTHER, self.element * tensors * B * T * C,
                         2.0 * products * B * T * T * C, self.element == F32)


def bert_step(B, T, element=BF16):
    """A training step of lab 11: a classifier with dropout, AdamW."""
    rows, kind = B * T, Products(element)
    row_bytes, parameter_bytes = element * rows * C, 30 if element == BF16 else 28
    norm = Operation("dropout, residual, LayerNorm", "norm_in", bytes=4 * row_bytes)
    back_norm = Operation("LayerNorm's gradient", "layernorm_rows", "layernorm_columns",
                          3 * row_bytes)
    dropped = Operation("dropout's gradient, bias", "sum_columns", "add_partials", 2 * row_bytes)
    operations = [
        Operation("copy of the batch", "copy to the device", "copy to the device", 4 * 8 * rows),
        Operation("embedding", "move_rows", "move_rows|norm_in|each",
                  (3 * F32 + 5 * element) * rows * C),
    ]
    for _ in range(LAYERS):
        operations += [
            kind.product("q, k, v", rows, 3 * C, C),
            kind.attention("attention", B, T, 4, 2),
            kind.product("attention's output", rows, C, C),
            norm,
            kind.product("up", rows, HIDDEN, C),
            Operation("GELU", "each", bytes=2 * element * rows * HIDDEN),
            kind.product("down", rows, C, HIDDEN),
            norm,
        ]
    operations += [Operation("the head, forward and backward", ".", "(?!layernorm_rows)")]
    for _ in range(LAYERS):
        operations += [
            back_norm,
            dropped,
            *kind.both_gradients("down", rows, C, HIDDEN),
            Operation("GELU's gradient, bias", "sum_columns", "add_partials",
                      3 * element * rows * HIDDEN),
            *kind.both_gradients("up", rows, HIDDEN, C, element),
            back_norm,
            dropped,
            *kind.both_gradients("attention's output", rows, C, C),
            kind.attention("attention's gradient", B, T, 8, 5),
            Operation("bias of q, k, v", "sum_columns", "add_partials", element * rows * 3 * C),
            *kind.both_gradients("q, k, v", rows, 3 * C, C, element),
        ]
    operations += [
        Operation("embedding's gradient", "each", "layernorm_|sum_pieces|add_pieces",
                  (4 * element + 4 * F32) * rows * C),
        Operation("clipping", "sum_squares", "combine_squares", F32 * PARAMETERS),
        Operation("AdamW", "adamw", bytes=parameter_bytes * PARAMETERS),
        Operation("zeros for the gradients", "fill", bytes=F32 * PARAMETERS),
    ]
    return operations


# ---- The page ----


def table(rows, device):
    """Lines of Markdown: longest first, then the sum."""
    whole = Row("all", sum(r.launches for r in rows), sum(r.ms for r in rows))
    needed = sum(r.needed_ms(device) for r in rows)
    lines = ["| work | kernels | launches | ms | needed ms | by | share |", "|---|---|---:|---:|---:|---|---:|"]
    for row in sorted(rows, key=lambda r: -r.ms):
        least = row.needed_ms(device)
        by = "FLOPs" if row.flops_seconds(device) > row.bytes / device.bytes_a_second else "bytes"
        kernels = ", ".join(f"`{name}`" for name in row.kernels[:3]) + (" ..." if len(row.kernels) > 3 else "")
        share = f"{100 * least / row.ms:.0f}%" if least > 0 else "–"
        lines.append(f"| {row.label} | {kernels} | {row.launches} | {row.ms:.3f} | "
                     f"{least:.3f} | {by if least > 0 else '–'} | {share} |")
    lines.append(f"| **all** | | {whole.launches} | {whole.ms:.3f} | {needed:.3f} | | "
                 f"{100 * needed / whole.ms:.0f}% |")
    return lines


# Name of a file without its ending: heading, operations.
SOURCES = {
    "bert_forward_bf16_16x512": ("BERT-base forward, bf16, 16 texts of 512", lambda: bert_forward(16, 512)),
    "bert_forward_bf16_16x128": ("BERT-base forward, bf16, 16 texts of 128, with weights prefetched into L2 (given up)",
                                 lambda: bert_forward(16, 128)),
    "bert_step_bf16_16x512": ("BERT-base, a training step, bf16, 16 texts of 512", lambda: bert_step(16, 512)),
    "bert_step_bf16_16x128": ("BERT-base, a training step, bf16, 16 texts of 128", lambda: bert_step(16, 128)),
    "bert_step_fp32_16x512": ("BERT-base, a training step, fp32, 16 texts of 512", lambda: bert_step(16, 512, F32)),
}

HEAD = """\
# Where the limits are

Every kernel of a model beside the time that its bytes and FLOPs need. `bazel run //notebooks:limits -- --write`
makes this page of the lists of launches in `results/*/launches/`; its test fails when the page is not what
they say, or when a launch belongs to no operation.

- **ms**: the launches of all layers, each timed by itself, without the one before still running. Their sum is more
  than the time of the whole, which is in the handouts.
- **needed ms**: the longer of two times. Bytes: each operand read once and each result written once, at the speed that
  the memory has by its clock and width. FLOPs: those of the tensor cores at their dense peak in 16 bits, in fp32 of
  the FMA units (66.9 TFLOP/s). What is in the L2 cache is read faster than that, so a share may be above 100%; no
  kernel reaches the peak of the tensor cores, whose clock falls under that load.
- Operations without a number have no need of their own that is worth counting.
"""


def sources():
    """Title and operations of each list of launches, by the name of its file."""
    from . import limits_llama2  # which is made of this module's parts

    return {**SOURCES, **limits_llama2.sources()}


def section(path):
    """Lines of one file's part of the page."""
    title, operations = sources()[path.stem]
    device = DEVICES[path.parent.parent.name]
    rows = assign(read_csv(path), operations(), path.name)
    peak = device.fp32_flops if any(row.fp32 for row in rows) else device.bf16_flops
    return [f"## {title}", "", f"{device.name}, measured ([{path.name}](results/{path.parent.parent.name}/launches/"
            f"{path.name})); {1e-12 * device.bytes_a_second:.2f} TB/s, {1e-12 * peak:.0f} TFLOP/s.", "",
            *table(rows, device), ""]


def page(results):
    """The whole page, of the folder of results."""
    paths = sorted(results.glob("*/launches/*.csv"))
    strangers = [p.name for p in paths if p.stem not in sources() or p.parent.parent.name not in DEVICES]
    if strangers:
        raise Misfit(f"{strangers[0]}: no model is known by that name")
    lines = [HEAD]
    for path in paths:
        lines += section(path)
    return "\n".join(lines).rstrip("\n") + "\n"
