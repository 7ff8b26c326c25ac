"""Reads the prediction tables of the handouts, and finds the records that answer them.

Needs no package: //notebooks:predictions prints these as text.
"""

import re
from dataclasses import dataclass

from .answers import QUESTIONS
from .records import workspace
from .show import number

# ---- What the learner wrote ----


@dataclass(frozen=True)
class Entry:
    """A row of a handout's table with the learner's prediction."""

    lab: str
    question: str
    prediction: str
    measured: str


def _cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def parse_table(text, lab):
    """Rows of the table under '## Predict first'; an empty list where there is none."""
    found = re.search(r"^## Predict first$(.*?)(?=^## |\Z)", text, flags=re.M | re.S)
    entries = []
    for line in (found[1] if found else "").splitlines():
        cells = _cells(line)
        if not line.startswith("|") or len(cells) < 3:
            continue
        if cells[1].startswith("your prediction") or set(cells[0]) <= set("-: "):
            continue
        entries.append(Entry(lab, *cells[:3]))
    return entries


def entries():
    """All rows of all handouts in this clone."""
    found = []
    for path in sorted((workspace() / "labs").glob("*/README.md")):
        found += parse_table(path.read_text(encoding="utf-8"), path.parent.name)
    return found


_SCALES = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "million": 1e6, "billion": 1e9}
_NUMBER = re.compile(
    r"(?<![\w.])(\d[\d,]*(?:\.\d+)?|\.\d+)(?:e([+-]?\d+))?\s*(million|billion|[kKMG])?(B\b|bytes)?"
    r"\s*(%)?"
)


def numbers(text, unit=""):
    """Numbers of a cell as a person writes them: '12', '1,024', '3.5x', '60 MB', '1.5e3', '1/8'.

    Where the question wants a percentage, a decimal up to 1 without a sign is a share: '0.5' is 50.
    """
    if fraction := re.fullmatch(r"\s*(\d+)\s*/\s*(\d+)\s*", text):
        value = int(fraction[1]) / max(1, int(fraction[2]))
        return [100 * value if unit == "%" else value]
    found = []
    for digits, power, scale, _, percent in _NUMBER.findall(text):
        value = float(digits.replace(",", "")) * 10 ** int(power or 0)
        if unit == "%" and not percent and "." in digits and value <= 1:
            value *= 100
        scaled = scale and not (unit.startswith("MB") and scale == "M")
        found.append(value * _SCALES[scale] if scaled else value)
    return found


# ---- Against records ----


def answer(question, results, source):
    """Numbers of this source; from your results those of your lab, or else of the solution."""
    mine = results.of(source).where(lab=question.lab)
    subjects = ("labs", "solutions") if source.yours else ("solutions",)
    for subject in subjects:
        found = question.answer(mine.where(subject=subject).latest())
        if found:
            return found
    return None


def question_of(entry):
    """The answer to this question from records, or None."""
    for question in QUESTIONS:
        if question.lab == entry.lab and entry.question.startswith(question.begins):
            return question
    return None


def written(values, unit):
    """Numbers with their unit, as a table has them; a dash for None."""
    if values is None:
        return "–"
    numbers_ = "; ".join(number(v) if v < 1e4 else f"{v:,.0f}" for v in values)
    return f"{numbers_}{unit}" if unit in ("x", "%") else f"{numbers_} {unit}"
