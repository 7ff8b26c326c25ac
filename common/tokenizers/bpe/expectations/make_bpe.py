"""Writes bpe.json: ids that an independent BPE gives for llama2.c's two vocabularies.

The Hugging Face library knows merges (pairs with ranks) instead of scores, so
the merges are rebuilt: every split of every piece into two pieces, ranked by the
score of the whole. Run where llama2_tokenizer.bin, tok512.bin and
ag_news_test.csv are:

    pip install tokenizers==0.23.3
    python make_bpe.py FOLDER
"""

import json
import pathlib
import struct
import sys

import tokenizers
from tokenizers import Tokenizer, models, normalizers

from fnv import hash_ids

TEXTS = [
    "", " ", "  ", "a", "Hello world", " Hello world", "Once upon a time, there was a little girl.",
    "Line one\nline two\n\n\tindented\r\n", "naïve café, Zürich, Łódź, smørrebrød", "e\u0301 is not é",
    "日本語のテキストと中文文本", "안녕하세요 세계", "Привет, мир! Γειά σου Κόσμε", "👩‍👩‍👧‍👦 family 🎉🎊 😀",
    "\U0002a6d6\U0001f9ff\U000e0041", "0123456789 3.14159 -1e10", "def f(x):\n    return x ** 2\n",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "thethethethethethe the the", "<0x41><s></s>",
    "<unk>", "\u2581under\u2581scored", "\u0000nul\u0000", "\ufeffBOM \u200bzero\u200d width", "\uffff\U0010ffff",
    "The quick brown fox jumps over the lazy dog. " * 20,
]
ROWS = 1000  # of ag_news_test.csv


def read_vocabulary(path):
    data = path.read_bytes()
    pieces, scores, offset = [], [], 4
    while offset < len(data):
        score, length = struct.unpack_from("<fi", data, offset)
        offset += 8 + length
        pieces.append(data[offset - length:offset].decode())
        scores.append(score)
    return pieces, scores


def build(path):
    pieces, scores = read_vocabulary(path)
    ids = {}
    for index, piece in enumerate(pieces):
        ids.setdefault(piece, index)
    merges = []
    for piece, index in ids.items():
        for cut in range(1, len(piece)):
            if piece[:cut] in ids and piece[cut:] in ids:
                merges.append((-scores[index], cut, piece[:cut], piece[cut:]))
    merges = [(left, right) for _, _, left, right in sorted(merges)]
    tokenizer = Tokenizer(models.BPE(ids, merges, byte_fallback=True, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Prepend(" ")
    return tokenizer


def main():
    folder = pathlib.Path(sys.argv[1])
    rows = (folder / "ag_news_test.csv").read_text().split("\n")[:ROWS]
    result = {"tokenizers": tokenizers.__version__}
    for name in ["llama2_tokenizer.bin", "tok512.bin"]:
        tokenizer = build(folder / name)
        result[name] = {
            "cases": [{"text": text.encode().hex(), "ids": tokenizer.encode(text).ids} for text in TEXTS],
            "rows": ROWS,
            "rows_hash": hash_ids(i for row in rows for i in tokenizer.encode(row).ids),
        }
    output = pathlib.Path(__file__).parent / "bpe.json"
    output.write_text(json.dumps(result, separators=(",", ":")).replace('{"text"', '\n{"text"') + "\n")


if __name__ == "__main__":
    main()
