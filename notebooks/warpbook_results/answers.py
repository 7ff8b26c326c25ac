"""Answers the questions in the handouts' prediction tables from records.

Each answer is a list of numbers in the unit that the question asks for, or None
where the records say nothing. A question that only thinking can answer (how
many sectors, how many blocks) has no entry here.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    """A question, found in a lab's table by the beginning of its text."""

    lab: str
    begins: str
    unit: str
    answer: object


def _fastest(rows):
    return min(rows, key=lambda r: r.ms, default=None)


def _step(rows, number):
    """The step vN of a ladder; the rest of its name does not matter."""
    names = (f"v{number}_", f"v{number:02d}_")
    return next((r for r in rows if r.stage.startswith(names)), None)


def _ratio(slow, fast):
    return [slow.ms / fast.ms] if slow and fast and slow is not fast else None


def _ladder(r, op, shape, dtype="fp32"):
    return r.where(op=op, shape=shape, dtype=dtype)


def _first_to_best(op, shape, dtype="fp32"):
    """Speedup of the best step over the first one."""

    def answer(r):
        rows = _ladder(r, op, shape, dtype)
        return _ratio(_step(rows, 1), _fastest(rows))

    return answer


def _between(op, shape, slow, fast, dtype="fp32"):
    """Time of step `slow` over that of step `fast`."""

    def answer(r):
        rows = _ladder(r, op, shape, dtype)
        return _ratio(_step(rows, slow), _step(rows, fast))

    return answer


def _value(figure, **fields):
    """A figure of the model: the largest for tokens per second, otherwise the newest."""

    def answer(r):
        rows = [row.value for row in r.where(figure=figure, **fields) if row.value is not None]
        return [max(rows)] if rows else None

    return answer


def _model(op, first, last, shape=None):
    """Speedup of the model from step `first` to `last`; None: the first and last step of the ladder."""

    def answer(r):
        rows = r.where(op=op, **({"shape": shape} if shape else {}))
        names = sorted(rows.values("stage"))
        if len(names) < 2:
            return None
        slow = rows.where(stage=first or names[0])
        fast = rows.where(stage=last or names[-1])
        return _ratio(slow[0], fast[0]) if slow and fast else None

    return answer


def _of_matmul(op, shape, number):
    """Time of a step relative to the plain matmul recorded with it."""

    def answer(r):
        row = _step(_ladder(r, op, shape), number)
        return [1 / row.peer_ratio] if row and row.peer_ratio else None

    return answer


def _of_copy(op, shape, number):
    """Percent of a copy's speed."""

    def answer(r):
        row = _step(_ladder(r, op, shape), number)
        return [100 * row.peer_ratio] if row and row.peer_ratio else None

    return answer


# ---- Answers that take more than a line ----


def _of_openblas(r):
    rows = [row for row in _ladder(r, "matmul", "512x512x512") if (row.threads or 1) > 1]
    ratios = [row.peer_ratio for row in rows if row.peer_ratio]
    own = [v for v in ratios if v != 1]
    return [100 * max(own)] if own else None


def _best_ms(op, shape):
    def answer(r):
        row = _fastest([row for row in _ladder(r, op, shape) if row.stage.startswith("v")])
        return [row.ms] if row else None

    return answer


def _bytes_and_ms(r):
    row = _fastest(_ladder(r, "matmul", "1x5632x2048"))
    return [1e-6 * row.bytes, row.ms] if row and row.bytes else None


def _token_rows(r, stage, size="15M"):
    rows = r.where(op="decode", stage=stage, figure="tokens_per_second")
    return next((row for row in rows if row.shape.startswith(size + " ")), None)


def _copy_share(r):
    rows = r.where(figure="copy_ms_per_token", stage="02_gpu_matmul")
    return [100 * rows[0].value / rows[0].ms] if rows else None


