"""Reads recorded results and draws the notebooks' figures. Nothing here runs a kernel."""

from . import answers, gains, look, predictions, profiles, records, rooflines, stages, training
from .records import load
from .show import Note, Table, missing, show, summary

__all__ = [
    "Note",
    "Table",
    "answers",
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
