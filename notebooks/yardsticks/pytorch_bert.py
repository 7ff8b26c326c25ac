"""BERT-base in PyTorch (transformers, scaled_dot_product_attention): eager, compiled, and both as a CUDA graph.

Times a forward pass with ids already on the card: full batches, a batch of which half is padding,
and, with --lengths, batches padded as IMDB's reviews want it, with a mask. Weights are random, or
a checkpoint's. Each case is reported as soon as it is measured. In a graph it is
pytorch_training.py's model, of PyTorch's own layers, on full batches: transformers' waits for the GPU while it
looks at its mask, which cannot be recorded.

With --logits it times nothing: it computes the ids of a file that `classify --logits FILE` wrote
from the same checkpoint, prints the largest difference of the logits relative to the largest
logit, and fails above 1e-4.
"""

import copy
import json
import time

import torch
from transformers import BertConfig, BertForSequenceClassification

import pytorch_training
import yardstick

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
# Name: what torch.compile is asked for (None: it is not compiled), and whether a graph of it is replayed.
WAYS = {
    "eager": (None, False),
    "eager+graph": (None, True),
    "compile": ("default", False),
    "compile+graph": ("default", True),
    "max-autotune": ("max-autotune-no-cudagraphs", False),
    "max-autotune+graph": ("max-autotune-no-cudagraphs", True),
}
SHAPES = ((16, 512), (16, 128), (1, 128))
BATCH, TOKENS = 16, 512  # of the batches with lengths
TOLERANCE = 1e-4


def flags(parser):
    parser.add_argument("--checkpoint", metavar="DIR",
                        help="config.json and model.safetensors, as //datasets:random_bert writes "
                        "them; without: random weights")
    parser.add_argument("--lengths", metavar="FILE",
                        help="tokens of each text, a line each: what `bench --lengths` prints")
    parser.add_argument("--logits", metavar="FILE",
                        help="compare with what `classify --logits FILE` wrote, and end")
    parser.add_argument("--dtype", default="fp32,bf16", metavar="TYPE,...",
                        help="of " + ",".join(DTYPES) + " (%(default)s)")
    parser.add_argument("--ways", default="eager,compile", metavar="WAY,...",
                        help="of " + ",".join(WAYS) + " (%(default)s)")
    parser.add_argument("--per-layer", action="store_true",
                        help="compile a layer and not the model, which takes less time")
    parser.add_argument("--seconds", type=float, default=600.0,
                        help="begin nothing after so many (%(default)s)")
    parser.add_argument("--cpu", action="store_true", help="with --logits: do without a GPU")


def model_of(checkpoint, dtype, device="cuda"):
    if checkpoint:
        model = BertForSequenceClassification.from_pretrained(checkpoint,
                                                              attn_implementation="sdpa")
    else:
        config = BertConfig(num_labels=2, attn_implementation="sdpa")
        model = BertForSequenceClassification(config)
    return model.to(device).eval().to(dtype)


def compare(options):
    """Compares logits text by text; returns the exit status."""
    device = "cpu" if options.cpu else "cuda"
    with open(options.logits, encoding="utf-8") as file:
        texts = json.load(file)["texts"]
    model = model_of(options.checkpoint, torch.float32, device)
    worst = largest = 0.0
    with torch.inference_mode():
        for text in texts:
            ids = torch.tensor([text["ids"]], device=device)
            ours = torch.tensor(text["logits"], dtype=torch.float64)
            theirs = model(input_ids=ids).logits[0].double().cpu()
            if ours.shape != theirs.shape:
                raise SystemExit(f"{options.logits}: {len(ours)} logits a text, the checkpoint "
                                 f"has {len(theirs)}")
            worst = max(worst, (ours - theirs).abs().max().item())
            largest = max(largest, theirs.abs().max().item())
    difference = worst / largest
    good = difference <= TOLERANCE
    print(f"{len(texts)} texts: logits differ by at most {difference:.2e} of the largest, "
          f"{largest:.4f}: {'within' if good else 'NOT within'} {TOLERANCE:.0e}")
    return 0 if good else 1


def layers_of(model):
    return model.layers if hasattr(model, "layers") else model.bert.encoder.layer


def compiled(model, mode, per_layer):
    """Returns what to call; each shape is compiled by itself, the best that it can do."""
    if mode is None:
        return model
    if not per_layer:
        return torch.compile(model, dynamic=False, mode=mode)
    model = copy.deepcopy(model)
    for layer in layers_of(model):
        layer.compile(dynamic=False, mode=mode)
    return model


