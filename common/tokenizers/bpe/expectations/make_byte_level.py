"""Writes byte_level.json: small byte-level tokenizers, and the ids that the Hugging Face library gives with them.

    pip install tokenizers==0.23.3
    python make_byte_level.py

The tokenizers are trained on the texts of datasets/, with the expressions and settings that Llama 3, Qwen2 and
GPT-2's relatives have published. Texts are put together from snippets, by a generator that the test has, too.
"""

import json
import pathlib

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from fnv import hash_ids

TEXTS = 2000
GROUP = 20  # texts of one hash
PIECES = 10  # of a text, at most

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)


def split(numbers):
    return pre_tokenizers.Split(Regex(CONTRACTIONS + numbers + REST), "isolated")


# GPT-NeoX's added tokens: runs of blanks, recognised in all text.
RUNS = [" " * count for count in range(24, 1, -1)]

# Name: vocabulary, pre-tokenizer, normalizer, ignore_merges, added tokens (the special ones first), BOS.
KINDS = {
    "llama 3": (900, pre_tokenizers.Sequence([split(r"\p{N}{1,3}"), BYTES]), None, True,
                ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"], [],
                "<|begin_of_text|>"),
    "qwen2": (1000, pre_tokenizers.Sequence([split(r"\p{N}"), BYTES]), normalizers.NFC(), False,
              ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], ["<tool_call>", "<tool"], None),
    "digits": (700, pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                             pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)]),
               None, False, ["<|endoftext|>"], [], None),
    "gpt-neox": (800, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True), normalizers.NFC(), False,
                 ["<|endoftext|>", "<|padding|>"], RUNS, None),
    "prefix": (700, pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=True), None, False, ["<|endoftext|>"],
               RUNS[20:], None),
}

SNIPPETS = [
    "the", " the", " film", "Film", "'s", "'S", "'re", "'LL", "'d", "'\u017f", "\u2019s", "n't", " I'm", "don't", "'", "''",
    "0", "7", "12", "345", "6789", "1234567", "3.14", "1,000", "\u0663\u0664", "\u2167", "\u00b2", "\u00bd", "\u4e09",
    " ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", " \n", "\n ", "\t\t x", "\u00a0", "\u3000", "\u2003", "\u0085", "\u180e",
    "\u200b", "\u2028", "\u001c", "\u001f", "\u000b", "\u0000", "\u007f", "\ufeff",
    ".", "!", "?!", "...", " (", ")", "--", " -", "<", "<|", "|>", "<|im", "#include <stdio.h>", "a_b", "$x+=1;", "{}[]",
    "e\u0301", "\u00e9", "E\u0301\u0327", "\u212b", "A\u030a", "\u1e9b\u0323", "\u0958", "\u0340", "\u1100\u1161\u11a8",
    "\uac00\u11a8", "\u0344", "n\u0303o", "\u0301", " \u0301", "\ufb01", "\u2126", "\u00df", "\u1e9e", "\u0130", "\u212a",
    "\u4f60\u597d", "\u3053\u3093\u306b\u3061\u306f", "\u043f\u0440\u0438\u0432\u0435\u0442", "\u0e2a\u0e27\u0e31\u0e2a",
    "\u0645\u0631\u062d\u0628\u0627", "\u05e9\u05dc\u05d5\u05dd", "\u0928\u092e\u0938\u094d\u0924\u0947", "\U0001f600",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1eb\U0001f1f7", "\U00010348", "\U000e0041", "\ue000", "\uffff",
    "\u00ad", "\u00ff", "\u0100", "\u0120", "\u0121", "\u0142", "caf\u00e9", " na\u00efve",
    "<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>user<|end_header_id|>\n\n", "<|im_start|>", "<|im_end|>",
    "<|im_start|>user\n", "<|endoftext|>", "<tool_call>", "<tool", "_call>", "<|IM_END|>",
]

