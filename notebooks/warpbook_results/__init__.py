"""Reads recorded results and draws the notebooks' figures. Nothing here runs a kernel."""

from . import answers, curves, gains, look, predictions, profiles, records, rooflines, stages, training
from .records import load
from .show import Note, Table, missing, show, summary

__all__ = [
    "Note",
    "Table",
    "answers",
    "curves",
    "gains",
    "load",
    "look",
    "missing",
    "predictions",
    "profiles",
    "records",
    "rooflines",
    "show",
    "stages",
    "summary",
    "training",
]
