"""A token of lab 14's large models in PyTorch: compiled, one CUDA graph, the same cache of sinks and a window.

A GPT-NeoX shape with random bf16 weights behind a full cache. Keys are kept before rotary embedding, and all of
them are rotated by their places for each token. The residual stream is bf16, where lab 14's is fp32. Prints one
JSON line a shape: the median of 100 tokens.
"""

import argparse
import json
import time

import torch
import torch.nn.functional as F

SHAPES = {"160m": (768, 3072, 12, 12, 50304), "2.8b": (2560, 10240, 32, 32, 50304),
          "6.9b": (4096, 16384, 32, 32, 50432)}
SINKS, WINDOW = 4, 1020
ROWS = SINKS + WINDOW
dev, dt = "cuda", torch.bfloat16


class Model:
    def __init__(self, C, H, L, NH, V):
        self.C, self.NH, self.HS = C, NH, C // NH
        self.R = self.HS // 4
        r = lambda *s: (torch.randn(*s, device=dev) * 0.02).to(dt)
        self.emb, self.cls = r(V, C), r(V, C)
        self.fin = (r(C) + 1, r(C))
        self.layers = [dict(n1=(r(C) + 1, r(C)), n2=(r(C) + 1, r(C)), qkv=(r(3 * C, C), r(3 * C)), o=(r(C, C), r(C)),
                            up=(r(H, C), r(H)), down=(r(C, H), r(C)),
                            k=torch.zeros(ROWS, NH, self.HS, device=dev, dtype=dt),
                            v=torch.zeros(ROWS, NH, self.HS, device=dev, dtype=dt)) for _ in range(L)]
        f = 10000.0 ** (-torch.arange(0, self.R, 2, device=dev) / self.R)
        a = torch.arange(ROWS, device=dev)[:, None] * f
        self.cos, self.sin = torch.cat([a.cos(), a.cos()], 1).to(dt), torch.cat([a.sin(), a.sin()], 1).to(dt)

    def rotate(self, x, cos, sin):  # x (rows, NH, HS)
        t, rest = x[..., :self.R], x[..., self.R:]
        a, b = t.chunk(2, -1)
        return torch.cat([t * cos[:, None] + torch.cat([-b, a], -1) * sin[:, None], rest], -1)

    def step(self, token, row, places):
        # row: (1,) of the new token; places: (ROWS,) of the rows; the new token's place is ROWS - 1
        x = self.emb[token]
        C = self.C
        cos, sin = self.cos[places], self.sin[places]
        for w in self.layers:
            y = F.layer_norm(x, (C,), *w["n1"])
            q, k, v = F.linear(y, *w["qkv"]).view(3, 1, self.NH, self.HS)
            w["k"].index_copy_(0, row, k)
            w["v"].index_copy_(0, row, v)
            q = self.rotate(q, self.cos[-1:], self.sin[-1:])
            keys = self.rotate(w["k"], cos, sin)
            h = F.scaled_dot_product_attention(q.transpose(0, 1), keys.transpose(0, 1), w["v"].transpose(0, 1))
            a = F.linear(h.transpose(0, 1).reshape(1, C), *w["o"])
            m = F.linear(F.gelu(F.linear(F.layer_norm(x, (C,), *w["n2"]), *w["up"])), *w["down"])
            x = x + a + m
        return F.linear(F.layer_norm(x, (C,), *self.fin), self.cls)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shapes", nargs="+", choices=SHAPES)
    for name in parser.parse_args().shapes:
        C, H, L, NH, V = SHAPES[name]
        m = Model(C, H, L, NH, V)
        token = torch.zeros(1, dtype=torch.long, device=dev)
        row = torch.full((1,), SINKS, dtype=torch.long, device=dev)
        places = torch.arange(ROWS, device=dev)
        begin = time.time()
        step = torch.compile(m.step, fullgraph=True, dynamic=False)
        with torch.no_grad():
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                for _ in range(3):
                    step(token, row, places)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                step(token, row, places)
            compiled = time.time() - begin
            for _ in range(20):
                graph.replay()
            times = []
            for _ in range(100):
                s, e = torch.cuda.Event(True), torch.cuda.Event(True)
                s.record(), graph.replay(), e.record()
                torch.cuda.synchronize()
                times.append(s.elapsed_time(e))
        weights = sum(t[0].numel() * 2 for w in m.layers for k, t in w.items() if k in ("qkv", "o", "up", "down"))
        weights += m.cls.numel() * 2
        cache = 2 * 2 * L * ROWS * C
        ms = sorted(times)[50]
        print(json.dumps(dict(shape=name, torch=torch.__version__, gpu=torch.cuda.get_device_name(), ms=ms,
                              gb_per_s=(weights + cache) / ms / 1e6, compile_s=compiled)), flush=True)
        del m, graph, step
        torch.cuda.empty_cache()
        torch._dynamo.reset()


if __name__ == "__main__":
    main()
