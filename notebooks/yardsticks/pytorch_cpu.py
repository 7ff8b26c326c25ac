"""reviews_bert on the CPU in PyTorch, for cpu_stage.sh: prints texts/s or tokens/s.

usage: pytorch_cpu.py classify|train THREADS

classify: the sentences of reviews_sample.tsv, sorted by length, in padded batches of 8, the best of
six passes. train: steps of AdamW on batches of 16 of the first 128 sentences, at most 128 tokens,
dropout as the model's; tokens without padding, the best of four epochs.
"""

import sys
import time

import torch
from transformers import BertForSequenceClassification, BertTokenizer

MODEL = "datasets/reviews_bert"


def encode(count, longest):
    tokenizer = BertTokenizer(f"{MODEL}/vocab.txt", do_lower_case=True)
    rows = [line.rstrip("\n").split("\t", 1) for line in open("datasets/reviews_sample.tsv", encoding="utf-8")]
    texts = [tokenizer(text, truncation=True, max_length=longest)["input_ids"] for _, text in rows[:count]]
    return texts, [int(label == "pos") for label, _ in rows[:count]]


def padded(texts):
    ids = torch.zeros(len(texts), max(map(len, texts)), dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, text in enumerate(texts):
        ids[row, : len(text)] = torch.tensor(text)
        mask[row, : len(text)] = 1
    return {"input_ids": ids, "attention_mask": mask}


def best(passes, work, run):
    rates = []
    for _ in range(passes):
        start = time.perf_counter()
        run()
        rates.append(work / (time.perf_counter() - start))
    return max(rates)


def classify(model):
    texts = sorted(encode(None, 512)[0], key=len)
    batches = [padded(texts[i : i + 8]) for i in range(0, len(texts), 8)]
    model.eval()
    with torch.inference_mode():
        return best(6, len(texts), lambda: [model(**batch) for batch in batches])


def train(model):
    texts, labels = encode(128, 128)
    batches = [padded(texts[i : i + 16]) | {"labels": torch.tensor(labels[i : i + 16])} for i in range(0, 128, 16)]
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, foreach=True)
    model.train()

    def epoch():
        for batch in batches:
            optimizer.zero_grad()
            model(**batch).loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()

    return best(4, sum(map(len, texts)), epoch)


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("classify", "train"):
        sys.exit(__doc__)
    torch.set_num_threads(int(sys.argv[2]))
    model = BertForSequenceClassification.from_pretrained(MODEL, dtype=torch.float32)
    print(f"{(classify if sys.argv[1] == 'classify' else train)(model):.1f}")


if __name__ == "__main__":
    main()
