#!/usr/bin/env python3
"""Records the perplexity of stories260K on a text, computed in double: perplexity.json beside this
file. It shares no code with the project: it has its own reader, tokenizer and model.

    pip install numpy==2.4.6
    python make_perplexity.py FOLDER

FOLDER holds stories260K.bin and tok512.bin (karpathy/tinyllamas) and ag_news_test.csv.
"""

import json
import pathlib
import struct
import sys

import numpy

TEXT = "ag_news_test.csv"
BOS = 1
CASES = [{"context": 512, "limit": 1300}, {"context": 100, "limit": 450}, {"context": 1, "limit": 60}]


def read_tokenizer(path, size):
    """Pieces and scores; a byte's piece is the byte."""
    data = path.read_bytes()
    offset, pieces, scores = 4, [], []
    for token in range(size):
        score, length = struct.unpack_from("<fi", data, offset)
        offset += 8
        pieces.append(bytes([token - 3]) if 3 <= token < 259 else data[offset:offset + length])
        scores.append(score)
        offset += length
    return pieces, scores


def encode(text, pieces, scores):
    """Tokens of a text, without BOS: merges the pair with the best score until there is none."""
    ids = {piece: token for token, piece in reversed(list(enumerate(pieces))) if token >= 259}
    tokens = [ids[b" "]]
    for character in text:
        symbol = character.encode()
        tokens += [ids[symbol]] if symbol in ids else [byte + 3 for byte in symbol]
    while True:
        best = None
        for i in range(len(tokens) - 1):
            merged = ids.get(pieces[tokens[i]] + pieces[tokens[i + 1]])
            if merged is not None and (best is None or scores[merged] > best[0]):
                best = (scores[merged], i, merged)
        if best is None:
            return tokens
        tokens[best[1]:best[1] + 2] = [best[2]]


def read_checkpoint(path):
    """Sizes and tensors, in double."""
    data = path.read_bytes()
    C, hidden, L, NH, KVH, V, T = struct.unpack_from("<7i", data)
    HS = C // NH
    values = numpy.frombuffer(data, dtype="<f4", offset=28).astype(numpy.float64)
    offset = 0

    def take(*shape):
        nonlocal offset
        count = int(numpy.prod(shape))
        offset += count
        return values[offset - count:offset].reshape(shape)

    w = {"embedding": take(abs(V), C), "norm1": take(L, C), "q": take(L, C, C),
         "k": take(L, KVH * HS, C), "v": take(L, KVH * HS, C), "o": take(L, C, C),
         "norm2": take(L, C), "gate": take(L, hidden, C), "down": take(L, C, hidden),
         "up": take(L, hidden, C), "norm": take(C)}
    take(2, T, HS // 2)  # tables of sines and cosines, which are not used
    w["classifier"] = w["embedding"] if V > 0 else take(-V, C)
    return {"C": C, "L": L, "NH": NH, "KVH": KVH, "HS": HS, "V": abs(V), "T": T}, w


def normed(x, weight):
    return x / numpy.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5) * weight


def rotated(x):
    """Rotary embedding of (T, heads, HS); neighbouring channels form a pair."""
    T, _, HS = x.shape
    angle = numpy.arange(T)[:, None] * 10000.0 ** (-numpy.arange(0, HS, 2) / HS)
    pairs = (x[..., 0::2] + 1j * x[..., 1::2]) * numpy.exp(1j * angle)[:, None, :]
    return numpy.stack([pairs.real, pairs.imag], axis=-1).reshape(x.shape)


def log_probabilities(c, w, tokens):
    """(T, V): log-probabilities of the next token after each token."""
    T = len(tokens)
    x = w["embedding"][tokens]
    mask = numpy.triu(numpy.full((T, T), -numpy.inf), 1)
    for l in range(c["L"]):
        h = normed(x, w["norm1"][l])
        q = rotated((h @ w["q"][l].T).reshape(T, c["NH"], c["HS"]))
        k = rotated((h @ w["k"][l].T).reshape(T, c["KVH"], c["HS"]))
        v = (h @ w["v"][l].T).reshape(T, c["KVH"], c["HS"])
        group = c["NH"] // c["KVH"]
        k, v = k.repeat(group, axis=1), v.repeat(group, axis=1)
        scores = numpy.einsum("ahd,bhd->hab", q, k) / numpy.sqrt(c["HS"]) + mask
        scores = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        x = x + numpy.einsum("hab,bhd->ahd", scores, v).reshape(T, c["C"]) @ w["o"][l].T
        h = normed(x, w["norm2"][l])
        gate = h @ w["gate"][l].T
        x = x + (gate / (1.0 + numpy.exp(-gate)) * (h @ w["up"][l].T)) @ w["down"][l].T
    logits = normed(x, w["norm"]) @ w["classifier"].T
    logits -= logits.max(axis=-1, keepdims=True)
    return logits - numpy.log(numpy.exp(logits).sum(axis=-1, keepdims=True))


def total_nats(c, w, tokens, context):
    """Sum of -log p over windows that each begin with BOS."""
    nats = 0.0
    for begin in range(0, len(tokens), context):
        window = tokens[begin:begin + context]
        table = log_probabilities(c, w, [BOS] + window[:-1])
        nats -= table[numpy.arange(len(window)), window].sum()
    return nats


def main():
    folder = pathlib.Path(sys.argv[1])
    c, w = read_checkpoint(folder / "stories260K.bin")
    pieces, scores = read_tokenizer(folder / "tok512.bin", c["V"])
    longest = max(case["limit"] for case in CASES)
    text = (folder / TEXT).read_text()[:4 * longest]
    tokens = encode(text, pieces, scores)
    assert len(tokens) > longest + 100  # cutting the text changes its last tokens
    cases = []
    for case in CASES:
        first = tokens[:case["limit"]]
        bytes_ = sum(len(pieces[token]) for token in first) - 1  # the blank before the text
        nats = total_nats(c, w, first, case["context"])
        cases.append({**case, "bytes": bytes_, "nats_per_token": round(nats / len(first), 9),
                      "bits_per_byte": round(nats / numpy.log(2.0) / bytes_, 9)})
    lines = ",\n".join("  " + json.dumps(case) for case in cases)
    head = (f'"made_by": "common/programs/decoder/expectations/make_perplexity.py", "numpy": '
            f'"{numpy.__version__}", "text": "{TEXT}"')
    path = pathlib.Path(__file__).with_name("perplexity.json")
    path.write_text(f'{{{head}, "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
