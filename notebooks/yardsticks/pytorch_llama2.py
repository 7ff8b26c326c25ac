"""Lab 10's decoder in PyTorch: decoding with a static cache, and prefill, eager and compiled.

A plain Llama2 of random weights: torch.nn.functional's linear layers, RMSNorm and attention, q, k
and v in one product, gate and up in one. Compiled means torch.compile of a layer and of the
classifier, with --autotune by "max-autotune-no-cudagraphs"; a compiled prompt is timed as Python
calls it and as a CUDA graph; decoding is a CUDA graph of one token ("graph"), or as Python calls it
("eager"). --weights: int8 by row, as published scripts multiply it (converted, then a linear layer,
times the scales; compiled with coordinate descent, without which the conversion is a kernel of its
own), or int4 in groups of 128 by PyTorch's own kernel (tinygemm).
"""

import torch
import torch._inductor.config
import torch.nn.functional as F

import yardstick

NAMES = {torch.float32: "fp32", torch.bfloat16: "bf16"}
# name, C, hidden, layers, heads, key heads, vocabulary; dtypes; contexts that decoding is timed at
SHAPES = (("110M", 768, 2048, 12, 12, 12, 32000, (torch.float32, torch.bfloat16), (16, 1000)),
          ("1.1B", 2048, 5632, 22, 32, 4, 32000, (torch.bfloat16,), (16, 2000)),
          ("7B", 4096, 11008, 32, 32, 32, 32000, (torch.bfloat16,), (16, 4000)))
GROUP = 128
PROMPTS = {"110M": 1024, "1.1B": 2048, "7B": 2048}


def turned(x, angles):
    """Returns rotary embedding of x (T, heads, HS); angles: cosines and sines, (T, 1, HS / 2)."""
    a, b = x.float().chunk(2, dim=-1)
    cosine, sine = angles
    return torch.cat((a * cosine - b * sine, a * sine + b * cosine), dim=-1).to(x.dtype)


def product(x, w):
    """Returns the linear layer of a matrix: a tensor, or one of few bits and its scales."""
    if isinstance(w, torch.Tensor):
        return F.linear(x, w)
    stored, scales = w
    if stored.dtype == torch.int8:
        return F.linear(x, stored.to(x.dtype)) * scales
    return torch.ops.aten._weight_int4pack_mm(x, stored, GROUP, scales)


