"""Writes llama2.json: checkpoints as transformers saves them, and the logits it computes of them.

    pip install torch==2.15.0 transformers==5.23.0
    python make_llama2.py
"""

import json
import pathlib
import tempfile

import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM

TOKENS = [1, 4, 0, 9, 5, 10, 2, 4, 4, 7]

SIZES = {"hidden_size": 8, "intermediate_size": 6, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 11,
         "max_position_embeddings": 16, "attention_dropout": 0.0}

CASES = [
    ("one file, fp32", torch.float32, "1MB", {"num_key_value_heads": 4}),
    ("shards, fp16, wide heads", torch.float16, "1KB", {"num_key_value_heads": 2, "head_dim": 6, "rope_theta": 5e5}),
    ("shards, bf16, shared classifier", torch.bfloat16, "1KB", {"num_key_value_heads": 1, "tie_word_embeddings": True,
                                                                  "rms_norm_eps": 1e-5}),
]


def build(sizes, dtype):
    """Weights of a size that makes every part count, all of them values of dtype."""
    model = LlamaForCausalLM(LlamaConfig(**SIZES, **sizes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            scale = 0.5 if parameter.dim() == 2 else 0.2
            noise = torch.randn_like(parameter) * scale + (parameter.dim() == 1)
            parameter.copy_(noise.to(dtype).to(torch.float32))
    return model


def record(name, dtype, shard_size, sizes):
    model = build(sizes, dtype)
    with torch.no_grad():
        logits = model(torch.tensor([TOKENS])).logits[0, -1].tolist()
    with tempfile.TemporaryDirectory() as folder:
        model.to(dtype).save_pretrained(folder, max_shard_size=shard_size)
        files = [{"name": path.name, "data": path.read_bytes().hex()} for path in sorted(pathlib.Path(folder).iterdir())
                 if path.name != "generation_config.json"]
    return {"name": name, "logits": logits, "files": files}


def main():
    torch.manual_seed(1)
    result = {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__, "tokens": TOKENS,
              "cases": [record(*case) for case in CASES]}
    output = pathlib.Path(__file__).parent / "llama2.json"
    output.write_text(json.dumps(result, separators=(",", ":")).replace('{"name"', '\n{"name"') + "\n")


if __name__ == "__main__":
    main()
