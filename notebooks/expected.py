"""Counts from the files how many marks the figures must hold, independently of the drawing code.

A figure is named by its title and by 'measured' or 'modelled', with which its caption begins.
"""

import json
import re
from pathlib import Path


def rows(results, device):
    """All rows of a device's bench.jsonl and pytorch.jsonl, later ones last."""
    found = []
    for name in ("bench.jsonl", "pytorch.jsonl"):
        path = results / device / name
        if path.is_file():
            found += [json.loads(line) for line in path.read_text().splitlines()]
    return sorted(found, key=lambda row: row["time"])


def distinct(found, *fields):
    """Number of rows that differ in these fields."""
    return len({tuple(row[field] for field in fields) for row in found})


def _bert(found, shape):
    layouts = ("bert_dense", "bert_padded", "bert_packed")
    return [r for r in found if r["op"] in layouts and r["shape"] == shape]


def _decode(found):
    late = [r for r in found if r["op"] == "llama2_decode" and "context 16" in r["shape"]]
    late = [r for r in late if r["figure"] == "tokens_per_second"]
    labs = ("03_resident_weights", "09_kv_cache")
    early = [r for r in found if r["op"] == "decode" and r["lab"] in labs]
    early = [r for r in early if r["figure"] == "tokens_per_second" and r["subject"] == "solutions"]
    # '15M shape, random weights' and '15M, context 16' are one model.
    return len({(re.split("[ ,]", r["shape"])[0], r["stage"], r["dtype"]) for r in early + late})


def _epilogues(found):
    """Seven steps of each operation, at the first of its shapes."""
    found = [r for r in found if r["figure"] == "launches"]
    return distinct(found, "op", "stage")


def _kernels(found, lab, ops):
    found = [r for r in found if r["lab"] == lab and re.fullmatch(ops, r["op"])]
    found = [r for r in found if r["subject"] == "solutions" and r["flops"]]
    return distinct(found, "stage", "op", "shape", "dtype")


def _lines(path):
    return len({json.loads(line)["kernel"] for line in path.read_text().splitlines()})


def stage_timings(results):
    h200, simt = rows(results, "h200"), rows(results, "simt_h200")
    large, small = "BERT C768 L12, 16x512 tokens", "BERT C64 L2, 4x32 tokens"
    torch = [r for r in h200 if r["op"] == "bert_forward" and r["shape"] == "B16 T512"]
    dense = [r for r in h200 if r["op"] == "bert_dense" and r["dtype"] == "fp32"]
    bus = [r for r in h200 if r["figure"] == "bus_bytes_per_token" and r["lab"].startswith("03")]
    ladder = (results / "h200" / "decoder_ladder.csv").read_text().splitlines()
    steps = sum(not line.startswith("#") for line in ladder) - 1
    layer = [r for r in simt if r["figure"] == "launches_per_layer"]
    token = [r for r in simt if r["figure"] == "launches_per_token"]
    ways = [r for r in simt if r["op"] in ("token", "token_keys_anew", "token_text_anew")]
    batch, stage = "one batch of {} texts of up to {} tokens", "stage by stage"
    return {
        (f"BERT C768 L12: {batch.format(16, 512)}, {stage}", "measured"): (
            distinct(_bert(h200, large), "op", "stage", "dtype") + distinct(torch, "stage", "dtype")
        ),
        (f"BERT C64 L2: {batch.format(4, 32)}, {stage}", "modelled"): (
            distinct(_bert(simt, small), "op", "stage", "dtype")
        ),
        ("BERT, fp32: larger batches, more texts a second", "measured"): (
            distinct(dense, "stage", "shape")
        ),
        (f"Llama2, one token at a time, {stage}", "measured"): _decode(h200),
        (f"Llama2, one token at a time, {stage}", "modelled"): _decode(simt),
        ("Llama2: bytes over the bus for one token", "measured"): (
            distinct(bus, "stage", "shape", "subject")
        ),
        ("Llama2, lab 10: what each step did for a token", "measured"): 3 * steps,
        ("Llama2, small shape: a token at each position, three ways", "modelled"): len(ways),
        ("Lab 06: kernel launches of one call", "measured"): _epilogues(h200),
        ("Lab 06: kernel launches of one call", "modelled"): _epilogues(simt),
        ("BERT: launches of one layer", "modelled"): distinct(layer, "stage", "dtype"),
        ("Llama2: launches of one token", "modelled"): distinct(token, "stage", "dtype"),
        (
            "First step of each ladder against its last: the kernel, and the model around it",
            "measured",
        ): 12,
    }


