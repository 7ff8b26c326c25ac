"""Lab 14's story, measured: hand-written fusions in a Pythia that PyTorch decodes, launched from Python.

A GPT-NeoX shape with random fp16 weights behind a full cache of 4 sinks and 1020 tokens, not compiled. The step
between two layers, x + attention + feed-forward and the next two LayerNorms, is done in five ways:

    library      two additions and two LayerNorms of PyTorch's
    lone add     one kernel for the two additions, launched by ctypes; PyTorch's LayerNorms
    custom op    the same kernel, registered by torch.library.custom_op
    twice        one kernel for all, fp16 stream, each sum rounded
    once         one kernel for all, fp16 stream, one rounding
    ours         one kernel for all, the stream in fp32, as in lab 14

Prints JSON lines: microseconds of a step alone, from Python and in a graph of many; LayerNorm(x) + residual, which
this model has no place for, in the same way; ms a token, from Python and as one CUDA graph; and, with the shipped
tiny_neox in fp16, how far a text is from that of the library's step. Compiles fusions.cu with nvcc.
"""

import argparse
import ctypes
import json
import pathlib
import struct
import subprocess
import tempfile

import torch
import torch.nn.functional as F

SHAPES = {"160m": (768, 3072, 12, 12, 50304), "2.8b": (2560, 10240, 32, 32, 50304)}
SINKS, WINDOW, EPS = 4, 1020, 1e-5
WAYS = ["library", "lone add", "custom op", "twice", "once", "ours"]
ROUNDINGS = {"twice": 2, "once": 1, "ours": 0}
dev, dt = "cuda", torch.float16
here = pathlib.Path(__file__).resolve().parent


# ---- The kernels ----


def compiled():
    path = tempfile.mkdtemp() + "/fusions.so"
    subprocess.run(["nvcc", "-O3", "-shared", "-Xcompiler", "-fPIC", "-arch=native", "-o", path, here / "fusions.cu"],
                   check=True)
    return ctypes.CDLL(path)


def pointer(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


def stream():
    return ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)


kernels = None


def add(x, a, m):
    out = torch.empty_like(x)
    kernels.launch_add(pointer(out), pointer(x), pointer(a), pointer(m), x.numel(), stream())
    return out


