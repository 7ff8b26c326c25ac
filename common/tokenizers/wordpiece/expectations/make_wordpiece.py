"""Writes wordpiece.json and wordpiece_unicode.json: ids of the Hugging Face library.

Everything is asked of BertWordPieceTokenizer as it is out of the box. Run where
bert-base-uncased-vocab.txt and aclImdb_labelled.tar.xz are:

    pip install tokenizers==0.23.3
    python make_wordpiece.py FOLDER

wordpiece.json, with bert-base-uncased's vocabulary:
  cases    hand-made hard texts (UTF-8 as hexadecimal digits) and their ids
  limits   some of them truncated to max_length ids
  reviews  of 2,000 IMDB reviews, count and hash of ids: of aclImdb/test/pos and
           then aclImdb/test/neg the first 1,000 each, sorted by path
  review_limits  hash over all reviews truncated to max_length ids

wordpiece_unicode.json, with a vocabulary of single characters (see characters()),
so that the ids tell what became of each:
  blocks   a hash for 256 code points: each alone, between letters, and between
           two marks that would change places
  planes   the same for the rest of plane 3 and for planes 4 to 16
  random   a hash for 100 texts of random characters from RANGES
"""

import json
import pathlib
import sys
import tarfile

import tokenizers
from tokenizers import BertWordPieceTokenizer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bpe" / "expectations"))
from fnv import hash_ids

