"""The course's main lesson as a figure: the speedup of a kernel and of the model that uses it."""

import re
from dataclasses import dataclass

from . import look
from .records import Record
from .show import missing
from .stages import caption


@dataclass(frozen=True)
class Pair:
    """A lab's kernel and its model, each at the ladder's first and last step."""

    lab: str
    kernel: str
    shapes: tuple
    model: str
    first: str | None = None
    last: str | None = None


# `first` and `last` name the model's rows where they are not the ladder's own first and last step.
PAIRS = [
    Pair("01_cpu_matmul", "matmul", ("1x32000x288",), "decode", "v1_naive", "v5_threads"),
    Pair("02_gpu_matmul", "matmul", ("1x5632x2048", "1x768x288"), "decode"),
    Pair("04_sgemm", "sgemm_transposed", ("8192x768x768", "2048x768x768"), "bert_batch"),
    Pair("05_layernorm_softmax", "layernorm", ("8192x768",), "bert_batch"),
    Pair("06_fused_epilogues", "linear_add", ("8192x768x768", "512x256x256"), "bert_batch",
         "nothing fused", "the lone add fused"),
    Pair("06_fused_epilogues", "linear_add_norm", ("8192x768x768", "512x256x256"), "bert_batch",
         "nothing fused", "all fused"),
    Pair("07_attention", "attention", ("b16 h12 s512 d64",), "bert_batch"),
]  # fmt: skip


@dataclass(frozen=True)
class Gain:
    """Records of one pair: kernel before and after, model before and after."""

    pair: Pair
    kernel: tuple[Record, Record]
    model: tuple[Record, Record]

    @property
    def factors(self):
        return tuple(first.ms / last.ms for first, last in (self.kernel, self.model))

    @property
    def records(self):
        return [*self.kernel, *self.model]


def _step(record):
    """Number of a ladder's step; steps without a number sort last."""
    found = re.match(r"v(\d+)_", record.stage)
    return int(found[1]) if found else 99


def _kernel(mine, pair):
    for shape in pair.shapes:
        rows = mine.where(op=pair.kernel, shape=shape, dtype="fp32")
        rows = sorted((r for r in rows if _step(r) < 99), key=_step)
        if len(rows) > 1:
            return rows[0], rows[-1]
    return None


def _model(mine, pair):
    rows = mine.where(op=pair.model)
    if pair.first:
        ends = rows.where(stage=pair.first), rows.where(stage=pair.last)
    else:
        steps = sorted(rows, key=_step)
        ends = [r for r in steps if r.stage == steps[0].stage], [
            r for r in steps if r.stage == steps[-1].stage
        ]
    pairs = [(a, b) for a in ends[0] for b in ends[1] if a.shape == b.shape and a is not b]
    return pairs[0] if pairs else None


def _starter_to_solution(results, source, pair):
    """Lab 02's model has no ladder: the starter's token and the solved one's are two runs."""
    rows = results.of(source).where(lab=pair.lab, op="decode", stage=pair.lab).latest()
    rows = rows.where(figure="tokens_per_second")
    first, last = rows.where(subject="labs"), rows.where(subject="solutions")
    return (first[0], last[0]) if first and last else None


def gains(results, source):
    """The speedups of each pair that this source's records contain."""
    found = []
    for pair in PAIRS:
        subject = (
            "solutions" if results.of(source).where(lab=pair.lab, subject="solutions") else "labs"
        )
        mine = results.of(source).where(lab=pair.lab, subject=subject).latest()
        kernel = _kernel(mine, pair)
        if pair.model == "decode" and not pair.first:
            model = _starter_to_solution(results, source, pair)
        else:
            model = _model(mine, pair)
        if kernel and model:
            found.append(Gain(pair, kernel, model))
    return found


def _label(gain):
    lab = gain.pair.lab[:2]
    kernel = f"lab {lab}: {gain.pair.kernel.replace('_', ' ')}, {gain.kernel[0].shape}"
    return f"{kernel}\nin {gain.model[0].shape}"


def _draw(axes, found, source):
    hollow = source.modelled
    for place, gain in enumerate(found):
        kernel, model = gain.factors
        axes.plot(
            [kernel, model],
            [place, place],
            color=look.LIGHT["grid"],
            lw=5,
            zorder=1,
            label=look.GUIDE,
        )
        words = [
            (kernel, -11, f"kernel {look.number(kernel)}x"),
            (model, 11, f"model {look.number(model)}x"),
        ]
        for value, down, text in words:
            look.guide_text(
                axes,
                value,
                place,
                text,
                xytext=(0, -down - 4),
                textcoords="offset points",
                ha="center",
            )
    for i, (name, colour) in enumerate(
        (("the kernel alone", "blue"), ("the model around it", "red"))
    ):
        values = [gain.factors[i] for gain in found]
        style = look.point_style(look.LIGHT[colour], hollow)
        axes.scatter(
            values, range(len(found)), s=80, marker=look.MARKERS[i], zorder=3, label=name, **style
        )


def kernel_and_model(results):
    """Speedup of kernel and model for each lab."""
    figures = []
    for source in results.sources():
        found = gains(results, source)
        if not found:
            continue
        title = "First step of each ladder against its last: the kernel, and the model around it"
        figure, (axes,) = look.new(title, height=1.9 + 0.78 * len(found))
        axes.axvline(1, color=look.LIGHT["faint"], lw=1, label=look.GUIDE)
        _draw(axes, found, source)
        axes.set_yticks(range(len(found)), [_label(gain) for gain in found])
        axes.set_ylim(len(found) - 0.4, -0.6)
        axes.set_xscale("log")
        look.plain_log(axes.xaxis)
        axes.margins(x=0.1)
        axes.set_xlabel("times as fast, log scale; 1: nothing gained")
        axes.grid(axis="y", visible=False)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper")
        figures.append(caption(figure, source, [r for gain in found for r in gain.records]))
    command = "bazel run //labs/06_fused_epilogues:bench"
    return figures or [missing("a lab's kernel and its model from one bench", command)]
