/*
 * Wrong submissions to lab 04. $WRONG_SGEMM names one; each must be caught by the parity test, with
 * a message that leads to the mistake. "right" is the control: it must pass. It is a plain tile in
 * shared memory, and must miss the speedup; so must "idle_blocks", the same beside idle blocks.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "labs/04_sgemm/sgemm.h"

#define MISTAKES(X)                                                               \
    X(right)                                                                      \
    X(idle_blocks)      /* right, beside many blocks that do nothing */           \
    X(empty)            /* does nothing */                                        \
    X(zeros)            /* writes zeros */                                        \
    X(other_form)       /* takes B for what it is in the other form */            \
    X(last_tile)        /* leaves out the rest of K that fills no tile */         \
    X(last_column)      /* leaves out the last column of an incomplete tile */    \
    X(no_load_check)    /* loads the tile's elements whether they exist or not */ \
    X(no_store_check)   /* stores one row too many */                             \
    X(no_barrier)       /* does not wait until the tile is complete */            \
    X(no_barrier_after) /* overwrites the tile while others still read */         \
    X(split_barrier)    /* waits only in threads that have an element */          \
    X(no_alpha)         /* ignores alpha */                                       \
    X(no_beta)          /* ignores beta */                                        \
    X(reads_c)          /* reads C when beta is 0 */                              \
    X(half)             /* rounds inputs to 11 bits, as fp16 and TF32 do */       \
    X(behind)           /* writes one element behind the output */                \
    X(changes_input)    /* changes A, and so the oracle's if it shared it */      \
    X(aligned)          /* loads 16 bytes at once, wherever they lie */           \
    X(grid)             /* more blocks in y than a grid takes */                  \
    X(status)           /* reports a failure */                                   \
    X(not_refused)      /* takes any size */                                      \
    X(library)          /* has somebody else at hand to do the work */

#define MISTAKE_VARIABLE "WRONG_SGEMM"
#include "grader/selftest/mistakes.h"

enum { TILE = 32 };

/* 11 significant bits. */
static __device__ float rounded(float x, enum mistake mistake) {
    unsigned bits = (__float_as_uint(x) + 0x1000u) & ~0x1fffu;
    return mistake == MISTAKE_half ? __uint_as_float(bits) : x;
}

static __device__ float element(const float *matrix, size_t row, size_t column, size_t rows,
                                size_t columns, enum mistake mistake) {
    bool inside = row < rows && column < columns;
    if (!inside && mistake != MISTAKE_no_load_check) {
        return 0.0f;
    }
    const float *x = matrix + row * columns + column;
    if (mistake == MISTAKE_aligned && columns % 4 == 0) {
        float4 four = *(const float4 *)(x - column % 4);
        const float parts[4] = {four.x, four.y, four.z, four.w};
        return parts[column % 4];
    }
    return rounded(*x, mistake);
}

static __device__ void store(const struct sgemm_problem &p, size_t m, size_t n, float sum,
                             enum mistake mistake) {
    size_t rows = mistake == MISTAKE_no_store_check ? p.M + 1 : p.M;
    size_t columns = p.N;
    if (mistake == MISTAKE_last_column && p.N % TILE != 0 && p.N > 1) {
        columns--;
    }
    if (m >= rows || n >= columns) {
        return;
    }
    float *c = p.C + m * p.N + n;
    float result = mistake == MISTAKE_no_alpha ? sum : p.alpha * sum;
    if (mistake == MISTAKE_reads_c || (p.beta != 0.0f && mistake != MISTAKE_no_beta)) {
        result += p.beta * *c;
    }
    *c = mistake == MISTAKE_zeros ? 0.0f : result;
}

