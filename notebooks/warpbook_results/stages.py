"""Figures of whole models, stage after stage: time, throughput, copies, launches."""

import csv
import re

from . import look
from .records import provenance, recorded_folders, workspace
from .show import missing

BERT_BENCH = "bazel run //labs/08_bert_classifier:bench"
DECODE_BENCH = "bazel run //labs/03_resident_weights:bench"
LLAMA2_BENCH = "bazel run //labs/10_llama2_decoder:bench"

LAYOUTS = {
    "bert_dense": "dense: every text fills its rows",
    "bert_padded": "padded: real lengths, padding computed",
    "bert_packed": "packed: real lengths, no padding",
}
_DTYPES = ("fp32", "bf16", "fp16")


def caption(figure, source, records):
    """Finishes a figure: whose numbers they are, and from which CPU where one took part."""
    hosts = {(r.device, r.threads) for r in records if not r.on_gpu and r.device != source.device}
    beside = "".join(f"; stage 01 on the CPU beside it, {cpu}, {n} threads" for cpu, n in hosts)
    return look.finish(figure, source.label + beside, provenance(records))


def _batch(shape):
    """'BERT C768 L12, 16x512 tokens' as ('BERT C768 L12', 16, 512)."""
    found = re.fullmatch(r"(.*), (\d+)x(\d+) tokens", shape)
    return (found[1], int(found[2]), int(found[3])) if found else None


def _short(stage, dtype="fp32"):
    return stage.replace("_", " ") + ("" if dtype == "fp32" else f", {dtype}")


def _rank(dtype):
    return _DTYPES.index(dtype) if dtype in _DTYPES else len(_DTYPES)


def barh(axes, places, values, colour, source, height=0.8, label=None, words=None):
    """Horizontal bars with their numbers at the end; hatched where modelled."""
    style = look.bar_style(source.modelled)
    bars = axes.barh(places, values, height=height, color=colour, label=label, **style)
    words = words or [look.number(v) for v in values]
    axes.bar_label(bars, labels=words, padding=3, fontsize=8.5, color=look.LIGHT["text"])
    return bars


def _rows_down(axes, labels):
    """Names of bars, the first one at the top."""
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)


def _log_x(axes, label, values):
    """A logarithmic axis around these values, with room for numbers beside the dots."""
    axes.set_xscale("log")
    room = (max(values) / min(values)) ** 0.18
    axes.set_xlim(min(values) / max(room, 1.3), max(values) * max(room, 1.5))
    look.plain_log(axes.xaxis)
    axes.set_xlabel(label)


# ---- BERT ----


def _bert(results):
    return results.where(lab="08_bert_classifier", op=tuple(LAYOUTS)).latest()


def _bert_rows(records):
    """Stages in order, 16 bits below: [(label, {op: record})]."""
    rows = {}
    for r in records:
        rows.setdefault((_rank(r.dtype), r.stage, r.dtype), {})[r.op] = r
    return [(_short(stage, dtype), cells) for (_, stage, dtype), cells in sorted(rows.items())]


def _pytorch_rows(results, source, B, T):
    """PyTorch on texts of the same sizes, if it was timed on this device."""
    rows = {}
    for r in results.of(source).where(op="bert_forward", shape=f"B{B} T{T}").latest():
        version = r.subject.removeprefix("pytorch ").split("+")[0]
        label = f"PyTorch {version} {r.stage}" + ("" if r.dtype == "fp32" else f", {r.dtype}")
        rows[_rank(r.dtype), label] = {"bert_dense": r}
    return [(label, cells) for (_, label), cells in sorted(rows.items())]


def _draw_layouts(axes, rows, source):
    for i, (op, label) in enumerate(LAYOUTS.items()):
        cells = [
            (place + 0.26 * (i - 1), row[op].ms) for place, (_, row) in enumerate(rows) if op in row
        ]
        if cells:
            places, values = zip(*cells)
            marker = look.MARKERS[i]
            look.dots(axes, places, values, look.SERIES[i], source.modelled, marker, label)
    _rows_down(axes, [label for label, _ in rows])
    values = [r.ms for _, cells in rows for r in cells.values()]
    _log_x(axes, "milliseconds a batch, log scale: further left is faster", values)


def _bert_figure(results, mine, source, shape):
    model, B, T = _batch(shape)
    rows = _bert_rows(mine.where(shape=shape)) + _pytorch_rows(results, source, B, T)
    title = f"{model}: one batch of {B} texts of up to {T} tokens, stage by stage"
    figure, (axes,) = look.new(title, height=1.6 + 0.5 * len(rows))
    _draw_layouts(axes, rows, source)
    axes.legend(loc="lower right")
    return caption(figure, source, [r for _, cells in rows for r in cells.values()])