def norm_add(x, residual, weight, bias):
    out = torch.empty_like(x)
    C = x.shape[-1]
    kernels.launch_norm_add(pointer(out), pointer(x), pointer(residual), pointer(weight), pointer(bias),
                            x.numel() // C, C, ctypes.c_float(EPS), stream())
    return out


def add_norms(x, a, m, n1, n2, roundings):
    """x += a + m in place; both norms of the sum."""
    y1, y2 = torch.empty_like(a), torch.empty_like(a)
    C = x.shape[-1]
    kernels.launch_add_norms(pointer(x), pointer(a), pointer(m), pointer(y1), pointer(n1[0]), pointer(n1[1]),
                             pointer(y2), pointer(n2[0]), pointer(n2[1]), x.numel() // C, C, ctypes.c_float(EPS),
                             roundings, stream())
    return y1, y2


registered = None


def norms(x, n1, n2):
    C = x.shape[-1]
    return F.layer_norm(x, (C,), *n1, EPS), F.layer_norm(x, (C,), *n2, EPS)


def between(way, x, a, m, n1, n2):
    """The step between two layers. Returns the stream and both norms."""
    if way in ROUNDINGS:
        return (x, *add_norms(x, a, m, n1, n2, ROUNDINGS[way]))
    x = x + a + m if way == "library" else (add if way == "lone add" else registered)(x, a, m)
    return (x, *norms(x, n1, n2))


# ---- A model ----


class Model:
    """Weights by name, as lists of layers; keys before rotary embedding, in a cache of `rows` for `batch` texts."""

    def __init__(self, C, NH, rotary, layers, embedding, classifier, final, rows, batch):
        self.C, self.NH, self.HS, self.R = C, NH, C // NH, rotary
        self.layers, self.emb, self.cls, self.fin = layers, embedding, classifier, final
        for w in layers:
            w["k"] = torch.zeros(batch, rows, NH, self.HS, device=dev, dtype=dt)
            w["v"] = torch.zeros(batch, rows, NH, self.HS, device=dev, dtype=dt)
        f = 10000.0 ** (-torch.arange(0, rotary, 2, device=dev) / rotary)
        a = torch.arange(rows, device=dev)[:, None] * f
        self.cos, self.sin = torch.cat([a.cos(), a.cos()], 1).to(dt), torch.cat([a.sin(), a.sin()], 1).to(dt)

    def rotate(self, x, cos, sin):  # x (..., rows, NH, HS)
        t, rest = x[..., :self.R], x[..., self.R:]
        a, b = t.chunk(2, -1)
        return torch.cat([t * cos[:, None] + torch.cat([-b, a], -1) * sin[:, None], rest], -1)

    def attend(self, w, y, row, places, mask):
        batch = y.shape[0]
        q, k, v = F.linear(y, *w["qkv"]).view(batch, 3, 1, self.NH, self.HS).unbind(1)
        w["k"].index_copy_(1, row, k)
        w["v"].index_copy_(1, row, v)
        q = self.rotate(q, self.cos[places[row]], self.sin[places[row]])
        keys = self.rotate(w["k"], self.cos[places], self.sin[places])
        h = F.scaled_dot_product_attention(q.transpose(1, 2), keys.transpose(1, 2), w["v"].transpose(1, 2), mask)
        return F.linear(h.transpose(1, 2).reshape(batch, self.C), *w["o"])

    def step(self, way, tokens, row, places, mask=None):
        x = self.emb[tokens]
        stream32 = way == "ours"
        y1, y2 = norms(x, self.layers[0]["n1"], self.layers[0]["n2"])
        x = x.float() if stream32 else x
        for i, w in enumerate(self.layers):
            a = self.attend(w, y1, row, places, mask)
            m = F.linear(F.gelu(F.linear(y2, *w["up"])), *w["down"])
            n = self.layers[i + 1] if i + 1 < len(self.layers) else None
            x, y1, y2 = between(way, x, a, m, n["n1"] if n else self.fin, n["n2"] if n else self.fin)
        return F.linear(y1, self.cls)


def random_model(shape):
    C, H, L, NH, V = SHAPES[shape]
    r = lambda *s: (torch.randn(*s, device=dev) * 0.02).to(dt)
    layers = [dict(n1=(r(C) + 1, r(C)), n2=(r(C) + 1, r(C)), qkv=(r(3 * C, C), r(3 * C)), o=(r(C, C), r(C)),
                   up=(r(H, C), r(H)), down=(r(C, H), r(C))) for _ in range(L)]
    return Model(C, NH, C // NH // 4, layers, r(V, C), r(V, C), (r(C) + 1, r(C)), SINKS + WINDOW, 1)


def shipped_model(folder, rows, batch):
    """datasets/tiny_neox: a Hugging Face folder, query_key_value interleaved by heads."""
    config = json.loads((folder / "config.json").read_text())
    data = bytearray((folder / "model.safetensors").read_bytes())
    (length,) = struct.unpack("<Q", data[:8])
    head = json.loads(data[8:8 + length])
    C, NH = config["hidden_size"], config["num_attention_heads"]

    def get(name):
        first, end = head[name]["data_offsets"]
        kind = {"BF16": torch.bfloat16, "F32": torch.float32, "F16": torch.float16}[head[name]["dtype"]]
        flat = torch.frombuffer(data, dtype=kind, offset=8 + length + first, count=(end - first) // kind.itemsize)
        return flat.view(head[name]["shape"]).to(dev, dt)

    def both(name):
        return get(name + ".weight"), get(name + ".bias")

    def qkv(name):
        w, b = both(name)
        return (w.view(NH, 3, C // NH, C).transpose(0, 1).reshape(3 * C, C).contiguous(),
                b.view(NH, 3, C // NH).transpose(0, 1).reshape(3 * C).contiguous())

    layers = []
    for i in range(config["num_hidden_layers"]):
        p = f"gpt_neox.layers.{i}."
        layers.append(dict(n1=both(p + "input_layernorm"), n2=both(p + "post_attention_layernorm"),
                           qkv=qkv(p + "attention.query_key_value"), o=both(p + "attention.dense"),
                           up=both(p + "mlp.dense_h_to_4h"), down=both(p + "mlp.dense_4h_to_h")))
    embedding = get("gpt_neox.embed_in.weight")
    return Model(C, NH, int(config["rotary_pct"] * C // NH), layers, embedding, embedding,
                 both("gpt_neox.final_layer_norm"), rows, batch)


# ---- Times ----


def median_ms(call, runs):
    for _ in range(10):
        call()
    times = []
    for _ in range(runs):
        s, e = torch.cuda.Event(True), torch.cuda.Event(True)
        torch.cuda.synchronize()
        s.record(), call(), e.record()
        torch.cuda.synchronize()
        times.append(s.elapsed_time(e))
    return sorted(times)[runs // 2]


def captured(call):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        call(), call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def alone(call, times):
    """Microseconds a call: many from Python, and many in one graph."""
    def many():
        for _ in range(times):
            call()
    return dict(python_us=1e3 * median_ms(many, 20) / times, graph_us=1e3 * median_ms(captured(many), 20) / times)


def show(**record):
    print(json.dumps(dict(torch=torch.__version__, gpu=torch.cuda.get_device_name(), **record)), flush=True)


def time_alone(C):
    r = lambda: torch.randn(1, C, device=dev).to(dt)
    x, a, m, n1, n2 = r(), r(), r(), (r()[0], r()[0]), (r()[0], r()[0])
    for way in WAYS:
        own = x.float() if way == "ours" else x.clone()
        show(what="step alone", C=C, way=way, **alone(lambda: between(way, own, a, m, n1, n2), 200))
    show(what="two additions alone", C=C, way="library", **alone(lambda: x + a + m, 200))
    show(what="two additions alone", C=C, way="lone add", **alone(lambda: add(x, a, m), 200))
    show(what="two additions alone", C=C, way="custom op", **alone(lambda: registered(x, a, m), 200))
    show(what="LayerNorm(x) + residual", C=C, way="library",
         **alone(lambda: F.layer_norm(x, (C,), *n1, EPS) + a, 200))
    show(what="LayerNorm(x) + residual", C=C, way="one kernel", **alone(lambda: norm_add(x, a, *n1), 200))


def time_tokens(shape, runs):
    model = random_model(shape)
    token = torch.zeros(1, dtype=torch.long, device=dev)
    row = torch.full((1,), SINKS + WINDOW - 1, dtype=torch.long, device=dev)
    places = torch.arange(SINKS + WINDOW, device=dev)
    for again in range(2):  # the second round shows how far the first can be trusted
        for way in WAYS:
            call = lambda: model.step(way, token, row, places)
            show(what="token", shape=shape, way=way, round=again, python_ms=median_ms(call, runs),
                 graph_ms=median_ms(captured(call), runs))


# ---- Texts ----


def write(model, way, first, count, draw, forced=None):
    """Tokens (batch, count) and their logits; greedy or drawn; or the forced ones' logits."""
    batch, rows = first.shape[0], model.layers[0]["k"].shape[1]
    places = torch.arange(rows, device=dev)
    random = torch.Generator(dev).manual_seed(1)
    tokens, logits, token = [], [], first
    for t in range(count):
        mask = torch.where(places <= t, 0.0, float("-inf")).to(dt)[None, None, None, :]
        logits.append(model.step(way, token, places[t:t + 1], places, mask).float())
        token = logits[-1].argmax(-1)
        if draw:
            token = torch.multinomial(logits[-1].softmax(-1), 1, generator=random)[:, 0]
        if forced is not None:
            token = forced[:, t]
        tokens.append(token)
    return torch.stack(tokens, 1), torch.stack(logits, 1)


def compare_texts(folder, batch, count):
    model = shipped_model(folder, count, batch)
    begin = torch.full((batch,), 1, dtype=torch.long, device=dev)
    likely = write(model, "library", begin, 1, False)[1][0, 0].topk(batch).indices  # texts' first words
    own, _ = write(model, "library", likely, count, True)
    plain, logits = {}, {}
    for way in WAYS:
        again, logits[way] = write(model, way, likely, count, False, own)
        plain[way] = [write(model, way, likely, count, draw)[0] for draw in (False, True)]
    for way in WAYS:
        texts = {}
        for name, mine, other in zip(("greedy", "drawn"), plain[way], plain["library"]):
            differs = mine != other
            firsts = torch.where(differs.any(1), differs.float().argmax(1), count)
            texts[name] = dict(texts_that_differ=int(differs.any(1).sum()), median_first=int(firsts.median()))
        loss = F.cross_entropy(logits[way].flatten(0, 1), own.flatten())
        apart = (logits[way] - logits["library"]).abs().max() / logits["library"].abs().max()
        show(what="text", way=way, texts=batch, tokens=count, perplexity=float(loss.exp()),
             logits_apart=float(apart), **texts)


def main():
    global kernels, registered
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shapes", nargs="+", choices=SHAPES)
    parser.add_argument("--runs", type=int, default=40, help="timed tokens")
    parser.add_argument("--model", type=pathlib.Path, default=here.parent.parent / "datasets" / "tiny_neox")
    options = parser.parse_args()
    kernels = compiled()
    registered = torch.library.custom_op("warpbook::add", add, mutates_args=(),
                                         schema="(Tensor x, Tensor a, Tensor m) -> Tensor")
    with torch.no_grad():
        compare_texts(options.model, 32, 300)
        for shape in options.shapes:
            time_alone(SHAPES[shape][0])
            time_tokens(shape, options.runs)


if __name__ == "__main__":
    main()
