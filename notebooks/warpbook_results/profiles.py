"""Profiles: operators of both models, kernels, CPU stacks, copies of lab 02."""

import json
import re
from collections import Counter
from dataclasses import dataclass

from . import look
from .records import Results, Source, recorded_folders, workspace
from .show import missing
from .stages import caption

RECORD = "notebooks/record_profiles.sh"

# What an operator is, and its colour; fused ones count as the product they are built around.
CLASSES = {
    "products of matrices": ("blue", ("matmul", "linear", "linear_activation",
                                      "linear_residual_layernorm")),
    "attention": ("orange", ("attention", "attention_packed", "softmax")),
    "norms": ("green", ("layernorm", "rmsnorm", "residual_layernorm")),
    "bias, activation, sum, rope": ("purple", ("bias_add", "activation", "silu_gate", "residual",
                                               "rope")),
    "copies": ("red", ("copy",)),
    "embedding": ("grey", ("embedding",)),
    "the whole model, undivided": ("pale", ("encoder", "decoder")),
}  # fmt: skip


@dataclass(frozen=True)
class Profile:
    """Milliseconds of each operator, and of each kernel, of one stage."""

    stage: str
    source: Source
    what: str
    operators: dict
    kernels: dict
    about: dict
    path: str

    @property
    def total(self):
        return sum(self.operators.values())

    def shares(self):
        """Percent of the time of each class of operators; classes that took no time are left out."""
        known = {name: label for label, (_, names) in CLASSES.items() for name in names}
        sums = Counter()
        for name, ms in self.operators.items():
            sums[known.get(name, name)] += 100 * ms / self.total
        return sums


def _about(folder):
    path = folder / "about.json"
    return json.loads(path.read_text()) if path.is_file() else {}


def _relative(path):
    return str(path.relative_to(workspace()))


def _device(raw, about):
    return about.get("cpu", "CPU") if raw == "CPU" else raw


def _times(rows):
    return {row["name"]: row["total_ms"] for row in rows}


def _bert_profile(path, about):
    raw = json.loads(path.read_text())
    source = Source(_device(raw["device"], about), raw["modelled"], False)
    layout = "padded" if raw["padded"] else "packed"
    plural = "" if raw["batch_size"] == 1 else "s"
    texts = f"{raw['batch_size']} text{plural} of up to {raw['max_length']} tokens, {layout}"
    what = f"BERT, {raw['dtype']}, random weights, {texts}"
    operators, kernels = _times(raw["operators"]), _times(raw["kernels"])
    return Profile(raw["stage"], source, what, operators, kernels, about, _relative(path))


def _llama2_profile(path, about):
    """Parses the output of generate --profile: a line about the run, a header, a line for each operator."""
    lines = path.read_text().splitlines()
    found = re.search(r"stage (\S+) on (.*?)(?: \((times are modelled)\))?$", lines[0])
    if not found:
        raise ValueError(f"{_relative(path)}:1: names no stage")
    on = found[2].removeprefix("the ")
    source = Source(_device(on, about), found[3] is not None, False)
    rows = [line.split() for line in lines[2:]]
    operators = {row[0]: float(row[2]) for row in rows if len(row) == 4}
    what = f"{about.get('llama2', 'Llama2')}, random weights, one token at a time"
    return Profile(found[1], source, what, operators, {}, about, _relative(path))


def load(model):
    """Recorded profiles of 'bert' or 'llama2': for each source, stages in order."""
    read, ending = {"bert": (_bert_profile, "json"), "llama2": (_llama2_profile, "txt")}[model]
    found = {}
    for folder in recorded_folders():
        about = _about(folder / "profile")
        for path in sorted((folder / "profile" / model).glob(f"*.{ending}")):
            profile = read(path, about)
            found.setdefault((profile.source, profile.what), []).append(profile)
    return list(found.values())


def _details(profiles):
    about = profiles[0].about
    folder = profiles[0].path.rsplit("/", 1)[0]
    parts = [
        about.get("time", "no date")[:10],
        f"commit {(about.get('commit') or 'not noted')[:9]}",
    ]
    parts += [about["note"]] if about.get("note") else []
    return "; ".join([*parts, folder])


def operators(model):
    """Shares of the classes of operators, a row for each stage, a figure for each source."""
    things = []
    for profiles in load(model):
        things.append(_operator_figure(profiles))
    if not any(p[0].source.device.startswith("NVIDIA") for p in load(model)):
        things.append(
            missing(
                f"{model.upper() if model == 'bert' else 'Llama2'} by operator, on a GPU", RECORD
            )
        )
    return things


