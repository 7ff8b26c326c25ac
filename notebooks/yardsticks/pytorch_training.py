"""A training step of BERT in PyTorch: forward, loss, backward, clipping to norm 1, fused AdamW.

The model is the one that lab 11 trains: BERT-base with a classifier of two labels, dropout of 0.1
behind the embeddings, both sublayers and the pooler, none on attention's probabilities unless
--attention-dropout asks for it. Texts are all of the same length. Weights and moments are fp32
throughout; "fp32" has TF32 off, "tf32" has it on, "bf16" is autocast. With compilation the model
and its loss are compiled, forward and backward; "+ graph" is the whole step as one CUDA graph.

Steps follow each other without waiting, each between two events; the loss is looked at behind the
last. FLOPs are the model's: 6 for each weight of the encoder's matrices and token, and attention's
products, which the backward pass has twice; what is computed again is not counted.

With --device cpu --tiny it tries itself where there is no GPU.
"""

import gc
import math
import time
from dataclasses import dataclass, replace
from itertools import product

import torch
import torch.nn.functional as F
from torch import nn

import yardstick


@dataclass(frozen=True)
class Sizes:
    """Of the model: channels, hidden channels, layers, heads, words, labels."""

    C: int = 768
    hidden: int = 3072
    L: int = 12
    NH: int = 12
    V: int = 30522
    labels: int = 2

    def flops(self, B, T):
        """Of one step."""
        matrices = self.L * (4 * self.C * self.C + 2 * self.C * self.hidden)
        return 6 * matrices * B * T + 12 * self.L * B * T * T * self.C

    def shape(self, B, T):
        """As lab 11's bench calls it."""
        return f"BERT C{self.C} L{self.L}, {B}x{T} tokens"


TINY = Sizes(C=64, hidden=128, L=1, NH=2, V=200)
DROPOUT, EPS = 0.1, 1e-12
DTYPES = ("bf16", "fp32", "tf32")
WARMUP = 5
# How a model is called, and the mode of torch.compile; None: it is not compiled.
WAYS = {
    "eager": None,
    "compile": "default",
    "reduce-overhead": "reduce-overhead",
    "max-autotune": "max-autotune",
}


class Layer(nn.Module):
    """Post-norm encoder layer; query, key and value in one product."""

    def __init__(self, sizes, attention_dropout):
        super().__init__()
        C = sizes.C
        self.heads, self.attention_dropout = sizes.NH, attention_dropout
        self.qkv, self.out = nn.Linear(C, 3 * C), nn.Linear(C, C)
        self.up, self.down = nn.Linear(C, sizes.hidden), nn.Linear(sizes.hidden, C)
        self.middle_norm, self.norm = nn.LayerNorm(C, EPS), nn.LayerNorm(C, EPS)

    def forward(self, x):
        B, T, C = x.shape
        parts = self.qkv(x).view(B, T, 3, self.heads, C // self.heads)
        q, k, v = (part.transpose(1, 2) for part in parts.unbind(2))
        p = self.attention_dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=p)
        mixed = self.out(mixed.transpose(1, 2).reshape(B, T, C))
        x = self.middle_norm(x + F.dropout(mixed, DROPOUT, self.training))
        inner = self.down(F.gelu(self.up(x)))
        return self.norm(x + F.dropout(inner, DROPOUT, self.training))


class Bert(nn.Module):
    """A classifier of texts of T tokens: ids (B, T) and labels (B) to the mean loss."""

    def __init__(self, sizes, T, attention_dropout):
        super().__init__()
        C = sizes.C
        self.word, self.position = nn.Embedding(sizes.V, C), nn.Embedding(T, C)
        self.kind = nn.Embedding(2, C)
        self.norm = nn.LayerNorm(C, EPS)
        self.layers = nn.ModuleList(Layer(sizes, attention_dropout) for _ in range(sizes.L))
        self.pooler, self.classifier = nn.Linear(C, C), nn.Linear(C, sizes.labels)
        self.apply(self.draw)

    @staticmethod
    def draw(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)

    def forward(self, ids, labels):
        embedded = self.word(ids) + self.position.weight + self.kind.weight[0]
        x = F.dropout(self.norm(embedded), DROPOUT, self.training)
        for layer in self.layers:
            x = layer(x)
        pooled = F.dropout(torch.tanh(self.pooler(x[:, 0])), DROPOUT, self.training)
        logits = self.classifier(pooled)
        logits = logits if logits.dtype == torch.float64 else logits.float()
        return F.cross_entropy(logits, labels)