def bert_stages(results, B=16, T=512):
    """Milliseconds of a batch on every stage, a figure for each source; else its largest batch."""
    ours = _bert(results)
    figures = []
    for source in ours.sources():
        mine = ours.of(source)
        shapes = sorted(filter(_batch, mine.values("shape")), key=_batch)
        shape = next((s for s in shapes if _batch(s)[1:] == (B, T)), shapes[-1])
        figures.append(_bert_figure(results, mine, source, shape))
    return figures or [missing("BERT on the stages of the course", BERT_BENCH)]


def _draw_batches(axes, records, T):
    for i, stage in enumerate(records.values("stage")):
        rows = [
            (_batch(r.shape)[1], r) for r in records.where(stage=stage) if _batch(r.shape)[2] == T
        ]
        rows.sort(key=lambda row: row[0])
        if not rows:
            continue
        colour = look.SERIES[i % len(look.SERIES)]
        modelled = rows[0][1].source.modelled
        axes.plot(
            [B for B, _ in rows],
            [r.value for _, r in rows],
            marker=look.MARKERS[i % len(look.MARKERS)],
            markerfacecolor=look.LIGHT["back"] if modelled else colour,
            color=colour,
            linestyle="-" if i < 6 else "--",
            label=_short(stage),
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    look.plain_log(axes.xaxis)
    look.plain_log(axes.yaxis)
    axes.set_title(f"texts of {T} tokens")
    axes.set_xlabel("texts a batch, log scale")


def bert_batches(results, dtype="fp32"):
    """Texts a second over the size of the batch, dense, a panel for each length of texts."""
    ours = _bert(results).where(op="bert_dense", dtype=dtype)
    figures = []
    for source in ours.sources():
        mine = type(ours)(sorted(ours.of(source), key=lambda r: r.stage))
        lengths = sorted({_batch(s)[2] for s in mine.values("shape")})
        title = f"BERT, {dtype}: larger batches, more texts a second"
        figure, axes = look.new(title, 1, len(lengths), height=5.2, sharey=True)
        for panel, T in zip(axes, lengths):
            _draw_batches(panel, mine, T)
        axes[0].set_ylabel("texts a second, log scale")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper")
        figures.append(caption(figure, source, mine))
    return figures or [missing("BERT with batches of several sizes", BERT_BENCH)]


# ---- Llama2 ----

_MODELS = {"260K": 0, "15M": 1, "110M": 2, "1.1B": 3, "7B": 4}


def _size(shape):
    """'110M shape, random weights' and '110M, context 16' are both 110M."""
    word = re.split(r"[ ,]", shape)[0]
    return word if word in _MODELS else shape


def _llama2(results):
    """The newest decoding times: labs 03's bench, or lab 09's and 10's with more stages."""
    decode = results.where(lab=("03_resident_weights", "09_kv_cache"), op="decode")
    decode = decode.where(figure="tokens_per_second")
    late = results.where(lab="10_llama2_decoder", op="llama2_decode", figure="tokens_per_second")
    late = type(late)(r for r in late if _early(r, late))
    return type(results)([*decode.where(subject="solutions"), *decode.where(subject="labs"), *late])


def _early(record, records):
    """Whether a record has the shortest context of its model: the one that stages share."""
    same = [r for r in records if _size(r.shape) == _size(record.shape)]
    return _context(record.shape) == min(_context(r.shape) for r in same)


def _context(shape):
    found = re.search(r"context (\d+)", shape)
    return int(found[1]) if found else 0


def _decode_rows(records, source):
    """For each model the newest time of each stage: {size: [(label, record)]}."""
    rows = {}
    for r in records.of(source).latest():
        who = "" if r.subject == "solutions" or not source.yours else ", yours"
        label = _short(r.stage, r.dtype) + who
        rows.setdefault(_size(r.shape), {})[_rank(r.dtype), r.stage, label] = r
    order = sorted(rows, key=lambda size: _MODELS.get(size, 9))
    return {size: [(key[2], r) for key, r in sorted(rows[size].items())] for size in order}


def llama2_stages(results):
    """Milliseconds of a token on every stage, a panel for each size of the model."""
    ours = _llama2(results)
    if not any(source.yours for source in ours.sources()):
        ours = ours.where(subject="solutions")
    figures = []
    for source in ours.sources():
        rows = _decode_rows(ours, source)
        most = max(len(cells) for cells in rows.values())
        title = "Llama2, one token at a time, stage by stage"
        figure, axes = look.panels(title, len(rows), 1.0 + 0.42 * most)
        for panel, (size, cells) in zip(axes, rows.items()):
            values = [r.ms for _, r in cells]
            look.dots(panel, range(len(cells)), values, look.SERIES[0], source.modelled)
            _rows_down(panel, [label for label, _ in cells])
            _log_x(panel, "ms a token, log scale", values)
            panel.set_title(f"{size} weights" if size in _MODELS else size)
        figures.append(caption(figure, source, [r for c in rows.values() for _, r in c]))
    return figures or [missing("Llama2 on the stages of the course", DECODE_BENCH, LLAMA2_BENCH)]


def _ladder_file(folder):
    """Lab 10's ladder as recorded: the comment lines, and its rows."""
    path = folder / "decoder_ladder.csv"
    if not path.is_file():
        return None, []
    lines = path.read_text(encoding="utf-8").splitlines()
    notes = [line.lstrip("# ") for line in lines if line.startswith("#")]
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    return (str(path.relative_to(workspace())), notes), rows


def decoder_ladder():
    """Lab 10's ladder: tokens a second, kernels a token and the share of the bandwidth of each step."""
    figures = []
    for folder in recorded_folders():
        about, rows = _ladder_file(folder)
        if rows:
            figures.append(_ladder_figure(about, rows))
    if figures:
        return figures
    return [missing("lab 10's ladder", "bazel run //solutions/10_llama2_decoder:ladder_bench")]


def _ladder_figure(about, rows):
    path, notes = about
    columns = [
        ("tokens_per_s", "tokens a second", 1.0),
        ("kernels", "kernels a token", 1.0),
        ("share", "% of the bandwidth of reading", 100.0),
    ]
    models = list(dict.fromkeys((row["shape"], row["dtype"]) for row in rows))
    steps = list(dict.fromkeys(row["step"] for row in rows))
    title = "Llama2, lab 10: what each step did for a token"
    figure, axes = look.new(title, 1, 3, height=4.6, sharey=True)
    for panel, (column, label, factor) in zip(axes, columns):
        for i, model in enumerate(models):
            mine = [row for row in rows if (row["shape"], row["dtype"]) == model]
            panel.plot(
                [factor * float(row[column]) for row in mine],
                [steps.index(row["step"]) for row in mine],
                color=look.SERIES[i],
                marker=look.MARKERS[i],
                label=" ".join(model),
            )
        panel.set_xlabel(label)
        panel.set_xlim(left=0)
    axes[0].set_yticks(range(len(steps)), [step.replace("_", " ") for step in steps])
    axes[0].invert_yaxis()
    axes[1].legend(loc="lower right")
    return look.finish(figure, "measured; " + notes[0], f"{notes[1].rstrip('.')}; {path}")


def bus_bytes(results):
    """Bytes over the bus for a token, by stage and model."""
    ours = results.where(op="decode", figure="bus_bytes_per_token", lab="03_resident_weights")
    ours = ours.latest()
    figures = []
    for source in ours.sources():
        mine = ours.of(source)
        rows = sorted(mine, key=lambda r: (_MODELS.get(_size(r.shape), 9), r.stage, r.subject))
        labels = [f"{_size(r.shape)}, {_short(r.stage)}, {r.subject}" for r in rows]
        title = "Llama2: bytes over the bus for one token"
        figure, (axes,) = look.new(title, height=1.7 + 0.34 * len(rows))
        for stage, colour in zip(sorted(mine.values("stage")), look.SERIES):
            places = [i for i, r in enumerate(rows) if r.stage == stage]
            values = [1e-6 * rows[i].value for i in places]
            look.dots(axes, places, values, colour, source.modelled)
        _rows_down(axes, labels)
        _log_x(axes, "MB a token, log scale", [1e-6 * r.value for r in rows])
        figures.append(caption(figure, source, rows))
    return figures or [missing("bytes over the bus for a token", DECODE_BENCH)]


_WAYS = {
    "token_text_anew": "the whole text anew",
    "token_keys_anew": "keys and values anew",
    "token": "with a cache",
}


def _position(shape):
    return int(shape.rpartition("position ")[2])


def token_positions(results):
    """What a token costs at each position, three ways: lab 09's bench."""
    ours = results.where(lab="09_kv_cache", op=tuple(_WAYS)).latest()
    things = []
    for source in ours.sources():
        for model in sorted({r.shape.partition(",")[0] for r in ours.of(source)}):
            mine = [r for r in ours.of(source) if r.shape.startswith(model + ",")]
            things.append(_position_figure(mine, source, model))
    if not any(not source.modelled for source in ours.sources()):
        command = "bazel run //labs/09_kv_cache:bench"
        things.append(missing("what a token costs at each position, on a GPU", command))
    return things


def _position_figure(records, source, model):
    title = f"Llama2, {model}: a token at each position, three ways"
    figure, (axes,) = look.new(title, height=4.4)
    for i, (op, label) in enumerate(_WAYS.items()):
        rows = sorted((_position(r.shape) + 1, r.ms) for r in records if r.op == op)
        style = {"markerfacecolor": look.LIGHT["back"]} if source.modelled else {}
        xs, ys = [x for x, _ in rows], [y for _, y in rows]
        axes.plot(xs, ys, color=look.SERIES[i], marker=look.MARKERS[i], label=label, **style)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    look.plain_log(axes.xaxis)
    look.plain_log(axes.yaxis)
    axes.set_xlabel("tokens so far, log scale")
    axes.set_ylabel("ms a token, log scale")
    axes.legend(loc="upper left")
    return caption(figure, source, records)


# ---- Launches ----


def epilogue_launches(results):
    """Launches of each fused operation on each step of lab 06's ladder."""
    ours = results.where(lab="06_fused_epilogues", figure="launches").latest()
    figures = []
    for source in ours.sources():
        mine = ours.of(source)
        shapes = {op: mine.where(op=op).values("shape")[0] for op in mine.values("op")}
        steps = sorted(mine.values("stage"))
        title = "Lab 06: kernel launches of one call"
        figure, (axes,) = look.new(title, height=4.4)
        shown = []
        width = 0.8 / len(steps)
        for i, step in enumerate(steps):
            rows = [r for op in shapes for r in mine.where(op=op, shape=shapes[op], stage=step)]
            places = [list(shapes).index(r.op) + (i - (len(steps) - 1) / 2) * width for r in rows]
            bars = axes.bar(
                places,
                [r.value for r in rows],
                width=0.88 * width,
                color=look.ladder(i, len(steps)),
                label=step.replace("_", " "),
                **look.bar_style(source.modelled),
            )
            axes.bar_label(bars, fmt="%g", fontsize=8, color=look.LIGHT["text"])
            shown += rows
        names = [f"{op.replace('_', ' ')}\n{shape}" for op, shape in shapes.items()]
        axes.set_xticks(range(len(names)), names, fontsize=8.5)
        axes.set_ylabel("launches")
        axes.grid(axis="x", visible=False)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper")
        figures.append(caption(figure, source, shown))
    return figures or [missing("launches of lab 06", "bazel run //labs/06_fused_epilogues:bench")]


def _launch_figure(records, source, title, label):
    rows = sorted(records.of(source), key=lambda r: (_size(r.shape), _rank(r.dtype), r.stage))
    models = list(dict.fromkeys(_size(r.shape) for r in rows))
    most = max(sum(_size(r.shape) == model for r in rows) for model in models)
    figure, axes = look.panels(title, len(models), 0.9 + 0.38 * most)
    for panel, model in zip(axes, models):
        mine = [r for r in rows if _size(r.shape) == model]
        words = [f"{r.value:g}" for r in mine]
        barh(
            panel,
            range(len(mine)),
            [r.value for r in mine],
            look.SERIES[0],
            source,
            0.6,
            words=words,
        )
        _rows_down(panel, [_short(r.stage, r.dtype) for r in mine])
        panel.set_title(model)
        panel.set_xlabel(label)
        panel.margins(x=0.15)
    return caption(figure, source, rows)


def model_launches(results):
    """Launches of a layer of BERT and of a token of Llama2, by stage."""
    wanted = [
        ("launches_per_layer", "BERT: launches of one layer", "launches a layer", BERT_BENCH),
        ("launches_per_token", "Llama2: launches of one token", "launches a token", LLAMA2_BENCH),
    ]
    things = []
    for figure, title, label, command in wanted:
        ours = results.where(figure=figure).latest()
        things += [_launch_figure(ours, source, title, label) for source in ours.sources()]
        if not any(not source.modelled for source in ours.sources()):
            things.append(missing(f"{label} by stage, on a GPU", command))
    return things
