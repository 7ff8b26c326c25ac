"""Compares predictions in the handouts with records, and simt's model with a GPU."""

import json
import math
from dataclasses import dataclass
from statistics import median_low

from . import look
from .answers import QUESTIONS
from .handouts import Entry, answer, entries, numbers, question_of, written
from .records import Results, provenance, workspace
from .show import Note, Table, missing

def table(results):
    """For every question the prediction, your own number, and the number of each source."""
    sources = results.sources()
    sources = [s for s in sources if any(answer(q, results, s) for q in QUESTIONS)]
    columns = [
        f"{'your' if s.yours else 'recorded'} results, {s.verb}: {s.device}" for s in sources
    ]
    rows = []
    for entry in entries():
        question = question_of(entry)
        answers = [answer(question, results, s) if question else None for s in sources]
        if any(answers) or entry.prediction or entry.measured:
            cells = [written(found, question.unit) if question else "–" for found in answers]
            rows.append([entry.lab[:2], entry.question, entry.prediction, entry.measured, *cells])
    return Table(["lab", "question", "your prediction", "your note", *columns], rows)


@dataclass(frozen=True)
class Pair:
    """One predicted number and the measured or modelled one."""

    entry: Entry
    predicted: float
    found: float


def pairs(results, source):
    """Predictions that are numbers, as many of them as the answer has, with the answer."""
    found = []
    for entry in entries():
        question = question_of(entry)
        values = answer(question, results, source) if question else None
        guesses = numbers(entry.prediction, question.unit) if question else []
        if values and len(guesses) == len(values):
            found += [Pair(entry, g, v) for g, v in zip(guesses, values) if g > 0 and v > 0]
    return found


def _draw_pairs(axes, found, source):
    labels = [f"lab {p.entry.lab[:2]}: {_clip(p.entry.question, 64)}" for p in found]
    ratios = [p.predicted / p.found for p in found]
    axes.axvspan(0.5, 2, color=look.LIGHT["grid"], zorder=0)
    axes.axvline(1, color=look.LIGHT["faint"], lw=1, label=look.GUIDE)
    style = look.point_style(look.LIGHT["blue"], source.modelled)
    axes.scatter(ratios, range(len(found)), s=60, zorder=3, **style)
    for i, p in enumerate(found):
        words = f"{look.number(p.predicted)} predicted, {look.number(p.found)} found"
        at = {"xytext": (9, 0), "textcoords": "offset points", "va": "center", "fontsize": 8.5}
        look.guide_text(axes, ratios[i], i, words, **at)
    axes.set_yticks(range(len(found)), labels, fontsize=8.5)
    axes.set_ylim(len(found) - 0.4, -0.6)
    axes.set_xscale("log")
    axes.set_xlim(min([0.2, *ratios]) / 1.5, max([5, *ratios]) * 6)
    look.plain_log(axes.xaxis)
    axes.set_xlabel("prediction / result, log scale; grey: right within a factor of two")
    axes.grid(axis="y", visible=False)


def _clip(text, most):
    return text if len(text) <= most else text[: most - 1].rstrip() + "\N{HORIZONTAL ELLIPSIS}"


def scatter(results):
    """Error of each prediction, in one figure for each source that has answers."""
    things = []
    for source in results.sources():
        found = pairs(results, source)
        if found:
            title = (
                "Your predictions against "
                + ("modelled" if source.modelled else "measured")
                + " results"
            )
            figure, (axes,) = look.new(title, height=1.9 + 0.36 * len(found))
            _draw_pairs(axes, found, source)
            mine = results.of(source).where(lab=tuple({p.entry.lab for p in found}))
            mine = mine.where(subject=("labs", "solutions"))
            things.append(look.finish(figure, source.label, provenance(mine)))
    if not things:
        things.append(
            Note(
                "**No predictions yet:** write numbers into the column *your prediction* of the tables "
                "under *Predict first* in `labs/*/README.md`, and run this notebook again."
            )
        )
    return things


# ---- simt's model against the GPU ----


