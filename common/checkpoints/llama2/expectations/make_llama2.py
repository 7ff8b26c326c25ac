"""Writes llama2.json: checkpoints as transformers saves them, and the logits it computes of them.

    pip install torch==2.15.0 transformers==5.23.0
    python make_llama2.py

Besides Llama2 there are its relatives: Llama 3's rotary embedding and others for long contexts, Qwen2's biases,
sliding windows as Mistral and Qwen2 have them. Their texts are longer than the window and the original context.
"""

import json
import pathlib
import tempfile

import torch
import transformers
from transformers import (LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, Qwen2Config,
                          Qwen2ForCausalLM)

SIZES = {"hidden_size": 8, "intermediate_size": 6, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 11,
         "max_position_embeddings": 48, "attention_dropout": 0.0}

LLAMA = (LlamaConfig, LlamaForCausalLM)
MISTRAL = (MistralConfig, MistralForCausalLM)
QWEN2 = (Qwen2Config, Qwen2ForCausalLM)

ORIGINAL = {"original_max_position_embeddings": 12}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          **ORIGINAL}
LINEAR = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 3.0}
YARN = {"rope_type": "yarn", "rope_theta": 1000.0, "factor": 4.0, "beta_fast": 2.0, **ORIGINAL}
YARN_ALL = {**YARN, "beta_slow": 0.5, "mscale": 0.7, "mscale_all_dim": 0.4, "truncate": False}
YARN_FACTOR = {**YARN, "attention_factor": 1.3}

# Name, kind, type of the weights, size of a shard, text, settings.
CASES = [
    ("one file, fp32", LLAMA, torch.float32, "1MB", 10, {"num_key_value_heads": 4}),
    ("shards, fp16, wide heads", LLAMA, torch.float16, "1KB", 10,
     {"num_key_value_heads": 2, "head_dim": 6, "rope_theta": 5e5}),
    ("shards, bf16, shared classifier", LLAMA, torch.bfloat16, "1KB", 10,
     {"num_key_value_heads": 1, "tie_word_embeddings": True, "rms_norm_eps": 1e-5}),
    ("llama 3", LLAMA, torch.bfloat16, "1MB", 40,
     {"num_key_value_heads": 2, "head_dim": 8, "rope_parameters": LLAMA3, "tie_word_embeddings": True}),
    ("llama 3, older keys", LLAMA, torch.bfloat16, "1MB", 40,
     {"num_key_value_heads": 1, "head_dim": 10, "rope_parameters": LLAMA3}),
    ("linear", LLAMA, torch.float16, "1MB", 40, {"num_key_value_heads": 2, "rope_parameters": LINEAR}),
    ("yarn", LLAMA, torch.bfloat16, "1MB", 40, {"head_dim": 10, "rope_parameters": YARN}),
    ("yarn, all keys", LLAMA, torch.bfloat16, "1MB", 40, {"head_dim": 10, "rope_parameters": YARN_ALL}),
    ("yarn, attention_factor", LLAMA, torch.bfloat16, "1MB", 40, {"head_dim": 10, "rope_parameters": YARN_FACTOR}),
    ("all biases", LLAMA, torch.float16, "1MB", 12,
     {"num_key_value_heads": 2, "attention_bias": True, "mlp_bias": True}),
    ("qwen2", QWEN2, torch.bfloat16, "1KB", 12, {"num_key_value_heads": 2, "tie_word_embeddings": True}),
    ("qwen2, window from layer 1, yarn", QWEN2, torch.bfloat16, "1MB", 40,
     {"num_key_value_heads": 2, "use_sliding_window": True, "sliding_window": 7, "max_window_layers": 1,
      "rope_parameters": YARN}),
    ("mistral", MISTRAL, torch.bfloat16, "1MB", 40,
     {"num_key_value_heads": 2, "head_dim": 6, "sliding_window": 9, "rope_theta": 1e4}),
]


def build(kind, sizes, dtype):
    """Weights of a size that makes every part count, all of them values of dtype."""
    config, model = kind
    model = model(config(**SIZES, **sizes)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            scale = 0.5 if parameter.dim() == 2 else 0.2
            norm = parameter.dim() == 1 and not name.endswith(".bias")
            noise = torch.randn_like(parameter) * scale + norm
            parameter.copy_(noise.to(dtype).to(torch.float32))
    return model


def with_older_keys(text):
    """config.json as transformers wrote it before version 5, and as Llama 3's is published."""
    config = json.loads(text)
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = rope
    return json.dumps(config, indent=2).encode()


def content(name, path):
    data = path.read_bytes()
    return with_older_keys(data) if path.name == "config.json" and "older keys" in name else data


def record(name, kind, dtype, shard_size, length, sizes):
    model = build(kind, sizes, dtype)
    tokens = torch.randint(0, SIZES["vocab_size"], (length,)).tolist()
    with torch.no_grad():
        logits = model(torch.tensor([tokens])).logits[0]
    rounded = [[float(f"{value:.7g}") for value in row] for row in logits.tolist()]
    with tempfile.TemporaryDirectory() as folder:
        model.to(dtype).save_pretrained(folder, max_shard_size=shard_size)
        files = [{"name": path.name, "data": content(name, path).hex()}
                 for path in sorted(pathlib.Path(folder).iterdir()) if path.name != "generation_config.json"]
    tolerance = 2e-5 if length <= 10 else 1e-4  # later tokens are sums over more of them
    return {"name": name, "tolerance": tolerance, "tokens": tokens, "logits": rounded, "files": files}


def main():
    torch.manual_seed(1)
    result = {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__,
              "cases": [record(*case) for case in CASES]}
    output = pathlib.Path(__file__).parent / "llama2.json"
    output.write_text(json.dumps(result, separators=(",", ":")).replace('{"name"', '\n{"name"') + "\n")


if __name__ == "__main__":
    main()
