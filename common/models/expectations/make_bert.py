#!/usr/bin/env python3
"""Records the outputs of Hugging Face's BERT on random checkpoints: bert.json beside this file.

The weights are not stored: each value is computed from its tensor's name and its
index (see uniform()), here and in bert_expectation.c. Stored are config.json and
the list of tensors, as transformers writes them, the inputs, and the outputs (of
large hidden states every 97th element).

The recording names the versions used:

    pip install torch==2.15.0 transformers==5.23.0 numpy==2.4.6
    python make_bert.py
"""

import json
import pathlib
import platform

import numpy
import torch
import transformers

FNV_OFFSET, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3
GOLDEN = 0x9E3779B97F4A7C15
MASK64 = (1 << 64) - 1


def fnv1a(text):
    """64-bit FNV-1a hash of a text's bytes."""
    state = FNV_OFFSET
    for byte in text.encode():
        state = ((state ^ byte) * FNV_PRIME) & MASK64
    return state


def uniform(name, count):
    """count values in [-1, 1), multiples of 2^-23: splitmix64 of the name's hash and the index."""
    with numpy.errstate(over="ignore"):
        z = numpy.arange(1, count + 1, dtype=numpy.uint64)
        z = z * numpy.uint64(GOLDEN) + numpy.uint64(fnv1a(name))
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        z = z ^ (z >> numpy.uint64(31))
    return (z >> numpy.uint64(40)).astype(numpy.float64) * 2.0**-23 - 1.0


def tensor_values(name, shape, weight_scale):
    """The fp32 values of a tensor. Scales are powers of two, so fp32 holds the values exactly;
    only the norms' weights are rounded."""
    u = uniform(name, int(numpy.prod(shape)))
    if name.endswith(("LayerNorm.weight", "LayerNorm.gamma")):
        values = 1.0 + u / 8
    elif len(shape) == 1:
        values = u / 8
    elif "embeddings" in name:
        values = u / 4
    else:
        values = u * weight_scale
    return torch.from_numpy(values.astype(numpy.float32)).reshape(shape)


STORED = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def fill(model, case):
    """Sets every tensor to its values, rounded as the file stores them. Returns a list of
    [name in the file, shape]."""
    tensors, seen = [], set()
    for name, parameter in model.state_dict().items():
        if parameter.data_ptr() in seen:
            continue  # tied to one already listed, as in a saved file
        seen.add(parameter.data_ptr())
        file_name = name
        if case.get("old_names"):
            file_name = name.replace("LayerNorm.weight", "LayerNorm.gamma")
            file_name = file_name.replace("LayerNorm.bias", "LayerNorm.beta")
        values = tensor_values(file_name, tuple(parameter.shape), case["weight_scale"])
        parameter.copy_(values.to(STORED[case["stored"]]).to(torch.float32))
        tensors.append([file_name, list(parameter.shape)])
    return tensors


def integers(name, shape, bound):
    """Reproducible ids in [0, bound)."""
    u = uniform(name, int(numpy.prod(shape)))
    return numpy.floor((u + 1) / 2 * bound).astype(numpy.int64).reshape(shape)


def make_inputs(case, config):
    B, T = case["B"], case["T"]
    inputs = {"input_ids": torch.from_numpy(integers(case["name"] + " ids", (B, T), config.vocab_size))}
    inputs["input_ids"][0, 0] = 0
    inputs["input_ids"][-1, -1] = config.vocab_size - 1
    if case["types"]:
        types = integers(case["name"] + " types", (B, T), config.type_vocab_size)
        inputs["token_type_ids"] = torch.from_numpy(types)
    if case.get("masked_tokens"):
        mask = torch.ones((B, T), dtype=torch.int64)
        for row, begin, end in case["masked_tokens"]:
            mask[row, begin:end] = 0
        inputs["attention_mask"] = mask
    return inputs


def run(model, case, inputs):
    """Last hidden state, pooled [CLS] and logits, None where the model has none."""
    logits = model(**inputs).logits if case["model"] == "BertForSequenceClassification" else None
    encoder = model if case["model"] == "BertModel" else model.bert
    out = encoder(**inputs)
    return {"hidden": out.last_hidden_state, "pooled": out.pooler_output, "logits": logits}


def distance(a, b):
    return float((a.double() - b).abs().max() / b.abs().max())