def _operator_figure(profiles):
    source = profiles[0].source
    title = f"{profiles[0].what.split(',')[0]}: share of each kind of operator, by stage"
    figure, (axes,) = look.new(title, height=1.9 + 0.42 * len(profiles))
    left = [0.0] * len(profiles)
    for label, (colour, _) in CLASSES.items():
        values = [p.shares()[label] for p in profiles]
        if not any(values):
            continue
        rows = [i for i, value in enumerate(values) if value > 0]
        style = look.bar_style(source.modelled)
        drawn = {"height": 0.7, "color": look.LIGHT[colour], "edgecolor": look.LIGHT["back"]}
        shown = [values[i] for i in rows]
        axes.barh(rows, shown, left=[left[i] for i in rows], label=label, **drawn, **style)
        for i in rows:
            if values[i] >= 4:
                _bar_words(axes, left[i] + values[i] / 2, i, f"{values[i]:.0f}")
        left = [a + b for a, b in zip(left, values)]
    names = [f"{p.stage.replace('_', ' ')}, {look.number(p.total)} ms" for p in profiles]
    axes.set_yticks(range(len(profiles)), names)
    axes.set_ylim(len(profiles) - 0.4, -0.6)
    axes.set_xlim(0, 100)
    axes.set_xlabel(f"% of the time of all operators, each by itself\n{profiles[0].what}")
    axes.grid(axis="y", visible=False)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper")
    return look.finish(figure, source.label, _details(profiles))


def _bar_words(axes, x, y, text):
    box = {"facecolor": look.LIGHT["back"], "edgecolor": "none", "pad": 1.2}
    look.guide_text(axes, x, y, text, fontsize=8.5, ha="center", va="center", bbox=box)


def _kernel_name(name, most=70):
    name = name.replace("(anonymous namespace)::", "")
    return name if len(name) <= most else name[: most - 3] + "..."


def kernels(model="bert", most=10):
    """The kernels that take most time of the last recorded stage of each source."""
    things = []
    for profiles in load(model):
        last = next((p for p in reversed(profiles) if p.kernels), None)
        if last:
            things.append(_kernel_figure(last, most))
    return things or [missing("kernels of BERT", RECORD)]


def _kernel_figure(profile, most):
    rows = sorted(profile.kernels.items(), key=lambda row: -row[1])
    total = sum(profile.kernels.values())
    rest = sum(ms for _, ms in rows[most:])
    shown = rows[:most] + ([(f"{len(rows) - most} others", rest)] if rest else [])
    title = f"BERT, stage {profile.stage.replace('_', ' ')}: time by kernel"
    figure, (axes,) = look.new(title, height=1.8 + 0.36 * len(shown))
    values = [100 * ms / total for _, ms in shown]
    style = look.bar_style(profile.source.modelled)
    bars = axes.barh(range(len(shown)), values, height=0.66, color=look.LIGHT["blue"], **style)
    words = [f"{value:.1f}%, {look.number(ms)} ms" for value, (_, ms) in zip(values, shown)]
    axes.bar_label(bars, labels=words, padding=3, fontsize=8.5)
    axes.set_yticks(range(len(shown)), [_kernel_name(name) for name, _ in shown], fontsize=8.5)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xlim(0, 1.25 * max(values))
    axes.set_xlabel(f"% of the time of all kernels, each by itself\n{profile.what}")
    axes.grid(axis="y", visible=False)
    return look.finish(figure, profile.source.label, _details([profile]))


# ---- Stacks ----


def read_folded(path):
    """Counts of stacks: {("outer", "inner"): 12}. ValueError names a malformed line."""
    counts = Counter()
    for number, line in enumerate(path.read_text().splitlines(), 1):
        frames, space, count = line.rpartition(" ")
        if not space or not count.isdigit():
            raise ValueError(f"{path.name}:{number}: not 'outer;inner COUNT'")
        counts[tuple(frames.split(";"))] += int(count)
    return counts


def below(counts, root):
    """Stacks from a function inwards, without the frames of the project's own profiler."""
    inner = Counter()
    for stack, count in counts.items():
        if root in stack:
            stack = stack[stack.index(root) :]
            inner[tuple(frame for frame in stack if not frame.startswith("profile_"))] += count
    return inner


def boxes(counts):
    """Boxes of a flame graph: {(depth, start, name): samples}; neighbours of one name are one box."""
    found = {}

    def place(stacks, depth, start):
        sums = Counter()
        for stack, count in stacks.items():
            if len(stack) > depth:
                sums[stack[depth]] += count
        for name, count in sorted(sums.items(), key=lambda item: (-item[1], item[0])):
            found[depth, start, name] = count
            inner = {s: n for s, n in stacks.items() if len(s) > depth and s[depth] == name}
            place(inner, depth + 1, start)
            start += count

    place(counts, 0, 0)
    return found


_FLAME = ["#e0a070", "#d98f5c", "#e3b07f", "#cf8a66", "#e6bd8c", "#d69a78"]


def _flame_colour(name):
    if name == "[kernel]":
        return look.LIGHT["grey"]
    return _FLAME[sum(map(ord, name)) % len(_FLAME)]


