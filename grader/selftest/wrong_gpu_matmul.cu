/*
 * Wrong submissions to lab 02. $WRONG_GPU_MATMUL names one; each must be caught by the parity test,
 * with a message that leads to the mistake. "right" is the control: it must pass. "slow" is right,
 * too, and what the starter does: it must miss the speedup.
 */
#include <stdlib.h>
#include <string.h>

#include "labs/02_gpu_matmul/gpu_matmul.h"

#define MISTAKES(X)                                                               \
    X(right)                                                                      \
    X(slow)          /* one thread an output, memory allocated in each call */    \
    X(empty)         /* does nothing */                                           \
    X(zeros)         /* writes zeros */                                           \
    X(transposed)    /* reads the weight as (K, N) */                             \
    X(odd_sizes)     /* leaves out the rest of K that fills no float4 */          \
    X(last_row)      /* leaves out the last row of many */                        \
    X(batch)         /* right for M = 1 only: reads row 0 always */               \
    X(no_check)      /* threads beyond the last output write, too */              \
    X(no_barrier)    /* adds up what other threads may not have written yet */    \
    X(behind)        /* writes one element behind the output */                   \
    X(changes_input) /* changes its input, and so the oracle's if it shared it */ \
    X(half)          /* rounds inputs to 11 bits, as fp16 and TF32 do */          \
    X(keeps_sum)     /* adds to what the output held before */                    \
    X(aligned)       /* loads 16 bytes at once, wherever they lie */              \
    X(no_blocks)     /* launches no blocks when there are no outputs */           \
    X(status)        /* reports a failure */                                      \
    X(remembers)     /* copies weights once for each address */                   \
    X(stale)         /* returns the result of the call before */                  \
    X(small_pool)    /* buffers of its first call, whatever comes */              \
    X(no_memory)     /* takes no notice of memory that was not to be had */       \
    X(dangling)      /* uses memory again that it freed before it got no more */  \
    X(leaks)         /* frees nothing that it replaces by more */

#define MISTAKE_VARIABLE "WRONG_GPU_MATMUL"
#include "grader/selftest/mistakes.h"

enum { THREADS = 64 };

/* 11 significant bits. */
static __device__ float rounded(float x, enum mistake mistake) {
    return mistake == MISTAKE_half ? __uint_as_float((__float_as_uint(x) + 0x1000u) & ~0x1fffu) : x;
}

/* One thread's share of out[m, n]. */
static __device__ float share(const float *in, const float *weight, size_t n, size_t N, size_t K,
                              enum mistake mistake) {
    size_t end = mistake == MISTAKE_odd_sizes ? K / 4 * 4 : mistake == MISTAKE_zeros ? 0 : K;
    float sum = 0;
    if (mistake == MISTAKE_aligned) {
        for (size_t k = threadIdx.x; k < K / 4; k += THREADS) {
            float4 a = ((const float4 *)in)[k], b = ((const float4 *)(weight + n * K))[k];
            sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
        }
        return sum;
    }
    for (size_t k = threadIdx.x; k < end; k += THREADS) {
        float w = mistake == MISTAKE_transposed ? weight[k * N + n] : weight[n * K + k];
        sum += rounded(in[k], mistake) * rounded(w, mistake);
    }
    return sum;
}

static __global__ void block_an_output(float *out, float *in, const float *weight, size_t M,
                                       size_t N, size_t K, enum mistake mistake) {
    __shared__ float sums[THREADS];
    size_t m = blockIdx.x / N, n = blockIdx.x % N;
    unsigned t = threadIdx.x;
    sums[t] = share(in + (mistake == MISTAKE_batch ? 0 : m * K), weight, n, N, K, mistake);
    __syncthreads();
    for (unsigned half = THREADS / 2; half > 0; half /= 2) {
        if (t < half) {
            sums[t] += sums[t + half];
        }
        if (mistake != MISTAKE_no_barrier) {
            __syncthreads();
        }
    }
    if (t == 0) {
        out[blockIdx.x] = sums[0] + (mistake == MISTAKE_keeps_sum ? out[blockIdx.x] : 0);
        if (mistake == MISTAKE_behind && blockIdx.x == 0) {
            out[M * N] = 0;
        }
        if (mistake == MISTAKE_changes_input && K > 0) {
            in[0] = 0;
        }
    }
}

static __global__ void thread_an_output(float *out, const float *in, const float *weight, size_t M,
                                        size_t N, size_t K, bool check) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (check && i >= M * N) {
        return;
    }
    float sum = 0;
    for (size_t k = 0; k < K && i < M * N; k++) {
        sum += in[i / N * K + k] * weight[i % N * K + k];
    }
    out[i] = sum;
}

static enum status nothing(float *, const float *, const float *, size_t, size_t, size_t,
                           device_stream, struct error *) {
    return STATUS_OK;
}

