/*
 * Wrong submissions to lab 05. $WRONG_ROWS names one; each must be caught by the parity test, with
 * a message that leads to the mistake. "right" is the control: it must pass. "slow" is right, too,
 * and must miss the speedup; so must those that hide few busy blocks or warps among idle ones, and
 * "on_host", whose data cross the bus.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/cuda/convert.cuh"
#include "labs/05_layernorm_softmax/layernorm_softmax.h"

#define MISTAKES(X)                                                                  \
    X(right)                                                                         \
    X(slow)           /* one thread a row */                                         \
    X(idle_blocks)    /* a thread a row, in few blocks beside idle ones */           \
    X(idle_warps)     /* a thread a row, in one warp of 32 */                        \
    X(one_in_132)     /* a thread a row, idle blocks between the others */           \
    X(empty)          /* does nothing */                                             \
    X(zeros)          /* writes zeros */                                             \
    X(no_eps)         /* forgets epsilon */                                          \
    X(naive_variance) /* E[x^2] - mean^2 */                                          \
    X(unbiased)       /* divides by C - 1 */                                         \
    X(no_bias)        /* forgets the bias */                                         \
    X(no_mask)        /* ignores the mask */                                         \
    X(own_mask)       /* a mask row of its own for each row */                       \
    X(unstable)       /* e^x without subtracting the maximum */                      \
    X(all_hidden)     /* divides by the sum even when nothing is seen */             \
    X(odd)            /* leaves out the last column of an odd row */                 \
    X(truncates)      /* rounds towards zero when it stores 16 bits */               \
    X(half)           /* adds up in fp16 */                                          \
    X(aligned)        /* loads 8 bytes at once, wherever they lie */                 \
    X(no_barrier)     /* reads sums that other threads have not written yet */       \
    X(ragged)         /* threads without a vector of 4 return, and sums lack them */ \
    X(in_place)       /* reads its row again when part of it is replaced */          \
    X(behind)         /* writes one element behind the output */                     \
    X(changes_input)  /* writes into in when out is another buffer */                \
    X(grid)           /* more blocks in y than a grid takes */                       \
    X(status)         /* reports a failure */                                        \
    X(not_refused)    /* takes any size */                                           \
    X(on_host)        /* the CPU computes, in managed memory */                      \
    X(library)        /* has somebody else at hand to do the work */

#define MISTAKE_VARIABLE "WRONG_ROWS"
#include "grader/selftest/mistakes.h"

enum { THREADS = 64, MOST_THREADS = 1024 };

static __device__ void store(float *to, float x, bool) {
    *to = x;
}
static __device__ void store(__half *to, float x, bool truncates) {
    *to = truncates ? __float2half_rz(x) : __float2half_rn(x);
}
static __device__ void store(__nv_bfloat16 *to, float x, bool truncates) {
    *to = truncates ? __float2bfloat16_rz(x) : __float2bfloat16_rn(x);
}

/* What a thread knows of its row. */
template <typename T> struct row {
    struct rows_problem p;
    enum mistake mistake;
    size_t number;
    const T *x;
    T *y;
    size_t C;           /* columns that are looked at */
    size_t first, step; /* columns of a thread */
};

template <typename T> static __device__ float element(const row<T> &r, size_t c) {
    if (r.p.op == ROWS_SOFTMAX && r.p.mask != NULL && r.mistake != MISTAKE_no_mask) {
        size_t mask_row = r.mistake == MISTAKE_own_mask ? r.number : r.number / r.p.rows_a_mask;
        if (r.p.mask[mask_row * r.p.C + c] == 0) {
            return -INFINITY;
        }
    }
    bool pairs = r.C % 2 == 0 && sizeof(T) == sizeof(float) && r.p.in != r.p.out;
    if (r.mistake == MISTAKE_aligned && pairs) {
        float2 two = *(const float2 *)(r.x + c - c % 2);
        return c % 2 == 0 ? two.x : two.y;
    }
    return to_float(r.x[c]);
}

/* Over the threads of a row, in each of them: a sum, or the largest. */
template <typename T> static __device__ float together(float x, bool maximum, const row<T> &r) {
    __shared__ float all[MOST_THREADS];
    const enum mistake mistake = r.mistake;
    if (r.step == 1) {
        return x;
    }
    all[threadIdx.x] = x;
    if (mistake != MISTAKE_no_barrier) {
        __syncthreads();
    }
    float result = all[0];
    for (unsigned i = 1; i < blockDim.x; i++) {
        result = maximum ? fmaxf(result, all[i]) : result + all[i];
    }
    __syncthreads();
    return mistake == MISTAKE_half && !maximum ? __half2float(__float2half_rn(result)) : result;
}

/* Sum of x, or of (x - mean)^2. */
template <typename T> static __device__ float sum_of(const row<T> &r, bool squares, float mean) {
    float sum = 0.0f;
    for (size_t c = r.first; c < r.C; c += r.step) {
        float x = element(r, c) - mean;
        sum += squares ? x * x : x;
    }
    return together(sum, false, r);
}