def roofline(results):
    """Both panels of a ladder's figure must hold all its kernels."""
    h200 = rows(results, "h200")
    labs = {
        "Lab 02, matmul, few rows: every step under the roofs": ("02_gpu_matmul", "matmul"),
        "Lab 04, SGEMM: every step under the roofs": ("04_sgemm", "sgemm.*"),
        "Lab 05, norms and softmax of rows: every step under the roofs": ("05_layernorm_softmax", "layernorm|rmsnorm|softmax"),
        "Lab 06, matmuls with epilogues: every step under the roofs": ("06_fused_epilogues", "(gelu_)?linear.*"),
        "Lab 07, attention: every step under the roofs": ("07_attention", "attention.*"),
        "Lab 11, backward passes and AdamW: every step under the roofs": ("11_training", "(layernorm|attention)_backward|adamw"),
        "Gemm16, matmul of 16-bit numbers: every tile shape under the roofs": ("gemm16", "gemm16.*"),
    }  # fmt: skip
    wanted = {(title, "measured"): 2 * _kernels(h200, *lab) for title, lab in labs.items()}
    cpu = [r for r in rows(results, "amd_epyc") if not r["stage"].startswith("OpenBLAS")]
    title = "Lab 01, matmul on the CPU: every step under the roofs"
    wanted[title, "measured"] = 2 * _kernels(cpu, "01_cpu_matmul", "matmul")
    return wanted


def where_time_goes(results):
    copies = [r for r in rows(results, "h200") if r["figure"] == "copy_ms_per_token"]
    copies = [r for r in copies if r["stage"] == r["lab"] and r["shape"].startswith("15M ")]
    kernels = {
        verb: json.loads((results / device / "profile" / "bert" / "08.json").read_text())["kernels"]
        for device, verb in (("h200", "measured"), ("simt_h200", "modelled"))
    }
    return {
        ("BERT, stage 08 bert classifier: time by kernel", verb): min(len(rows), 11)
        for verb, rows in kernels.items()
    } | {
        ("Llama2, 15M: copies against all else, milliseconds of one token", "measured"): (
            3 * distinct(copies, "lab", "subject")
        ),
    }


def prediction_vs_measurement(results):
    measured = [
        results / "h200" / "simt" / f"{name}_times.jsonl" for name in ("calibration", "more")
    ]
    moved = (results / "h200" / "simt" / "transfers.jsonl").read_text().splitlines()
    moved = {(row["transfer"], row["bytes"]) for row in map(json.loads, moved) if row["bytes"]}
    return {
        ("simt's model against an H200: kernels", "measured"): sum(map(_lines, measured)),
        ("simt's model against an H200: copies", "measured"): 2 * len(moved),
    }


def training(results):
    """Both lines of a figure, with one mark for each row."""
    titles = {
        "reviews_bert_mlm": "reviews_bert, before it knew a label: masked pieces of reviews",
        "reviews_bert": "reviews_bert: good reviews from bad ones",
        "tiny_llama": "tiny_llama: the next piece of a review",
    }
    folder = results / "h200" / "training"
    return {
        (title, "measured"): len((folder / f"{name}.jsonl").read_text().splitlines())
        for name, title in titles.items()
    }


def of(notebook, results):
    """Expectations of a notebook: {(title, verb): marks}."""
    return {
        "stage_timings": stage_timings,
        "roofline": roofline,
        "where_time_goes": where_time_goes,
        "prediction_vs_measurement": prediction_vs_measurement,
        "training": training,
    }[notebook](Path(results))