CASES = [
    # Nothing, blanks
    "", " ", "   \t\n\r  ", "\u00a0\u2003\u3000", "\u200b", "a\u00a0b\u1680c\u2000d\u2028e\u2029f\u202fg\u205fh\u3000i",
    # Accents, composed and not
    "Caf\u00e9 na\u00efve r\u00e9sum\u00e9 \u00c5ngstr\u00f6m", "Cafe\u0301 nai\u0308ve", "e\u0301\u0323\u0302 \u1ec7 o\u0328\u0304",
    "Z\u0351\u036b\u0343a\u0321l\u0322g\u0338o", "\u0301leading mark", "\u1e9b\u0323 \u01d5 \u0344 \u1fc1 \u1f82",
    # Case: Turkish, German, Greek, ligatures, letters without a pair
    "\u0130stanbul \u0131\u015f\u0131k DI\u015eI I\u0307", "Stra\u00dfe STRASSE \u1e9e", "\u03a3\u039f\u03a6\u039f\u03a3 \u03c3\u03bf\u03c6\u03cc\u03c2 \u03a3",
    "\ufb01ne \ufb03x \u01c5 \u01f2 \u2160\u2161 \u24b6\u24b7", "\u10a0\u1c90\u13a0\uab70 \U00010400\U0001e900", "\u212a \u2126 \u212b \u1e9e",
    # Ideographs and their extension planes
    "\u4e2d\u6587abc\u65e5\u672c\u8a9e", "a\u3400b\U00020000c\U0002a6dfd\U0002b820e\U0002b920f\U0002f800g\uf900h\ufa10i\U00030000j",
    "\u30c6\u30b9\u30c8 \u3067\u3059\u3002 \uff34\uff25\uff33\uff34\uff01 \uff76\uff9e", "\u304c\u304e \u30d7\u30ed\u30b0\u30e9\u30e0",
    # Hangul, composed and not; Thai, Hindi, Arabic, Hebrew
    "\uc548\ub155\ud558\uc138\uc694 \ud55c\uad6d\uc5b4", "\u1112\u1161\u11ab\u1100\u116e\u11a8", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e \u0958", "\u0645\u064e\u0631\u0652\u062d\u064e\u0628\u064b\u0627 \u0640", "\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd \ufb2a",
    # Emoji: joined, skin, flags, variation selectors, tags
    "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f44d\U0001f3fd ok", "\U0001f1e9\U0001f1ea flag", "\u2764\ufe0f \u2764 a\u2764b", "\U0001f3f4\U000e0067\U000e0062\U000e007f",
    # Dropped: control, format, private use, unassigned, noncharacters, BOM, U+FFFD, NUL
    "a\u0000b \u0000", "\ufeffBOM at the start", "re\ufffdplaced \ufffd", "bell\u0007 esc\u001b[0m del\u007f \u0085next", "v\u000bt f\u000cf",
    "soft\u00adhyphen zero\u200bwidth\u200cnon\u200djoin\u2060er", "\u202eright to left\u202c", "\ue000private\uf8ff \U000f0000 \U0010fffd", "\u0378 \u08e2x \ufdd0 \uffff \U0010ffff", "\u180e mongol \u2063",
    # Punctuation, and signs that BERT calls so
    "$+<=>^`|~", "a$b+c<d=e>f^g`h|i~j", "don't can't it's -- ... \"quoted\" (x) [y] {z} #tag @me 50% a/b a\\b a_b a&b a*b;c:d?e!f,g.h",
    "\u2018single\u2019 \u201cdouble\u201d \u2014dash\u2013 \u2026 \u00bfqu\u00e9? \u00a1s\u00ed! \u00ab\u00bb \u2022 \u00b7 \u00a7 \u00b6", "\u20ac5 \u00a310 \u00a9 \u00ae \u2122 \u00b0C \u00b1 \u00d7 \u00f7 \u2260 \u221e", "\u3001\u3002\u300c\u300d\uff01\uff1f\uff08\uff09 \u060c\u061f \u0964", "\u037e \u0387 \u1fef \u1ffd",
    # Length of words
    "a" * 99, "a" * 100, "a" * 101, "x" + "a\u0301" * 99, "x" + "a\u0301" * 100, "\u00e9" * 100, "b" * 250 + " tail", "a" * 100 + "." + "b" * 101,
    "\U0001f600" * 100, "supercalifragilisticexpialidocious", "unaffable unbelievability qzxjv",
    # Special pieces spelt out
    "[SEP]", "a [SEP] b", "a[SEP]b", "[CLS][MASK][PAD][UNK]", "[sep] [Sep] [SEP", "[[SEP]]", "[SE\u0301P]", "[\u200bSEP]", "\u00e9[MASK]\u0301e", "##ing ## #a", "[unused1]",
    # Text of the trade
    "<br /><br />It's a \"must-see\" -- 10/10!!! :-)", "https://example.com/a?b=c&d=e#f", "user@example.com 3.14159 1,000,000 \u00bd \u00b2 \u2460 1e-5",
    "The quick brown fox jumps over the lazy dog.", "MiXeD CaSe TeXt WITH ACR\u00d3NYMS", "tab\tand\nnewline\r\nmixed", "a\u0300" * 60,
    "A long sentence, of no great merit, is repeated here until it is longer than BERT can read. " * 30,
]
LIMITS = [2, 3, 16, 128, 512]
REVIEWS = 1000

RANGES = [(0x20, 0x7F), (0x20, 0x7F), (0xC0, 0x250), (0x300, 0x370), (0x300, 0x370), (0x370, 0x590), (0x590, 0x700),
          (0x8D0, 0x8E3), (0x900, 0xD80), (0xE00, 0x1000), (0x1100, 0x1200), (0x1AB0, 0x1C00), (0x1DC0, 0x2000),
          (0x2000, 0x2070), (0x302A, 0x3030), (0x3040, 0x3100), (0x4E00, 0xA000), (0xA950, 0xAAF0), (0xAC00, 0xD7A4),
          (0xF900, 0xFB50), (0xFE00, 0xFE30), (0x11000, 0x11D60), (0x1D150, 0x1D1B0), (0x1E000, 0x1E030),
          (0x1F300, 0x1FAFF), (0x2F800, 0x2FA20), (0, 0xD800), (0xE000, 0x110000)]
RANDOM_TEXTS, RANDOM_GROUP, RANDOM_LENGTH = 20000, 100, 24
SWEEP_END = 0x32000


def truncated(tokenizer, text, limit):
    tokenizer.enable_truncation(limit)
    ids = tokenizer.encode(text).ids
    tokenizer.no_truncation()
    return ids