template <typename T> static __device__ void norm_row(const row<T> &r) {
    bool layernorm = r.p.op == ROWS_LAYERNORM;
    float C = (float)r.C, mean = layernorm ? sum_of(r, false, 0.0f) / C : 0.0f;
    bool naive = r.mistake == MISTAKE_naive_variance;
    float variance = sum_of(r, true, naive ? 0.0f : mean) / C;
    variance -= naive ? mean * mean : 0.0f;
    if (r.mistake == MISTAKE_unbiased && r.C > 1) {
        variance *= C / (C - 1.0f);
    }
    float scale = 1.0f / sqrtf(variance + (r.mistake == MISTAKE_no_eps ? 0.0f : r.p.eps));
    for (size_t c = r.first; c < r.C; c += r.step) {
        float y = (element(r, c) - mean) * scale * to_float(((const T *)r.p.weight)[c]);
        if (layernorm && r.mistake != MISTAKE_no_bias) {
            y += to_float(((const T *)r.p.bias)[c]);
        }
        store(r.y + c, r.mistake == MISTAKE_zeros ? 0.0f : y, r.mistake == MISTAKE_truncates);
    }
}

template <typename T> static __device__ void softmax_row(const row<T> &r) {
    float largest = -INFINITY, sum = 0.0f;
    for (size_t c = r.first; c < r.C; c += r.step) {
        largest = fmaxf(largest, element(r, c));
    }
    largest = together(largest, true, r);
    bool none = largest == -INFINITY && r.mistake != MISTAKE_all_hidden;
    float shift = none || r.mistake == MISTAKE_unstable ? 0.0f : largest;
    for (size_t c = r.first; c < r.C; c += r.step) {
        float e = expf(element(r, c) - shift);
        sum += e;
        if (r.mistake == MISTAKE_in_place) {
            store(r.y + c, e, false);
        }
    }
    sum = together(sum, false, r);
    for (size_t c = r.first; c < r.C; c += r.step) {
        float e = sum == 0.0f && none ? 0.0f : expf(element(r, c) - shift) / sum;
        store(r.y + c, r.mistake == MISTAKE_zeros ? 0.0f : e, r.mistake == MISTAKE_truncates);
    }
}

template <typename T> static __device__ void do_row(const row<T> &r) {
    if (r.p.op == ROWS_SOFTMAX) {
        softmax_row(r);
    } else {
        norm_row(r);
    }
}

/* Rows 32 at a time, by the first warp of every `every`th block; all else is idle. */
template <typename T>
static __global__ void hidden_kernel(struct rows_problem p, enum mistake mistake, unsigned every) {
    size_t number = (size_t)(blockIdx.x / every) * 32 + threadIdx.x;
    if (blockIdx.x % every == 0 && threadIdx.x < 32 && number < p.rows) {
        const row<T> r = {
            p,   mistake, number, (const T *)p.in + number * p.C, (T *)p.out + number * p.C,
            p.C, 0,       1};
        do_row(r);
    }
}

template <typename T>
static void launch_hidden(const struct rows_problem *p, enum mistake mistake,
                          device_stream stream) {
    enum { IDLE = 132 * 16, EVERY = 132, WARPS = 32 };
    unsigned busy = (unsigned)((p->rows + 31) / 32);
    bool warps = mistake == MISTAKE_idle_warps, between = mistake == MISTAKE_one_in_132;
    unsigned blocks = warps ? busy : between ? busy * EVERY : busy + IDLE;
    hidden_kernel<T>
        <<<blocks, warps ? 32 * WARPS : 32, 0, stream>>>(*p, mistake, between ? EVERY : 1);
}

template <typename T>
static __global__ void rows_kernel(struct rows_problem p, enum mistake mistake) {
    size_t number = mistake == MISTAKE_grid ? blockIdx.y : blockIdx.x;
    size_t C = mistake == MISTAKE_odd && p.C % 2 == 1 ? p.C - 1 : p.C;
    const row<T> r = {
        p, mistake,     number,    (const T *)p.in + number * p.C, (T *)p.out + number * p.C,
        C, threadIdx.x, blockDim.x};
    if (mistake == MISTAKE_ragged && blockDim.x > THREADS && threadIdx.x >= C / 4) {
        return;
    }
    do_row(r);
    bool first = number == 0 && threadIdx.x == 0;
    if (mistake == MISTAKE_behind && first) {
        store((T *)p.out + p.rows * p.C, 0.0f, false);
    }
    if (mistake == MISTAKE_changes_input && first && p.in != p.out) {
        store((T *)p.in, 0.0f, false);
    }
}

/* "ragged" has a thread for each vector of 4, in whole warps, where a row is more than one block.
 */
static unsigned threads_of(size_t C, enum mistake mistake) {
    size_t vectors = (C / 4 + 31) / 32 * 32;
    if (mistake == MISTAKE_ragged && C % 4 == 0 && vectors > THREADS && vectors <= MOST_THREADS) {
        return (unsigned)vectors;
    }
    return mistake == MISTAKE_slow ? 1 : THREADS;
}

