"""Questions of the prediction tables that need no measurement: their numbers follow from sizes.

//notebooks:predictions shows them to who has predicted. A question whose number depends on the
machine, or on how the learner counts, has no entry here.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Count:
    """Numbers of a question, which is found by the beginning of its text.

    `values` answer the question's first parts; records may answer the others. `how` is the sum in
    words.
    """

    lab: str
    begins: str
    unit: str
    values: tuple
    how: str


LANES, SECTOR, FLOAT = 32, 32, 4  # lanes of a warp; bytes of a sector and of a float
BF16 = 2
COALESCED = LANES * FLOAT // SECTOR


def _attention_bytes(queries):
    """K and V of 16 x 12 heads of 512 keys of 64 floats, once for each tile of queries."""
    return 16 * 12 * (512 // queries) * 512 * 64 * 2 * FLOAT


def _tile_flops_a_byte(tile):
    """One step of k: a column of A and a row of B."""
    return 2 * tile * tile / (2 * tile * FLOAT)


def _tiles(M, N, tile=128):
    return -(-M // tile) * -(-N // tile)


def _endless_bytes(rows):
    """Rows of k and of v: 32 heads of 80 channels in bf16."""
    return rows * 2 * 32 * 80 * 2


def _cut_7b_bytes():
    """Of bf16: half of each layer's matrices, and the whole classifier."""
    C, hidden = 4096, 11008
    return (32 * (4 * C * C + 3 * C * hidden) // 2 + 32000 * C) * BF16


_NORM_BYTES = 3 * 8192 * 768 * 2 + 8192 * 2 * FLOAT + 768 * 5 * FLOAT

COUNTS = [
    Count("02_gpu_matmul", "Sectors a load of `weight`", "sectors", (LANES, COALESCED),
          "a row for each lane; 32 lanes x 4 bytes in sectors of 32"),
    Count("02_gpu_matmul", "1 x 5632 x 2048: how many bytes", "MB", (1e-6 * FLOAT * (5632 * 2048 + 2048 + 5632),),
          "4 bytes x (N K + K + N)"),
    Count("03_resident_weights", "Bytes to the GPU for one token", "bytes", (0,),
          "the token's number is an argument of a launch"),
    Count("03_resident_weights", "Bytes from the GPU for one token", "bytes", (32000 * FLOAT,), "4 bytes a logit"),
    Count("03_resident_weights", "How many kernels does one token", "launches", (15 * 6 + 3,), "15 a layer, and 3"),
    Count("03_resident_weights", "Least ms of a token by launches", "ms", (93 * 0.0035,), "93 launches of 3.5 us"),
    Count("04_sgemm", "FLOPs per byte of global memory", "FLOP a byte",
          (_tile_flops_a_byte(32), _tile_flops_a_byte(128)), "2 T T FLOPs for 2 T floats of 4 bytes"),
    Count("04_sgemm", "Products per float read from shared memory", "products", (1 / 2, 16 / 8, 64 / 16),
          "R R products for 2 R floats"),
    Count("04_sgemm", "Number of 128 x 128 tiles", "tiles", (_tiles(2048, 768), _tiles(512, 512)),
          "16 x 6; 4 x 4"),
    Count("05_layernorm_softmax", "Sectors a load of x", "sectors", (LANES, COALESCED),
          "a row for each lane; 32 lanes x 4 bytes in sectors of 32"),
    Count("05_layernorm_softmax", "Bytes that each multiprocessor must have in flight", "bytes",
          (4.8e12 * 0.8e-6 / 132,), "bandwidth x latency / 132"),
    Count("06_fused_epilogues", "GELU as an epilogue", "a row", (3072, 3072 * 768 // 128),
          "each element once; once for each of 768 / 128 tiles of columns"),
    Count("07_attention", "Bytes of K and V that all blocks", "bytes", (_attention_bytes(1),),
          "192 heads x 512 blocks x 512 keys x 64 x 2 x 4 bytes"),
    Count("07_attention", "The same with 16 queries a block", "bytes", (_attention_bytes(16), _attention_bytes(128)),
          "a 16th; a 128th"),
    Count("07_attention", "128 queries a block: how many blocks", "blocks", (16 * 12 * 512 // 128, 12),
          "192 heads x 4 tiles; 12 heads x 1"),
    Count("08_bert_classifier", "Launches and copies of one batch", "", (5 + 4 + 14 * 12 + 1,),
          "the starter: 5 copies, 4 launches, 14 a layer, and 1"),
    Count("10_llama2_decoder", "Launches and copies of a step, 22 layers", "", (9 * 22 + 3 + 4, 6 * 22 + 4, 5 * 22 + 4),
          "9 a layer, 3 and 4 copies; 6 a layer and 4, drawn on the GPU; 5 a layer and 4"),
    Count("11_training", "Bytes that LayerNorm's gradient must move", "MB, ms", (1e-6 * _NORM_BYTES, 1e3 * _NORM_BYTES / 4.2e12),
          "dout, in, din of 2 bytes; two statistics a row; weight, and both gradients read and written"),
    Count("11_training", "Bytes of P and dS", "bytes", (2 * 16 * 12 * 256 * 256 * FLOAT,),
          "2 matrices x 192 heads x 256 x 256 x 4 bytes"),
    Count("11_training", "Products of S x S x HS", "products", (2, 5, 7), "2; S, dP, dV, dQ, dK; 4 and 3"),
    Count("11_training", "Bytes that AdamW must move", "bytes", (30, 54),
          "w, m and v twice, g, and 2 for the copy; see training.cu for the starter's"),
    Count("12_tensor_cores", "FLOP per byte of device memory", "FLOP a byte",
          (2 * 128 * 128 / (2 * 128 * BF16), 2 * 16 * 16 / (2 * 16 * BF16)), "2 T T FLOPs for 2 T numbers of 2 bytes"),
    Count("12_tensor_cores", "mma.sync.m16n8k16 in a product", "instructions", (128 * 128 * 64 // (16 * 8 * 16),),
          "8 x 16 x 4"),
    Count("12_tensor_cores", "Bytes of shared memory for a ring", "bytes", (4 * 2 * 128 * 64 * BF16,),
          "4 stages x 2 operands x 128 x 64 x 2 bytes"),
    Count("12_tensor_cores", "Registers a thread for the sums", "registers", (128 * 256 // 256,),
          "128 x 256 results, 256 threads"),
    Count("13_low_bit", "Bytes that one row times a matrix of 22016 x 4096 reads", "bytes",
          (22016 * 4096 // 2 + 22016 * 4096 // 128 * 3,), "half a byte a weight, and 3 bytes for each 128 of them"),
    Count("13_low_bit", "Instructions that turn a word of eight nibbles", "instructions", (4 + 3 + 4,),
          "4 lop3, 3 shifts, 4 fma of pairs"),
    Count("14_endless_text", "Bytes of keys and values that one layer of Pythia-2.8B", "bytes", (_endless_bytes(1024),),
          "1024 rows x 2 x 32 x 80 x 2 bytes"),
    Count("14_endless_text", "Bytes that the starter moves for the same layer", "bytes",
          (_endless_bytes(1024 + 2 * 1019 + 1),),
          "1024 rows read, 1019 read and written when the window moves, the new one written"),
    Count("15_many_gpus", "Bytes that one GPU sends to the other for 8 KiB", "bytes", (8192, 2 * 8192),
          "each half once to be added and once as the sum; each 4 bytes with 4 of a flag"),
    Count("15_many_gpus", "Weights that each of two GPUs reads for a token of 7B", "GB", (_cut_7b_bytes() / 1e9,),
          "32 layers of 4 x 4096 x 4096 + 3 x 4096 x 11008 in halves, 32000 x 4096 whole, 2 bytes each"),
    Count("15_many_gpus", "A token of 7B on two GPUs against one", "x", (4.4 / (2.2 + 0.79), 4.4 / (2.2 + 0.19)),
          "4.4 ms against 2.2 ms and 64 sums"),
]  # fmt: skip
