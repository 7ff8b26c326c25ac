#!/bin/bash
# Times a training step of BERT-base, ours and PyTorch's, in one call of less than eight minutes.
# usage: record_training.sh BIN OUT        in the repository's root
#   BIN  //solutions/11_training:bench built with --config=gpu, or a folder that holds it as `bench`
#   OUT  bench.jsonl, pytorch.jsonl (lines for notebooks/results/h200), logs, summary.txt
# Environment: LADDER=1 all steps of the ladder, not only the last; KERNELS=N rows a table of kernels;
# PYTORCH_SECONDS when the yardstick begins nothing more; PYTHON; BENCH_FLAGS and YARDSTICK_FLAGS more flags.
# Exit status: 0 all ran; 1 something failed, the rest ran.
set -u
BIN=${1:?BIN} OUT=${2:?OUT}
[ -d "$BIN" ] && BIN=$BIN/bench
[ -x "$BIN" ] || { echo "record_training.sh: no program $BIN" >&2; exit 1; }
YARDSTICK=${YARDSTICK:-notebooks/yardsticks/pytorch_training.py}
[ -f "$YARDSTICK" ] || { echo "record_training.sh: no $YARDSTICK here" >&2; exit 1; }
PYTHON=${PYTHON:-python3} KERNELS=${KERNELS:-12}
BENCH_SECONDS=${BENCH_SECONDS:-100} AGAIN_SECONDS=${AGAIN_SECONDS:-50} PYTORCH_SECONDS=${PYTORCH_SECONDS:-200}
folder=$(cd "$(dirname "$BIN")" && pwd)
mkdir -p "$OUT" && OUT=$(cd "$OUT" && pwd) || exit 1
export WARPBOOK_RESULTS=$OUT/bench.jsonl
WARPBOOK_COMMIT=${WARPBOOK_COMMIT:-$(git rev-parse HEAD 2>/dev/null)}
export WARPBOOK_COMMIT
failed=0
last=(--step last)
[ "${LADDER:-0}" = 1 ] && last=()

# limited NAME SECONDS COMMAND...: runs it at most so many seconds; output goes to NAME.log and screen.
limited() {
    local name=$1 seconds=$2 code
    shift 2
    echo "== $name: ${*##*/}"
    timeout --kill-after 5 "$seconds" "$@" </dev/null 2>&1 | tee "$OUT/$name.log"
    code=${PIPESTATUS[0]}
    [ "$code" -eq 0 ] || { echo "== $name: exit status $code after at most $seconds s"; failed=1; }
    echo "== [$SECONDS s]"
}

nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,temperature.gpu --format=csv 2>/dev/null | tee "$OUT/gpu.csv"
# Only the program finds its libraries beside it: PyTorch has its own.
run_bench() {
    local name=$1 seconds=$2
    shift 2
    # shellcheck disable=SC2086
    limited "$name" "$seconds" env \
        LD_LIBRARY_PATH="$folder:$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
        "$BIN" --model ${last[@]+"${last[@]}"} "$@" ${BENCH_FLAGS:-}
}
run_bench bench "$BENCH_SECONDS" --kernels "$KERNELS"
# shellcheck disable=SC2086
limited pytorch $((PYTORCH_SECONDS + 60)) "$PYTHON" -W ignore "$YARDSTICK" --runs 30 \
    --seconds "$PYTORCH_SECONDS" --output "$OUT/pytorch.jsonl" ${YARDSTICK_FLAGS:-}
run_bench again "$AGAIN_SECONDS" # has the machine stayed as it was?

"$PYTHON" - "$OUT" <<'PY' | tee "$OUT/summary.txt"
"""Ours beside PyTorch's, by texts and type."""
import json
import pathlib
import sys

out = pathlib.Path(sys.argv[1])


def steps(name):
    path = out / name
    lines = path.read_text().splitlines() if path.is_file() else []
    return [r for r in map(json.loads, lines) if r["op"] == "training_step"]


ours, theirs = steps("bench.jsonl"), steps("pytorch.jsonl")
print(f"{'texts':28s} {'type':5s} {'step with':26s} {'ms':>9s} {'tokens/s':>10s} {'TFLOP/s':>8s} "
      f"{'of compile':>10s} {'of the best':>11s}")
for shape in dict.fromkeys(r["shape"] for r in ours + theirs):
    for dtype in ("fp32", "tf32", "bf16"):
        rows = [r for r in theirs if (r["shape"], r["dtype"]) == (shape, dtype)]
        mine = [r for r in ours if (r["shape"], r["dtype"]) == (shape, dtype)]
        devices = {(r["device"]["name"], r["device"]["modelled"]) for r in rows + mine}
        if len(devices) > 1:
            print(f"{shape}, {dtype}: not one device, nothing to compare: {sorted(devices)}")
            continue
        compiled = [r["ms"]["median"] for r in rows if r["stage"] == "compile"]
        best = min((r["ms"]["median"] for r in rows), default=None)
        for r in rows + mine:
            ms = r["ms"]["median"]
            who = ("PyTorch " if r in rows else r["subject"] + " ") + r["stage"]
            ratio = f"{compiled[-1] / ms:9.2f}x" if r in mine and compiled else f"{'-':>10s}"
            of_best = f"{best / ms:10.2f}x" if r in mine and best else f"{'-':>11s}"
            print(f"{shape:28s} {dtype:5s} {who:26s} {ms:9.3f} {r['figure_value']:10.0f} "
                  f"{r['gflop_per_s'] / 1e3:8.1f} {ratio} {of_best}")
PY
echo "== all in $SECONDS s, in $OUT"
exit $failed