static __global__ void tile_kernel(struct sgemm_problem p, enum mistake mistake) {
    __shared__ float a[TILE][TILE + 1], b[TILE][TILE + 1];
    size_t tiles_n = (p.N + TILE - 1) / TILE;
    size_t tile = mistake == MISTAKE_grid ? blockIdx.y : blockIdx.x;
    if (tile / tiles_n * TILE >= p.M) {
        return; /* the whole block has nothing to do */
    }
    size_t m = tile / tiles_n * TILE + threadIdx.y, n0 = tile % tiles_n * TILE;
    size_t n = n0 + threadIdx.x;
    bool plain = (p.form == SGEMM_B_PLAIN) != (mistake == MISTAKE_other_form);
    size_t end = mistake == MISTAKE_last_tile ? p.K / TILE * TILE : p.K;
    float sum = 0.0f;
    for (size_t k = 0; k < end; k += TILE) {
        a[threadIdx.y][threadIdx.x] = element(p.A, m, k + threadIdx.x, p.M, p.K, mistake);
        if (plain) {
            b[threadIdx.y][threadIdx.x] = element(p.B, k + threadIdx.y, n, p.K, p.N, mistake);
        } else {
            b[threadIdx.x][threadIdx.y] =
                element(p.B, n0 + threadIdx.y, k + threadIdx.x, p.N, p.K, mistake);
        }
        if (mistake != MISTAKE_no_barrier &&
            (mistake != MISTAKE_split_barrier || (m < p.M && n < p.N))) {
            __syncthreads();
        }
        for (int i = 0; i < TILE; i++) {
            sum += a[threadIdx.y][i] * b[i][threadIdx.x];
        }
        if (mistake != MISTAKE_no_barrier_after) {
            __syncthreads();
        }
    }
    store(p, m, n, sum, mistake);
    if (mistake == MISTAKE_behind && tile == 0 && threadIdx.x == 0 && threadIdx.y == 0) {
        p.C[p.M * p.N] = 0.0f;
    }
    if (mistake == MISTAKE_changes_input && p.K > 0 && m == 0 && n == 0) {
        const_cast<float *>(p.A)[0] = 0.0f;
    }
}

static enum status run(const struct sgemm_problem *problem, void *workspace, device_stream stream,
                       struct error *error) {
    enum mistake mistake = chosen_mistake();
    size_t tiles = (problem->M + TILE - 1) / TILE * ((problem->N + TILE - 1) / TILE);
    (void)workspace;
    if (mistake == MISTAKE_library && dlopen(getenv("WRONG_LIBRARY"), RTLD_NOW) == NULL) {
        return error_set(error, STATUS_NOT_FOUND, "%s", dlerror());
    }
    if (tiles == 0 || mistake == MISTAKE_empty) {
        return STATUS_OK;
    }
    enum { IDLE = 132 * 64 };
    dim3 grid((unsigned)tiles + (mistake == MISTAKE_idle_blocks ? IDLE : 0));
    if (mistake == MISTAKE_grid) {
        grid = dim3(1, (unsigned)tiles * TILE); /* as for tiles of one row */
    }
    tile_kernel<<<grid, dim3(TILE, TILE), 0, stream>>>(*problem, mistake);
    return device_launched("tile_kernel", error);
}

const struct sgemm_step *sgemm_ladder(size_t *count) {
    static const struct sgemm_step step = {"tile", run};
    *count = 1;
    return &step;
}

enum status sgemm(const struct sgemm_problem *problem, void *workspace, device_stream stream,
                  struct error *error) {
    size_t M = problem->M, N = problem->N, K = problem->K;
    if (M > SGEMM_MAX_SIZE || N > SGEMM_MAX_SIZE || K > SGEMM_MAX_SIZE) {
        if (chosen_mistake() == MISTAKE_not_refused) {
            return STATUS_OK;
        }
        return error_set(error, STATUS_INVALID_ARGUMENT, "sgemm: %zu x %zu x %zu is too large", M,
                         N, K);
    }
    if (chosen_mistake() == MISTAKE_status) {
        return error_set(error, STATUS_DEVICE, "nothing works today");
    }
    return run(problem, workspace, stream, error);
}
