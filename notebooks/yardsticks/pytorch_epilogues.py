"""Lab 06's sublayers in PyTorch, eager and compiled: the times to compare with at M = 8192."""

import torch
import torch.nn.functional as F

import yardstick

M, C, HIDDEN = 8192, 768, 3072


def attention_output(x, w, b, residual, gain, shift):
    return F.layer_norm(residual + F.linear(x, w, b), (C,), gain, shift, 1e-12)


def ffn_first(x, w, b):
    return F.gelu(F.linear(x, w, b))


def ffn_second(x, w, b, residual, gain, shift):
    return F.layer_norm(residual + F.linear(F.gelu(x), w, b), (C,), gain, shift, 1e-12)


def residual_norm(a, b, gain, shift):
    return F.layer_norm(a + b, (C,), gain, shift, 1e-12)


def cases():
    """Yields (operator, shape, function, operands, FLOPs)."""
    def random(*shape):
        return torch.randn(*shape, device="cuda")

    norm = (random(C), random(C))
    yield ("linear", f"{M}x{C}x{C}", F.linear, (random(M, C), random(C, C)), 2 * M * C * C)
    yield ("linear", f"{M}x{C}x{HIDDEN}", F.linear, (random(M, HIDDEN), random(C, HIDDEN)),
           2 * M * C * HIDDEN)
    yield ("linear_residual_layernorm", f"{M}x{C}x{C}", attention_output,
           (random(M, C), random(C, C), random(C), random(M, C), *norm), 2 * M * C * C)
    yield ("gelu_linear_residual_layernorm", f"{M}x{C}x{HIDDEN}", ffn_second,
           (random(M, HIDDEN), random(C, HIDDEN), random(C), random(M, C), *norm),
           2 * M * C * HIDDEN)
    yield ("linear_gelu", f"{M}x{HIDDEN}x{C}", ffn_first,
           (random(M, C), random(HIDDEN, C), random(HIDDEN)), 2 * M * C * HIDDEN)
    yield ("residual_layernorm", f"{M}x{C}", residual_norm, (random(M, C), random(M, C), *norm),
           None)


def main():
    options = yardstick.arguments(__doc__)
    clock = yardstick.Clock(options.runs, not options.keep_cache)
    records = []
    with torch.inference_mode():
        for op, shape, function, operands, flops in cases():
            compiled = torch.compile(function)
            for stage, run in (("eager", function), ("compile", compiled)):
                times = clock.milliseconds(lambda: run(*operands))
                records.append(yardstick.record("06_fused_epilogues", stage, op, shape, "fp32",
                                                times, flops=flops))
    yardstick.report(records, options.output)


if __name__ == "__main__":
    main()
