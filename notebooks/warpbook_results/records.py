"""Reads the records of benches, one JSON object a line, see common/bench/bench.h.

A number is never shown without saying whose it is: every record belongs to one
Source (whose machine, which device, measured or modelled), and no figure mixes
two sources.
"""

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

SCHEMA = 1


def workspace():
    """Root of the clone: $WARPBOOK_WORKSPACE, else the folder that holds notebooks/."""
    given = os.environ.get("WARPBOOK_WORKSPACE")
    return Path(given) if given else Path(__file__).absolute().parent.parent.parent


@dataclass(frozen=True)
class Source:
    """Where numbers come from. `yours`: of results/ in this clone, else recorded in the project.

    `device` is the GPU, and measured times of the CPU beside it belong to the same source; modelled
    times never share one with measured times.
    """

    device: str
    modelled: bool
    yours: bool

    @property
    def verb(self):
        return "modelled" if self.modelled else "measured"

    @property
    def label(self):
        whose = "your results" if self.yours else "recorded results"
        if self.modelled:
            gpu = self.device.removeprefix("simt:").upper()
            return f"modelled by simt for an {gpu}, no GPU was timed ({whose})"
        return f"measured on {self.device} ({whose})"


@dataclass(frozen=True)
class Record:
    """One row of a bench. Missing numbers are None; `ms` is the median."""

    lab: str
    subject: str
    stage: str
    op: str
    shape: str
    dtype: str
    source: Source
    device: str
    on_gpu: bool
    threads: int | None
    ms: float
    bytes: float | None
    flops: float | None
    peer: str | None
    peer_ratio: float | None
    figure: str | None
    value: float | None
    time: str
    commit: str | None
    path: str

    @property
    def gb_per_s(self):
        return self.bytes / self.ms * 1e-6 if self.bytes else None

    @property
    def gflop_per_s(self):
        return self.flops / self.ms * 1e-6 if self.flops else None

    @property
    def peer_ms(self):
        """Time of the peer in the same run."""
        return self.peer_ratio * self.ms if self.peer and self.peer_ratio else None


def parse(line, path, yours):
    """Parses one line; ValueError describes what is wrong with it."""
    raw = json.loads(line)
    if not isinstance(raw, dict):
        raise ValueError("not a JSON object")
    if raw.get("schema") != SCHEMA:
        raise ValueError(f"schema {raw.get('schema')!r}, this reader knows {SCHEMA}")
    device, ms = raw.get("device"), raw.get("ms")
    if not isinstance(device, dict) or not isinstance(ms, dict):
        raise ValueError("no device or no ms")
    median = ms.get("median")
    if not isinstance(median, (int, float)) or not median > 0:
        raise ValueError(f"ms.median is {median!r}, not a time")
    source = Source(str(device.get("name")), bool(device.get("modelled")), yours)
    fields = ("lab", "subject", "stage", "op", "shape", "dtype")
    texts = {name: str(raw.get(name) or "") for name in fields}
    return Record(
        **texts,
        source=source,
        device=source.device,
        on_gpu=device.get("kind") == "gpu",
        threads=device.get("threads"),
        ms=float(median),
        bytes=raw.get("bytes"),
        flops=raw.get("flops"),
        peer=raw.get("peer"),
        peer_ratio=raw.get("peer_ratio"),
        figure=raw.get("figure"),
        value=raw.get("figure_value"),
        time=str(raw.get("time") or ""),
        commit=raw.get("commit"),
        path=path,
    )


def read(path, yours, problems):
    """All records of one file. Malformed lines go to `problems` with their numbers."""
    records = []
    name = str(path.relative_to(workspace())) if path.is_relative_to(workspace()) else str(path)
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                records.append(parse(line, name, yours))
            except ValueError as error:
                problems.append(f"{name}:{number}: left out: {error}")
    return _beside_gpu(records)


def _beside_gpu(records):
    """In a file with one measured GPU, CPU records are attributed to the GPU's host."""
    gpus = {r.device for r in records if r.on_gpu and not r.source.modelled}
    if len(gpus) != 1:
        return records
    gpu = gpus.pop()
    return [
        r if r.on_gpu or r.source.modelled else replace(r, source=replace(r.source, device=gpu))
        for r in records
    ]


def own_path():
    """Where benches write: $WARPBOOK_RESULTS, else results/bench.jsonl of the clone."""
    given = os.environ.get("WARPBOOK_RESULTS")
    return Path(given) if given else workspace() / "results" / "bench.jsonl"


def recorded_folders():
    """notebooks/results/DEVICE of each device that was recorded, in the order of their names."""
    return sorted(p for p in (workspace() / "notebooks" / "results").glob("*") if p.is_dir())


class Results(list):
    """Records, the recorded ones first; `problems` are lines that could not be read."""

    def __init__(self, records=(), problems=()):
        super().__init__(records)
        self.problems = list(problems)

    def where(self, **fields):
        """Records whose fields have these values; a tuple means any of its values."""
        found = self
        for name, value in fields.items():
            wanted = value if isinstance(value, tuple) else (value,)
            found = [r for r in found if getattr(r, name) in wanted]
        return Results(found)

    def of(self, source):
        return self.where(source=source)

    def latest(self):
        """The newest of the rows that the same source measured more than once."""
        newest = {}
        for r in self:
            key = (r.source, r.lab, r.subject, r.stage, r.op, r.shape, r.dtype, r.figure, r.threads)
            if key not in newest or r.time >= newest[key].time:
                newest[key] = r
        return Results(newest.values())

    def sources(self):
        """Sources in order of appearance."""
        return list(dict.fromkeys(r.source for r in self))

    def values(self, name):
        """Values of a field in order of appearance."""
        return list(dict.fromkeys(getattr(r, name) for r in self))


def load():
    """All records: the project's, then your own."""
    problems, records = [], []
    for folder in recorded_folders():
        for path in (folder / "bench.jsonl", folder / "pytorch.jsonl"):
            if path.is_file():
                records += read(path, False, problems)
    if own_path().is_file():
        records += read(own_path(), True, problems)
    return Results(records, problems)


def _caveat(name):
    """The note for readers in about.json beside a recorded file, or nothing."""
    path = (workspace() / name).parent / "about.json"
    note = json.loads(path.read_text(encoding="utf-8")).get("note") if path.is_file() else None
    return f" ({note})" if note else ""


def provenance(records):
    """Dates, commits and files of records, as a caption has them."""
    days = sorted({r.time[:10] for r in records if r.time})
    commits = sorted({(r.commit or "not noted")[:9] for r in records})
    files = [name + _caveat(name) for name in sorted({r.path for r in records})]
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}" if days else "no date"
    word = "commit" if len(commits) == 1 else "commits"
    return f"{when}; {word} {', '.join(commits)}; {', '.join(files)}"
