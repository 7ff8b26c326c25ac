"""A training step of BERT, lab 11's functions and PyTorch beside them, as a table."""

import re

from . import look
from .records import provenance
from .show import Note, Table, missing

BENCH = "bazel run //solutions/11_training:bench -- --model"
YARDSTICK = "python3 notebooks/yardsticks/pytorch_training.py --output results/bench.jsonl"
HEAD = [
    "texts", "type", "step with", "ms", "tokens/s", "TFLOP/s", "launches",
    "of compiled PyTorch", "of the best PyTorch",
]  # fmt: skip
_DTYPES = ("fp32", "tf32", "bf16")


def _texts(record):
    """'BERT C768 L12, 16x512 tokens' as (16, 512)."""
    found = re.fullmatch(r"BERT .*, (\d+)x(\d+) tokens", record.shape)
    return (int(found[1]), int(found[2])) if found else None


def _is_ours(record):
    return record.subject in ("labs", "solutions")


def _steps(results):
    """The newest time of each step on a GPU whose texts can be told."""
    records = results.where(lab="11_training", op="training_step", on_gpu=True).latest()
    return type(results)(r for r in records if _texts(r))


def _ends(records):
    """Of each subject, shape and type of ours the ladder's first step and its last; all of PyTorch's."""
    ladders = {}
    for r in records:
        key = (r.subject, r.shape, r.dtype, "" if _is_ours(r) else r.stage)
        ladders.setdefault(key, []).append(r)
    kept = []
    for ladder in ladders.values():
        ladder.sort(key=lambda r: r.stage)
        kept += ladder if len(ladder) == 1 else [ladder[0], ladder[-1]]
    return kept


def _who(record, source):
    if not _is_ours(record):
        return f"PyTorch {record.subject.removeprefix('pytorch ').split('+')[0]}, {record.stage}"
    whose = "" if record.subject == "solutions" else ", yours" if source.yours else ", starter"
    return record.stage.replace("_", " ") + whose


def _rank(record):
    dtype = _DTYPES.index(record.dtype) if record.dtype in _DTYPES else len(_DTYPES)
    return record.shape.split(",")[0], _texts(record), dtype, _is_ours(record), record.stage


def _launches(results, record):
    """Of a step: counted in the same run as it was timed, or earlier."""
    found = results.where(
        op="training_launches", figure="launches_per_step", source=record.source,
        subject=record.subject, stage=record.stage, shape=record.shape, dtype=record.dtype,
    ).latest()  # fmt: skip
    return f"{found[0].value:g}" if found else "–"


def _peers(record, records):
    """PyTorch's steps, of its newest version here, for the same texts in the same type."""
    peers = [
        r for r in records
        if (r.shape, r.dtype) == (record.shape, record.dtype) and not _is_ours(r)
    ]  # fmt: skip
    newest = max(peers, key=lambda r: r.time, default=None)
    return [r for r in peers if r.subject == newest.subject]


def _beside(record, records):
    """How fast ours is relative to what PyTorch compiled, and to the fastest of its steps."""
    if not _is_ours(record):
        return ["–", "–"]
    peers = _peers(record, records)
    compared = [r.ms for r in peers if r.stage == "compile"], [r.ms for r in peers]
    return [f"{min(times) / record.ms:.2f}x" if times else "–" for times in compared]


def _row(results, record, records):
    B, T = _texts(record)
    flops = record.gflop_per_s
    return [
        f"{record.shape.split(',')[0]}, {B} of {T} tokens",
        record.dtype,
        _who(record, record.source),
        look.number(record.ms),
        look.number(record.value) if record.value else "–",
        look.number(1e-3 * flops) if flops else "–",
        _launches(results, record),
        *_beside(record, records),
    ]


def _table(results, records, source):
    kept = sorted(_ends(records.of(source)), key=_rank)
    label = source.label[0].upper() + source.label[1:]
    return [
        Table(HEAD, [_row(results, r, kept) for r in kept]),
        Note(f"{label}; {provenance(kept)}."),
    ]


def steps(results):
    """A table for each source that has steps of ours; a line where none was measured."""
    records = _steps(results)
    sources = [s for s in records.sources() if any(map(_is_ours, records.of(s)))]
    things = [thing for source in sources for thing in _table(results, records, source)]
    if not any(not source.modelled for source in sources):
        what = "training steps of BERT-base on a GPU, with PyTorch's beside them"
        things.append(missing(what, BENCH, YARDSTICK))
    return things
