"""Writes tokenizer_json.json: ids that the Hugging Face library gives for tokenizer.json files.

The files are made from llama2.c's two vocabularies: every split of a piece into
two pieces is a merge, ranked by the score of the whole, then by the two ids, as
transformers converts SentencePiece models. Run where llama2_tokenizer.bin,
tok512.bin and ag_news_test.csv are:

    pip install tokenizers==0.23.3
    python make_tokenizer_json.py FOLDER
"""

import json
import pathlib
import sys

import tokenizers
from tokenizers import Tokenizer

from fnv import hash_ids
from make_bpe import TEXTS, read_vocabulary

BLANK = "\u2581"
FIRST_PIECE = 259
ROWS = 1000  # of ag_news_test.csv
RANDOM_TEXTS = 3000

PREPEND = {"type": "Prepend", "prepend": BLANK}
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": BLANK}
MORE_TEXTS = ["   three", BLANK, BLANK + "a", "a" + BLANK + " b", "a  b   c    d", "\n\n \n", "x" * 40, " " * 37]


def metaspace(scheme, split):
    return {"pre_tokenizer": {"type": "Metaspace", "replacement": BLANK, "prepend_scheme": scheme, "split": split}}


SETTINGS = {
    "llama2": {"normalizer": {"type": "Sequence", "normalizers": [PREPEND, REPLACE]}},
    "replace": {"normalizer": REPLACE},
    "first": metaspace("first", False),
    "always_split": metaspace("always", True),
    "never": metaspace("never", False),
}


def build(path, settings):
    pieces, scores = read_vocabulary(path)
    pieces = ["<unk>", "<s>", "</s>"] + [piece.replace(" ", BLANK) for piece in pieces[3:]]
    ids = {piece: index for index, piece in enumerate(pieces)}
    merges = []
    for index, piece in list(enumerate(pieces))[FIRST_PIECE:]:
        for cut in range(1, len(piece)):
            left, right = ids.get(piece[:cut], 0), ids.get(piece[cut:], 0)
            if left >= FIRST_PIECE and right >= FIRST_PIECE:
                merges.append((-scores[index], left, right))
    merges = [f"{pieces[left]} {pieces[right]}" for _, left, right in sorted(merges)]
    model = {"type": "BPE", "unk_token": "<unk>", "byte_fallback": True, "vocab": ids, "merges": merges}
    return Tokenizer.from_str(json.dumps({"version": "1.0", "added_tokens": [], "model": model, **settings}))


def random_texts():
    """The same texts as tokenizer_test.c's: short ones over few letters, which have many ways to merge."""
    state = 1
    letters = ["a", "e", "t", "h", " ", " ", "the", "in", "0", ".", "\n", "\u00e9", "\u4e2d", "\U0001f600", BLANK, "s"]
    for _ in range(RANDOM_TEXTS):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        text, count = "", (state >> 33) % 40
        for _ in range(count):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            text += letters[(state >> 33) % len(letters)]
        yield text


def main():
    folder = pathlib.Path(sys.argv[1])
    rows = (folder / "ag_news_test.csv").read_text().split("\n")[:ROWS]
    result = {"tokenizers": tokenizers.__version__}
    for name in ["llama2_tokenizer.bin", "tok512.bin"]:
        result[name] = {}
        for setting, members in SETTINGS.items():
            tokenizer = build(folder / name, members)
            encode = lambda text: tokenizer.encode(text).ids
            result[name][setting] = {
                "cases": [{"text": t.encode().hex(), "ids": encode(t)} for t in TEXTS[:-1] + MORE_TEXTS],
                "random": RANDOM_TEXTS,
                "random_hash": hash_ids(i for text in random_texts() for i in encode(text)),
                "rows": ROWS,
                "rows_hash": hash_ids(i for row in rows for i in encode(row)),
            }
    output = pathlib.Path(__file__).parent / "tokenizer_json.json"
    output.write_text(json.dumps(result, separators=(",", ":")).replace('{"text"', '\n{"text"') + "\n")


if __name__ == "__main__":
    main()
