#!/bin/sh
# Stands in for a lab's bench: the last step is faster once the source says FAST.
ms=0.0200
if grep -q FAST labs/04_sgemm/sgemm.cu; then ms=0.0100; fi
cat <<END
labs: modelled for NVIDIA H200 (simt:h200): no GPU was timed

M 256, N 256, K 256, B transposed, modelled
  step                 ms   GFLOP/s
  v1_naive         0.1000     335.5
  v2_tile          $ms    1677.7
    why: 64 blocks on 64 of 132 multiprocessors
         smaller tiles make more blocks

recorded in results/bench.jsonl
END
