"""What the bench of lab 01 is made of, for labs/ and solutions/ alike."""

BENCH_SRCS = [
    "bench.c",
    "bench_decode.c",
    "bench_ladder.c",
]

BENCH_DEPS = [
    "//common/base",
    "//common/bench",
    "//common/formats:llama2c",
    "//common/model:llama2",
    "//common/model:llama2_random",
    "//common/model:profile",
    "//common/nn",
    "//common/testing:compare",
    "//labs/01_cpu_matmul:bench_machine",
    "//labs/01_cpu_matmul:openblas",
    "//labs/01_cpu_matmul:plain_decoder",
]