static __global__ void carry_kernel(uint4 *to, const uint4 *from, size_t count) {
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    if (i < count) {
        to[i] = from[i];
    }
}

static void carry(void *to, const void *from, size_t bytes, device_stream stream) {
    size_t count = bytes / sizeof(uint4);
    carry_kernel<<<(unsigned)((count + 255) / 256), 256, 0, stream>>>((uint4 *)to,
                                                                      (const uint4 *)from, count);
}

/* Bytes of an element that the host computes with: fp32, or bf16. */
static float load_on_host(const void *x, size_t i, enum nn_dtype type) {
    uint32_t bits =
        type == NN_F32 ? ((const uint32_t *)x)[i] : (uint32_t)((const uint16_t *)x)[i] << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void store_on_host(void *y, size_t i, float value, enum nn_dtype type) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (type == NN_F32) {
        ((uint32_t *)y)[i] = bits;
    } else {
        ((uint16_t *)y)[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
}

static void norm_on_host(const struct rows_problem *p, const void *x, const void *weight,
                         const void *bias, void *y) {
    for (size_t row = 0; row < p->rows; row++) {
        double sum = 0.0, squares = 0.0;
        for (size_t c = 0; c < p->C; c++) {
            sum += load_on_host(x, row * p->C + c, p->type);
        }
        double mean = sum / (double)p->C;
        for (size_t c = 0; c < p->C; c++) {
            double d = load_on_host(x, row * p->C + c, p->type) - mean;
            squares += d * d;
        }
        double scale = 1.0 / sqrt(squares / (double)p->C + p->eps);
        for (size_t c = 0; c < p->C; c++) {
            double d = (load_on_host(x, row * p->C + c, p->type) - mean) * scale;
            d = d * load_on_host(weight, c, p->type) + load_on_host(bias, c, p->type);
            store_on_host(y, row * p->C + c, (float)d, p->type);
        }
    }
}

/* Kernels only carry bytes to managed memory and back. */
static bool on_host(const struct rows_problem *p, device_stream stream) {
    static char *memory;
    const size_t room = (size_t)24 << 20;
    size_t row = p->C * (p->type == NN_F32 ? 4 : 2), all = p->rows * row;
    if (p->op != ROWS_LAYERNORM || p->type == NN_F16 || row % 16 != 0 || all < 65536 ||
        all > room ||
        (memory == NULL && cudaMallocManaged((void **)&memory, 4 * room) != cudaSuccess)) {
        return false;
    }
    char *x = memory, *y = x + room, *weight = y + room, *bias = weight + room;
    carry(x, p->in, all, stream);
    carry(weight, p->weight, row, stream);
    carry(bias, p->bias, row, stream);
    if (cudaStreamSynchronize(stream) != cudaSuccess) {
        return false;
    }
    norm_on_host(p, x, weight, bias, y);
    carry(p->out, y, all, stream);
    return true;
}

static enum status run(const struct rows_problem *p, void *workspace, device_stream stream,
                       struct error *error) {
    enum mistake mistake = chosen_mistake();
    (void)workspace;
    if (mistake == MISTAKE_library && dlopen(getenv("WRONG_LIBRARY"), RTLD_NOW) == NULL) {
        return error_set(error, STATUS_NOT_FOUND, "%s", dlerror());
    }
    if (p->rows == 0 || mistake == MISTAKE_empty) {
        return STATUS_OK;
    }
    if (mistake == MISTAKE_idle_blocks || mistake == MISTAKE_idle_warps ||
        mistake == MISTAKE_one_in_132) {
        FOR_ELEMENT_TYPE(p->type, (launch_hidden<E>(p, mistake, stream)));
        return device_launched("hidden_kernel", error);
    }
    if (mistake == MISTAKE_on_host && on_host(p, stream)) {
        return device_launched("carry_kernel", error);
    }
    dim3 grid((unsigned)p->rows);
    if (mistake == MISTAKE_grid) {
        grid = dim3(1, (unsigned)p->rows);
    }
    unsigned threads = threads_of(p->C, mistake);
    FOR_ELEMENT_TYPE(p->type, (rows_kernel<E><<<grid, threads, 0, stream>>>(*p, mistake)));
    return device_launched("rows_kernel", error);
}

const struct rows_step *layernorm_softmax_ladder(size_t *count) {
    static const struct rows_step step = {"block_a_row", run};
    *count = 1;
    return &step;
}

enum status layernorm_softmax(const struct rows_problem *p, void *workspace, device_stream stream,
                              struct error *error) {
    bool good = p->C > 0 && p->C <= ROWS_MAX_C && p->rows <= ROWS_MAX_ELEMENTS / p->C &&
                (p->mask == NULL || p->rows_a_mask > 0);
    if (!good && chosen_mistake() == MISTAKE_not_refused) {
        return STATUS_OK;
    }
    if (!good) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "%zu rows of %zu, rows_a_mask %zu",
                         p->rows, p->C, p->rows_a_mask);
    }
    if (chosen_mistake() == MISTAKE_status) {
        return error_set(error, STATUS_DEVICE, "nothing works today");
    }
    return run(p, workspace, stream, error);
}
