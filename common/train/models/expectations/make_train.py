#!/usr/bin/env python3
"""Records the training of Hugging Face's BERT and Llama with PyTorch: train.json beside this file.

Weights are not stored: each value is computed from its tensor's name and its index (see uniform()),
here and in model_testing.c. Stored are the sizes, the sequences with their labels, the gradient of
every parameter for the first batch, computed in fp64 (its norm, and some elements of each tensor),
and the loss of each of 200 steps of AdamW, in fp32 and in fp64, with the gradient clipped to a norm
of 1, warm-up and linear decay. Dropout is off.

The recording names the versions used:

    pip install torch==2.15.0 transformers==5.23.0 numpy==2.4.6
    python make_train.py
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

STEPS, WARMUP, RATE = 200, 20, 2e-3
BETAS, EPS, DECAY, MOST_NORM = (0.9, 0.999), 1e-8, 0.01, 1.0
SEQUENCES, BATCH, LONGEST, VOCABULARY, LABELS = 96, 8, 12, 50, 3
NOT_ASKED = -1


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


def integers(name, count, bound):
    """Reproducible integers in [0, bound)."""
    return numpy.floor((uniform(name, count) + 1) / 2 * bound).astype(int).tolist()


def fill(model):
    """Sets every parameter to its fp32 values; returns the parameters, tied ones once."""
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for name, parameter in parameters.items():
            u = uniform(name, parameter.numel())
            vector = parameter.dim() == 1
            values = u / 8 if vector else u / 4
            if vector and name.endswith(".weight"):
                values += 1
            values = torch.from_numpy(values.astype(numpy.float32))
            parameter.copy_(values.reshape(parameter.shape))
    return parameters


def sequences_of(task):
    """List of [ids, labels]; labels are one for each row, or one class. Ids follow a rule, with noise."""
    lengths = integers(task + " lengths", SEQUENCES, LONGEST - 2)
    classes = integers(task + " classes", SEQUENCES, LABELS)
    made = []
    for s in range(SEQUENCES):
        length = lengths[s] + 3
        noise = integers(f"{task} noise {s}", length, VOCABULARY)
        seldom = integers(f"{task} seldom {s}", length, 4)
        ids = [noise[0]]
        for t in range(1, length):
            by_rule = (3 * ids[-1] + 7 * classes[s] + 1) % VOCABULARY
            ids.append(noise[t] if seldom[t] == 0 else by_rule)
        labels = classes[s]
        if task == "lm":
            labels = ids[1:] + [NOT_ASKED]
        if task == "mlm":
            masked = integers(f"{task} hidden {s}", length, 4)  # the seed text of the recording
            masked[length // 2] = 0
            labels = [ids[t] if masked[t] == 0 else NOT_ASKED for t in range(length)]
            ids = [0 if masked[t] == 0 else ids[t] for t in range(length)]
        made.append([ids, labels])
    return made


def losses_of(model, task, batch):
    """The sum of the losses of all labels, and the number of labels; sequences are padded at the end."""
    width = max(len(ids) for ids, _ in batch)
    ids = torch.zeros((len(batch), width), dtype=torch.int64)
    mask = torch.zeros((len(batch), width), dtype=torch.int64)
    labels = torch.full((len(batch), width), NOT_ASKED, dtype=torch.int64)
    for b, (sequence, asked) in enumerate(batch):
        ids[b, : len(sequence)] = torch.tensor(sequence)
        mask[b, : len(sequence)] = 1
        if task != "classify":
            labels[b, : len(sequence)] = torch.tensor(asked)
    logits = model(input_ids=ids, attention_mask=mask).logits
    if task == "classify":
        labels = torch.tensor([asked for _, asked in batch])
    loss = torch.nn.functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), labels.reshape(-1), ignore_index=NOT_ASKED,
        reduction="sum")
    return loss, int((labels != NOT_ASKED).sum())


def rate_of(step):
    """The factor of the learning rate at a step, counted from 0."""
    return (step + 1) / WARMUP if step < WARMUP else (STEPS - step) / (STEPS - WARMUP)


def train(model, task, data):
    """The loss of each step."""
    parameters = fill(model)
    groups = [
        {"params": [p for p in parameters.values() if p.dim() > 1], "weight_decay": DECAY},
        {"params": [p for p in parameters.values() if p.dim() == 1], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, lr=RATE, betas=BETAS, eps=EPS)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, rate_of)
    losses = []
    for step in range(STEPS):
        first = step * BATCH % SEQUENCES
        loss, count = losses_of(model, task, data[first : first + BATCH])
        loss = loss / count
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters.values(), MOST_NORM)
        optimiser.step()
        schedule.step()
        losses.append(float(loss.detach()))
    return losses


def gradients(model, task, data):
    parameters = fill(model)
    loss, count = losses_of(model, task, data[:BATCH])
    (loss / count).backward()
    return float((loss / count).detach()), {name: p.grad.double() for name, p in parameters.items()}


def record(name, gradient):
    """Some elements in row-major order, and the norm of all."""
    flat = gradient.reshape(-1)
    stride = flat.numel() // 12 + 1
    return {"name": name, "count": flat.numel(), "stride": stride,
            "norm": float("%.15g" % flat.norm()),
            "values": [float("%.12g" % value) for value in flat[::stride].tolist()]}


def build(case):
    config = case["config"]
    config._attn_implementation = "eager"
    data = sequences_of(case["task"])

    def make():
        return getattr(transformers, case["model"])(config).eval()

    loss, precise = gradients(make().double(), case["task"], data)
    _, single = gradients(make(), case["task"], data)
    whole = torch.sqrt(sum((g**2).sum() for g in precise.values()))
    apart = torch.sqrt(sum(((single[name] - g) ** 2).sum() for name, g in precise.items()))
    losses, exact = train(make(), case["task"], data), train(make().double(), case["task"], data)
    return {
        "name": case["name"], "task": case["task"], "model": case["model"], "sizes": case["sizes"],
        "batch": BATCH, "sequences": [ids for ids, _ in data],
        "labels": [asked for _, asked in data],
        "loss": loss, "norm": float(whole), "framework_fp32_error": float(apart / whole),
        "gradient": [record(name, g) for name, g in precise.items()],
        "losses": [float("%.8g" % value) for value in losses],
        "losses_fp64": [float("%.8g" % value) for value in exact],
        "framework_fp32_loss_error": max(abs(a - b) / b for a, b in zip(losses, exact)),
    }


def bert(task, model, name):
    sizes = {"C": 32, "hidden": 64, "L": 2, "NH": 2, "V": VOCABULARY, "T": 16, "types": 2,
             "labels": LABELS, "norm_eps": 1e-12}
    config = transformers.BertConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        vocab_size=VOCABULARY, max_position_embeddings=16, type_vocab_size=2, num_labels=LABELS,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, layer_norm_eps=1e-12,
        pad_token_id=None)  # else the embedding of id 0 would have no gradient
    return {"name": name, "task": task, "model": model, "sizes": sizes, "config": config}


def llama(tied, name):
    sizes = {"C": 64, "hidden": 88, "L": 2, "NH": 4, "KVH": 2, "HS": 16, "V": VOCABULARY, "T": 16,
             "rope_theta": 100.0, "norm_eps": 1e-5, "tied": tied}
    config = transformers.LlamaConfig(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        head_dim=16, intermediate_size=88, vocab_size=VOCABULARY, max_position_embeddings=16,
        rms_norm_eps=1e-5, rope_parameters={"rope_type": "default", "rope_theta": 100.0},
        tie_word_embeddings=tied, attention_dropout=0.0)
    return {"name": name, "task": "lm", "model": "LlamaForCausalLM", "sizes": sizes,
            "config": config}


def main():
    torch.set_num_threads(1)
    cases = [bert("classify", "BertForSequenceClassification", "classifier"),
             bert("mlm", "BertForMaskedLM", "masked"),
             llama(False, "language"), llama(True, "language_tied")]
    document = {
        "made_by": "common/train/models/expectations/make_train.py",
        "versions": {"python": platform.python_version(), "torch": torch.__version__,
                     "transformers": transformers.__version__, "numpy": numpy.__version__},
        "update": {"rate": RATE, "warmup": WARMUP, "steps": STEPS, "beta1": BETAS[0],
                   "beta2": BETAS[1], "eps": EPS, "decay": DECAY, "most_norm": MOST_NORM},
        "cases": [build(case) for case in cases],
    }
    text = json.dumps(document, separators=(", ", ": "))
    path = pathlib.Path(__file__).with_name("train.json")
    path.write_text(text.replace('{"name"', '\n{"name"') + "\n")
    for case in document["cases"]:
        print(case["name"], "gradient, fp32 against fp64: %.1e;" % case["framework_fp32_error"],
              "losses: %.1e" % case["framework_fp32_loss_error"],
              "from %.4f to %.4f, least %.4f" % (case["losses"][0], case["losses"][-1],
                                                 min(case["losses"])))


if __name__ == "__main__":
    main()