def _against(stage, sizes):
    """Speed of stage 03 relative to another stage, for each of these sizes."""

    def answer(r):
        found = []
        for size in sizes:
            slow, fast = _token_rows(r, stage, size), _token_rows(r, "03_resident_weights", size)
            if not slow or not fast:
                return None
            found.append(slow.ms / fast.ms)
        return found

    return answer


def _half_the_bytes(r):
    wide = _fastest(_ladder(r, "layernorm", "16384x4096"))
    return _ratio(wide, _fastest(_ladder(r, "layernorm", "16384x4096", "bf16")))


def _plain_tflops(number):
    def answer(r):
        row = _step(_ladder(r, "attention", "b16 h12 s512 d64"), number)
        return [1e-3 * row.gflop_per_s] if row and row.flops else None

    return answer


def _tensor_cores(r):
    shape = "b16 h12 s512 d64"
    plain = _fastest(_ladder(r, "attention", shape))
    return _ratio(plain, _fastest(_ladder(r, "attention", shape, "bf16")))


def _packed(r):
    lengths = r.where(op="attention_lengths", dtype="fp32")
    masked = _fastest([row for row in lengths if row.shape.endswith("masked")])
    packed = _fastest([row for row in lengths if row.shape.endswith("packed")])
    model = r.where(op="bert_batch")
    whole = [
        _fastest([row for row in model if row.shape.endswith(end)]) for end in ("padded", "packed")
    ]
    pairs = _ratio(masked, packed), _ratio(*whole)
    return [*pairs[0], *pairs[1]] if all(pairs) else None


def _joined(r):
    found = []
    for rows in ("M128", "M8192"):
        mine = [row for row in r.where(op="qkv_projection") if row.shape.startswith(rows + " ")]
        three = next((row for row in mine if row.stage == "separate"), None)
        one = next((row for row in mine if row.stage == "joined"), None)
        if not three or not one:
            return None
        found.append(three.ms / one.ms)
    return found


def _growth(op, late):
    """Time of a token at a late position relative to position 0."""

    def answer(r):
        rows = [row for row in r.where(op=op) if row.shape.startswith("110M")]
        at = {row.shape.rpartition(" ")[2]: row for row in rows}
        last = at.get(late)
        return _ratio(last, at.get("0"))

    return answer


def _best_tokens(r):
    rows = r.where(op="llama2_decode", figure="tokens_per_second", stage="10_llama2_decoder")
    return [max(row.value for row in rows)] if rows else None


def _late_token(r):
    """The starter's token at position 100,000 relative to position 1,000."""
    rows = [row for row in r.where(op="endless_token") if row.stage.startswith("v0_")]
    for row in rows:
        shape, _, position = row.shape.rpartition(" ")
        early = next((e for e in rows if e.shape == f"{shape} 1000"), None)
        if position == "100000" and early:
            return [row.ms / early.ms]
    return None


def _norms_in_one(r):
    rows = _ladder(r, "endless_add_norms", "C1024, 2 LayerNorms")
    return _ratio(_step(rows, 0), _fastest(rows))


_06 = "8192x768x768"
# On simt; on a GPU.
_14 = ("4 sinks and 92, 4 heads of 64, 4 key heads", "4 sinks and 1020, 32 heads of 80, 32 key heads")

