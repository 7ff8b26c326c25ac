"""Times PyTorch the way the benches time kernels, and writes the same JSON lines.

What a user would run instead of this project's kernels is measured beside them, in one run on one
card. Needs PyTorch on a machine with a GPU; nothing else in the project does.
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import time

import torch

SCHEMA = 1  # common/bench/bench.h: BENCH_SCHEMA
FLUSH_BYTES = 256 << 20  # larger than any L2


def arguments(description, extra=None):
    """Parses the flags all yardsticks share: --output FILE, --runs N, --keep-cache.

    `extra`, if given, adds flags of its own to the parser; one named "cpu", or "device" with the
    value "cpu", does without a GPU.
    """
    parser = argparse.ArgumentParser(description=description)
    if extra:
        extra(parser)
    parser.add_argument("--output", help="append JSON lines to this file")
    parser.add_argument("--runs", type=int, default=50, help="runs a median is taken of (%(default)s)")
    parser.add_argument("--keep-cache", action="store_true", help="do not empty L2 before each run")
    options = parser.parse_args()
    without = getattr(options, "cpu", False) or getattr(options, "device", None) == "cpu"
    if not torch.cuda.is_available() and not without:
        parser.exit(1, f"{parser.prog}: PyTorch sees no GPU\n")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(1)
    return options


class Clock:
    """Times calls by CUDA events; L2 is emptied before each run unless told otherwise.

    On device "cpu" it is the clock on the wall, and nothing is emptied.
    """

    def __init__(self, runs=50, flush=True, device="cuda"):
        self.runs = runs
        self.device = device
        flush = flush and device == "cuda"
        self.sweep = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda") if flush else None

    def milliseconds(self, call, warmup=5):
        """Returns the sorted times of `runs` calls in ms."""
        for _ in range(warmup):
            call()
        return sorted(self.by_events(call) if self.device == "cuda" else self.by_wall(call))

    def by_wall(self, call):
        marks = [time.perf_counter()]
        for _ in range(self.runs):
            call()
            marks.append(time.perf_counter())
        return [1e3 * (end - begin) for begin, end in zip(marks, marks[1:])]

    def by_events(self, call):
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
        return [begin.elapsed_time(end) for begin, end in pairs]


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


def median(times):
    return statistics.median(times)


def device():
    """What a record says of where it was timed."""
    if not torch.cuda.is_available():
        return {"kind": "cpu", "name": platform.processor() or platform.machine(),
                "modelled": False, "threads": torch.get_num_threads()}
    return {"kind": "gpu", "name": torch.cuda.get_device_name(), "modelled": False,
            "runtime": torch.version.cuda}


def record(lab, stage, op, shape, dtype, times, moved=None, flops=None, figure=None, value=None):
    """Returns one record of bench.h's schema, with PyTorch as subject."""
    per_second = 1e3 / median(times) / 1e9
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
        "device": device(),
        "ms": {"min": times[0], "median": median(times), "max": times[-1], "runs": len(times)},
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
        rate += f" {r['figure_value']:12.1f} {r['figure'].replace('_', ' ')}" if r["figure"] else ""
        print(f"{r['op']:32s} {r['shape']:24s} {r['dtype']:5s} {r['stage']:14s}"
              f" {r['ms']['median']:9.4f} ms {rate}", flush=True)
    if output:
        with open(output, "a", encoding="utf-8") as file:
            for r in records:
                file.write(json.dumps(r) + "\n")