def reviews(archive):
    """The texts, sorted by path."""
    texts = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isfile() and member.name.startswith("aclImdb/test/"):
                texts[member.name] = tar.extractfile(member).read().decode()
    found = []
    for folder in ["pos", "neg"]:
        paths = sorted(path for path in texts if path.startswith(f"aclImdb/test/{folder}/"))
        found += [texts[path] for path in paths[:REVIEWS]]
    return found


def bert(folder):
    tokenizer = BertWordPieceTokenizer(str(folder / "bert-base-uncased-vocab.txt"))
    texts = reviews(folder / "aclImdb_labelled.tar.xz")
    encoded = [tokenizer.encode(text).ids for text in texts]
    return {
        "tokenizers": tokenizers.__version__,
        "cases": [{"text": t.encode().hex(), "ids": tokenizer.encode(t).ids} for t in CASES],
        "limits": [{"text": t.encode().hex(), "max_length": limit, "ids": truncated(tokenizer, t, limit)}
                   for t in CASES if len(t) == 0 or len(t) >= 101 or "[MASK]" in t for limit in LIMITS],
        "reviews": [f"{len(ids)} {hash_ids(ids)}" for ids in encoded],
        "review_limits": [{"max_length": limit,
                           "hash": hash_ids(i for text in texts for i in truncated(tokenizer, text, limit))}
                          for limit in LIMITS],
    }


def characters():
    """The special pieces, then each code point alone and as a continuation."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    for code_point in range(0x21, SWEEP_END):
        if not 0xD800 <= code_point < 0xE000:
            pieces += [chr(code_point), "##" + chr(code_point)]
    return {piece: index for index, piece in enumerate(pieces)}


def surroundings(code_point):
    character = chr(code_point)
    return [character, "a" + character + "b", "a\u302e" + character + "\U0001d165b"]


def sweep(tokenizer, first, last):
    """Hash over all code points of [first, last)."""
    texts = [text for c in range(first, last) if not 0xD800 <= c < 0xE000 for text in surroundings(c)]
    return hash_ids(i for encoding in tokenizer.encode_batch(texts) for i in encoding.ids)


def splitmix64(state):
    """Random numbers of 64 bits, the same as the test's."""
    mask = 0xFFFFFFFFFFFFFFFF
    while True:
        state = state + 0x9E3779B97F4A7C15 & mask
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        yield z ^ z >> 31


def random_hashes(tokenizer):
    numbers = splitmix64(2)
    hashes = []
    for _ in range(RANDOM_TEXTS // RANDOM_GROUP):
        ids = []
        for _ in range(RANDOM_GROUP):
            text = ""
            for _ in range(1 + next(numbers) % RANDOM_LENGTH):
                first, end = RANGES[next(numbers) % len(RANGES)]
                text += chr(first + next(numbers) % (end - first))
            ids += tokenizer.encode(text).ids
        hashes.append(hash_ids(ids))
    return hashes


def unicode_sweep():
    tokenizer = BertWordPieceTokenizer(characters())
    planes = [(SWEEP_END, 0x40000)] + [(plane << 16, plane + 1 << 16) for plane in range(4, 17)]
    return {
        "tokenizers": tokenizers.__version__,
        "blocks": [sweep(tokenizer, c, c + 256) for c in range(0, SWEEP_END, 256)],
        "planes": [{"first": first, "end": end, "hash": sweep(tokenizer, first, end)} for first, end in planes],
        "ranges": RANGES,
        "random": random_hashes(tokenizer),
    }


def write(name, value):
    text = json.dumps(value, separators=(",", ":")).replace('{"text"', '\n{"text"').replace('","', '",\n"')
    (pathlib.Path(__file__).parent / name).write_text(text + "\n")


def main():
    write("wordpiece.json", bert(pathlib.Path(sys.argv[1])))
    write("wordpiece_unicode.json", unicode_sweep())


if __name__ == "__main__":
    main()
