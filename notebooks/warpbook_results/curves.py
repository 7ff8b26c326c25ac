"""Loss over time for the trainings of the checkpoints that come with the course."""

import json

from . import look
from .records import recorded_folders, workspace
from .show import missing

RECIPE = "datasets/recipe.sh BIN DATA OUT"
# File, title, whether it takes minutes: time is logarithmic then; else rows are few texts each, and noisy.
_TRAININGS = [
    ("reviews_bert_mlm", "reviews_bert, before it knew a label: masked pieces of reviews", True),
    ("reviews_bert", "reviews_bert: good reviews from bad ones", False),
    ("tiny_llama", "tiny_llama: the next piece of a review", True),
]


def _read(path):
    """The rows of a log: training rows, then evaluation rows."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [[row for row in rows if row["kind"] == kind] for kind in ("train", "eval")]


def _smooth(losses):
    """Moving average of the loss over five rows."""
    around = [losses[max(0, i - 2) : i + 3] for i in range(len(losses))]
    return [sum(part) / len(part) for part in around]


def _figure(path, title, long):
    about = json.loads((path.parent / "about.json").read_text(encoding="utf-8"))
    train, held_out = _read(path)
    figure, (axes,) = look.new(title, height=4.2)
    colours = look.SERIES
    seconds = [row["elapsed_s"] for row in train]
    losses = [row["loss"] for row in train]
    axes.plot(
        seconds,
        losses if long else _smooth(losses),
        color=colours[0],
        label="texts that it trains on",
    )
    axes.plot(
        [row["elapsed_s"] for row in held_out],
        [row["loss"] for row in held_out],
        color=colours[1],
        marker=look.MARKERS[1],
        ms=4,
        label="held-out texts",
    )
    if long:
        axes.set_xscale("log")
        look.plain_log(axes.xaxis)
    axes.set_xlabel("seconds of training steps" + (", log scale" if long else ""))
    axes.set_ylabel("loss, nats" + (" a piece" if long else ""))
    axes.legend()
    name = path.relative_to(workspace())
    details = f"{about['date']}; commit {about['commit'][:9]}; {name}, thinned"
    details += "" if long else "; the line of training is a mean of five rows"
    return look.finish(figure, f"measured on one {about['device']}", details)


def trainings():
    """One figure for each recorded training."""
    figures = []
    for folder in recorded_folders():
        for name, title, long in _TRAININGS:
            path = folder / "training" / f"{name}.jsonl"
            if path.is_file():
                figures.append(_figure(path, title, long))
    return figures or [missing("the trainings of the checkpoints", RECIPE)]