def _times(path, name):
    """Milliseconds of each kernel or transfer; of several the middle one, as compare.c takes it."""
    found = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = json.loads(line)
            found.setdefault((row[name], row.get("bytes")), []).append(float(row["ms"]))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path}:{number}: not a time: {error}") from error
    return {key: median_low(values) for key, values in found.items()}


def _side_by_side(measured, modelled, name):
    folder = workspace() / "notebooks" / "results"
    files = [folder / "h200" / "simt" / measured, folder / "simt_h200" / modelled]
    if not all(path.is_file() for path in files):
        return None
    left, right = (_times(path, name) for path in files)
    return [(key, left[key], right[key]) for key in left if key in right]


CALIBRATION = "bazel test //common/simt/calibration:calibration_test --test_output=all"
_SETS = [
    ("calibration_times.jsonl", "calibration_fit.jsonl", "kernels that the model was fitted to"),
    ("more_times.jsonl", "calibration_more.jsonl", "kernels that it was not"),
]
APART, CLOSE = 1.3, 1.5


def ordered(rows):
    """Of pairs that differ by 1.3 times as measured: how many the model orders so, and how many there are."""
    right = total = 0
    for i, (_, a, x) in enumerate(rows):
        for _, b, y in rows[:i]:
            if max(a, b) >= APART * min(a, b):
                total += 1
                right += (a < b) == (x < y) and x != y
    return right, total


def _diagonal(axes, rows):
    values = [v for _, a, b in rows for v in (a, b)]
    ends = [min(values) / 1.6, max(values) * 1.6]
    line = {"label": look.GUIDE, "color": look.LIGHT["faint"]}
    axes.plot(ends, ends, lw=1.2, **line)
    for factor in (CLOSE, 1 / CLOSE):
        axes.plot(ends, [factor * v for v in ends], lw=1, linestyle=":", **line)
    for set_scale in (axes.set_xscale, axes.set_yscale):
        set_scale("log")
    axes.set_xlim(ends)
    axes.set_ylim(ends)
    look.plain_log(axes.xaxis)
    look.plain_log(axes.yaxis)
    axes.set_xlabel("measured, ms, log scale")
    axes.set_ylabel("modelled, ms, log scale")


def _name_far(axes, rows, most=7):
    """Names of the points farthest from the diagonal."""
    far = sorted(rows, key=lambda row: -abs(math.log(row[2] / row[1])))[:most]
    for key, a, b in far:
        if max(a / b, b / a) > 1.2:
            side = (
                {"ha": "right", "xytext": (-7, 3)} if b > a else {"ha": "left", "xytext": (7, -9)}
            )
            look.guide_text(axes, a, b, key, fontsize=8.5, textcoords="offset points", **side)


def _day(*folder):
    """Date, and commit if noted, of a folder of results."""
    path = workspace().joinpath("notebooks", "results", *folder, "about.json")
    about = json.loads(path.read_text(encoding="utf-8"))
    commit = f", commit {about['commit'][:9]}" if about.get("commit") else ""
    return about["time"][:10] + commit


def calibration():
    """The kernels that calibrate simt, measured on an H200 and modelled: two panels."""
    sets = [(_side_by_side(a, b, "kernel"), label) for a, b, label in _SETS]
    if not all(rows for rows, _ in sets):
        return [missing("simt's times of its calibration kernels", CALIBRATION)]
    figure, axes = look.new("simt's model against an H200: kernels", 1, 2, height=5.6)
    for panel, (rows, label) in zip(axes, sets):
        rows = [(key[0], a, b) for key, a, b in rows]
        _diagonal(panel, rows)
        style = look.point_style(look.LIGHT["blue"], True)
        panel.scatter([a for _, a, _ in rows], [b for _, _, b in rows], s=42, zorder=3, **style)
        _name_far(panel, rows)
        right, total = ordered(rows)
        close = sum(max(a / b, b / a) <= CLOSE for _, a, b in rows)
        score = f"{right} of {total} pairs in order, {close} within {CLOSE}x"
        panel.set_title(f"{len(rows)} {label}\n{score}")
    return [_finish_simt(figure, f"; dotted: off by {CLOSE} times")]


