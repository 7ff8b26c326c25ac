"""Lab 05's operators in PyTorch, eager and compiled, beside a copy of the same rows."""

import torch
import torch.nn.functional as F

import yardstick

SHAPES = ((2048, 2560), (8192, 768), (32768, 1024), (16384, 4096), (8192, 16384), (4096, 50257))


def layernorm(x, weight, bias):
    return F.layer_norm(x, x.shape[-1:], weight, bias, 1e-5)


def rmsnorm(x, weight):
    return F.rms_norm(x, x.shape[-1:], weight, 1e-5)


def softmax(x):
    return F.softmax(x, -1)


def add_layernorm(x, residual, weight, bias):
    return F.layer_norm(x + residual, x.shape[-1:], weight, bias, 1e-5)


def cases(rows, C, dtype):
    """Yields (operator, function, operands, rows-sized arrays it must move)."""
    def random(*shape):
        return torch.randn(*shape, device="cuda", dtype=dtype)

    x, weight, bias = random(rows, C), random(C), random(C)
    yield "layernorm", layernorm, (x, weight, bias), 2
    yield "rmsnorm", rmsnorm, (x, weight), 2
    yield "softmax", softmax, (x,), 2
    yield "add_layernorm", add_layernorm, (x, random(rows, C), weight, bias), 3
    out = torch.empty_like(x)
    yield "copy", out.copy_, (x,), 2


def main():
    options = yardstick.arguments(__doc__)
    clock = yardstick.Clock(options.runs, not options.keep_cache)
    with torch.inference_mode():
        for rows, C in SHAPES:
            torch.compiler.reset()  # so that each shape is compiled as if it were the only one
            records = []
            for op, function, operands, arrays in cases(rows, C, torch.float32):
                stages = [("eager", function)]
                if op != "copy":
                    stages.append(("compile", torch.compile(function, dynamic=False)))
                for stage, run in stages:
                    times = clock.milliseconds(lambda: run(*operands))
                    moved = arrays * rows * C * operands[0].element_size()
                    records.append(yardstick.record("05_layernorm_softmax", stage, op,
                                                    f"{rows}x{C}", "fp32", times, moved))
            yardstick.report(records, options.output)


if __name__ == "__main__":
    main()