QUESTIONS = [
    Question("01_cpu_matmul", "The loop over independent outputs", "x", _between("matmul", "512x512x512", 1, 2)),
    Question("01_cpu_matmul", "512³ on all cores, your best step, of OpenBLAS", "%", _of_openblas),
    Question("01_cpu_matmul", "1 x 32000 x 288, your best step: ms", "ms", _best_ms("matmul", "1x32000x288")),
    Question("01_cpu_matmul", "Tokens/s of the 15M shape", "tokens/s", _value("tokens_per_second", op="decode")),
    Question("02_gpu_matmul", "1 x 5632 x 2048: how many bytes", "MB, ms", _bytes_and_ms),
    Question("02_gpu_matmul", "How many times as fast as the starter's", "x", _first_to_best("matmul", "1x5632x2048")),
    Question("02_gpu_matmul", "Tokens/s of Llama2 (15M shape)", "tokens/s",
             _value("tokens_per_second", stage="02_gpu_matmul")),
    Question("02_gpu_matmul", "Bytes over the bus for one token", "bytes",
             _value("bus_bytes_per_token", stage="02_gpu_matmul")),
    Question("02_gpu_matmul", "Share of a token's time that goes into copies", "%", _copy_share),
    Question("03_resident_weights", "Speedup against lab 02 at 15M; at 110M; at 1.1B", "x",
             _against("02_gpu_matmul", ("15M", "110M", "1.1B"))),
    Question("03_resident_weights", "Speedup against lab 01 on your CPU, at 110M", "x",
             _against("01_cpu_matmul", ("110M",))),
    Question("04_sgemm", "How many times as fast as the starter's is the shared tile", "x",
             _between("sgemm_transposed", "512x512x512", 1, 3)),
    Question("04_sgemm", "BERT, a batch of sentences", "x", _model("bert_batch", None, None)),
    Question("05_layernorm_softmax", "Share of a copy's speed that the starter reaches: 256 rows", "%",
             _of_copy("layernorm", "256x2560", 1)),
    Question("05_layernorm_softmax", "The same with one block of 256 threads a row", "%",
             _of_copy("layernorm", "256x2560", 2)),
    Question("05_layernorm_softmax", "bf16 instead of fp32", "x", _half_the_bytes),
    Question("05_layernorm_softmax", "BERT, a batch of sentences", "x", _model("bert_batch", None, None)),
    Question("06_fused_epilogues", "Attention's output layer, 8192 x 768 x 768", "x", _of_matmul("linear_add_norm", _06, 1)),
    Question("06_fused_epilogues", "The same with two launches", "x", _of_matmul("linear_add_norm", _06, 4)),
    Question("06_fused_epilogues", "`FUSED_LINEAR_ADD` alone", "x", _first_to_best("linear_add", _06)),
    Question("06_fused_epilogues", "BERT, with nothing fused but that one add", "x",
             _model("bert_batch", "nothing fused", "the lone add fused")),
    Question("06_fused_epilogues", "BERT with everything fused", "x", _model("bert_batch", "nothing fused", "all fused")),
    Question("07_attention", "fp32, 8 x 8 a thread: share of the peak, in TFLOP/s", "TFLOP/s", _plain_tflops(3)),
    Question("07_attention", "bf16 by tensor cores", "x", _tensor_cores),
    Question("07_attention", "Texts that fill half of the padded batch", "x", _packed),
    Question("07_attention", "One product of N = 2304 against three", "x", _joined),
    Question("09_kv_cache", "Time of the starter's token at position 255", "x", _growth("token_keys_anew", "255")),
    Question("09_kv_cache", "The same with a cache, 110M shape", "x", _growth("token", "255")),
    Question("10_llama2_decoder", "Tokens/s of your `generate`", "tokens/s", _best_tokens),
    Question("12_tensor_cores", "mma.sync in a ring of stages against the starter", "x",
             _first_to_best("gemm16_plain", "1536x1408x256")),
    Question("12_tensor_cores", "BERT in bf16, a batch of sentences", "x", _model("bert_batch", None, None)),
    Question("14_endless_text", "Time at token 100,000 against that at token 1,000", "x", _late_token),
    Question("14_endless_text", "The starter's attention against a ring", "x",
             _between("endless_attention", _14, 0, 1, "bf16")),
    Question("14_endless_text", "Additions and two LayerNorms of 1024 channels", "x", _norms_in_one),
    Question("15_many_gpus", "An all-reduce of 8 KiB through the host", "x",
             _between("all_reduce", "8192 bytes, 2 ranks", 1, 5)),
]  # fmt: skip