def adamw(model, device):
    """The optimiser: matrices and embeddings decay, norms and biases do not."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    groups = [{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}]
    # capturable: the count of steps stays on the GPU, as a graph of the whole step wants it
    return torch.optim.AdamW(groups, lr=2e-5, fused=True, capturable=device == "cuda")


class Step:
    """A model, its optimiser and a batch; calling it trains one step."""

    def __init__(self, options, case):
        device, sizes = options.device, sizes_of(options)
        torch.manual_seed(1)
        self.model = Bert(sizes, case.T, options.attention_dropout).to(device)
        self.optimizer = adamw(self.model, device)
        self.ids = torch.randint(sizes.V, (case.B, case.T), device=device)
        self.labels = torch.arange(case.B, device=device) % sizes.labels
        self.autocast = case.dtype == "bf16"
        self.device = device
        self.called = compiled(self.model, WAYS[case.way], options.per_layer)
        self.loss = None

    def __call__(self):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self.device, torch.bfloat16, enabled=self.autocast):
            loss = self.called(self.ids, self.labels)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.loss = loss.detach()


def compiled(model, mode, per_layer):
    """Returns what to call: each shape is compiled by itself, the best that it can do."""
    if mode is None:
        return model
    if per_layer:
        for layer in model.layers:
            layer.compile(dynamic=False, mode=mode)
        return model
    return torch.compile(model, dynamic=False, mode=mode)


def sizes_of(options):
    return TINY if options.tiny else Sizes()


@dataclass(frozen=True)
class Case:
    """One row: how the step is called, in which type, on texts of how many tokens."""

    way: str
    dtype: str
    B: int
    T: int

    def __str__(self):
        return f"{self.way} {self.dtype} {self.B}x{self.T}"


class Bench:
    """Measures cases until the time is over; what cannot be done is said, and the others go on."""

    def __init__(self, options):
        self.options = options
        self.clock = yardstick.Clock(options.runs, flush=False, device=options.device)
        self.begun = time.monotonic()
        self.graphs = []  # steps that are compiled, for graphs of them

    def measure(self, case, step, call):
        """Times a way to do the step, and reports it."""
        times = self.clock.milliseconds(call, warmup=WARMUP)
        loss, sizes = step.loss.item(), sizes_of(self.options)
        if not math.isfinite(loss):
            raise RuntimeError(f"the loss is {loss}")
        tokens = case.B * case.T
        record = yardstick.record("11_training", case.way, "training_step",
                                  sizes.shape(case.B, case.T), case.dtype, times,
                                  flops=sizes.flops(case.B, case.T), figure="tokens_per_second",
                                  value=1e3 * tokens / yardstick.median(times))
        yardstick.report([record], self.options.output)

    def plain(self, case):
        """The step as Python calls it."""
        step = Step(self.options, case)
        name = case.way + (" per layer" if self.options.per_layer and WAYS[case.way] else "")
        self.measure(replace(case, way=name), step, step)
        if case.way == "compile" and self.options.device == "cuda" and not self.options.no_graph:
            self.graphs.append((replace(case, way=name + " + graph"), step))

    def graph(self, case, step):
        """The whole step as one CUDA graph."""
        self.measure(case, step, yardstick.graphed(step))

    def attempt(self, case, call, *arguments):
        spent = time.monotonic() - self.begun
        if spent > self.options.seconds:
            print(f"{case}: left out after {spent:.0f} s", flush=True)
            return
        torch.backends.cuda.matmul.allow_tf32 = case.dtype == "tf32"
        try:
            call(case, *arguments)
        except RuntimeError as error:
            print(f"{case}: failed: {str(error).strip().splitlines()[0]}", flush=True)
        gc.collect()
        if self.options.device == "cuda":
            torch.cuda.empty_cache()

    def run(self):
        """Graphs come last: one that fails may leave PyTorch's random numbers unusable."""
        o = self.options
        for case in (Case(*c) for c in product(o.ways, o.dtype, [o.batch_size], o.max_length)):
            self.attempt(case, self.plain)
        while self.graphs:
            self.attempt(self.graphs[0][0], self.graph, self.graphs.pop(0)[1])


def listed(kind, choices=None):
    """A type of argparse: values with commas between."""
    def parse(text):
        values = tuple(kind(word) for word in text.split(","))
        if choices and not set(values) <= set(choices):
            raise ValueError
        return values
    parse.__name__ = "list of " + (", ".join(choices) if choices else "numbers")
    return parse


def flags(parser):
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="%(default)s")
    parser.add_argument("--tiny", action="store_true", help="a model of one small layer")
    parser.add_argument("--batch-size", type=int, default=16, help="texts a step (%(default)s)")
    parser.add_argument("--max-length", type=listed(int), default=(128, 512), metavar="N,...",
                        help="tokens a text (128,512)")
    parser.add_argument("--dtype", type=listed(str, DTYPES), default=DTYPES, metavar="TYPE,...",
                        help="of " + ",".join(DTYPES) + " (all)")
    parser.add_argument("--ways", type=listed(str, WAYS), default=("compile", "eager"),
                        metavar="WAY,...", help="of " + ",".join(WAYS) + " (compile,eager)")
    parser.add_argument("--per-layer", action="store_true",
                        help="compile a layer and not the model, which takes less time")
    parser.add_argument("--no-graph", action="store_true", help="leave the graphs out")
    parser.add_argument("--attention-dropout", type=float, default=0.0, metavar="P",
                        help="on attention's probabilities (%(default)s)")
    parser.add_argument("--seconds", type=float, default=240.0,
                        help="begin nothing after so many (%(default)s)")


def main():
    options = yardstick.arguments(__doc__, flags)
    if options.device == "cpu":
        options.dtype = [dtype for dtype in options.dtype if dtype != "tf32"]
    # Each case is compiled; one that no longer is would be timed as if it were.
    torch._dynamo.config.recompile_limit = 64
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    Bench(options).run()


if __name__ == "__main__":
    main()