def record(tensor, precise):
    """Every stride-th value in row-major order, and the norm of all."""
    flat = tensor.reshape(-1)
    stride = 97 if flat.numel() > 4000 else 1
    return {
        "count": flat.numel(),
        "stride": stride,
        "norm": float(flat.double().norm()),
        "framework_fp32_error": distance(tensor, precise),
        "values": [float("%.9g" % value) for value in flat[::stride].tolist()],
    }


def build(case):
    config = transformers.BertConfig(**case["config"])
    config._attn_implementation = "eager"
    model_class = getattr(transformers, case["model"])
    options = {"add_pooling_layer": False} if case.get("no_pooler") else {}
    with torch.no_grad():
        model = model_class(config, **options).eval()
        tensors = fill(model, case)
        inputs = make_inputs(case, config)
        outputs = run(model, case, inputs)
        precise = run(model.double(), case, inputs)
    recorded = {key: case[key] for key in ("name", "model", "stored", "weight_scale", "B", "T")}
    recorded["config"] = json.loads(config.to_json_string(use_diff=False))
    recorded["tensors"] = tensors
    for key, name in (("ids", "input_ids"), ("types", "token_type_ids"), ("mask", "attention_mask")):
        recorded[key] = inputs[name].reshape(-1).tolist() if name in inputs else None
    for key, value in outputs.items():
        recorded[key] = record(value, precise[key]) if value is not None else None
    return recorded


def sizes(hidden, layers, heads, inner, vocabulary, positions, types, **more):
    return dict(
        hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads,
        intermediate_size=inner, vocab_size=vocabulary, max_position_embeddings=positions,
        type_vocab_size=types, **more)


CLASSIFIER, ENCODER, PRETRAINING = "BertForSequenceClassification", "BertModel", "BertForPreTraining"

CASES = [
    # bert-base-uncased in everything but the vocabulary and the number of positions.
    dict(name="base", model=CLASSIFIER, stored="F32", weight_scale=2**-4, B=2, T=12, types=True,
         masked_tokens=[(1, 7, 12)], config=sizes(768, 12, 12, 3072, 1000, 64, 2, num_labels=3)),
    dict(name="padded", model=CLASSIFIER, stored="F32", weight_scale=2**-2, B=3, T=7, types=True,
         masked_tokens=[(1, 4, 7), (2, 1, 7)], config=sizes(36, 1, 3, 50, 41, 9, 2, num_labels=2)),
    # Padding in front and a hole in the middle; the longest T the model takes.
    dict(name="gelu_new", model=ENCODER, stored="F32", weight_scale=2**-2, B=2, T=5, types=False,
         masked_tokens=[(0, 0, 2), (1, 2, 3)],
         config=sizes(20, 2, 5, 33, 17, 5, 1, hidden_act="gelu_new")),
    dict(name="one_token", model=CLASSIFIER, stored="F16", weight_scale=2**-2, B=4, T=1, types=True,
         config=sizes(24, 2, 2, 31, 29, 3, 3, hidden_act="relu", num_labels=5)),
    dict(name="no_pooler", model=ENCODER, stored="BF16", weight_scale=2**-2, B=1, T=9, types=True,
         no_pooler=True, config=sizes(28, 2, 4, 65, 23, 11, 2)),
    # The first checkpoints: LayerNorm.gamma and .beta, and heads that a classifier does not use.
    dict(name="old_names", model=PRETRAINING, stored="F32", weight_scale=2**-2, B=2, T=6, types=True,
         old_names=True, config=sizes(33, 3, 3, 47, 19, 8, 2, layer_norm_eps=1e-3)),
    dict(name="single_channel_heads", model=CLASSIFIER, stored="F32", weight_scale=2**-1, B=1, T=3,
         types=False, config=sizes(6, 2, 6, 1, 5, 4, 1, num_labels=1)),
]


def main():
    torch.set_num_threads(1)
    document = {
        "made_by": "common/models/expectations/make_bert.py",
        "versions": {"python": platform.python_version(), "torch": torch.__version__,
                     "transformers": transformers.__version__, "numpy": numpy.__version__},
        "cases": [build(case) for case in CASES],
    }
    path = pathlib.Path(__file__).with_name("bert.json")
    lines = json.dumps(document, indent=None, separators=(", ", ": "))
    path.write_text(lines.replace('{"name"', '\n{"name"') + "\n")
    for case in document["cases"]:
        errors = [case[key]["framework_fp32_error"] for key in ("hidden", "pooled", "logits") if case[key]]
        print(case["name"], "fp32 against fp64:", ", ".join("%.1e" % error for error in errors))


if __name__ == "__main__":
    main()
