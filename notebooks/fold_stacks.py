#!/usr/bin/env python3
"""Folds the output of `perf script` into one line for each stack: "outer;inner COUNT".

usage: perf script -F comm,ip,sym,dso | fold_stacks.py > stacks.folded

Frames of which perf knows no name are "[unknown]", those of the operating system "[kernel]";
several of them in a row are one.
"""

import re
import sys
from collections import Counter


def fold(lines):
    """Counts of stacks, outermost frame first: {("main", "matmul"): 12}."""
    counts = Counter()
    frames = None
    for line in [*lines, ""]:
        if not line.strip():
            if frames:
                counts[tuple(_joined(frames[::-1]))] += 1
            frames = None
        elif frames is None:
            frames = []  # the line with the program's name
        else:
            frames.append(_name(line))
    return counts


def _name(line):
    """The function of a line like '   4012f0 matmul.arch_x86_64_v4 (/folder/program)'."""
    if re.search(r"\((\[kernel\.kallsyms\]|\[guest\.kernel|\[[a-z_0-9]+\])\S*\)\s*$", line):
        return "[kernel]"
    found = re.match(r"\s*[0-9a-f]+\s+(.+?)(\+0x[0-9a-f]+)?(\s+\(.*\))?\s*$", line)
    name = found[1] if found else "[unknown]"
    return re.sub(r"\.(arch_x86_64_v\d|constprop|isra|part|cold|_omp_fn)(\.\d+)*", "", name)


def _joined(frames):
    kept = []
    for frame in frames:
        if not (kept and kept[-1] == frame and frame in ("[unknown]", "[kernel]")):
            kept.append(frame.replace(";", ","))
    return kept


if __name__ == "__main__":
    for stack, count in sorted(fold(sys.stdin).items()):
        print(f"{';'.join(stack)} {count}")
