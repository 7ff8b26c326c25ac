#!/usr/bin/env python3
"""Prints the predictions in the handouts' tables beside what was counted, modelled or measured.

Needs no Jupyter and no package. `bazel run //notebooks:predictions -- --help` says the rest.
"""

import argparse
import os
import re
import sys
import textwrap

from warpbook_results import counts, handouts, records

WIDTH = 100
EPILOGUE = """\
examples:
  bazel run //notebooks:predictions                  all labs in which you have predicted something
  bazel run //notebooks:predictions -- 04 07         two labs
  bazel run //notebooks:predictions -- 04 --write    fill in the last column of lab 04's table

Write predictions into the middle column of the table under "Predict first" in
labs/NN_topic/README.md: "32; 4", "3.5x", "60 MB". Your results are in results/bench.jsonl, where
each bench appends them; for lab NN: bazel run //labs/NN_topic:bench. Recorded results are the
solutions'. The ratio is your prediction over the result: 1 is right."""


class Failure(Exception):
    """One line for standard error."""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Failure(f"{message}; --help shows what there is")


def parse(arguments):
    parser = Parser(
        prog="predictions",
        description="Shows your predictions beside what was counted, modelled or measured.",
        epilog=EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("labs", nargs="*", metavar="LAB", help="04 or 04_sgemm; none: every lab")
    parser.add_argument("--all", action="store_true", help="also questions without a prediction")
    parser.add_argument(
        "--write",
        action="store_true",
        help="fill empty cells of the last column, in rows with a prediction",
    )
    return parser.parse_args(arguments)


def chosen(entries, labs):
    """Entries of these labs by name, {lab: [entry, ...]}; of all labs where none is named."""
    found = {}
    for entry in entries:
        found.setdefault(entry.lab, []).append(entry)
    if not labs:
        return found
    names = {name.split("_")[0]: name for name in found} | {name: name for name in found}
    for lab in labs:
        if lab.zfill(2) not in names:
            raise Failure(f"'{lab}': unknown lab; choose one of {', '.join(found)}")
    return {names[lab.zfill(2)]: found[names[lab.zfill(2)]] for lab in labs}


# ---- What answers a question ----


def count_of(entry):
    """The numbers that follow from sizes, or None."""
    for count in counts.COUNTS:
        if count.lab == entry.lab and entry.question.startswith(count.begins):
            return count
    return None


def ratios(prediction, unit, values):
    """Prediction over result of each number; nothing where it has fewer numbers than the result."""
    guesses = handouts.numbers(prediction, unit)
    if len(guesses) < len(values):
        return ""
    pairs = zip(guesses, values)
    return "; ".join(handouts.number(g / v) if v else "right" if g == v else "–" for g, v in pairs)


def exactly(values, unit):
    """A count's numbers with all their digits where they are whole."""
    texts = [f"{v:,.0f}" if v == int(v) else handouts.number(v) for v in values]
    return f"{'; '.join(texts)} {unit}".strip()


class Answer:
    """A line below a question, and what goes into the handout's last column."""

    def __init__(self, kind, text, ratio, source, own):
        self.kind, self.text, self.ratio, self.source, self.own = kind, text, ratio, source, own

    def line(self):
        parts = [self.text, f"ratio {self.ratio}" if self.ratio else "", f"({self.source})"]
        return f"{self.kind:<10}  " + "  ".join(part for part in parts if part)

    def cell(self):
        return f"{self.text} ({self.kind})"


def answers_of(entry, results):
    """What is known of a question: counted, then of each source of records."""
    found = []
    if count := count_of(entry):
        text = exactly(count.values, count.unit)
        ratio = ratios(entry.prediction, count.unit, count.values)
        found.append(Answer("counted", text, ratio, count.how, True))
    question = handouts.question_of(entry)
    for source in results.sources() if question else []:
        if values := handouts.answer(question, results, source):
            text = handouts.written(values, question.unit)
            ratio = ratios(entry.prediction, question.unit, values)
            whose = "your results" if source.yours else "recorded"
            found.append(
                Answer(source.verb, text, ratio, f"{whose}, {source.device}", source.yours)
            )
    return found


# ---- Text ----


def show_entry(entry, results):
    for line in textwrap.wrap(entry.question, WIDTH - 2):
        print(f"  {line}")
    print(f"    {'predicted':<10}  {entry.prediction or '–'}")
    if entry.measured:
        print(f"    {'noted':<10}  {entry.measured}")
    found = answers_of(entry, results)
    for answer in found:
        print(f"    {answer.line()}")
    if not found:
        bench = f"no record yet: bazel run //labs/{entry.lab}:bench"
        known = handouts.question_of(entry)
        print(f"    {'result':<10}  {bench if known else 'yours to find: note it in the last column'}")


def show_lab(lab, entries, results, everything):
    """Prints a lab's questions; those without a prediction are counted only."""
    mine = [e for e in entries if e.prediction or everything]
    print(lab)
    for entry in mine:
        show_entry(entry, results)
    if left := len(entries) - len(mine):
        few = "1 question has" if left == 1 else f"{left} questions have"
        print(f"  {few} no prediction yet: labs/{lab}/README.md, 'Predict first'")
    print()


# ---- The handout's own table ----


def fill(text, entries, results):
    """The handout with results in empty last cells; and how many were filled."""
    filled = 0
    for entry in entries:
        cells = [a.cell() for a in answers_of(entry, results) if a.own]
        if not entry.prediction or entry.measured or not cells:
            continue
        row = r"^(\|\s*" + r"\s*\|\s*".join(map(re.escape, (entry.question, entry.prediction)))
        text, times = re.subn(
            row + r"\s*\|)\s*\|[ \t]*$",
            lambda found, new="; ".join(cells): f"{found[1]} {new} |",
            text,
            count=1,
            flags=re.M,
        )
        filled += times
    return text, filled


def write_lab(lab, entries, results):
    path = records.workspace() / "labs" / lab / "README.md"
    text, filled = fill(path.read_text(encoding="utf-8"), entries, results)
    if filled:
        draft = path.with_suffix(".new")
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, path)
    print(f"labs/{lab}/README.md: {filled} cells filled in")


def main(arguments):
    options = parse(arguments)
    labs = chosen(handouts.entries(), options.labs)
    results = records.load()
    predicted = {lab for lab, mine in labs.items() if any(e.prediction for e in mine)}
    shown = [lab for lab in labs if options.labs or options.all or lab in predicted]
    for lab in shown:
        if options.write:
            write_lab(lab, labs[lab], results)
        else:
            show_lab(lab, labs[lab], results, options.all)
    if not shown:
        print(
            "No predictions yet: write numbers into the column 'your prediction' of the tables "
            "under\n'Predict first' in labs/*/README.md, and run this again."
        )
    for problem in results.problems:
        print(f"predictions: {problem}", file=sys.stderr)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (Failure, OSError) as error:
        print(f"predictions: {error}", file=sys.stderr)
        sys.exit(1)
