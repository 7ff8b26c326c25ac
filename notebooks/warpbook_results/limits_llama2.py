"""Llama2's prompts and tokens for limits.py, as lab 10's `ladder_bench --launches` records them."""

from . import limits
from .limits import BF16, F32, Operation, product

# C, hidden, layers, channels of queries, of keys, vocabulary
SHAPES = {
    "110M": (768, 2048, 12, 768, 768, 32000),
    "1.1B": (2048, 5632, 22, 2048, 256, 32000),
    "7B": (4096, 11008, 32, 4096, 4096, 32000),
}
STREAM = r"stream_kernel|gate_up|product_kernel"
NO_PRODUCT = r"(?!gemm16|rows_|stream_kernel|product_kernel|gate_up|embed|copy)"


def matrix(label, rows, columns):
    """One token's product: the matrix is read once."""
    return Operation(label, STREAM, bytes=BF16 * rows * columns, flops=2.0 * rows * columns)


def last_token(shape, position):
    """A layer and the classifier for one token: one label, as it is little beside a prompt."""
    C, hidden, _, heads, keys, V = SHAPES[shape]
    weights = (heads + 2 * keys) * C + heads * C + 3 * hidden * C + V * C
    return Operation("the last layer's token, logits", ".", ".",
                     BF16 * (weights + 2 * position * keys))


def prompt(shape, T):
    """A prompt of T tokens by d6, whose matrices of gate and up have their rows in turn."""
    C, hidden, layers, heads, keys, _ = SHAPES[shape]
    norm = Operation("norms", "rows_norm", bytes=(F32 + BF16) * T * C)

    def rotate(channels):
        return Operation("rotary embedding, cache", "rows_rotate", bytes=2 * BF16 * T * channels)

    layer = [
        norm,
        product("q, k, v", T, heads + 2 * keys, C),
        rotate(heads + 2 * keys),
        Operation("attention", NO_PRODUCT, NO_PRODUCT, BF16 * T * (2 * heads + 2 * keys),
                  2.0 * T * T * heads),
        product("attention's output", T, C, heads, F32, F32),
        norm,
        Operation("gate and up", limits.PRODUCT, limits.REDUCED,
                  BF16 * (T * C + 2 * hidden * C + T * hidden), 4.0 * T * hidden * C),
        product("down", T, C, hidden, F32, F32),
    ]
    return [
        Operation("copy of the ids", "copy to the device", bytes=4 * T),
        Operation("embedding", "rows_embed", bytes=(BF16 + F32) * T * C),
        *layer * (layers - 1),
        norm,
        product("q, k, v", T, 2 * keys, C),
        rotate(2 * keys),
        last_token(shape, T),
    ]


def token(shape, position):
    """A token by d5: five kernels a layer."""
    C, hidden, layers, heads, keys, V = SHAPES[shape]
    layer = [
        matrix("q, k, v", heads + 2 * keys, C),
        Operation("attention", NO_PRODUCT, NO_PRODUCT, 2 * BF16 * (position + 1) * keys),
        matrix("attention's output", C, heads),
        matrix("gate and up", 2 * hidden, C),
        matrix("down", C, hidden),
    ]
    return [
        Operation("drawing, top-p", "sample_", "sample_", F32 * V),
        Operation("embedding", "embed", bytes=BF16 * C),
        *layer * layers,
        matrix("logits", V, C),
    ]


def sources():
    """Title and operations of each list, by the name of its file."""
    made = {}
    for shape in SHAPES:
        T = 1024 if shape == "110M" else 2048
        made[f"llama2_prompt_{shape}_bf16"] = (
            f"Llama2 {shape}, a prompt of {T} tokens, bf16", lambda shape=shape, T=T: prompt(shape, T))
        made[f"llama2_token_{shape}_bf16"] = (
            f"Llama2 {shape}, a token after 16, bf16, kernel by kernel (d5)",
            lambda shape=shape: token(shape, 16))
    return made