def _finish_simt(figure, more=""):
    details = f"measured {_day('h200', 'simt')}, notebooks/results/h200/simt; "
    details += f"modelled {_day('simt_h200')}, notebooks/results/simt_h200{more}"
    return look.finish(figure, "measured on NVIDIA H200, modelled by simt for an H200", details)


_TICKS = (2, 10, 20, 26)  # powers of two, in bytes


def transfers():
    """Copies and sets, measured and modelled, over their size."""
    rows = _side_by_side("transfers.jsonl", "transfers.jsonl", "transfer")
    if not rows:
        return [
            missing(
                "simt's times of copies",
                "bazel run --config=simt //common/simt/calibration:transfers",
            )
        ]
    rows = [row for row in rows if row[0][1]]
    kinds = list(dict.fromkeys(key[0] for key, _, _ in rows))
    figure, axes = look.new(
        "simt's model against an H200: copies", 2, 3, height=6.2, sharex=True, sharey=True
    )
    for panel, kind in zip(axes, kinds):
        mine = sorted((key[1], a, b) for key, a, b in rows if key[0] == kind)
        sizes = [size for size, _, _ in mine]
        blue, red = look.LIGHT["blue"], look.LIGHT["red"]
        panel.plot(sizes, [a for _, a, _ in mine], color=blue, marker="o", label="measured")
        hollow = {"markerfacecolor": look.LIGHT["back"], "linestyle": "--"}
        panel.plot(
            sizes, [b for _, _, b in mine], color=red, marker="s", label="modelled", **hollow
        )
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_title(kind)
        look.plain_log(panel.yaxis)
        panel.set_xticks([2**n for n in _TICKS], [size_text(2**n) for n in _TICKS])
        panel.xaxis.set_minor_formatter(lambda value, _: "")
    for panel in axes[3:]:
        panel.set_xlabel("bytes, log scale")
    for panel in axes[::3]:
        panel.set_ylabel("ms, log scale")
    axes[0].legend()
    return [_finish_simt(figure)]


def size_text(value):
    """'64 KiB' of 65536."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if value >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g} B"


def _on_both(results):
    """Kernels measured on an H200 and modelled for one at the same shape: {key: {modelled: record}}."""
    devices = ("NVIDIA H200", "simt:h200")
    found = {}
    for r in results.where(subject="solutions", figure=None, device=devices).latest():
        if not r.source.yours:
            key = (r.lab, r.op, r.stage, r.shape, r.dtype)
            found.setdefault(key, {})[r.source.modelled] = r
    return {key: pair for key, pair in found.items() if len(pair) == 2}


def _draw_lab(panel, lab, both):
    rows = [
        (f"{key[2].partition('_')[0]}, {key[3]}", pair[False].ms, pair[True].ms)
        for key, pair in both.items()
        if key[0] == lab
    ]
    _diagonal(panel, rows)
    style = look.point_style(look.LIGHT["blue"], True)
    panel.scatter([a for _, a, _ in rows], [b for _, _, b in rows], s=34, zorder=3, **style)
    _name_far(panel, rows, 3)
    right, total = ordered(rows)
    panel.set_title(f"{lab}\n{right} of {total} pairs in order")


def course_kernels(results):
    """The course's own kernels, measured on an H200 and modelled for one, a panel for each lab."""
    both = _on_both(results)
    if not both:
        command = "bazel run --config=simt //solutions/02_gpu_matmul:bench"
        return [missing("a ladder at the same shapes on an H200 and on simt", command)]
    labs = sorted({key[0] for key in both})
    title = "simt's model against an H200: the course's ladders"
    figure, axes = look.new(title, 1, len(labs), height=5.2)
    for panel, lab in zip(axes, labs):
        _draw_lab(panel, lab, both)
    records = Results(r for pair in both.values() for r in pair.values())
    label = "measured on NVIDIA H200, modelled by simt for an H200"
    return [look.finish(figure, label, provenance(records))]