def forward(model, inputs):
    """Returns a call of transformers' model on one or more batches (ids, mask), one after the other."""
    def run():
        for ids, mask in inputs:
            model(input_ids=ids, attention_mask=mask)
    return run


def graph_of_forward(mode, per_layer, dtype, ids):
    """Returns the replay of a forward pass of PyTorch's own layers."""
    bare = pytorch_training.Bert(pytorch_training.Sizes(), ids.shape[1], 0.0)
    model = compiled(bare.to("cuda").eval().to(dtype), mode, per_layer)
    labels = torch.zeros(len(ids), dtype=torch.long, device="cuda")
    return yardstick.graphed(lambda: model(ids, labels))


def measure(clock, run, stage, dtype, texts, shape):
    """Returns the record of a call."""
    times = clock.milliseconds(run, warmup=8)
    return yardstick.record("08_bert_classifier", stage, "bert_forward", shape, dtype, times,
                            figure="sequences_per_second",
                            value=texts / times[len(times) // 2] * 1e3)


def try_case(clock, options, way, dtype, model, inputs, shape):
    """Measures and reports one case, or says why it could not."""
    mode, graph = WAYS[way]
    if graph and inputs[0][1] is not None:
        return
    try:
        run = (graph_of_forward(mode, options.per_layer, DTYPES[dtype], inputs[0][0]) if graph
               else forward(model, inputs))
        texts = sum(len(ids) for ids, _ in inputs)
        yardstick.report([measure(clock, run, way, dtype, texts, shape)], options.output)
    except RuntimeError as error:
        print(f"{way} {dtype} {shape}: failed: {str(error).splitlines()[0]}", flush=True)


def random_ids(B, T):
    return torch.randint(0, 30000, (B, T)).to("cuda")


def mask_of(lengths, T):
    """Returns 1 for the tokens of each text, 0 for the padding behind it."""
    lengths = torch.tensor(lengths, device="cuda")
    return (torch.arange(T, device="cuda")[None, :] < lengths[:, None]).long()


def half_padding(B, T):
    """Returns a mask of sequences of T / B, 2 T / B ... T tokens."""
    return mask_of([i * T // B for i in range(1, B + 1)], T)


def read_lengths(path):
    with open(path, encoding="utf-8") as file:
        return [min(int(word), TOKENS) for word in file.read().split()]


def padded(lengths):
    """Yields batches of 16 in the given order, each padded to its longest text."""
    for first in range(0, len(lengths), BATCH):
        part = lengths[first:first + BATCH]
        yield random_ids(len(part), max(part)), mask_of(part, max(part))


def cases(lengths):
    """Yields (batches, shape)."""
    for B, T in SHAPES:
        yield [(random_ids(B, T), None)], f"B{B} T{T}"
    yield [(random_ids(16, 512), half_padding(16, 512))], "B16 T512 half padding"
    if lengths:
        batches = list(padded(lengths))
        yield batches[:1], f"B{len(lengths[:BATCH])} T{TOKENS} padded lengths"
        if len(batches) > 1:
            yield batches, f"{len(lengths)} texts T{TOKENS} padded lengths, batches of {BATCH}"


def main():
    options = yardstick.arguments(__doc__, flags)
    if options.logits:
        if not options.checkpoint:
            raise SystemExit("--logits needs the --checkpoint that `classify` was given")
        raise SystemExit(compare(options))
    if options.cpu:
        raise SystemExit("--cpu goes with --logits: times are a GPU's")
    lengths = read_lengths(options.lengths) if options.lengths else []
    clock = yardstick.Clock(options.runs, not options.keep_cache)
    begun = time.monotonic()
    with torch.inference_mode():
        for dtype in options.dtype.split(","):
            plain = model_of(options.checkpoint, DTYPES[dtype])
            for way in options.ways.split(","):
                mode, graph = WAYS[way]
                model = None if graph else compiled(plain, mode, options.per_layer)
                for inputs, shape in cases(lengths):
                    if time.monotonic() - begun > options.seconds:
                        print(f"{way} {dtype} {shape}: left out", flush=True)
                    else:
                        try_case(clock, options, way, dtype, model, inputs, shape)


if __name__ == "__main__":
    main()
