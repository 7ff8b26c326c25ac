/*
 * Wrong submissions to lab 06. $WRONG_FUSED names one; each must be caught by the parity test, with
 * a message that leads to the mistake. "right" is the control: it must pass. It is one launch for
 * everything, a block a row, and must miss the speedup.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "labs/06_fused_epilogues/fused_epilogues.h"

#define MISTAKES(X)                                                                      \
    X(right)                                                                             \
    X(empty)          /* does nothing */                                                 \
    X(zeros)          /* writes zeros */                                                 \
    X(no_bias)        /* forgets the bias */                                             \
    X(bias_last)      /* adds the bias after the activation, after the LayerNorm */      \
    X(no_residual)    /* forgets the residual */                                         \
    X(norm_first)     /* LayerNorm of the product, then the residual */                  \
    X(no_eps)         /* forgets eps */                                                  \
    X(naive_variance) /* mean of squares less square of the mean */                      \
    X(odd)            /* leaves out the last column of an odd N */                       \
    X(tanh_gelu)      /* takes the tanh form for the exact GELU */                       \
    X(gelu_out)       /* applies GELU to the product instead of the input */             \
    X(no_sum)         /* keeps no sum */                                                 \
    X(reads_late)     /* reads the residual when out has been written */                 \
    X(no_barrier)     /* does not wait for the row */                                    \
    X(dirty)          /* leaves a counter in the workspace */                            \
    X(behind)         /* writes one element behind the output */                         \
    X(changes_input)  /* changes its input */                                            \
    X(half)           /* rounds inputs of the product to 11 bits, as fp16 and TF32 do */ \
    X(aligned)        /* loads 16 bytes at once, wherever they lie */                    \
    X(status)         /* reports a failure */                                            \
    X(not_refused)    /* takes anything */                                               \
    X(library)        /* has somebody else at hand to do the work */

#define MISTAKE_VARIABLE "WRONG_FUSED"
#include "grader/selftest/mistakes.h"

enum { THREADS = 128 };

static __device__ float activate(float x, enum nn_activation f) {
    switch (f) {
    case NN_GELU:
        return 0.5f * x * (1.0f + erff(x * 0.70710678f));
    case NN_GELU_TANH:
        return 0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
    case NN_SILU:
        return x / (1.0f + expf(-x));
    case NN_TANH:
        return tanhf(x);
    default:
        return fmaxf(x, 0.0f);
    }
}

static __device__ float gelu_of(float x, enum mistake mistake) {
    return activate(x, mistake == MISTAKE_tanh_gelu ? NN_GELU_TANH : NN_GELU);
}

/* 11 significant bits. */
static __device__ float rounded(float x, enum mistake mistake) {
    unsigned bits = (__float_as_uint(x) + 0x1000u) & ~0x1fffu;
    return mistake == MISTAKE_half ? __uint_as_float(bits) : x;
}

static __device__ float element(const float *row, size_t k, size_t K, enum mistake mistake) {
    if (mistake == MISTAKE_aligned && K % 4 == 0) {
        float4 four = *(const float4 *)(row + k - k % 4);
        const float parts[4] = {four.x, four.y, four.z, four.w};
        return parts[k % 4];
    }
    return rounded(row[k], mistake);
}

static __device__ float product_of(const struct fused_problem &p, size_t m, size_t n,
                                   enum mistake mistake) {
    bool way_in = p.op == FUSED_GELU_LINEAR_ADD_NORM;
    float sum = 0.0f;
    for (size_t k = 0; k < p.K; k++) {
        float a = element(p.in + m * p.K, k, p.K, mistake);
        if (way_in && mistake != MISTAKE_gelu_out) {
            a = gelu_of(a, mistake);
        }
        sum += a * element(p.weight + n * p.K, k, p.K, mistake);
    }
    return way_in && mistake == MISTAKE_gelu_out ? gelu_of(sum, mistake) : sum;
}

/* What stands before the LayerNorm, or the result. */
static __device__ float sum_of(const struct fused_problem &p, size_t m, size_t n,
                               enum mistake mistake) {
    bool late_bias = mistake == MISTAKE_no_bias || mistake == MISTAKE_bias_last;
    float x = p.op < FUSED_ADD_NORM ? product_of(p, m, n, mistake) : p.in[m * p.N + n];
    if (p.bias != NULL && !late_bias) {
        x += p.bias[n];
    }
    if (p.op == FUSED_LINEAR_ACTIVATION) {
        x = p.f == NN_GELU ? gelu_of(x, mistake) : activate(x, p.f);
    }
    bool adds = p.residual != NULL && mistake != MISTAKE_no_residual;
    bool now = mistake != MISTAKE_norm_first && mistake != MISTAKE_reads_late;
    if (adds && (now || p.op == FUSED_LINEAR_ADD)) {
        x += p.residual[m * p.N + n];
    }
    return p.bias != NULL && mistake == MISTAKE_bias_last && p.op <= FUSED_LINEAR_ACTIVATION
               ? x + p.bias[n]
               : x;
}

