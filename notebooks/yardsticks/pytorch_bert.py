"""BERT-base in PyTorch (transformers, scaled_dot_product_attention), eager and compiled.

Times a forward pass with random weights and ids already on the card: full batches, and a batch of
which half is padding, with a mask.
"""

import torch
from transformers import BertConfig, BertForSequenceClassification

import yardstick

NAMES = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}
SHAPES = ((16, 512), (16, 128), (1, 128))


def model_of(dtype):
    config = BertConfig(num_labels=2, attn_implementation="sdpa")
    return BertForSequenceClassification(config).cuda().eval().to(dtype)


def measure(clock, model, stage, dtype, B, T, mask=None, shape=None):
    """Returns the record of one batch size."""
    ids = torch.randint(0, 30000, (B, T), device="cuda")
    times = clock.milliseconds(lambda: model(input_ids=ids, attention_mask=mask), warmup=8)
    return yardstick.record("08_bert_classifier", stage, "bert_forward", shape or f"B{B} T{T}",
                            NAMES[dtype], times, figure="sequences_per_second",
                            value=B / times[len(times) // 2] * 1e3)


def half_padding(B, T):
    """Returns a mask of sequences of T / B, 2 T / B ... T tokens."""
    lengths = torch.arange(1, B + 1, device="cuda") * T // B
    return (torch.arange(T, device="cuda")[None, :] < lengths[:, None]).long()


def main():
    options = yardstick.arguments(__doc__)
    clock = yardstick.Clock(options.runs, not options.keep_cache)
    records = []
    with torch.inference_mode():
        for dtype in (torch.float32, torch.bfloat16):
            model = model_of(dtype)
            compiled = torch.compile(model)
            for B, T in SHAPES:
                for stage, m in (("eager", model), ("compile", compiled)):
                    records.append(measure(clock, m, stage, dtype, B, T))
            for stage, m in (("eager", model), ("compile", compiled)):
                records.append(measure(clock, m, stage, dtype, 16, 512, half_padding(16, 512),
                                       "B16 T512 half padding"))
    yardstick.report(records, options.output)


if __name__ == "__main__":
    main()