def low_bit(rows, columns, dtype, weights):
    """Returns a random matrix for product()."""
    if weights == "int8":
        stored = torch.randint(-127, 128, (rows, columns), device="cuda", dtype=torch.int8)
        return stored, torch.full((rows,), columns**-0.5 / 73, device="cuda", dtype=dtype)
    stored = torch.randint(0, 256, (rows, columns // 2), device="cuda", dtype=torch.uint8)
    scales = torch.zeros(columns // GROUP, rows, 2, device="cuda", dtype=dtype)
    scales[..., 0] = columns**-0.5 / 4.6
    return torch.ops.aten._convert_weight_to_int4pack(stored, 8), scales


def bytes_of(w):
    """Returns the bytes of a matrix or of a tensor of ones."""
    return sum(t.numel() * t.element_size() for t in (w if isinstance(w, tuple) else (w,)))


def layer(x, w, cache, angles, position, heads, visible):
    """Returns the residual stream (T, C) after one layer; writes keys and values to the cache.

    `visible` is None for a prompt, else the mask (1, rows) of cache rows that a token sees.
    """
    T, C = x.shape
    NH, KVH = heads
    HS = C // NH
    y = product(F.rms_norm(x, (C,), w["attention_norm"], 1e-5), w["qkv"])
    q, k, v = y.split((NH * HS, KVH * HS, KVH * HS), dim=-1)
    q = turned(q.view(T, NH, HS), angles)
    k = turned(k.view(T, KVH, HS), angles)
    cache[0].index_copy_(0, position, k)
    cache[1].index_copy_(0, position, v.view(T, KVH, HS))
    keys, values = (k, v.view(T, KVH, HS)) if visible is None else cache
    mixed = F.scaled_dot_product_attention(
        q.transpose(0, 1)[None], keys.transpose(0, 1)[None], values.transpose(0, 1)[None],
        attn_mask=visible, is_causal=visible is None, enable_gqa=NH != KVH)
    x = x + product(mixed[0].transpose(0, 1).reshape(T, C), w["out"])
    gate, up = product(F.rms_norm(x, (C,), w["ffn_norm"], 1e-5), w["gate_up"]).chunk(2, dim=-1)
    return x + product(F.silu(gate) * up, w["down"])


def finish(x, norm, classifier):
    """Returns the last row's logits."""
    return product(F.rms_norm(x[-1:], (x.shape[-1],), norm, 1e-5), classifier)


class Model:
    """Weights, a cache of `context` rows, and the two ways through it."""

    def __init__(self, shape, dtype, context, compiled, weights=None, mode=None):
        _, C, hidden, L, NH, KVH, V, _, _ = shape
        HS = C // NH
        self.heads, self.context = (NH, KVH), context

        def matrix(rows, columns):
            if weights is not None:
                return low_bit(rows, columns, dtype, weights)
            return table(rows, columns)

        def table(rows, columns):
            return torch.randn(rows, columns, device="cuda", dtype=dtype) * columns**-0.5

        ones = torch.ones(C, device="cuda", dtype=dtype)
        self.layers = [{"attention_norm": ones, "qkv": matrix((NH + 2 * KVH) * HS, C),
                        "out": matrix(C, C), "ffn_norm": ones, "gate_up": matrix(2 * hidden, C),
                        "down": matrix(C, hidden)} for _ in range(L)]
        self.embedding, self.classifier, self.norm = table(V, C), matrix(V, C), ones
        self.cache = [torch.zeros(2, context, KVH, HS, device="cuda", dtype=dtype)
                      for _ in range(L)]
        turns = 10000.0 ** (-torch.arange(0, HS, 2, device="cuda").float() / HS)
        angles = torch.arange(context, device="cuda").float()[:, None] * turns
        self.cosines, self.sines = angles.cos()[:, None], angles.sin()[:, None]
        self.layer = torch.compile(layer, dynamic=False, mode=mode) if compiled else layer
        self.finish = torch.compile(finish, dynamic=False, mode=mode) if compiled else finish
        self.bytes = sum(bytes_of(t) for w in self.layers for t in w.values())
        self.bytes += bytes_of(self.classifier)

    def forward(self, tokens, position, prompt):
        angles = self.cosines[position], self.sines[position]
        visible = None
        if not prompt:
            visible = (torch.arange(self.context, device="cuda") <= position)[None]
        x = self.embedding[tokens]
        for w, cache in zip(self.layers, self.cache):
            x = self.layer(x, w, cache, angles, position, self.heads, visible)
        return self.finish(x, self.norm, self.classifier)


def decode(clock, shape, dtype, context, compiled, weights):
    """Returns records of one token at the end of a context."""
    model = Model(shape, dtype, context, compiled, weights)
    token = torch.tensor([7], device="cuda")
    position = torch.tensor([context - 1], device="cuda")

    def run():
        return model.forward(token, position, False)

    kv = sum(c.numel() * c.element_size() for c in model.cache)
    ways = (("compile + graph", yardstick.graphed(run)),) if compiled else (("eager", run),)
    records = []
    for stage, call in ways:
        times = clock.milliseconds(call)
        median = times[len(times) // 2]
        records.append(yardstick.record(
            "10_llama2_decoder", stage, "decode", f"{shape[0]} context {context}", weights or NAMES[dtype],
            times, moved=model.bytes + kv, figure="tokens_per_second", value=1e3 / median))
    return records


def prefill(clock, shape, dtype, compiled, autotune):
    """Returns records of a prompt: as Python calls it, and if it is compiled, as a CUDA graph."""
    count = PROMPTS[shape[0]]
    mode = "max-autotune-no-cudagraphs" if autotune else None
    model = Model(shape, dtype, count, compiled, mode=mode)
    tokens = torch.randint(shape[6], (count,), device="cuda")
    position = torch.arange(count, device="cuda")

    def run():
        return model.forward(tokens, position, True)

    name = "max-autotune" if autotune else "compile"
    ways = ((name, run), (name + " + graph", yardstick.graphed(run))) if compiled else (("eager", run),)
    records = []
    for stage, call in ways:
        times = clock.milliseconds(call)
        median = times[len(times) // 2]
        records.append(yardstick.record("10_llama2_decoder", stage, "prefill",
                                        f"{shape[0]} prompt {count}", NAMES[dtype], times,
                                        figure="tokens_per_second", value=1e3 * count / median))
    return records


def add_flags(parser):
    parser.add_argument("--shape", choices=[s[0] for s in SHAPES], help="only this one")
    parser.add_argument("--compiled-only", action="store_true", help="leave the eager rows out")
    parser.add_argument("--decode-only", action="store_true", help="leave prompts out")
    parser.add_argument("--weights", choices=("int8", "int4"), help="decode with such matrices only")
    parser.add_argument("--short-only", action="store_true", help="leave long contexts out")
    parser.add_argument("--prefill-only", action="store_true", help="leave decoding out")
    parser.add_argument("--autotune", action="store_true", help="compile prompts with max-autotune")


def main():
    options = yardstick.arguments(__doc__, add_flags)
    clock = yardstick.Clock(options.runs, flush=False)
    records = []
    torch._inductor.config.coordinate_descent_tuning = options.weights == "int8"
    with torch.inference_mode():
        for shape in SHAPES:
            if options.shape not in (None, shape[0]):
                continue
            for dtype in shape[7]:
                for compiled in (True,) if options.compiled_only else (False, True):
                    contexts = shape[8][:1] if options.short_only else shape[8]
                    for context in () if options.prefill_only else contexts:
                        torch._dynamo.reset()
                        records += decode(clock, shape, dtype, context, compiled, options.weights)
                    if options.decode_only or options.weights:
                        continue
                    torch._dynamo.reset()
                    records += prefill(clock, shape, dtype, compiled, options.autotune)
    yardstick.report(records, options.output)


if __name__ == "__main__":
    main()
