"""Lab 07's attention in PyTorch (scaled_dot_product_attention), each backend that takes the case."""

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import yardstick

NAMES = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}
BACKENDS = (("chosen", None), ("flash", SDPBackend.FLASH_ATTENTION),
            ("cudnn", SDPBackend.CUDNN_ATTENTION), ("efficient", SDPBackend.EFFICIENT_ATTENTION))
# B, NH, T, HS, causal: the bench's, and some that it takes by --shape
SHAPES = ((16, 12, 512, 64, False), (16, 12, 128, 64, False), (1, 12, 128, 64, False),
          (4, 12, 4096, 64, False), (4, 16, 2048, 128, True), (4, 16, 8192, 128, True))


def tensors(shape, dtype, apart):
    """Returns q, k and v: thirds of one (tokens, 3C) matrix, as the bench's, or each head by itself."""
    B, NH, T, HS, _ = shape
    joined = torch.randn(B, T, 3, NH, HS, device="cuda", dtype=dtype)
    views = (x.transpose(1, 2) for x in joined.unbind(2))
    return [x.contiguous() for x in views] if apart else list(views)


def measure(clock, shape, dtype, stage, backend, apart):
    """Returns the record of one case, or None where the backend does not take it."""
    B, NH, T, HS, causal = shape
    q, k, v = tensors(shape, dtype, apart)

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
    flops = 4 * B * NH * (T * (T + 1) // 2 if causal else T * T) * HS
    text = f"b{B} h{NH} s{T} d{HS}" + (" causal" if causal else "")
    stage += ", heads apart" if apart else ""
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
                    for apart in (False, True):
                        r = measure(clock, shape, dtype, stage, backend, apart)
                        records += [r] if r else []
    yardstick.report(records, options.output)


if __name__ == "__main__":
    main()
