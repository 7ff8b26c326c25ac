"""Lab 07's attention in PyTorch (scaled_dot_product_attention), each backend that takes the case."""

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import yardstick

NAMES = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}
BACKENDS = (("chosen", None), ("flash", SDPBackend.FLASH_ATTENTION),
            ("cudnn", SDPBackend.CUDNN_ATTENTION), ("efficient", SDPBackend.EFFICIENT_ATTENTION))
# B, NH, T, HS, causal
SHAPES = ((16, 12, 512, 64, False), (16, 12, 128, 64, False), (1, 12, 512, 64, False),
          (4, 16, 2048, 128, True))


def measure(clock, shape, dtype, stage, backend):
    """Returns the record of one case, or None where the backend does not take it."""
    B, NH, T, HS, causal = shape
    q, k, v = (torch.randn(B, NH, T, HS, device="cuda", dtype=dtype) for _ in range(3))

    def run():
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    try:
        if backend is None:
            times = clock.milliseconds(run)
        else:
            with sdpa_kernel(backend):
                times = clock.milliseconds(run)
    except RuntimeError:
        return None
    flops = 4 * B * NH * T * T * HS // (2 if causal else 1)
    text = f"B{B} NH{NH} T{T} HS{HS}" + (" causal" if causal else "")
    return yardstick.record("07_attention", stage, "attention", text, NAMES[dtype], times,
                            flops=flops)


def main():
    options = yardstick.arguments(__doc__)
    clock = yardstick.Clock(options.runs, not options.keep_cache)
    records = []
    with torch.inference_mode():
        for dtype in NAMES:
            for shape in SHAPES:
                for stage, backend in BACKENDS:
                    r = measure(clock, shape, dtype, stage, backend)
                    records += [r] if r else []
    yardstick.report(records, options.output)


if __name__ == "__main__":
    main()