const struct gpu_matmul_step *gpu_matmul_ladder(size_t *count) {
    static const struct gpu_matmul_step step = {"none", nothing};
    *count = 1;
    return &step;
}

enum status gpu_matmul_launch(float *out, const float *in, const float *weight, size_t M, size_t N,
                              size_t K, device_stream stream, struct error *error) {
    enum mistake mistake = chosen_mistake();
    size_t rows = mistake == MISTAKE_last_row && M > 1 ? M - 1 : M;
    if (mistake == MISTAKE_status) {
        return error_set(error, STATUS_DEVICE, "nothing works today");
    }
    if (mistake == MISTAKE_empty || (M * N == 0 && mistake != MISTAKE_no_blocks)) {
        return STATUS_OK;
    }
    if (mistake == MISTAKE_slow || mistake == MISTAKE_no_check) {
        unsigned blocks = (unsigned)((M * N + THREADS - 1) / THREADS);
        thread_an_output<<<blocks, THREADS, 0, stream>>>(out, in, weight, M, N, K,
                                                         mistake == MISTAKE_slow);
        return device_launched("thread_an_output", error);
    }
    block_an_output<<<(unsigned)(rows * N), THREADS, 0, stream>>>(out, (float *)in, weight, M, N, K,
                                                                  mistake);
    return device_launched("block_an_output", error);
}

/* Operands in device memory, and how many floats each has room for. */
enum { OUT, IN, WEIGHT, OPERANDS };
struct gpu_matmul {
    float *d[OPERANDS];
    size_t capacity[OPERANDS];
    const float *weight; /* what d[WEIGHT] was copied from */
    bool called;
};

enum status gpu_matmul_create(struct gpu_matmul **matmul, struct error *error) {
    *matmul = (struct gpu_matmul *)calloc(1, sizeof **matmul);
    return *matmul != NULL ? STATUS_OK : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
}

static void release(struct gpu_matmul *matmul) {
    for (int i = 0; i < OPERANDS; i++) {
        device_free(matmul->d[i]);
        matmul->d[i] = NULL;
        matmul->capacity[i] = 0;
    }
}

void gpu_matmul_destroy(struct gpu_matmul *matmul) {
    if (matmul != NULL) {
        release(matmul);
        free(matmul);
    }
}

static enum status reserve(struct gpu_matmul *matmul, const size_t *floats, struct error *error) {
    if (chosen_mistake() == MISTAKE_small_pool && matmul->called) {
        return STATUS_OK;
    }
    for (int i = 0; i < OPERANDS; i++) {
        if (floats[i] > matmul->capacity[i]) {
            float *before = matmul->d[i];
            device_free(chosen_mistake() == MISTAKE_leaks ? NULL : before);
            matmul->capacity[i] = chosen_mistake() == MISTAKE_dangling ? matmul->capacity[i] : 0;
            enum status status =
                device_alloc((void **)&matmul->d[i], floats[i] * sizeof(float), error);
            if (status != STATUS_OK) {
                matmul->d[i] = chosen_mistake() == MISTAKE_dangling ? before : NULL;
                return status;
            }
            matmul->capacity[i] = floats[i];
        }
    }
    return STATUS_OK;
}

static enum status run(struct gpu_matmul *matmul, float *out, const float *in, const float *weight,
                       size_t M, size_t N, size_t K, struct error *error) {
    enum mistake mistake = chosen_mistake();
    bool stale = mistake == MISTAKE_stale && matmul->called;
    bool known = mistake == MISTAKE_remembers && matmul->weight == weight;
    matmul->called = true;
    matmul->weight = weight;
    TRY(device_write(matmul->d[IN], in, M * K * sizeof(float), NULL, error));
    if (!known) {
        TRY(device_write(matmul->d[WEIGHT], weight, N * K * sizeof(float), NULL, error));
    }
    if (!stale) {
        TRY(gpu_matmul_launch(matmul->d[OUT], matmul->d[IN], matmul->d[WEIGHT], M, N, K, NULL,
                              error));
    }
    return device_read(out, matmul->d[OUT], M * N * sizeof(float), NULL, error);
}

enum status gpu_matmul(struct gpu_matmul *matmul, float *out, const float *in, const float *weight,
                       size_t M, size_t N, size_t K, struct error *error) {
    const size_t floats[OPERANDS] = {M * N, M * K, N * K};
    enum status status = reserve(matmul, floats, error);
    if (status != STATUS_OK && chosen_mistake() == MISTAKE_no_memory) {
        return STATUS_OK;
    }
    if (status == STATUS_OK) {
        status = run(matmul, out, in, weight, M, N, K, error);
    }
    if (chosen_mistake() == MISTAKE_slow) {
        release(matmul);
    }
    return status;
}
