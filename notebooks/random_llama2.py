#!/usr/bin/env python3
"""Writes a Llama2 of random weights as a file of llama2.c, for timing.

usage: random_llama2.py 15M|110M FILE

Both have 32000 tokens and share the classifier with the embedding, as the
15M and 110M checkpoints of llama2.c do. The file is the same on every run.
"""

import array
import random
import struct
import sys

# C, hidden, L, NH, KVH, V, T
SHAPES = {
    "15M": (288, 768, 6, 6, 6, 32000, 256),
    "110M": (768, 2048, 12, 12, 12, 32000, 1024),
}


def tensors(C, hidden, L, NH, KVH, V, T):
    """Element count of each tensor in the file's order, and whether it is a norm's weight (all 1)."""
    HS = C // NH
    return [
        (V * C, False),  # embedding, and classifier
        (L * C, True),
        (L * C * NH * HS, False),
        (L * C * KVH * HS, False),
        (L * C * KVH * HS, False),
        (L * NH * HS * C, False),
        (L * C, True),
        (L * C * hidden, False),
        (L * hidden * C, False),
        (L * C * hidden, False),
        (C, True),
        (T * HS // 2, False),  # once the angles of the rotary embedding; readers skip them
        (T * HS // 2, False),
    ]


def write(shape, path):
    C, hidden, L, NH, KVH, V, T = SHAPES[shape]
    generator = random.Random(1)
    spread = 0.5 / C**0.5
    block = array.array("f", (generator.gauss(0, spread) for _ in range(1 << 18)))
    with open(path, "wb") as file:
        file.write(struct.pack("<7i", C, hidden, L, NH, KVH, V, T))
        for count, scales in tensors(C, hidden, L, NH, KVH, V, T):
            source = array.array("f", [1.0]) * len(block) if scales else block
            while count > 0:
                part = source[:count]
                part.tofile(file)
                count -= len(part)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in SHAPES:
        sys.exit(__doc__)
    write(sys.argv[1], sys.argv[2])