struct moments {
    float mean, scale;
};

/* Every thread for itself, so nobody has to wait for anybody. */
static __device__ struct moments moments_of(const float *row, size_t N, float eps,
                                            enum mistake mistake) {
    float sum = 0.0f, squares = 0.0f;
    bool naive = mistake == MISTAKE_naive_variance;
    for (size_t n = 0; n < N; n++) {
        sum += row[n];
    }
    float mean = sum / (float)N, from = naive ? 0.0f : mean;
    for (size_t n = 0; n < N; n++) {
        squares += (row[n] - from) * (row[n] - from);
    }
    float variance = squares / (float)N - (naive ? mean * mean : 0.0f);
    return {mean, 1.0f / sqrtf(variance + (mistake == MISTAKE_no_eps ? 0.0f : eps))};
}

static __device__ void normalise_row(const struct fused_problem &p, float *kept, size_t columns,
                                     enum mistake mistake) {
    size_t m = blockIdx.x;
    if (mistake != MISTAKE_no_barrier) {
        __syncthreads();
    }
    struct moments moments = moments_of(kept, columns, p.norm.eps, mistake);
    __syncthreads();
    for (size_t n = threadIdx.x; n < columns; n += THREADS) {
        float x = (kept[n] - moments.mean) * moments.scale * p.norm.weight[n] + p.norm.bias[n];
        if (mistake == MISTAKE_norm_first || mistake == MISTAKE_reads_late) {
            x += p.residual[m * p.N + n];
        }
        x += mistake == MISTAKE_bias_last && p.bias != NULL ? p.bias[n] : 0.0f;
        p.out[m * p.N + n] = mistake == MISTAKE_zeros ? 0.0f : x;
    }
}

static __global__ void row_kernel(struct fused_problem p, unsigned *counter, enum mistake mistake) {
    size_t m = blockIdx.x;
    size_t columns = p.N - (mistake == MISTAKE_odd && p.N % 2 == 1);
    bool keeps = p.op == FUSED_ADD_KEEP_NORM && mistake != MISTAKE_no_sum;
    float *kept = (keeps ? p.sum : p.out) + m * p.N;
    for (size_t n = threadIdx.x; n < columns; n += THREADS) {
        kept[n] = mistake == MISTAKE_zeros ? 0.0f : sum_of(p, m, n, mistake);
    }
    if (p.op >= FUSED_LINEAR_ADD_NORM && columns > 0) {
        normalise_row(p, kept, columns, mistake);
    }
    if (m == 0 && threadIdx.x == 0) {
        if (mistake == MISTAKE_dirty) {
            *counter = 1;
        }
        if (mistake == MISTAKE_behind) {
            p.out[p.M * p.N] = 0.0f;
        }
        if (mistake == MISTAKE_changes_input && p.op < FUSED_ADD_NORM && p.K > 0) {
            const_cast<float *>(p.in)[0] = 0.0f;
        }
    }
}

static enum status run(const struct fused_problem *problem, void *workspace, device_stream stream,
                       struct error *error) {
    enum mistake mistake = chosen_mistake();
    if (mistake == MISTAKE_library && dlopen(getenv("WRONG_LIBRARY"), RTLD_NOW) == NULL) {
        return error_set(error, STATUS_NOT_FOUND, "%s", dlerror());
    }
    if (problem->M == 0 || problem->N == 0 || mistake == MISTAKE_empty) {
        return STATUS_OK;
    }
    row_kernel<<<(unsigned)problem->M, THREADS, 0, stream>>>(*problem, (unsigned *)workspace,
                                                             mistake);
    return device_launched("row_kernel", error);
}

const struct fused_step *fused_epilogues_ladder(size_t *count) {
    static const struct fused_step step = {"rows", run};
    *count = 1;
    return &step;
}

static bool is_refused(const struct fused_problem *p) {
    bool unknown = (unsigned)p->op >= FUSED_OPS ||
                   (p->op == FUSED_LINEAR_ACTIVATION && (unsigned)p->f > NN_RELU);
    return unknown || p->M > FUSED_MAX_ROWS || p->N > FUSED_MAX_COLUMNS || p->K > FUSED_MAX_COLUMNS;
}

enum status fused_epilogues(const struct fused_problem *problem, void *workspace,
                            device_stream stream, struct error *error) {
    if (is_refused(problem)) {
        if (chosen_mistake() == MISTAKE_not_refused) {
            return STATUS_OK;
        }
        return error_set(error, STATUS_INVALID_ARGUMENT, "there is no such thing");
    }
    if (chosen_mistake() == MISTAKE_status) {
        return error_set(error, STATUS_DEVICE, "nothing works today");
    }
    return run(problem, workspace, stream, error);
}
