"""Reads recorded results and draws the notebooks' figures. Nothing here runs a kernel."""

from importlib import import_module

from . import answers, counts, handouts, records
from .records import load
from .show import Note, Table, missing, show, summary

# These draw, and need matplotlib: each is imported when it is first asked for.
_DRAWING = ("curves", "gains", "look", "predictions", "profiles", "rooflines", "stages", "training")

__all__ = [
    "Note",
    "Table",
    "answers",
    "counts",
    "handouts",
    "load",
    "missing",
    "records",
    "show",
    "summary",
    *_DRAWING,
]


def __getattr__(name):
    if name in _DRAWING:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