def _draw_flame(axes, counts):
    total = sum(counts.values())
    placed = {key: n for key, n in boxes(counts).items() if n / total >= 0.002}
    for depth in sorted({depth for depth, _, _ in placed}):
        row = [(start, name, n) for (d, start, name), n in placed.items() if d == depth]
        bars = axes.barh(
            [depth] * len(row),
            [100 * n / total for _, _, n in row],
            left=[100 * start / total for start, _, _ in row],
            height=0.94,
            color=[_flame_colour(name) for _, name, _ in row],
            edgecolor=look.LIGHT["back"],
            linewidth=0.6,
        )
        for bar, (_, name, n) in zip(bars, row):
            room = int(100 * n / total * 1.5)  # letters
            if room > 4:
                text = name if len(name) <= room else name[: room - 1] + "\N{HORIZONTAL ELLIPSIS}"
                at = {"va": "center", "fontsize": 8.5, "color": "#1b1b1a"}
                look.guide_text(axes, bar.get_x() + 0.3, depth, text, **at)
    axes.set_xlim(0, 100)
    axes.set_ylim(-0.6, max(depth for depth, _, _ in placed) + 0.6)
    axes.set_yticks([])
    axes.grid(visible=False)
    axes.set_xlabel(f"% of {total} samples; a function stands on the one that called it")


def flames(name, title, root):
    """The flame graph of stacks recorded as NAME.folded, from the function `root` inwards."""
    things = []
    for folder in recorded_folders():
        path = folder / "profile" / f"{name}.folded"
        if not path.is_file():
            continue
        counts = below(read_folded(path), root)
        if not counts:
            raise ValueError(f"{_relative(path)}: no stack holds {root}")
        depth = max(len(stack) for stack in counts)
        figure, (axes,) = look.new(title, height=1.7 + 0.33 * depth)
        _draw_flame(axes, counts)
        about = _about(folder / "profile")
        source = Source(about.get("cpu", "CPU"), False, False)
        parts = [about.get("time", "")[:10], f"commit {(about.get('commit') or 'not noted')[:9]}"]
        parts += [about["note"]] if about.get("note") else []
        things.append(look.finish(figure, source.label, "; ".join([*parts, _relative(path)])))
    return things or [missing(f"stacks {name}", RECORD + " --flame")]


# ---- Copies ----


def _split(records, source):
    """Copies, allocations and the rest of a token, of each lab's own stage: (label, parts, record)."""
    rows = []
    for r in records.of(source).where(figure="copy_ms_per_token"):
        if r.stage != r.lab:
            continue  # lab 03's bench times stage 02, too
        same = records.of(source).where(lab=r.lab, subject=r.subject, stage=r.stage)
        allocations = same.where(figure="alloc_ms_per_token")
        alloc = allocations[0].value if allocations else 0.0
        rest = max(0.0, r.ms - r.value - alloc)
        who = "yours" if source.yours else "starter"
        label = f"{r.stage.replace('_', ' ')}, {who if r.subject == 'labs' else 'solution'}"
        rows.append((label, {"copies": r.value, "allocations": alloc, "the rest": rest}, r))
    return sorted(rows, key=lambda row: (row[2].lab, row[2].subject))


_PARTS = {"copies": "red", "allocations": "orange", "the rest": "blue"}


def copies(results, shape="15M shape, random weights"):
    """Time of copies, allocations and everything else for one token in labs 02 and 03."""
    ours = results.where(op="decode", shape=shape, lab=("02_gpu_matmul", "03_resident_weights"))
    ours = ours.latest()
    figures = []
    for source in ours.sources():
        rows = _split(ours, source)
        if not rows:
            continue
        title = "Llama2, 15M: copies against all else, milliseconds of one token"
        figure, (axes,) = look.new(title, height=1.8 + 0.42 * len(rows))
        left = [0.0] * len(rows)
        for part, colour in _PARTS.items():
            values = [parts[part] for _, parts, _ in rows]
            style = look.bar_style(source.modelled)
            drawn = {"height": 0.66, "color": look.LIGHT[colour], "label": part}
            axes.barh(range(len(rows)), values, left=left, **drawn, **style)
            left = [a + b for a, b in zip(left, values)]
        for i, (_, parts, r) in enumerate(rows):
            words = f"{look.number(r.ms)} ms, {100 * parts['copies'] / r.ms:.0f}% copies"
            at = {"xytext": (5, 0), "textcoords": "offset points", "va": "center", "fontsize": 8.5}
            look.guide_text(axes, left[i], i, words, **at)
        axes.set_yticks(range(len(rows)), [label for label, _, _ in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlim(0, 1.25 * max(left))
        axes.set_xlabel(
            "ms a token; copies and allocations from one traced token, the whole a median"
        )
        axes.grid(axis="y", visible=False)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper")
        figures.append(caption(figure, source, Results(r for _, _, r in rows)))
    return figures or [missing("copies of lab 02", "bazel run //labs/02_gpu_matmul:bench")]
