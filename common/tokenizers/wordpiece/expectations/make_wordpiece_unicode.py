"""Writes ../wordpiece_unicode_table.h: the character classes BERT's tokenizer goes by.

The ids of a trained vocabulary depend on the Unicode version that the tokenizer
had: the Hugging Face library drops, strips and splits by categories of Unicode 8,
decomposes by Unicode 9 and lower-cases by a newer one. The classes are asked of
the library itself, one code point at a time, so that neither its tables nor the
version of utf8proc matter.

    pip install tokenizers==0.23.3
    python make_wordpiece_unicode.py
"""

import pathlib
import unicodedata

import tokenizers
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]

# Canonical decompositions newer than the library's tables. utf8proc 2.8 knows
# only the first; the rest came with Unicode 16.
NEWER_DECOMPOSITIONS = [0x11938, 0x105C9, 0x105E4, 0x11383, 0x11385, 0x1138E, 0x11391, 0x113C5,
                        0x113C7, 0x113C8, *range(0x16121, 0x16129), *range(0x16D68, 0x16D6B)]


def normalizer(**on):
    steps = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return BertNormalizer(**{**steps, **on}).normalize_str


clean = normalizer(clean_text=True)
decompose = normalizer(strip_accents=True)
lower = normalizer(lowercase=True)
split = BertPreTokenizer().pre_tokenize_str

# Two kept marks of known classes, in the wrong order: 224 (U+302E) before 216
# (U+1D165). The library swaps them over a character unless it is a starter.
HIGH, LOW = "\u302e", "\U0001d165"


def is_starter(character):
    text = decompose("a" + HIGH + character + LOW)
    return text.find(HIGH) < text.find(LOW)


def classify(code_point):
    character = chr(code_point)
    cleaned = clean(character)
    if cleaned == "":
        return "DROPPED"
    if cleaned == " ":
        return "BLANK"
    if len(split("a" + character + "b")) == 3:
        return "PUNCTUATION"
    if decompose(character) == "":
        starter = is_starter(character)
        return "STARTER_MARK" if starter else "MARK"
    if decompose(character) == character and not is_starter(character):
        return "KEPT_MARK"
    return None


def ranges(classes):
    """Runs of equal class as [first, last, class]."""
    found = []
    for code_point, kind in classes:
        if kind is None:
            continue
        if found and found[-1][1] == code_point - 1 and found[-1][2] == kind:
            found[-1][1] = code_point
        else:
            found.append([code_point, code_point, kind])
    return found


def combining(classes):
    """Combining classes of kept marks, checked against the library pair by pair."""
    marks = [c for c, kind in classes if kind == "KEPT_MARK"]
    value = {c: unicodedata.combining(chr(c)) for c in marks}
    assert all(value.values())
    for a in marks:
        for b in marks:
            pair = chr(a) + chr(b) if value[a] <= value[b] else chr(b) + chr(a)
            assert decompose("a" + chr(a) + chr(b)) == "a" + pair, (hex(a), hex(b))
    return ranges((c, value[c]) for c in marks)


def lower_case():
    """Lower-case pairs newer than Unicode 14 as [first, last, distance]."""
    newer = []
    for code_point in CODE_POINTS:
        small = lower(chr(code_point))
        if code_point != 0x130 and small != chr(code_point).lower():
            newer.append((code_point, ord(small) - code_point))
    return ranges(newer)


def table(kind, name, comment, rows):
    lines = ["", f"/* {comment} */", f"static const struct {kind} {name}[] = {{"]
    lines += ["    " + row + "," for row in rows]
    return lines + ["};"]


def main():
    classes = [(c, classify(c)) for c in CODE_POINTS]
    for code_point in NEWER_DECOMPOSITIONS:
        assert decompose(chr(code_point)) == chr(code_point)
    lines = [
        "/*",
        " * Character classes of BERT's tokenizer, sorted by code point.",
        f" * Made by expectations/make_wordpiece_unicode.py with tokenizers {tokenizers.__version__}:",
        " * change that instead. Included by wordpiece_unicode.c alone.",
        " */",
        "/* clang-format off */",
    ]
    lines += table("class_range", "CLASSES", "First, last, class.",
                   ["{0x%04X, 0x%04X, %s}" % (a, b, "CHARACTER_" + k) for a, b, k in ranges(classes)])
    lines += table("number_range", "COMBINING_CLASSES", "First, last, combining class of kept marks.",
                   ["{0x%04X, 0x%04X, %d}" % tuple(r) for r in combining(classes)])
    lines += table("number_range", "NEWER_LOWER_CASE", "First, last, distance to the lower-case letter.",
                   ["{0x%04X, 0x%04X, %d}" % tuple(r) for r in lower_case()])
    undecomposed = ranges((c, 1) for c in sorted(NEWER_DECOMPOSITIONS))
    lines += table("number_range", "NEWER_DECOMPOSITIONS", "First, last, 1: decomposed by newer Unicode only.",
                   ["{0x%04X, 0x%04X, %d}" % tuple(r) for r in undecomposed])
    path = pathlib.Path(__file__).parent.parent / "wordpiece_unicode_table.h"
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
