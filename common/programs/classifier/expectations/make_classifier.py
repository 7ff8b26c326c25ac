#!/usr/bin/env python3
"""Records ids and logits of Hugging Face's tokenizer and BERT for texts: classifier.json beside
this file.

The checkpoint is the one that this project writes with

    bazel run //datasets:random_bert -- --output-dir DIR --labels 3

and that the test makes again from the same seed. The versions used are in the
recording:

    pip install torch==2.15.0 transformers==5.23.0
    python make_classifier.py DIR
"""

import json
import pathlib
import sys

import tokenizers
import torch
import transformers

LONGEST = 64

TEXTS = [
    "a dull, lifeless film",
    "GREAT!",
    "I was surprised; pleasantly so. 10/10, and I'd see it again :-)",
    "x",
    "na\u00efve caf\u00e9 \u2014 \u65e5\u672c\u8a9e \U0001f600 [MASK]",
    "the same words again and again, " * 40,
    "tabs\tand\nline breaks<br /><br />of a review",
]


def main():
    folder = pathlib.Path(sys.argv[1])
    torch.set_num_threads(1)
    tokenizer = tokenizers.BertWordPieceTokenizer(str(folder / "vocab.txt"))
    tokenizer.enable_truncation(LONGEST)
    config = transformers.BertConfig.from_pretrained(folder)
    config._attn_implementation = "eager"
    model = transformers.BertForSequenceClassification.from_pretrained(folder, config=config).eval()
    cases = []
    for text in TEXTS:
        ids = tokenizer.encode(text).ids
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0]
        cases.append({"text": text.encode().hex(), "ids": ids,
                      "logits": [float("%.9g" % value) for value in logits.tolist()]})
    document = {
        "made_by": "common/programs/classifier/expectations/make_classifier.py",
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__,
                     "tokenizers": tokenizers.__version__},
        "labels": config.num_labels,
        "max_length": LONGEST,
        "cases": cases,
    }
    path = pathlib.Path(__file__).with_name("classifier.json")
    path.write_text(json.dumps(document).replace('{"text"', '\n{"text"') + "\n")


if __name__ == "__main__":
    main()
