"""Trains BERT in PyTorch from the weights and batches of lab 11's `losses`, and compares the losses.

    losses --export DIR >DIR/fp32; losses --dtype bf16 >DIR/bf16
    pytorch_losses.py DIR --ours fp32=DIR/fp32 --ours bf16=DIR/bf16

PyTorch trains in fp64, in fp32 (TF32 off, the type that ours is), in tf32 and in bf16 (autocast),
eagerly, with the same learning rates, clipping and AdamW (fused). Printed are some steps of each
curve, and for each pair of curves the largest difference of a step and the mean one. Rounding
grows from step to step, so what is to be expected is as much as PyTorch's own types differ.
"""

import json
import pathlib

import torch
from torch import nn

import pytorch_training
import yardstick

DTYPES = ("fp64", "fp32", "tf32", "bf16")
LABELS = 2
# Ours, by the last words of Hugging Face's names: in pytorch_training.py.
NAMES = {
    "attention.output.dense": "out",
    "attention.output.LayerNorm": "middle_norm",
    "intermediate.dense": "up",
    "output.dense": "down",
    "output.LayerNorm": "norm",
}
OUTER = {
    "word_embeddings": "word",
    "position_embeddings": "position",
    "token_type_embeddings": "kind",
    "embeddings.LayerNorm": "norm",
    "pooler.dense": "pooler",
    "classifier": "classifier",
}


def read(path, dtype):
    return torch.frombuffer(bytearray(path.read_bytes()), dtype=dtype)


def weights_of(folder):
    """Name to tensor, as `losses` has them."""
    values, at, weights = read(folder / "weights.f32", torch.float32), 0, {}
    for line in (folder / "weights.txt").read_text().splitlines():
        name, rows, columns = line.split()
        shape = [int(n) for n in (rows, columns) if n != "0"]
        count = torch.Size(shape).numel()
        weights[name] = values[at:at + count].reshape(shape)
        at += count
    if at != values.numel():
        raise SystemExit(f"{folder}: {values.numel()} values, {at} named")
    return weights


def of_layer(weights, name, kind):
    """A parameter of a layer; query, key and value lie in one matrix."""
    for theirs, ours in NAMES.items():
        if name == ours:
            return weights[f"{theirs}.{kind}"]
    parts = [weights[f"attention.self.{part}.{kind}"] for part in ("query", "key", "value")]
    return torch.cat(parts)


def load(model, weights):
    """Sets every parameter of a pytorch_training.Bert; every tensor of `losses` is used."""
    def ending(end):
        found = [name for name in weights if name.endswith(end) and ".layer." not in name]
        if len(found) != 1:
            raise SystemExit(f"no single tensor {end}: {found}")
        return weights[found[0]]

    state = {}
    for key in model.state_dict():
        module, kind = key.rsplit(".", 1)
        if module.startswith("layers."):
            _, number, name = module.split(".")
            mark = f".layer.{number}."
            layer = {n.split(mark)[1]: w for n, w in weights.items() if mark in n}
            state[key] = of_layer(layer, name, kind)
        else:
            outer = next(theirs for theirs, ours in OUTER.items() if ours == module)
            state[key] = ending(f"{outer}.{kind}")
    if sum(w.numel() for w in state.values()) != sum(w.numel() for w in weights.values()):
        raise SystemExit("the models have different sizes")
    model.load_state_dict(state)


def sizes_of(weights):
    word = next(w for n, w in weights.items() if n.endswith("word_embeddings.weight"))
    up = next(w for n, w in weights.items() if n.endswith("intermediate.dense.weight"))
    layers = 1 + max(int(n.split(".layer.")[1].split(".")[0]) for n in weights if ".layer." in n)
    C = word.shape[1]
    return pytorch_training.Sizes(C=C, hidden=up.shape[0], L=layers, NH=12 if C == 768 else 2,
                                  V=word.shape[0], labels=LABELS)


def rate_of(step, steps, rate):
    """As common/train/program/schedule.h; steps count from 0."""
    warmup = steps // 10
    if step < warmup:
        return rate * (step + 1) / warmup
    return rate * (steps - step) / (steps - warmup)


def train(options, dtype, weights, ids, labels):
    """Returns the loss of each step."""
    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    model = pytorch_training.Bert(sizes_of(weights), ids.shape[2], 0.0)
    load(model, weights)
    model = model.to(options.device, torch.float64 if dtype == "fp64" else torch.float32)
    optimizer, losses = pytorch_training.adamw(model, options.device), []
    for step in range(ids.shape[0]):
        for group in optimizer.param_groups:
            group["lr"] = rate_of(step, ids.shape[0], options.lr)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(options.device, torch.bfloat16, enabled=dtype == "bf16"):
            loss = model(ids[step], labels[step])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    return [float(loss) for loss in losses]


def ours_of(texts):
    """{"ours, fp32": losses} of NAME=FILE."""
    curves = {}
    for text in texts:
        name, path = text.split("=", 1)
        lines = pathlib.Path(path).read_text().splitlines()
        curves[f"ours, {name}"] = [float(line.split()[1]) for line in lines]
    return curves


def show(curves):
    steps = min(len(losses) for losses in curves.values())
    looked_at = sorted({0, 1, steps // 10, steps // 4, steps // 2, 3 * steps // 4, steps - 1})
    print("step " + "".join(f"{name:>16s}" for name in curves))
    for step in looked_at:
        print(f"{step + 1:4d} " + "".join(f"{c[step]:16.7f}" for c in curves.values()))
    names = list(curves)
    print("\nlargest and mean difference of a step's loss, and the step of the largest")
    for i, first in enumerate(names):
        for second in names[i + 1:]:
            apart = [abs(a - b) for a, b in zip(curves[first], curves[second])]
            print(f"{first:16s} {second:16s} {max(apart):.2e} {sum(apart) / len(apart):.2e}"
                  f" {apart.index(max(apart)) + 1:4d}")


def flags(parser):
    parser.add_argument("folder", type=pathlib.Path, help="that `losses --export` wrote")
    parser.add_argument("--ours", action="append", default=[], metavar="NAME=FILE",
                        help="what `losses` printed")
    parser.add_argument("--lr", type=float, default=5e-5, help="as of `losses` (%(default)s)")
    parser.add_argument("--batch-size", type=int, default=16, help="as of `losses` (%(default)s)")
    parser.add_argument("--dtype", type=pytorch_training.listed(str, DTYPES), default=DTYPES,
                        metavar="TYPE,...", help="of " + ",".join(DTYPES) + " (all)")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="%(default)s")


def main():
    options = yardstick.arguments(__doc__, flags)
    pytorch_training.DROPOUT = 0.0
    weights = weights_of(options.folder)
    labels = read(options.folder / "labels.i32", torch.int32).long()
    labels = labels.reshape(-1, options.batch_size).to(options.device)
    ids = read(options.folder / "ids.i32", torch.int32).long()
    ids = ids.reshape(*labels.shape, -1).to(options.device)
    curves = {}
    for dtype in options.dtype:
        curves[f"PyTorch, {dtype}"] = train(options, dtype, weights, ids, labels)
    curves.update(ours_of(options.ours))
    show(curves)
    if options.output:
        with open(options.output, "a", encoding="utf-8") as file:
            file.write(json.dumps(curves) + "\n")


if __name__ == "__main__":
    main()
