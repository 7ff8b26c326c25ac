"""Writes gpt_neox.json: checkpoints as transformers saves them, the logits that it computes of them in fp32, and
the tokens that it draws greedily.

    pip install torch==2.15.0 transformers==5.24.0
    python make_gpt_neox.py

Small models are recorded with their weights. The largest, of Pythia-70M's sizes but for its vocabulary, is made of
numbers that recorded_gpt_neox.c makes again: generated().
"""

import json
import pathlib
import tempfile

import numpy
import torch
import transformers
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

SIZES = {"hidden_size": 20, "intermediate_size": 14, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 13,
         "max_position_embeddings": 256, "attention_dropout": 0.0, "hidden_dropout": 0.0, "rotary_pct": 0.4}
PYTHIA_70M = {"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 6, "num_attention_heads": 8,
              "vocab_size": 2048, "max_position_embeddings": 2048, "rotary_pct": 0.25}
GREEDY, PROMPT, MARGIN = 200, 24, 4e-4

# Name, type of the weights, size of a shard, settings.
CASES = [
    ("parallel, fp32", torch.float32, "1MB", {}),
    ("sequential, fp16, shards", torch.float16, "2KB", {"use_parallel_residual": False, "rotary_emb_base": 500}),
    ("bf16, shards, shared classifier, tanh", torch.bfloat16, "2KB",
     {"tie_word_embeddings": True, "hidden_act": "gelu_new"}),
    ("no attention_bias, whole heads rotated", torch.bfloat16, "1MB",
     {"attention_bias": False, "rotary_pct": 1.0, "hidden_act": "gelu_fast", "layer_norm_eps": 1e-6}),
    ("older keys, sequential, one head of odd sizes", torch.bfloat16, "1MB",
     {"use_parallel_residual": False, "num_attention_heads": 1, "hidden_size": 14, "intermediate_size": 9,
      "num_hidden_layers": 3, "rotary_pct": 0.29}),
]


def build(sizes, dtype):
    """Weights of a size that makes every part count, all of them values of dtype."""
    model = GPTNeoXForCausalLM(GPTNeoXConfig(**{**SIZES, **sizes})).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            scale = 0.5 if parameter.dim() == 2 else 0.2
            norm = parameter.dim() == 1 and not name.endswith(".bias")
            noise = torch.randn_like(parameter) * scale + norm
            parameter.copy_(noise.to(dtype).to(torch.float32))
    return model


def generated(count, index):
    """Numbers of tensor `index`, in the order of the file's names, from -0.5 to 0.5."""
    u = numpy.arange(count, dtype=numpy.uint32) + numpy.uint32(index * 0x9E3779B9 & 0xFFFFFFFF)
    u ^= u >> numpy.uint32(16)
    u *= numpy.uint32(0x7FEB352D)
    u ^= u >> numpy.uint32(15)
    u *= numpy.uint32(0x846CA68B)
    u ^= u >> numpy.uint32(16)
    return (u >> numpy.uint32(8)).astype(numpy.float32) * numpy.float32(2.0**-24) - numpy.float32(0.5)


def build_generated(sizes):
    model = GPTNeoXForCausalLM(GPTNeoXConfig(**sizes)).eval()
    with torch.no_grad():
        named = {name.replace("lm_head", "embed_out"): parameter for name, parameter in model.named_parameters()}
        for index, (name, parameter) in enumerate(sorted(named.items())):
            values = generated(parameter.numel(), index) * numpy.float32(0.25)
            values = values + numpy.float32(1.0) if "norm.weight" in name else values
            parameter.copy_(torch.from_numpy(values).reshape(parameter.shape))
    return model


def with_older_keys(text):
    """config.json as transformers wrote it before version 5, and as Pythia's are published."""
    config = json.loads(text)
    rope = config.pop("rope_parameters")
    config["rotary_pct"] = rope["partial_rotary_factor"]
    config["rotary_emb_base"] = int(rope["rope_theta"])
    config.pop("attention_bias")
    return json.dumps(config, indent=2).encode()


def content(name, path):
    data = path.read_bytes()
    return with_older_keys(data) if path.name == "config.json" and "older keys" in name else data


def significant(rows):
    return [[float(f"{value:.7g}") for value in row] for row in rows.tolist()]


def greedy(model, prompt):
    """Tokens, and how far the largest logit was ahead of the next, relative to the largest."""
    tokens, cache, margin = list(prompt), None, float("inf")
    given = prompt
    with torch.no_grad():
        for _ in range(GREEDY):
            output = model(torch.tensor([given]), past_key_values=cache, use_cache=True)
            cache = output.past_key_values
            logits = output.logits[0, -1].double()
            best = torch.topk(logits, 2)
            margin = min(margin, float((best.values[0] - best.values[1]) / logits.abs().max()))
            if margin < MARGIN:
                break
            given = [int(best.indices[0])]
            tokens += given
    return tokens[len(prompt):], margin


def record(name, model, vocabulary, recorded_rows):
    for _ in range(50):  # a prompt whose continuation does not hang on rounding
        tokens = torch.randint(0, vocabulary, (PROMPT,)).tolist()
        text, margin = greedy(model, tokens)
        if margin >= MARGIN:
            break
    assert margin >= MARGIN, (name, margin)
    with torch.no_grad():
        logits = model(torch.tensor([tokens])).logits[0]
    return {"name": name, "tokens": tokens, "logits": significant(logits[PROMPT - recorded_rows:]), "greedy": text,
            "distinct": len(set(text)), "margin": float(f"{margin:.3g}")}


def small(name, dtype, shard_size, sizes):
    model = build(sizes, dtype)
    case = record(name, model, SIZES["vocab_size"], PROMPT)
    with tempfile.TemporaryDirectory() as folder:
        model.to(dtype).save_pretrained(folder, max_shard_size=shard_size)
        case["files"] = [{"name": path.name, "data": content(name, path).hex()}
                         for path in sorted(pathlib.Path(folder).iterdir()) if path.name != "generation_config.json"]
    return case


def large(name, sizes):
    model = build_generated(sizes)
    case = record(name, model, sizes["vocab_size"], 2)
    case["config"] = {"model_type": "gpt_neox", **sizes}
    return case


def main():
    torch.manual_seed(1)
    cases = [small(*case) for case in CASES]
    cases.append(large("Pythia-70M's sizes, a vocabulary of 2,048", PYTHIA_70M))
    result = {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__, "cases": cases}
    output = pathlib.Path(__file__).parent / "gpt_neox.json"
    output.write_text(json.dumps(result, separators=(",", ":")).replace('{"name"', '\n{"name"') + "\n")


if __name__ == "__main__":
    main()
