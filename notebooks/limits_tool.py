#!/usr/bin/env python3
"""Makes LIMITS.md, the page of each kernel's time beside the time that it needs.

usage: limits_tool.py [NOTEBOOKS] --write | --check | --from-trace TRACE --output CSV
Needs no package. --from-trace turns the first batch of a trace.json of lab 08's `profile` into a list of launches.
"""

import argparse
import csv
import sys
from pathlib import Path

from warpbook_results import limits


def parse(arguments):
    parser = argparse.ArgumentParser(prog="limits", description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="?", default=Path(__file__).parent, type=Path,
                        help="folder of the page and of results/")
    parser.add_argument("--write", action="store_true", help="write LIMITS.md")
    parser.add_argument("--check", action="store_true", help="fail if LIMITS.md is another")
    parser.add_argument("--from-trace", metavar="TRACE", help="a trace.json of lab 08's profile")
    parser.add_argument("--output", metavar="CSV", help="where its launches go")
    return parser.parse_args(arguments)


def convert(trace, output):
    with open(output, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["launch", "kernel", "ms"])
        for i, (name, ms) in enumerate(limits.read_trace(trace)):
            writer.writerow([i + 1, name, f"{ms:.6f}"])


def run(options):
    if options.from_trace:
        return convert(options.from_trace, options.output)
    made, path = limits.page(options.notebooks / "results"), options.notebooks / "LIMITS.md"
    if options.write:
        path.write_text(made, encoding="utf-8")
    elif options.check:
        if not path.is_file() or path.read_text(encoding="utf-8") != made:
            raise limits.Misfit("LIMITS.md is not what the results say: bazel run //notebooks:limits -- --write")
    else:
        sys.stdout.write(made)
    return None


def main():
    try:
        run(parse(sys.argv[1:]))
    except (limits.Misfit, OSError, KeyError, ValueError) as error:
        print(f"limits: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
