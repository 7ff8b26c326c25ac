"""Times PyTorch the way the benches time kernels, and writes the same JSON lines.

What a user would run instead of this project's kernels is measured beside them, in one run on one
card. Needs PyTorch on a machine with a GPU; nothing else in the project does.
"""

import argparse
import datetime
import json
import os
import statistics

import torch

SCHEMA = 1  # common/bench/bench.h: BENCH_SCHEMA
FLUSH_BYTES = 256 << 20  # larger than any L2


def arguments(description, extra=None):
    """Parses the flags all yardsticks share: --output FILE, --runs N, --keep-cache.

    `extra`, if given, adds flags of its own to the parser; one named "cpu" does without a GPU.
    """
    parser = argparse.ArgumentParser(description=description)
    if extra:
        extra(parser)
    parser.add_argument("--output", help="append JSON lines to this file")
    parser.add_argument("--runs", type=int, default=50, help="runs a median is taken of (%(default)s)")
    parser.add_argument("--keep-cache", action="store_true", help="do not empty L2 before each run")
    options = parser.parse_args()
    if not torch.cuda.is_available() and not getattr(options, "cpu", False):
        parser.exit(1, f"{parser.prog}: PyTorch sees no GPU\n")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(1)
    return options


class Clock:
    """Times calls by CUDA events; L2 is emptied before each run unless told otherwise."""

    def __init__(self, runs=50, flush=True):
        self.runs = runs
        self.sweep = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda") if flush else None

    def milliseconds(self, call, warmup=5):
        """Returns the sorted times of `runs` calls in ms."""
        for _ in range(warmup):
            call()
        pairs = []
        for _ in range(self.runs):
            if self.sweep is not None:
                self.sweep.zero_()
            begin = torch.cuda.Event(enable_timing=True)
            end = torch.cuda.Event(enable_timing=True)
            begin.record()
            call()
            end.record()
            pairs.append((begin, end))
        torch.cuda.synchronize()
        return sorted(begin.elapsed_time(end) for begin, end in pairs)


def graphed(call):
    """Returns a replay of `call` as a CUDA graph, free of the time Python takes to launch."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def record(lab, stage, op, shape, dtype, times, moved=None, flops=None, figure=None, value=None):
    """Returns one record of bench.h's schema, with PyTorch as subject."""
    median = statistics.median(times)
    per_second = 1e3 / median / 1e9
    return {
        "schema": SCHEMA,
        "time": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": os.environ.get("WARPBOOK_COMMIT"),
        "lab": lab,
        "subject": f"pytorch {torch.__version__}",
        "stage": stage,
        "op": op,
        "shape": shape,
        "dtype": dtype,
        "device": {"kind": "gpu", "name": torch.cuda.get_device_name(), "modelled": False,
                   "runtime": torch.version.cuda},
        "ms": {"min": times[0], "median": median, "max": times[-1], "runs": len(times)},
        "bytes": moved,
        "flops": flops,
        "gb_per_s": moved * per_second if moved else None,
        "gflop_per_s": flops * per_second if flops else None,
        "peer": None,
        "peer_ratio": None,
        "figure": figure,
        "figure_value": value,
    }


def report(records, output):
    """Prints a table and appends the records to `output`, if it is given."""
    for r in records:
        rate = f"{r['gb_per_s']:8.0f} GB/s" if r["gb_per_s"] else ""
        rate += f"{r['gflop_per_s'] / 1e3:8.1f} TFLOP/s" if r["gflop_per_s"] else ""
        print(f"{r['op']:32s} {r['shape']:24s} {r['dtype']:5s} {r['stage']:14s}"
              f" {r['ms']['median']:9.4f} ms {rate}", flush=True)
    if output:
        with open(output, "a", encoding="utf-8") as file:
            for r in records:
                file.write(json.dumps(r) + "\n")