CASES = ["", " ", "a", " a", "a ", "a  b", "a   b   ", "\n", " \n \n", "x\n\n\ny", "x \r\n y", "I'M he'Ll WE'D", "1234567890",
         "a1b22c333d4444", "\u0085\u0085x", "\u180e\u180ex", " \u180e x", "\u00a0\u00a0y", "\u3000\u3000z", "\u0000\u0000",
         "e\u0301e\u0301", "\u1100\u1161\u11a8", "x" * 60, " " * 41, "\n" * 23, "ab " * 30, "<|im_end|>", "a<|im_end|>b",
         "<|im_end|><|im_end|>", " <|eot_id|> ", "<tool_call>x<tool>", "<|im_start|>system\nBe brief.<|im_end|>\n",
         "'\u017f'\u017ft", "\U0001f468\u200d\U0001f469\u200d\U0001f467!", "\u0958\u0340", "<|endoftext|>\ne\u0301",
         "if x:\n        y\n    z", "<|padding|>" + " " * 25 + "\u0301x", "a<|endoftext|>b  <|endoftext|> c"]


def corpus():
    """The lines of the data sets in the tree, and all snippets."""
    folder = pathlib.Path(__file__).resolve().parents[4] / "datasets"
    lines = (folder / "review_text.txt").read_text().splitlines()
    lines += [line.split("\t")[-1] for line in (folder / "reviews_sample.tsv").read_text().splitlines()]
    return lines + [" ".join(SNIPPETS)]


def train(kind):
    size, splitter, normalizer, ignore_merges, special, added, bos = KINDS[kind]
    result = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    result.pre_tokenizer = splitter
    if normalizer:
        result.normalizer = normalizer
    result.decoder = decoders.ByteLevel()
    result.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
        special_tokens=special if added[:1] == RUNS[:1] else []))
    plain = Tokenizer.from_str(json.dumps({**json.loads(result.to_str()), "added_tokens": []}))
    result.add_special_tokens(special)
    if added and added[0] in RUNS:
        result.add_tokens([AddedToken(text, normalized=True) for text in added])
        plain = without_special(result)
    else:
        result.add_tokens([AddedToken(text, normalized=False) for text in added])
    trim = processors.ByteLevel(trim_offsets=False)
    result.post_processor = trim if bos is None else processors.Sequence(
        [trim, processors.TemplateProcessing(single=f"{bos} $A", pair=f"{bos} $A {bos} $B",
                                             special_tokens=[(bos, result.token_to_id(bos))])])
    return result, plain


def without_special(tokenizer):
    """A tokenizer that takes special tokens for text: they are spelled as no text is."""
    data = json.loads(tokenizer.to_str())
    names = {token["content"]: f"unused {token['id']}" for token in data["added_tokens"] if token["special"]}
    for token in data["added_tokens"]:
        token["content"] = names.get(token["content"], token["content"])
    data["model"]["vocab"] = {names.get(text, text): number for text, number in data["model"]["vocab"].items()}
    return Tokenizer.from_str(json.dumps(data))


def as_published(text):
    """Merges as "a b", as GPT-NeoX's file has them."""
    data = json.loads(text)
    data["model"]["merges"] = [" ".join(pair) for pair in data["model"]["merges"]]
    return json.dumps(data, ensure_ascii=False)


def random_texts():
    state = 1
    for _ in range(TEXTS):
        chosen = []
        for _ in range(PIECES):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            chosen.append(SNIPPETS[(state >> 33) % len(SNIPPETS)])
        yield "".join(chosen)


def ids(tokenizer, text, special=False):
    return tokenizer.encode(text, add_special_tokens=special).ids


def hashes(tokenizer):
    lists = [ids(tokenizer, text) for text in random_texts()]
    return [hash_ids([number for one in lists[first:first + GROUP] for number in one + [-1]])
            for first in range(0, TEXTS, GROUP)]


def record(kind):
    tokenizer, plain = train(kind)
    cases = [{"text": text.encode().hex(), "ids": ids(tokenizer, text), "plain": ids(plain, text),
              "whole": ids(tokenizer, text, True),
              "decoded": tokenizer.decode(ids(tokenizer, text), skip_special_tokens=False).encode().hex()}
             for text in CASES]
    text = tokenizer.to_str()
    return {"name": kind, "tokenizer": as_published(text) if kind == "gpt-neox" else text, "hashes": hashes(tokenizer), "plain_hashes": hashes(plain),
            "cases": cases}


def main():
    result = {"tokenizers": tokenizers.__version__, "snippets": [text.encode().hex() for text in SNIPPETS],
              "kinds": [record(kind) for kind in KINDS]}
    output = pathlib.Path(__file__).parent / "byte_level.json"
    text = json.dumps(result, separators=(",", ":"))
    output.write_text(text.replace('{"name"', '\n{"name"').replace('{"text"', '\n{"text"') + "\n")


if __name__ == "__main__":
    main()
